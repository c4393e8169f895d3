//! Wrong usage and refusals: one clear message, the documented exit code, nothing lost or left behind.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::words::words;
use crate::support::{Done, TINY, entries, folder, iolab, refusals, run, run_tiny};

#[test]
fn a_typo_names_the_nearest() {
    let folder = folder();
    // The message has the name as typed, not the one it stands for.
    let told = refusals(
        folder.path(),
        &[
            &["run", "read-sise"],
            &["study", "--suite", "mikro"],
            &["rnu"],
            &["model", "chek"],
            &["model", "compare"],
            &["run", "read-size", "--set", "bz=4k"],
            &["run", "read-size", "--time", "10x"],
            &["run", "read-size", "--size", "4q"],
            &["run", "read-size", "--budget", "0"],
            &["run", "read-size", "--destroy-data=bogus"],
            &["table", "a.iolab", "--colour"],
        ],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn a_name_of_another_kind_names_its_command() {
    let folder = folder();
    let told = refusals(
        folder.path(),
        &[
            &["run", "etcd"],
            &["read-size"],
            &["run", "micro"],
            &["fit", "read-size"],
            &["study", "read-size"],
            &["study", "micro"],
            &["study", "--suite", "etcd"],
            &["show", "--format", "fio", "etcd"],
            // A name without a near one is answered with all names, which each new experiment would change.
            &["show", "read-szie"],
        ],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn bad_toml_is_refused_with_its_line() {
    let folder = folder();
    let head = "name = \"mine\"\nquestion = \"?\"\nresponse = \"throughput\"\n";
    let bodies = [
        "[factors]\nbs = []\n",
        "[settings]\ncolour = 1\n",
        "[settings]\nthreads = \"many\"\n",
        "[settings\n",
        "nonsense = 1\n",
    ];
    let told = bodies.map(|body| {
        std::fs::write(folder.path().join("mine.toml"), format!("{head}{body}")).unwrap();
        format!(
            "{body}{}",
            refusals(folder.path(), &[&["run", "mine.toml"]])
        )
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn an_existing_result_is_not_overwritten() {
    let folder = folder();
    let result = folder.path().join("old.iolab");
    std::fs::write(&result, "precious").unwrap();
    run_tiny(folder.path(), "read-size", &["-o", "old.iolab"]).expect(3);
    assert_eq!(std::fs::read_to_string(&result).unwrap(), "precious");
    assert_eq!(entries(folder.path()), ["old.iolab"]);
}

#[test]
fn an_existing_export_is_not_overwritten() {
    let folder = folder();
    run_tiny(folder.path(), "read-size", &["-o", "r.iolab"]).expect(0);
    std::fs::write(folder.path().join("out.csv"), "precious").unwrap();
    let arguments = ["export", "r.iolab", "--format", "csv", "-o", "out.csv"];
    run(folder.path(), &arguments).expect(3);
    let kept = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
    assert_eq!(kept, "precious");
}

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
fn settings_of_the_kernel_are_not_changed_without_consent() {
    let folder = folder();
    let told = refusals(
        folder.path(),
        &[
            &["run", "read-size", ".", "--set", "system=scheduler:none"],
            &words!("run read-size . --set system=scheduler:none --dry-run"),
            &["run", "read-size", ".", "--set", "realtime=50"],
            &words!("run read-size . --set realtime=50 --dry-run"),
            &words!("run read-size . --set realtime=50 --set nice=0 --change-system"),
            &["run", "read-size", ".", "--set", "system=scheduler"],
            &["run", "read-size", ".", "--set", "system=nr_requests:1"],
            &words!("run read-size model:sata-ssd --set system=scheduler:none --change-system"),
        ],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn a_target_that_is_none_is_named() {
    let folder = folder();
    let fifo = folder.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let told = refusals(
        folder.path(),
        &[
            &["run", "read-size", "fifo"],
            &["run", "read-size", "nowhere"],
        ],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn absurd_values_are_refused() {
    let folder = folder();
    let options = words!(
        "--size=4kB --size=0 --size=8000000T --threads=0 --depth=100000 --time=-1s \
         --budget=99999d --precision=7"
    );
    let lines = options.map(|option| ["run", "read-size", option]);
    let lines = lines.each_ref().map(<[_; 3]>::as_slice);
    let told = refusals(folder.path(), &lines);
    insta::assert_snapshot!(told);
}

#[test]
fn what_is_no_run_file_is_refused() {
    let folder = folder();
    std::fs::write(folder.path().join("note.iolab"), "just text").unwrap();
    let told = refusals(
        folder.path(),
        &[
            &["table", "note.iolab"],
            &["table", "missing.iolab"],
            &["export", "--format", "csv", "note.iolab"],
            &["export", "--format", "csv", "missing.iolab"],
            &["resume", "note.iolab"],
            &["resume", "missing.iolab"],
        ],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn a_run_file_cut_short_is_refused() {
    let folder = folder();
    run_tiny(folder.path(), "read-size", &["-o", "r.iolab"]).expect(0);
    let whole = std::fs::read(folder.path().join("r.iolab")).unwrap();
    for length in [50, 2000, whole.len() / 2] {
        std::fs::write(folder.path().join("cut.iolab"), &whole[..length]).unwrap();
        let done = run(folder.path(), &["table", "cut.iolab"]);
        // A panic has exit code 101.
        assert!(
            matches!(done.code, Some(1 | 2)),
            "{:?}: {}",
            done.code,
            done.stderr
        );
    }
}

#[test]
fn all_mistakes_of_a_job_file_are_told_with_their_lines() {
    let folder = folder();
    let text =
        "[global]\nbs=banana\n\n[one]\nrw=read\nnosuch=1\n[two]\nstonewall\nrw=writ\niodepth=0\n";
    std::fs::write(folder.path().join("bad.fio"), text).unwrap();
    let told = refusals(folder.path(), &[&["run", "bad.fio"]]);
    insta::assert_snapshot!(told);
}

#[test]
fn files_of_others_read_no_secret_into_a_log() {
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
    // A run file keeps what a job file was read as, without the values of variables.
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

/// As one of four processes that mpiexec of MPICH has started.
fn as_rank(folder: &Path, rank: &str, arguments: &[&str]) -> Done {
    let mut command = iolab(folder, arguments);
    let output = command.env("PMI_SIZE", "4").env("PMI_RANK", rank).output();
    output.expect("the binary starts").into()
}

#[test]
#[cfg_attr(feature = "mpi", ignore = "a build with MPI joins the others")]
fn several_processes_of_a_launcher_are_not_unrelated_runs() {
    let folder = folder();
    let as_rank = |rank: &str, arguments: &[&str]| as_rank(folder.path(), rank, arguments);
    let measure = [&["run", "read-size"], &TINY[..]].concat();
    let told = as_rank("0", &measure).expect(2).stderr;
    insta::assert_snapshot!(told);
    // One message is enough, and a launcher may end all at the first exit code that is not 0.
    let done = as_rank("3", &measure).expect(0);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
    assert_eq!(as_rank("0", &["resume", "r.iolab"]).expect(2).stderr, told);
    let slo = ["run", "load-latency", "--slo", "p99<1ms"];
    assert_eq!(as_rank("0", &slo).expect(2).stderr, told);
    assert!(entries(folder.path()).is_empty());
    // Commands that do not measure work at every rank.
    as_rank("3", &["list"]).expect(0);
    as_rank("3", &[&measure[..], &["--dry-run"]].concat()).expect(0);
}

/// With MPI and without: one process carries them out.
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
fn what_is_read_is_a_regular_file_and_nothing_blocks() {
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
