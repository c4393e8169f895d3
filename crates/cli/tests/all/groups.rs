//! Groups of workers side by side: run, shown, exported, drawn, compared and verified.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::words::words;
use crate::support::{self, exported, folder, refusals, run};

/// Small and short; where io_uring is forbidden psync does as well.
const TINY: [&str; 18] = words!(
    "--set backend=psync --set reader.depth=1 --set writer.depth=1 --set reader.region=1M \
     --set writer.region=2M --set writer.offset=1M --set reader.time=30ms --set writer.time=200ms --seed 7"
);

/// Whether both words are `NAME=VALUE` of one name.
fn same_setting(one: &str, other: &str) -> bool {
    let name = |word: &str| word.split_once('=').map(|(name, _)| name.to_owned());
    name(one).is_some_and(|own| name(other) == Some(own))
}

fn interference(folder: &Path, file: &str, more: &[&str]) -> support::Done {
    let first = ["run", "interference", "--budget", "1s", "-o", file];
    let is_changed = |pair: &&[&str]| more.iter().any(|word| same_setting(word, pair[1]));
    let tiny = TINY.chunks(2).filter(|pair| !is_changed(pair)).flatten();
    let tiny: Vec<&str> = tiny.copied().collect();
    let arguments = [&first[..], &tiny, more].concat();
    run(folder, &arguments)
}

fn of_group<'a>(rows: &'a [Value], group: &'a str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["group"] == group).collect()
}

#[test]
fn groups_are_swept_shown_exported_drawn_and_compared() {
    let folder = folder();
    let path = folder.path();
    let sets = ["--set", "writer.rate=0,20MB/s,none"];
    let done = interference(path, "i.iolab", &sets).expect(0);
    for name in ["writer.rate", "reader", "writer", "all"] {
        assert!(done.stdout.contains(name), "{name}:\n{}", done.stdout);
    }
    let rows = exported(path, "i.iolab");
    let (readers, writers) = (of_group(&rows, "reader"), of_group(&rows, "writer"));
    let all = of_group(&rows, "all");
    assert!(!readers.is_empty() && readers.len() == all.len());
    assert!(writers.len() < readers.len(), "idle where its rate is 0");
    for (number, row) in readers.iter().enumerate() {
        assert_eq!(row["write_bytes"], 0, "{number}");
        assert_eq!(row["bs_bytes"], 4096);
        assert_eq!(row["rate"], 1000);
    }
    for row in &writers {
        assert_eq!(row["read_bytes"], 0);
        assert_eq!(row["offset_bytes"], 1 << 20);
        let whole = all.iter().find(|all| all["sample"] == row["sample"]);
        assert_eq!(whole.expect("its trial")["write_bytes"], row["write_bytes"]);
    }
    let table = ["table", "i.iolab", "--metric", "writer.throughput"];
    run(path, &table).expect(0);
    let cells = run(path, &["table", "i.iolab", "--format", "json"]).expect(0);
    let table: Value = serde_json::from_str(&cells.stdout).expect("JSON");
    let cells = table["cells"].as_array().expect("cells");
    assert_eq!(
        cells.len(),
        2 + 3 + 3,
        "reader and all, twice with the writer"
    );
    run(
        path,
        &["plot", "i.iolab", "-o", "f.svg", "--y", "writer.throughput"],
    )
    .expect(0);
    let figure = fs::read_to_string(path.join("f.svg")).expect("a figure");
    assert!(figure.contains("writer"), "the group is named");
    run(
        path,
        &["plot", "i.iolab", "-o", "p.svg", "--kind", "percentiles"],
    )
    .expect(0);
    run(path, &["report", "i.iolab", "-o", "r.html"]).expect(0);
    let page = fs::read_to_string(path.join("r.html")).expect("a page");
    assert!(page.contains("writer.offset"), "settings of a group");
    let done = run(
        path,
        &words!("compare i.iolab i.iolab --metric writer.throughput"),
    );
    assert!(matches!(done.code, Some(0 | 5)), "{}", done.stderr);
    run(path, &["table", "i.iolab", "--metric", "cleaner.p99"]).expect(2);
}

