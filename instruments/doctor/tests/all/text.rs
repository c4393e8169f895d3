//! Text of the doctor, reviewed before it was accepted.

use iolab_doctor::Diagnosis;
use iolab_record::environment::{Environment, KEYS};
use iolab_runner::preflight::{Finding, Severity, Topic};
use serde_json::Value;

fn diagnosis() -> Diagnosis {
    use Severity::{Fine, MustFix, WorthKnowing};
    let empty = "iolab study /home/me    # measures a scratch file that fits, written in full, and is removed";
    let findings = [
        (Topic::Target, "target", Fine, "a file of 2 GiB", None),
        (
            Topic::Target,
            "free",
            WorthKnowing,
            "40 GiB of 900 GiB are free (4.4 %): nearly full file systems break files up, and \
             nearly full drives write more slowly",
            Some("du -xhd1 /home    # see what takes the space"),
        ),
        (
            Topic::Data,
            "empty",
            MustFix,
            "512 MiB of 2 GiB (25 %) is a hole: it reads as zeros without any device",
            Some(empty),
        ),
    ];
    let findings = findings.map(|(topic, rule, severity, what, remedy)| Finding {
        remedy: remedy.map(str::to_owned),
        ..Finding::new(topic, rule, severity, what)
    });
    let mut environment = Environment::default();
    environment.put(&KEYS.memory_bytes, 16 << 30);
    Diagnosis {
        target: "/home/me/my data".to_owned(),
        kind: "file",
        findings: findings.into(),
        environment,
    }
}

#[test]
fn lines_keep_to_the_width_but_for_commands() {
    for width in [40, 60, 80, 100, 200] {
        let text = iolab_doctor::text(&diagnosis(), width, false);
        assert!(!text.contains('\x1b'));
        let wide = |line: &&str| line.chars().count() > usize::from(width);
        let long: Vec<&str> = text.lines().filter(wide).collect();
        assert!(
            long.iter().all(|line| line.trim_start().starts_with("$ ")),
            "{width}: {long:?}"
        );
    }
    insta::assert_snapshot!(iolab_doctor::text(&diagnosis(), 80, false));
}

#[test]
fn colours_only_mark_the_severity() {
    let plain = iolab_doctor::text(&diagnosis(), 80, false);
    let coloured = iolab_doctor::text(&diagnosis(), 80, true);
    let mut stripped = coloured.clone();
    for code in ["\x1b[32m", "\x1b[33m", "\x1b[1;31m", "\x1b[0m"] {
        stripped = stripped.replace(code, "");
    }
    assert_ne!(coloured, plain);
    assert_eq!(stripped, plain);
}

#[test]
fn names_that_drive_a_terminal_are_shown_harmless() {
    let mut diagnosis = diagnosis();
    diagnosis.target = "a\x1b[2Jb".to_owned();
    diagnosis.findings[0].what = "file\x1b]0;x\x07".to_owned();
    diagnosis.findings[0].remedy = Some("rm \x1b[1m".to_owned());
    assert!(!iolab_doctor::text(&diagnosis, 80, false).contains('\x1b'));
}

#[test]
fn json_holds_every_finding() {
    let diagnosis = diagnosis();
    let mut bytes = Vec::new();
    iolab_doctor::json(&diagnosis, &mut bytes).expect("written");
    let value: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(value["schema"], 1);
    assert_eq!(
        (&value["target"], &value["kind"]),
        (&"/home/me/my data".into(), &"file".into())
    );
    let findings = value["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), diagnosis.findings.len());
    assert_eq!(value["must_fix"], diagnosis.count(Severity::MustFix));
    let empty = findings.iter().find(|f| f["rule"] == "empty");
    let empty = empty.expect("there");
    assert_eq!(
        (&empty["topic"], &empty["severity"]),
        (&"data".into(), &"must fix".into())
    );
    assert_eq!(
        empty["remedy"],
        *diagnosis.findings[2].remedy.as_ref().expect("a command")
    );
    assert_eq!(value["environment"]["memory_bytes"], "17179869184");
}
