//! Groups of workers side by side: run, shown, exported, drawn, compared and verified.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::words::words;
use crate::support::{exported, folder, run};

fn of_group<'a>(rows: &'a [Value], group: &'a str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["group"] == group).collect()
}

/// Small, short, and the same everywhere.
const WRITES: [&str; 14] = words!(
    "--set bs=64k --set sync=none --set cache=cold --size 1M --time 20ms --budget 1s --seed 7"
);

/// A folder with directories to put scratch files into.
fn folder_with(names: &[&str]) -> TempDir {
    let folder = folder();
    for name in names {
        fs::create_dir(folder.path().join(name)).expect("a directory");
    }
    folder
}

fn are_empty(path: &Path, names: &[&str]) {
    for name in names {
        let left = fs::read_dir(path.join(name)).expect("a directory").count();
        assert_eq!(left, 0, "{name} is left empty");
    }
}

#[test]
fn targets_are_used_at_once_and_each_alone() {
    let folder = folder_with(&["a", "b", "c"]);
    let path = folder.path();
    let command = words!("run write-size a b c --together -o t.iolab");
    run(path, &[&command[..], &WRITES[..]].concat()).expect(0);
    let rows = exported(path, "t.iolab");
    let actives: Vec<&str> = ["a", "b", "c", "a+b", "all"].to_vec();
    for active in &actives {
        let own: Vec<&Value> = rows
            .iter()
            .filter(|row| row["level_active"] == *active)
            .collect();
        assert!(!own.is_empty(), "{active} in {:#?}", rows.first());
        for name in ["a", "b", "c"] {
            let runs = *active == "all" || active.split('+').any(|part| part == name);
            let group: Vec<&&Value> = own.iter().filter(|row| row["group"] == name).collect();
            assert_eq!(!group.is_empty(), runs, "{name} in {active}");
            for row in group {
                // Each has its own file, in its own directory.
                let target = row["target"].as_str().unwrap_or_default();
                assert!(target.ends_with(&format!("/{name}")), "{target}");
                assert!(row["write_bytes"].as_u64() > Some(0));
            }
        }
    }
    are_empty(path, &["a", "b", "c"]);
}

#[test]
fn target_without_consent_is_not_written() {
    let folder = folder();
    let path = folder.path();
    fs::create_dir(path.join("a")).expect("a directory");
    let text = vec![b'x'; 2 << 20];
    fs::write(path.join("file"), &text).expect("written");
    let definition = "name = \"two\"\nquestion = \"?\"\nresponse = \"throughput\"\n[settings]\nbs = \"64k\"\nregion = \"1M\"\ncache = \"cold\"\ntime = \"20ms\"\n[group.one]\nread_percent = 100\n[group.two]\nread_percent = 0\ntarget = \"FILE\"\n";
    let named = path.join("file");
    let definition = definition.replace("FILE", named.to_str().expect("UTF-8"));
    fs::write(path.join("two.toml"), definition).expect("written");
    // The group that reads is the one on the target that the command names.
    for line in [
        "run two.toml a --budget 1s -o x.iolab",
        "run write-size a file --together --budget 1s -o x.iolab",
        "run write-size file a --together --budget 1s -o x.iolab",
        "run two.toml a --precondition seq:1 --set two.read_percent=100 -o x.iolab",
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        run(path, &arguments).expect(3);
        assert_eq!(fs::read(&named).expect("the file"), text, "{line}");
        assert!(!path.join("x.iolab").exists());
    }
    // With consent that group writes there, and the other one still reads its own scratch file.
    let consented = words!("run two.toml a --destroy-data --budget 1s -o y.iolab");
    run(path, &consented).expect(0);
    assert_ne!(fs::read(&named).expect("the file"), text);
    let rows = exported(path, "y.iolab");
    for row in of_group(&rows, "one") {
        assert_eq!(
            (
                &row["write_bytes"],
                row["target"].as_str().map(|t| t.ends_with("/a"))
            ),
            (&Value::from(0), Some(true))
        );
    }
    for row in of_group(&rows, "two") {
        assert_eq!(
            (
                &row["read_bytes"],
                row["target"].as_str().map(|t| t.ends_with("/file"))
            ),
            (&Value::from(0), Some(true))
        );
    }
}