#[test]
fn a_group_that_mixes_reads_and_writes_is_shown_in_full() {
    let folder = folder();
    let path = folder.path();
    let sets = words!("--set writer.rate=none --set writer.read_percent=50");
    interference(path, "m.iolab", &sets).expect(0);
    let done = run(path, &["table", "m.iolab"]).expect(0);
    for column in ["read MB/s", "write p99"] {
        assert!(done.stdout.contains(column), "{column}:\n{}", done.stdout);
    }
    run(path, &["report", "m.iolab", "-o", "m.html"]).expect(0);
}

#[test]
fn what_groups_write_is_verified() {
    let folder = folder();
    let sets =
        words!("--buffered --set writer.rate=none --set writer.verify=true --set writer.bs=64k");
    let cold = [&sets[1..], &["--set", "cache=cold"]].concat();
    interference(folder.path(), "v.iolab", &cold).expect(0);
    let rows = exported(folder.path(), "v.iolab");
    let writers = of_group(&rows, "writer");
    assert!(
        writers
            .iter()
            .all(|row| row["verified_blocks"].as_u64() > Some(0))
    );
    assert!(writers.iter().all(|row| row["lost_blocks"] == 0));
    let same = words!("--set reader.read_percent=50 --set writer.offset=0");
    let more = [&cold[..], &same[..]].concat();
    let done = interference(folder.path(), "w.iolab", &more).expect(2);
    insta::assert_snapshot!(done.stderr);
}

#[test]
fn groups_run_on_a_model_too() {
    let folder = folder();
    let arguments =
        words!("run interference model:sata-ssd --set writer.rate=0,50MB/s --seed 1 -o m.iolab");
    let done = run(folder.path(), &arguments).expect(0);
    let cells = run(folder.path(), &["table", "m.iolab", "--format", "json"]).expect(0);
    let table: Value = serde_json::from_str(&cells.stdout).expect("JSON");
    let cells = table["cells"].as_array().expect("cells");
    assert!(cells.iter().any(|cell| cell["group"] == "writer"));
    let again = [&arguments[..8], &["n.iolab"]].concat();
    let second = run(folder.path(), &again).expect(0);
    assert_eq!(done.stdout, second.stdout);
    let refused = [&arguments[..], &["--set", "writer.verify=true"]].concat();
    let done = run(folder.path(), &refused).expect(2);
    insta::assert_snapshot!(done.stderr);
}

#[test]
fn what_takes_no_groups_says_so() {
    let folder = folder();
    let told = refusals(
        folder.path(),
        &[
            &["run", "interference", "--peer", "fio"],
            &["run", "interference", "--set", "cleaner.rate=5"],
            &["run", "interference", "--set", "reader.layout=private"],
            &["run", "interference", "--slo", "p99<1ms"],
            &["run", "read-size", "--set", "rate=0"],
        ],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn groups_that_are_all_idle_are_refused() {
    let folder = folder();
    let definition = "name = \"idle\"\nquestion = \"?\"\nresponse = \"throughput\"\n[settings]\nregion = \"1M\"\n[group.a]\nrate = 0\n[group.b]\n";
    fs::write(folder.path().join("idle.toml"), definition).expect("written");
    let told = refusals(
        folder.path(),
        &[
            &["run", "idle.toml", "--set", "b.rate=0"],
            &["run", "idle.toml", "--set", "b.rate=0,10"],
        ],
    );
    insta::assert_snapshot!(told);
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
fn nothing_is_written_to_a_target_that_was_not_consented_to() {
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

#[test]
fn what_cannot_be_used_at_once_is_refused() {
    let folder = folder();
    let path = folder.path();
    for name in ["file", "other"] {
        fs::write(path.join(name), vec![0; 1 << 20]).expect("written");
    }
    std::os::unix::fs::symlink("file", path.join("link")).expect("a link");
    let told = refusals(
        path,
        &[
            &["run", "read-size", "file", "link", "--together"],
            &["run", "read-size", "./file", "file", "--together"],
            &["run", "read-size", "file", "--together"],
            &["run", "interference", "file", "other", "--together"],
            &["run", "read-size", "model:sata-ssd", "--together"],
            &["run", "interference", "--set", "active=reader,cleaner"],
            &["run", "read-size", "--set", "active=reader"],
        ],
    );
    insta::assert_snapshot!(told);
}
