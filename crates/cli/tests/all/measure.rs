//! Commands that measure, on a real file system at a tiny size.

use std::path::Path;
use std::process::Stdio;

use crate::support::words::words;
use crate::support::{
    self, Done, TINY, entries, error_of, exported, folder, iolab, run, run_files, run_tiny, status,
};

/// Runs the binary with a standard output that has no reader.
fn without_reader(folder: &Path, arguments: &[&str]) -> Done {
    let mut child = iolab(folder, arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    child.wait_with_output().unwrap().into()
}

#[test]
fn measuring_ends_even_if_nobody_reads_standard_output() {
    let folder = folder();
    let suite = "name = \"two\"\nabout = \"?\"\nbudget = \"1s\"\n\
        [[experiments]]\nuse = \"read-size\"\n[[experiments]]\nuse = \"write-size\"\n";
    std::fs::write(folder.path().join("two.toml"), suite).unwrap();
    let run = [&["run", "read-size", "-o", "r.iolab"][..], &TINY].concat();
    let study = [&["study", "--suite", "two.toml"][..], &TINY].concat();
    for (arguments, files) in [(run, "r.iolab"), (study, "iolab-results/")] {
        let done = without_reader(folder.path(), &arguments).expect(0);
        assert!(done.stderr.contains(files), "{files}: {}", done.stderr);
    }
    // A full disk is an error.
    let full = std::fs::File::options().write(true).open("/dev/full");
    let again = [&["run", "read-size", "-o", "again.iolab"][..], &TINY].concat();
    let mut command = iolab(folder.path(), &again);
    command.stdout(full.expect("every Linux has it"));
    let done = Done::from(command.output().expect("started")).expect(1);
    let told = error_of(&done, folder.path());
    insta::assert_snapshot!(told, @r"
    everything is measured, but standard output could not be written: No space left on device (os error 28)
      see the results with: iolab table again.iolab
    ");
    let results = [
        "glance.png", "read-size.iolab", "report.html", "write-size.iolab",
    ];
    assert_eq!(entries(&folder.path().join("iolab-results")), results);
    for file in ["r.iolab", "iolab-results/write-size.iolab"] {
        self::run(folder.path(), &["table", file]).expect(0);
        assert_eq!(status(&folder.path().join(file)), "done");
    }
}

#[test]
fn study_runs_them_all_and_compares() {
    let folder = folder();
    let arguments = words!("study --suite quick --size 4MiB --time 5ms --budget 2s");
    let done = run(folder.path(), &arguments).expect(0);
    let files = run_files(folder.path());
    assert_eq!(files.len(), 7, "{files:?}");
    assert_eq!(
        entries(folder.path()),
        ["iolab-results"],
        "the scratch file is gone"
    );
    let left = done.stderr.lines().find(|line| line.contains("16MiB"));
    insta::assert_snapshot!(left.expect("a note"), @"note: read-size: left out bs 16MiB, 64MiB, larger than the 4 MiB there are");
    let report = folder.path().join("iolab-results/report.html");
    assert!(report.exists());
    let last = done.stdout.lines().last();
    insta::assert_snapshot!(last.unwrap_or_default(), @"In iolab-results: report.html, glance.png, 7 run files, buffer-memory.iolab first");
    let one =
        "name = \"one\"\nabout = \"?\"\nbudget = \"1s\"\n[[experiments]]\nuse = \"read-size\"\n";
    std::fs::write(folder.path().join("one.toml"), one).unwrap();
    let again = [&["study", "--suite", "one.toml"][..], &TINY].concat();
    run(folder.path(), &again).expect(0);
    assert!(report.with_file_name("report-2.html").exists());
}

/// On one file, with other files next to it, and in two folders of one file system.
#[test]
fn dry_run_refuses_too_little_space_too() {
    let folder = folder();
    for name in ["a", "b"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let free = iolab_storage::free(folder.path()).expect("asked");
    let most = format!("{}M", (free.expect("known") >> 20) / 4 * 3);
    let without_numbers = |text: &str| {
        let word = |word: &str| match word.starts_with(|c: char| c.is_ascii_digit()) {
            true => "N".to_owned(),
            false => word.to_owned(),
        };
        text.split_whitespace()
            .map(word)
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (says, targets) in [
        ("a scratch file of N PiB", &["a", "--size", "1P"][..]),
        (
            "with files per thread or fresh files next to it: ",
            &["a", "--size", &most, "--set", "layout=private"],
        ),
        (
            "what is written to DIR/a and DIR/b does not fit",
            &["a", "b", "--size", &most],
        ),
    ] {
        let plan = [&["run", "read-random", "--bs", "4k"], targets].concat();
        let dry = run(folder.path(), &[&plan[..], &["--dry-run"]].concat());
        let place = folder.path().display().to_string();
        let dry = dry.expect(3).stdout.replace(&place, "DIR");
        let (_, refused) = dry.split_once("Refused: ").expect("a refusal");
        let (refused, _) = refused.split_once("\nFilling ").expect("the end");
        let error = error_of(&run(folder.path(), &plan).expect(3), folder.path());
        let error = without_numbers(&error.replacen("\n  ", "; ", 1));
        assert!(error.starts_with(says), "{error}");
        assert_eq!(without_numbers(refused), error);
    }
}

#[test]
fn the_glance_comes_with_a_picture() {
    let folder = folder();
    let tiny = ["--size", "4MiB", "--time", "5ms", "--budget", "1s"];
    let study = words!("study --suite glance --set backend=psync --set depth=1");
    run(folder.path(), &[&study[..], &tiny].concat()).expect(0);
    let picture = std::fs::read(folder.path().join("iolab-results/glance.png")).unwrap();
    // Bytes 16 to 24 of a PNG are its width and height.
    assert_eq!(picture[16..24], [0, 0, 4, 176, 0, 0, 2, 118]);
    let names = run_files(folder.path());
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].ends_with("glance.iolab"), "{names:?}");
}

#[test]
fn results_get_new_names() {
    let folder = folder();
    for _ in 0..2 {
        run_tiny(folder.path(), "read-size", &[]).expect(0);
    }
    assert_eq!(run_files(folder.path()).len(), 2);
}

#[test]
fn zeros_are_never_called_a_device() {
    let folder = folder();
    let done = run_tiny(folder.path(), "read-size", &["/dev/zero", "-o", "z.iolab"]).expect(0);
    let of_target = |line: &&str| line.starts_with("note: ") && line.contains("/dev/zero");
    let notes: Vec<&str> = done.stderr.lines().filter(of_target).collect();
    insta::assert_snapshot!(notes.join("\n"), @r"
    note: /dev/zero is a character device, not storage: results show the speed of memory
    note: /dev/zero cannot be opened for direct I/O: a character device does not support O_DIRECT; measuring through the page cache instead (cache=cold)
    ");
    let rows = exported(folder.path(), "z.iolab");
    assert!(
        rows.iter().all(|r| r["served_by"] == "not-storage"),
        "{rows:?}"
    );
}

#[test]
fn memory_is_never_called_a_device() {
    let Some(memory) = support::folder_in_memory() else {
        return;
    };
    let folder = folder();
    let target = memory.path().to_str().unwrap();
    run_tiny(folder.path(), "read-size", &[target, "-o", "m.iolab"]).expect(0);
    let rows = exported(folder.path(), "m.iolab");
    assert!(
        rows.iter().all(|r| r["served_by"] == "not-storage"),
        "{rows:?}"
    );
    assert!(entries(memory.path()).is_empty());
}

#[test]
fn an_existing_file_is_only_read() {
    let folder = folder();
    let data: Vec<u8> = (0..1 << 20).map(|i: u32| (i / 7) as u8).collect();
    let file = folder.path().join("mine");
    std::fs::write(&file, &data).unwrap();
    let tiny = ["--time", "5ms", "--budget", "1s"];
    let arguments = [&["study", "mine"], &tiny[..]].concat();
    run(folder.path(), &arguments).expect(0);
    assert_eq!(std::fs::read(&file).unwrap(), data);
    let record = iolab_runfile::read(&run_files(folder.path())[0]).unwrap();
    assert!(record.cells.iter().all(|cell| !cell.spec.trial.writes()));
    assert_eq!(record.cells.len(), 4);
}
