//! Display of variables and of other files.

use std::path::Path;

use super::lines::Around;
use super::{of, read};

/// A text that must not appear in any message, table or run file.
const SECRET: &str = "hunter2/topsecret";

/// Everything that iolab shows of a job file: the meaning of each option and the definition, or the mistakes.
fn shown(text: &str, file: Option<&Path>, allow_include: bool) -> String {
    let variable = |name: &str| match name {
        "SECRET" => Some(SECRET.to_owned()),
        "SIZE" => Some("64m".to_owned()),
        _ => None,
    };
    let around = Around {
        file,
        allow_include,
        variable: &variable,
    };
    match of(text, "x", None, around) {
        Ok(file) => {
            let target = file.target.as_deref().unwrap_or(Path::new(""));
            format!("{}\n{}", file.to_toml().expect("TOML"), target.display())
        }
        Err(error) => error.to_string(),
    }
}

/// The explained options in the shown text of a job file.
fn meanings(shown: &str) -> String {
    let lines = shown.lines().take_while(|line| line.starts_with("# "));
    lines.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_secret(shown: &str, what: &str) {
    for part in [SECRET, "hunter2", "topsecret"] {
        assert!(!shown.contains(part), "{what}: {shown}");
    }
}

#[test]
fn values_of_variables_are_never_shown() {
    let names = iolab_workload::foreign_options::names_in_jobs();
    for name in names.chain(["nonsense", "ramp", "${SECRET}"]) {
        for value in [
            "${SECRET}", "4k,${SECRET}", "zoned:${SECRET}", "/tmp/${SECRET}", "rand:${SECRET}",
        ] {
            let line = format!("{name}={value}");
            for text in [
                format!("[a]\nrw=read\nsize=1m\n{line}\n"),
                format!("[global]\n{line}\n[a]\nsize=1m\n[b]\nrw=write\nsize=1m\n"),
                format!("[a]\nsize=1m\nlatency_target=1ms\n{line}\n"),
                format!("{line}\n[a]\nsize=1m\n"),
            ] {
                let shown = shown(&text, None, false);
                assert_secret(&shown, &text);
            }
        }
    }
    for text in [
        "[${SECRET}]\nsize=1m\n", "include ${SECRET}\n", "[a]\nsize=1m\n${SECRET}\n",
    ] {
        assert_secret(&shown(text, None, false), text);
    }
    let text = shown("[a]\nrw=${SECRET}\nsize=1m\n", None, false);
    insta::assert_snapshot!(text, @r"
line 2: iolab cannot carry out rw=${SECRET} with what is in the environment
  values of variables are not shown: write the value itself to see what is wrong
");
    // A value that iolab understands is shown as the setting that follows from it.
    let text = shown("[a]\nrw=read\nsize=${SIZE}\n", None, false);
    insta::assert_snapshot!(meanings(&text), @r"
    # line 2: rw=read: pattern=seq, read_percent=100
    # line 3: size=${SIZE}: region=64MiB, bytes=64MiB
    ");
}

#[test]
fn lines_of_included_files_are_never_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = folder.path().join("job.fio");
    let included = folder.path().join("common.fio");
    let names = iolab_workload::foreign_options::names_in_jobs();
    let options = names.map(|name| format!("{name}={SECRET}"));
    let lines = [
        format!("root:{SECRET}:19000:0:99999:7:::"),
        format!("[{SECRET}]"),
        format!("[{SECRET}"),
        format!("include {SECRET}"),
        format!("include /{SECRET}"),
        format!("bs=${{{SECRET}"),
        format!("bs=${{{SECRET}}}"),
        format!("{SECRET}=1"),
        format!("filename=/tmp/{SECRET}"),
        format!("directory=/{SECRET}"),
        format!("bssplit={SECRET}"),
    ];
    for line in options.chain(lines) {
        std::fs::write(&included, format!("\n{line}\n")).expect("written");
        for text in [
            "[a]\nrw=read\nsize=1m\ninclude common.fio\n",
            "[global]\ninclude common.fio\n[a]\nsize=1m\n[b]\nrw=write\nsize=1m\n",
            "include common.fio\n",
        ] {
            assert_secret(&shown(text, Some(&job), true), &line);
        }
    }
    std::fs::write(&included, "direct=1\nbs=banana\n").expect("written");
    let text = shown("[a]\nrw=read\ninclude common.fio\n", Some(&job), false);
    insta::assert_snapshot!(text, @r"
line 3 (common.fio, line 2): iolab cannot carry out this line
  lines of other files are not shown: look there, or write the line into the job file
");
    std::fs::write(folder.path().join("deep.fio"), "bs=banana\n").expect("written");
    std::fs::write(&included, "include deep.fio\n").expect("written");
    let text = shown("[a]\ninclude common.fio\n", Some(&job), false);
    insta::assert_snapshot!(text, @r"
line 2 (common.fio, line 1, line 1): iolab cannot carry out this line
  lines of other files are not shown: look there, or write the line into the job file
");
    std::fs::write(&included, "bs=64k\nfilename=/tmp\n").expect("written");
    let text = shown("[a]\nsize=1m\ninclude common.fio\n", Some(&job), false);
    insta::assert_snapshot!(meanings(&text), @"
    # line 2: size=1m: region=1MiB, bytes=1MiB
    # line 3 (common.fio, line 1): bs: bs=64KiB, bs_mix=none
    # line 3 (common.fio, line 2): filename: TARGET, unless one is given
    # the target /tmp is left out: give it as TARGET to 'iolab run', or as filename to fio
    ");
}

#[test]
fn files_elsewhere_are_included_only_if_allowed() {
    use std::os::unix::fs::symlink;

    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("jobs");
    std::fs::create_dir_all(folder.join("below")).expect("made");
    let secret = root.path().join("secret");
    let place = |name: &str| folder.join(name);
    for path in [&secret, &place("own"), &place("below/own")] {
        std::fs::write(path, "bs=64k\n").expect("written");
    }
    symlink(&secret, place("link")).expect("linked");
    symlink(root.path(), place("out")).expect("linked");
    symlink("own", place("alias")).expect("linked");
    let job = place("job.fio");
    let include = |name: &str, allow| {
        shown(
            &format!("[a]\nsize=1m\ninclude {name}\n"),
            Some(&job),
            allow,
        )
    };
    for name in ["own", "./own", "below/own", "below/../own", "alias"] {
        assert!(include(name, false).contains("bs=64KiB"), "{name}");
    }
    let absolute = secret.display().to_string();
    for name in [
        "../secret", "below/../../secret", "link", "out/secret", "out/jobs/../secret", &absolute,
    ] {
        let refused = include(name, false);
        assert!(refused.contains("--allow-include"), "{name}: {refused}");
        // A file that is missing or cannot be read is refused in other words.
        let told = refused.replace(name, "FILE");
        insta::allow_duplicates! {
            insta::assert_snapshot!(told, @r"
            line 3: FILE is outside of the folder of the file that names it
              put it into that folder or below it
              --allow-include lets a job file include any file that you can read
            ");
        }
        assert!(include(name, true).contains("bs=64KiB"), "{name}");
    }
    // Messages do not reveal whether a file elsewhere exists.
    assert_eq!(
        include("../none", false).replace("none", "secret"),
        include("../secret", false)
    );
    std::fs::write(place("below/own"), "include ../../secret\n").expect("written");
    assert!(!include("below/own", false).contains("64KiB"));
    // The job file itself can be a link.
    std::fs::write(&secret, format!("root:{SECRET}\n[{SECRET}]\nrw={SECRET}\n")).expect("written");
    let error = read(&place("link"), None, false).expect_err("no job file");
    assert_secret(&error.to_string(), "link");
    let told = error
        .message()
        .replace(&place("").display().to_string(), "DIR/");
    insta::assert_snapshot!(told, @r"
    DIR/link: 2 mistakes
      line 1: iolab cannot carry out this line
        lines of other files are not shown: look there, or write the line into the job file
      line 3: iolab cannot carry out this line
        lines of other files are not shown: look there, or write the line into the job file
    ");
}
