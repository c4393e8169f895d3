//! Wrong usage and refusals: one clear message, the documented exit code, no data lost, and no
//! files left over.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Done, TINY, entries, folder, iolab, run, run_tiny};

#[test]
fn a_file_is_not_written_without_consent() {
    let folder = folder();
    let file = folder.path().join("mine");
    let data = vec![7u8; 4 << 20];
    std::fs::write(&file, &data).unwrap();
    run_tiny(folder.path(), "write-size", &["mine"]).expect(3);
    assert_eq!(std::fs::read(&file).unwrap(), data);
    run_tiny(folder.path(), "write-size", &["mine", "--destroy-data"]).expect(0);
    assert_ne!(std::fs::read(&file).unwrap(), data);
}

#[test]
fn files_of_others_put_no_secret_into_logs() {
    const SECRET: &str = "hunter2topsecret";
    let root = folder();
    let place = root.path().join("checkout");
    std::fs::create_dir(&place).unwrap();
    let secret = root.path().join("secret");
    let lines = format!("root:{SECRET}:1\n{SECRET} = 1\n[{SECRET}]\nrw={SECRET}\n");
    std::fs::write(&secret, lines).unwrap();
    for link in ["link.fio", "link.toml"] {
        std::os::unix::fs::symlink(&secret, place.join(link)).unwrap();
    }
    let suite = "name = 'x'\nabout = ''\nbudget = '1min'\n[[experiments]]\nuse = ";
    for (name, text) in [
        ("a.fio", "[a]\nsize=1m\ninclude ../secret\n".to_owned()),
        (
            "b.fio",
            format!("[a]\nsize=1m\ninclude {}\n", secret.display()),
        ),
        ("c.fio", "[a]\nsize=1m\ninclude link.fio\n".to_owned()),
        ("d.fio", "[a]\nsize=1m\nrw=${SECRET}\n".to_owned()),
        ("e.fio", "[a]\nsize=1m\ndescription=${SECRET}\n".to_owned()),
        ("f.fio", "[a]\nsize=1m\nfilename=/${SECRET}/x\n".to_owned()),
        ("a.toml", format!("{suite}'../secret.toml'\n")),
        ("b.toml", format!("{suite}'link.toml'\n")),
    ] {
        std::fs::write(place.join(name), text).unwrap();
    }
    let with_secret = |arguments: &[&str]| -> Done {
        let output = iolab(&place, arguments).env("SECRET", SECRET).output();
        output.expect("the binary starts").into()
    };
    for name in [
        "a.fio", "b.fio", "c.fio", "d.fio", "e.fio", "f.fio", "link.fio", "link.toml",
    ] {
        for command in [
            &["run", name, "--dry-run"][..],
            &["run", name, "--dry-run", "--allow-include"],
            &["show", name],
            &["show", name, "--allow-include"],
        ] {
            let done = with_secret(command);
            let code = if name == "e.fio" { 0 } else { 2 };
            assert_eq!(done.code, Some(code), "{command:?}: {}", done.stderr);
            for text in [&done.stdout, &done.stderr] {
                assert!(!text.contains(SECRET), "{command:?}: {text}");
            }
        }
    }
    for name in ["a.toml", "b.toml", "link.toml"] {
        let done = with_secret(&["study", ".", "--suite", name, "--dry-run"]).expect(2);
        assert!(!done.stderr.contains(SECRET), "{name}: {}", done.stderr);
    }
    let done = with_secret(&["model", "show", "./link.toml"]).expect(2);
    assert!(!done.stderr.contains(SECRET), "{}", done.stderr);
    let done = with_secret(&["stats", "link.toml"]).expect(2);
    assert!(!done.stderr.contains(SECRET), "{}", done.stderr);
    // A run file keeps a job file as read, without values of variables.
    let run = [
        "run", "e.fio", ".", "--budget", "1s", "--time", "10ms", "-o", "e.iolab",
    ];
    with_secret(&run).expect(0);
    let file = std::fs::read(place.join("e.iolab")).unwrap();
    assert!(
        !file
            .windows(SECRET.len())
            .any(|part| part == SECRET.as_bytes())
    );
}

/// Runs the binary like one of four processes that mpiexec of MPICH starts.
fn as_rank(folder: &Path, rank: &str, arguments: &[&str]) -> Done {
    let mut command = iolab(folder, arguments);
    let output = command.env("PMI_SIZE", "4").env("PMI_RANK", rank).output();
    output.expect("the binary starts").into()
}

#[test]
#[cfg_attr(feature = "mpi", ignore = "a build with MPI joins the others")]
fn processes_of_a_launcher_are_not_separate_runs() {
    let folder = folder();
    let as_rank = |rank: &str, arguments: &[&str]| as_rank(folder.path(), rank, arguments);
    let measure = [&["run", "read-size"], &TINY[..]].concat();
    let told = as_rank("0", &measure).expect(2).stderr;
    insta::assert_snapshot!(told);
    // One message suffices, and a launcher may end all processes at the first exit code other than 0.
    let done = as_rank("3", &measure).expect(0);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
    assert_eq!(as_rank("0", &["resume", "r.iolab"]).expect(2).stderr, told);
    let slo = ["run", "load-latency", "--slo", "p99<1ms"];
    assert_eq!(as_rank("0", &slo).expect(2).stderr, told);
    assert!(entries(folder.path()).is_empty());
    // Commands that do not measure work in every rank.
    as_rank("3", &["list"]).expect(0);
    as_rank("3", &[&measure[..], &["--dry-run"]].concat()).expect(0);
}

/// A command of one process runs alone, with MPI and without.
#[test]
fn commands_of_one_process_say_so_to_several() {
    let folder = folder();
    let mut told = String::new();
    for arguments in [&["study"][..], &["fit", "etcd"], &["why", "r.iolab"]] {
        told += &as_rank(folder.path(), "0", arguments).expect(2).stderr;
        let done = as_rank(folder.path(), "1", arguments).expect(0);
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
    }
    insta::assert_snapshot!(told);
    assert!(entries(folder.path()).is_empty());
    as_rank(folder.path(), "1", &["fit", "etcd", "--dry-run"]).expect(0);
}

#[test]
fn inputs_are_regular_files_and_never_block() {
    let folder = folder();
    let fifo = folder.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let mut told = BTreeSet::new();
    for path in ["fifo", "/proc/self/status"] {
        for arguments in [
            &["run", path][..],
            &["show", path],
            &["study", "--suite", path],
            &["fit", path, "."],
            &["table", path],
            &["report", path],
            &["resume", path],
            &["import", path],
            &["stats", path],
            &["compare", path, path],
            #[cfg(feature = "gate")]
            &["gate", "--history", ".", path],
            &["model", "show", path],
            &["run", "read-size", &format!("model:{path}")],
        ] {
            let done = run(folder.path(), arguments).expect(2);
            let why = done.stderr.lines().next().unwrap_or_default();
            told.insert(why.to_owned());
        }
    }
    let told = told.into_iter().collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(told, @r"
    error: /proc/self/status is not on storage
    error: fifo is not a regular file
    ");
    assert_eq!(entries(folder.path()), ["fifo"]);
}
