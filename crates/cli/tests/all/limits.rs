//! Runs without a resource that they need, from the start or from a point in the middle: one clear message, the
//! documented exit code, and no files left over.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use needs::Need;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::support::words::words;
use crate::support::{Done, entries, error_of, exported, folder, iolab, run, started};

const FILE: &str = "r.iolab";
/// Many short trials of the smallest kind, on a scratch file in `data`.
const LONG: [&str; 22] = [
    "run", "read-size", "data", "-o", FILE, "--set", "bs=4k,64k", "--set", "trials_min=2000",
    "--set", "trials_max=2000", "--set", "precision=0.0001", "--set", "region=1MiB", "--set",
    "threads=1", "--time", "5ms", "--budget", "10min", "--buffered",
];

/// The arguments of [`LONG`] with few trials, and with other values of some settings.
fn short(others: &[&'static str]) -> Vec<&'static str> {
    let few = ["trials_min=2", "trials_max=2"];
    let others = [&few[..], others].concat();
    let name = |word: &'static str| word.split_once('=').map(|(name, _)| name);
    let other = |word| others.iter().find(|other| name(other) == name(word));
    LONG.map(|word| *name(word).and_then(|_| other(word)).unwrap_or(&word))
        .to_vec()
}

/// Runs the binary with a limit that the shell sets (`ulimit` with this option and value).
fn limited(folder: &Path, option: &str, value: u64, arguments: &[&str]) -> Done {
    let plain = iolab(folder, arguments);
    // Closes files that the caller of the tests left open, since they count for the limit.
    let script =
        "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit \"$1\" \"$2\" && shift 2 && exec \"$@\"";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, "sh"])
        .args([option, &value.to_string()])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(folder)
        .stdin(Stdio::null());
    shell.output().expect("there is a shell").into()
}

/// Asserts that a run with too little of a resource succeeded, or reported one error.
fn ended_properly(folder: &Path, done: &Done, what: &str) {
    let Done { code, stderr, .. } = done;
    assert!(
        matches!(code, Some(0..=3)),
        "{what}: {code:?} with {stderr}"
    );
    assert!(!stderr.contains("panicked"), "{what}: {stderr}");
    let errors = stderr.lines().filter(|line| line.starts_with("error:"));
    let expected = usize::from(*code != Some(0));
    assert_eq!(errors.count(), expected, "{what}: {stderr}");
    assert_eq!(entries(&folder.join("data")), [""; 0], "{what}: {stderr}");
    if folder.join(FILE).exists() {
        run(folder, &["table", FILE]).expect(0);
    }
}

