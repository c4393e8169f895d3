//! Claims about models whose truth is in their definitions. Each of these was once wrong.

use std::fs;
use std::path::Path;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::claim::{CauseVerdict, Claim, Payload, Suspects, claims};

use crate::support::words::words;
use crate::support::{folder, run};

/// A folder with the model files.
fn with_models() -> tempfile::TempDir {
    let folder = folder();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models");
    for model in fs::read_dir(models).expect("models") {
        let path = model.expect("a file").path();
        let name = path.file_name().expect("a name");
        fs::copy(&path, folder.path().join(name)).expect("copied");
    }
    folder
}

fn claimed(folder: &Path, file: &str) -> Vec<Claim> {
    let run = AnalysedRun::of(iolab_runfile::read(&folder.join(file)).expect("a run file"));
    claims(&[run.analysis()])
}

/// The verdict on a suspect.
fn verdict(all: &[Claim], suspect: &str) -> Option<CauseVerdict> {
    let is_of_it = |found: &&Suspects| found.suspects.iter().any(|one| one.suspect == suspect);
    let mut found = all.iter().filter_map(Claim::suspects).filter(is_of_it);
    found.next().map(|found| found.verdict)
}

#[test]
fn full_cache_after_two_seconds_is_a_fall() {
    let folder = with_models();
    let soak = words!(
        "run write-size model:write-back.toml --size 8G --set sync=none --soak 120s --seed 1 -o w.iolab --quiet --set bs=64k"
    );
    run(folder.path(), &soak).expect(0);
    let all = claimed(folder.path(), "w.iolab");
    let change = all.iter().find_map(|claim| match &claim.payload {
        Some(Payload::LevelChange(change)) => Some(change),
        _ => None,
    });
    let change = change.unwrap_or_else(|| panic!("{all:?}"));
    assert!((change.after_mb_s - 50.0).abs() < 0.5, "{change:?}");
    assert!(change.factor() < 0.25, "{change:?}");
    let gib = change.since.bytes / f64::from(1 << 30);
    assert!((2.0..2.2).contains(&gib), "{gib} GiB");
}

#[test]
fn slowdown_of_faster_side_is_not_a_cause() {
    let folder = with_models();
    let shown = words!(
        "run read-random model:lines.toml --set bs=64k --set pattern=seq,rand --seed 1 -o l.iolab --quiet"
    );
    run(folder.path(), &shown).expect(0);
    let why = words!("why l.iolab --budget 3min --seed 1 -o why.iolab --quiet");
    run(folder.path(), &why);
    let all = claimed(folder.path(), "why.iolab");
    assert_eq!(verdict(&all, "waiting"), Some(CauseVerdict::CannotTell));
    assert_eq!(verdict(&all, "reach"), Some(CauseVerdict::Cause));
}

#[test]
fn exceeded_stated_peak_is_in_the_first_line() {
    let folder = folder();
    let above = words!(
        "run read-size model:nvme-970pro --set bs=64k,1M --peak read=500MB/s --seed 1 -o p.iolab"
    );
    let text = run(folder.path(), &above).expect(0).stdout;
    let first = text.lines().take(2).collect::<Vec<_>>().join(" ");
    assert!(first.contains("exceeds ceiling"), "{text}");
    assert!(text.contains("efficiency"), "{text}");
}

#[test]
fn order_and_copies_of_files_change_no_report() {
    let folder = folder();
    for (model, file) in [
        ("model:sata-ssd", "a.iolab"),
        ("model:sata-7200", "b.iolab"),
    ] {
        let measured = [
            "run", "read-size", model, "--set", "bs=4k,1M", "--seed", "1", "-o", file, "--quiet",
        ];
        run(folder.path(), &measured).expect(0);
    }
    fs::copy(folder.path().join("a.iolab"), folder.path().join("c.iolab")).expect("copied");
    let reports = [
        ["a.iolab", "b.iolab", "c.iolab"],
        ["b.iolab", "a.iolab", "b.iolab"],
    ];
    let [one, other] = reports.map(|files| {
        let place = folder.path().join(files[0].replace("iolab", "pages"));
        fs::create_dir(&place).expect("made");
        let page = place.join("report.md");
        let page = page.to_str().expect("a name");
        let report = [&["report"], &files[..], &["-o", page]].concat();
        run(folder.path(), &report).expect(0);
        fs::read_to_string(page).expect("a report")
    });
    assert_eq!(one, other);
}
