use super::*;
use needs::settings;

const GIB: u64 = 1 << 30;

#[test]
fn a_trial_is_due_at_its_limit() {
    let timed = settings("region=1G time=7s");
    assert_eq!(due(&timed), Duration::from_secs(7));
    assert_eq!(patience(&timed), ANSWER);
    // At 4 MiB per second.
    let bounded = settings("region=1G bytes=1G");
    assert!(due(&bounded) >= Duration::from_secs(256));
    for cache in ["cold", "direct"] {
        let written = format!("region=1G bytes=1G read_percent=0 cache={cache}");
        assert_eq!(
            patience(&settings(&written)),
            ANSWER + Duration::from_secs(256)
        );
    }
}

#[test]
fn the_binary_is_not_taken_for_a_worker() {
    assert!(is_of_worker("iolab-0\n") && is_of_worker("iolab-127"));
    for other in ["iolab", "iolab-", "iolab-mpi", "iolab-0.1", NAME] {
        assert!(!is_of_worker(other), "{other}");
    }
}

#[test]
fn threads_waking_only_to_wait_stand_still() {
    let threads = |counts| Scheduled::from([("7".to_owned(), counts)]);
    let before = threads((1000, 7));
    let still = |counts, minutes: u64| {
        let time = Duration::from_secs(60 * minutes);
        stand_still(&threads(counts), &before, time)
    };
    assert!(still((1000, 7), 1) && still((50_000, 9), 1) && still((90_000, 10), 2));
    // The thread goes on, computes, or is another one of this number.
    assert!(!still((50_000, 10), 1) && !still((9_000_000, 8), 1) && !still((900, 6), 1));
    assert!(!stand_still(&Scheduled::new(), &before, STEP));
}

#[test]
fn zero_scheduler_counts_are_ignored() {
    assert_eq!([counts("0 0 0\n"), counts("")], [None; 2]);
    assert_eq!(counts("12 0 1\n"), Some((12, 1)));
}

#[test]
fn a_program_without_limit_has_no_due_time() {
    let watch = Watch::over(&[], false, |error| panic!("{error}"));
    let due = || locked(&watch.state).due;
    {
        let _trial = watch.during(Allowance::of_program(None, GIB));
        assert_eq!(due(), None);
        assert_eq!(
            locked(&watch.state).patience,
            ANSWER + Duration::from_secs(256)
        );
    }
    assert!(due().is_some_and(|due| due <= Instant::now()));
    // Each rank prepares, carries out and settles.
    let of_ranks = Allowance::of_ranks(&settings("region=1G"), 2);
    assert!(of_ranks.time > Some(ANSWER * 3), "{of_ranks:?}");
}

#[test]
fn silent_storage_is_named_with_the_resume_command() {
    let silent = Silent {
        places: vec![(PathBuf::from("/mnt"), Some("nas".to_owned()))],
        scratch: vec![None],
    };
    let mut state = State {
        due: None,
        patience: ANSWER,
        uses_targets: true,
        advice: Some("Finish the run with: iolab resume out/r.iolab".to_owned()),
        silent,
        changes_system: false,
    };
    insta::assert_snapshot!(unanswered(&state), @r"
    /mnt on the file server nas has not answered for 1 min: requests to it wait in the kernel
      check the file server and the network. The kernel ends this process when the server answers, or after umount -f. The next run there removes what is left of a scratch file, or names it. Finish the run with: iolab resume out/r.iolab
    ");
    state.advice = None;
    state.silent = Silent {
        places: vec![(PathBuf::from("/dev/sdb"), None)],
        scratch: Vec::new(),
    };
    insta::assert_snapshot!(unanswered(&state), @r"
    /dev/sdb has not answered for 1 min: requests to it wait in the kernel
      check the device, with dmesg. The kernel ends this process when it answers
    ");
}

#[test]
fn a_shell_reads_stored_files_as_single_words() {
    let kept = ["old run.iolab", "$(touch X)"].map(PathBuf::from);
    let watch = Watch::over_removal(&[], &kept, |error| panic!("{error}"));
    let told = locked(&watch.state).advice.clone();
    assert_eq!(
        told.expect("advice"),
        "The trials are stored: iolab table 'old run.iolab' '$(touch X)'"
    );
}

#[test]
fn restored_kernel_settings_are_reported() {
    let error = || Error::failed("silent");
    let told = |restored| with_settings(error(), restored);
    assert_eq!(told(Ok(Vec::new())), error());
    let restored = Ok(vec!["x: 1 again, was 2".to_owned()]);
    assert_eq!(
        told(restored),
        error().also("settings of the kernel are restored: x: 1 again, was 2")
    );
    let stuck = Err(Error::failed("stuck").hint("try"));
    assert_eq!(told(stuck), error().also("stuck; try"));
}

#[test]
fn calls_waiting_for_others_are_not_storage() {
    let of = |number: c_long| is_on_files(&format!("{number} 0x3 0x0 0x7ffc51016258\n"));
    assert!(of(libc::SYS_fsync) && of(libc::SYS_unlinkat) && of(libc::SYS_openat));
    for other in [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_wait4,
        libc::SYS_futex,
        libc::SYS_clock_nanosleep,
    ] {
        assert!(!of(other), "{other}");
    }
    for none in ["running\n", "-1 0x7ffc51016258 0x7fadb6b1a2ad\n", ""] {
        assert!(!is_on_files(none), "{none}");
    }
}

/// A thread that waits for a pipe does not wait for storage, and the kernel names the call.
#[test]
fn the_kernel_tells_the_call_of_a_thread() {
    use std::io::Read;
    let (mut from, to) = std::io::pipe().expect("a pipe");
    let (sender, thread) = mpsc::channel();
    let waits = thread::spawn(move || {
        let _ = sender.send(rustix::thread::gettid().as_raw_nonzero());
        let _ = from.read(&mut [0]);
    });
    let thread = thread.recv().expect("it runs");
    let task = Path::new("/proc/self/task").join(thread.to_string());
    let read = format!("{} ", libc::SYS_read);
    let told = || fs::read_to_string(task.join("syscall")).unwrap_or_default();
    let give_up = Instant::now() + Duration::from_secs(5);
    while !told().starts_with(&read) && Instant::now() < give_up {
        thread::yield_now();
    }
    let (last, is_storage) = (told(), waits_for_storage(&task));
    drop(to);
    waits.join().expect("it ends");
    if !last.starts_with(&read) {
        return needs::skip(needs::Need::SystemCalls, format!("it tells {last:?}"));
    }
    assert!(!is_storage);
}

fn mount(kind: &str, at: &Path, source: &str) -> FileSystem {
    FileSystem {
        kind: kind.to_owned(),
        mount_point: at.to_owned(),
        mount_options: String::new(),
        source: source.to_owned(),
    }
}

#[test]
fn the_mount_that_hides_others_is_the_one() {
    let at = Path::new("/mnt/x");
    let mut mounts = vec![mount("nfs", at, "host:/a")];
    let server = |mounts: &[FileSystem]| server_of(&at.join("y"), mounts);
    assert_eq!(server(&mounts).as_deref(), Some("host:/a"));
    mounts.push(mount("nfs", Path::new("/mnt"), "host:/b"));
    assert_eq!(server(&mounts).as_deref(), Some("host:/a"));
    mounts.push(mount("tmpfs", at, "tmpfs"));
    assert_eq!(server(&mounts), None);
}