/// Number of short runs that succeeded, with each of the limits.
fn below_each(option: &str, values: &[u64], others: &[&'static str]) -> usize {
    let mut whole = 0;
    for value in values {
        let folder = folder();
        fs::create_dir(folder.path().join("data")).expect("made");
        let done = limited(folder.path(), option, *value, &short(others));
        let what = format!("ulimit {option} {value}");
        ended_properly(folder.path(), &done, &what);
        whole += usize::from(done.code == Some(0));
    }
    whole
}

/// Runs the binary in namespaces of its own, after a script; a skip where these cannot be made. Needs root.
#[track_caller]
fn unshared(folder: &Path, options: &[&str], script: &str, arguments: &[&str]) -> Option<Done> {
    let plain = iolab(folder, arguments);
    // Exit code 99: the script failed, and the binary was not started.
    let script = format!("{script} || exit 99; exec \"$@\"");
    let mut unshare = Command::new("unshare");
    unshare.args(options).args(["sh", "-c", &script, "sh"]);
    unshare.arg(plain.get_program()).args(plain.get_args());
    let done = unshare.current_dir(folder).stdin(Stdio::null()).output();
    match done {
        Err(why) => needs::skip(Need::Mount, why),
        Ok(done) if done.status.code() == Some(99) || done.stderr.starts_with(b"unshare:") => {
            needs::skip(Need::Mount, String::from_utf8_lossy(&done.stderr));
        }
        Ok(done) => return Some(done.into()),
    }
    None
}

#[test]
fn a_hidden_dev() {
    let hidden = "mount -t tmpfs hidden /dev";
    let null = format!("{hidden} && mknod -m 666 /dev/null c 1 3");
    for script in [hidden, &null] {
        let folder = folder();
        fs::create_dir(folder.path().join("data")).expect("made");
        let Some(done) = unshared(folder.path(), &["--mount"], script, &short(&[])) else {
            return;
        };
        ended_properly(folder.path(), &done, script);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
    }
}

#[test]
#[cfg_attr(not(feature = "programs"), ignore = "it runs programs")]
fn programs_with_a_hidden_dev() {
    let hidden = "mount -t tmpfs hidden /dev";
    let folder = folder();
    fs::create_dir(folder.path().join("data")).expect("made");
    let arguments = ["run", "linkage", "data", "-o", FILE, "--budget", "1s"];
    let Some(done) = unshared(folder.path(), &["--mount"], hidden, &arguments) else {
        return;
    };
    ended_properly(folder.path(), &done, "programs");
    insta::assert_snapshot!(done.stderr, @r"
    error: cannot open /dev/null: No such file or directory (os error 2)
      programs are not run where /dev is hidden: mount it
    ");
}

/// Events have thread numbers of the host; numbers of this namespace belong to other programs there.
#[test]
#[cfg_attr(
    not(all(feature = "stages", feature = "witness")),
    ignore = "two instruments trace"
)]
fn trace_events_in_a_pid_namespace() {
    let folder = folder();
    let run = words!("run read-random . --size 1MiB --bs 4k --set trace=true -o r.iolab");
    let mut told = String::new();
    for arguments in [&run[..], &words!("witness --trace -- true")] {
        let options = ["--pid", "--fork", "--mount-proc"];
        let Some(done) = unshared(folder.path(), &options, "true", arguments) else {
            return;
        };
        told += &done.expect(2).stderr;
        assert_eq!(entries(folder.path()), [""; 0]);
    }
    insta::assert_snapshot!(told, @r"
    error: every trial: cannot record trace events: in this PID namespace (a container) threads have other numbers than in the events
      run iolab in the PID namespace of the host (--pid=host), or measure without trace events
    error: cannot record trace events: in this PID namespace (a container) threads have other numbers than in the events
      run iolab in the PID namespace of the host (--pid=host), or measure without trace events
    ");
}

#[test]
fn little_of_a_resource_is_one_clear_error() {
    // Stacks in KiB; files in blocks of 512 bytes: less than the scratch file, then less than the run file.
    for (option, values, whole) in [
        ("-s", &[64, 128, 8192][..], 3..=3),
        ("-n", &[4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 32], 1..=11),
        ("-f", &[1, 100, 2000], 0..=0),
    ] {
        let found = below_each(option, values, &[]);
        assert!(whole.contains(&found), "ulimit {option}: {found}");
    }
}

#[test]
fn little_memory() {
    // In KiB. With less memory than the program itself needs, the kernel does not start it.
    let start = least_memory();
    let limits = [0, 1_000, 5_000, 20_000, 40_000, 1_000_000].map(|more| start + more);
    let whole = below_each("-v", &limits, &[]);
    assert!(whole >= 1, "1 GB is enough");
    let many = ["threads=64", "region=8MiB"];
    let limits = [30_000, 120_000, 300_000, 4_000_000].map(|more| start + more);
    let whole = below_each("-v", &limits, &many);
    assert!(whole >= 1, "4 GB are enough");
    let large = ["bs=256MiB", "region=256MiB"];
    assert_eq!(below_each("-v", &[start + 170_000], &large), 0);
}

/// The least virtual memory with which the program prints its version, in KiB, to the nearest 1000.
fn least_memory() -> u64 {
    let folder = folder();
    let starts = |kib: &u64| {
        let done = limited(folder.path(), "-v", *kib, &["--version"]);
        done.code == Some(0)
    };
    let (mut little, mut enough) = (10_000, 1_000_000);
    assert!(starts(&enough), "1 GB is enough");
    while enough - little > 1000 {
        let between = (little + enough) / 2;
        match starts(&between) {
            true => enough = between,
            false => little = between,
        }
    }
    enough
}

/// Error and remedy of a run for which the limit of a resource falls after some measurements. Further errors
/// depend on the limit.
fn falls_in_mid_run(resource: Resource, to: u64) -> String {
    let folder = folder();
    let child = started(folder.path(), &LONG, 3);
    let limit = Rlimit {
        current: Some(to),
        maximum: getrlimit(resource).maximum,
    };
    prlimit(Some(Pid::from_child(&child)), resource, limit).expect("lowered");
    let done = Done::from(child.wait_with_output().expect("it ends"));
    ended_properly(folder.path(), &done, "in mid-run");
    assert_ne!(done.code, Some(0));
    assert!(exported(folder.path(), FILE).len() >= 3);
    let told = error_of(&done, folder.path());
    told.lines().take(2).collect::<Vec<_>>().join("\n")
}

#[test]
fn resources_run_out_in_mid_run() {
    let all = [(Resource::Nofile, 3), (Resource::Fsize, 64 << 10)];
    let told = all.map(|(resource, to)| falls_in_mid_run(resource, to));
    insta::assert_snapshot!(told.join("\n"), @r"
    cannot open (O_RDONLY) data/.iolab-scratch-NAME/data: Too many open files (os error 24)
      raise `ulimit -n` or use fewer threads or files
    I/O on r.iolab failed: disk I/O error
      raise `ulimit -f`, which limits the size of files here, or check the file system of the run file (dmesg)
    ");
}
