//! Programs that every Linux has: `true`, `false`, `sleep`, `sh`, `cat`, `dd`.

use std::fs;
use std::sync::Arc;

use super::*;
use iolab_storage::Need;
use iolab_workload::Kind;
use iolab_workload::trial::CacheState;

const SIZE: u64 = 1 << 20;

/// A folder, and a file of [`SIZE`] bytes in it opened as a target.
fn file() -> (tempfile::TempDir, Target) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data with a space");
    fs::write(&path, vec![7; SIZE as usize]).expect("written");
    let need = Need::reading(SIZE);
    let target = Target::open(&path, &need).expect("opens");
    (folder, target)
}

fn program(name: &str, arguments: &[&str]) -> Program {
    Program {
        path: Program::find(Path::new(name)).expect("it is everywhere"),
        arguments: Arguments::plain(arguments),
        time_limit: None,
        output_max: None,
    }
}

fn hot(target: &Target) -> TrialSpec {
    TrialSpec {
        region: target.size(),
        cache: CacheState::Hot,
        ..TrialSpec::default()
    }
}

fn ran(program: &Program, target: &Target) -> Result<ProgramRun> {
    let stop = AtomicBool::new(false);
    let clock = Clock::calibrate();
    run(
        program,
        &[(target, 0..target.size())],
        &hot(target),
        &clock,
        &stop,
    )
}

fn run_once(program: &Program, target: &Target) -> Result<Outcome> {
    ran(program, target).map(|ran| ran.outcome)
}

fn shell(script: &str) -> Program {
    program("sh", &["-c", script])
}

/// Failure of the program.
fn failure(outcome: &Outcome) -> &FailedProgram {
    assert_eq!((outcome.ended, outcome.errors), (Ended::Failed, 1));
    match &outcome.failure {
        Some(Failure::Program(failed)) => failed,
        other => panic!("{other:?}"),
    }
}

/// The account of a short-lived program is what this process has collected, which would include children of other tests.
#[test]
fn what_it_read_and_used_is_its_own() {
    if !needs::is_alone("program::tests::what_it_read_and_used_is_its_own") {
        return;
    }
    let (_folder, target) = file();
    let path = target.path().to_str().expect("UTF-8");
    // Page faults of the test itself, 4096 of them, must not be counted.
    let ours = std::hint::black_box(vec![1u8; 16 << 20]);
    // A child that the program awaits.
    let outcome = run_once(&program("sh", &["-c", "cat \"$0\"; true", path]), &target);
    let outcome = outcome.expect("runs");
    assert_eq!(outcome.ended, Ended::Done, "{:?}", outcome.failure);
    let Some(account) = outcome.counters.process_io else {
        return needs::skip(
            needs::Need::IoAccount,
            "the account of an ended process cannot be read",
        );
    };
    // The loader's reads of the C library add less than a page each.
    assert!(
        (SIZE..SIZE + 65_536).contains(&account.rchar),
        "{account:?}"
    );
    assert_eq!(outcome.operations.read.bytes, account.rchar);
    assert_eq!(outcome.operations.read.requests, account.syscr);
    assert_eq!(outcome.operations.write.requests, 0);
    let faults = outcome.counters.usage.minor_faults;
    assert!((1..4000).contains(&faults), "{faults}, {}", ours.len());
}

/// The program can end before its account is opened, which only root may do then.
#[test]
fn a_program_of_a_moment_has_an_account() {
    if !needs::is_alone("program::tests::a_program_of_a_moment_has_an_account") {
        return;
    }
    if account_of_collected().is_none() {
        return needs::skip(
            needs::Need::IoAccount,
            "the account of this process cannot be read",
        );
    }
    let (_folder, target) = file();
    for _ in 0..20 {
        let outcome = run_once(&program("true", &[]), &target).expect("runs");
        let account = outcome.counters.process_io.expect("it has one");
        assert!(account.rchar > 0, "{account:?}");
    }
}

#[test]
fn its_end_is_its_code_or_signal() {
    let (_folder, target) = file();
    let done = run_once(&program("true", &[]), &target).expect("runs");
    assert_eq!((done.ended, done.errors), (Ended::Done, 0));
    assert!(done.failure.is_none() && done.elapsed_ns > 0);
    assert!(done.operations.read.latency.is_empty());
    for (script, end, last_words) in [
        ("exit 1", ProgramEnd::Code(1), ""),
        (
            "echo no such luck >&2; exit 7",
            ProgramEnd::Code(7),
            "no such luck",
        ),
        // Its error stream ends before it does.
        ("exec 2>&-; sleep 0.05; exit 4", ProgramEnd::Code(4), ""),
        // Its standard input is empty.
        ("read line && exit 5; exit 6", ProgramEnd::Code(6), ""),
        ("kill -9 $$", ProgramEnd::Signal(9), ""),
    ] {
        let outcome = run_once(&shell(script), &target).expect("runs");
        let failed = failure(&outcome);
        assert_eq!((&failed.end, &*failed.last_words), (&end, last_words));
        assert!(failed.command.ends_with(script), "{}", failed.command);
    }
}

#[test]
fn only_the_end_of_many_words_is_kept() {
    let (_folder, target) = file();
    // More than a pipe holds, so that it must be emptied while the program runs.
    let script = "i=0; while [ $i -lt 3000 ]; do echo this is line number $i of many lines >&2; i=$((i+1)); done; exit 3";
    let outcome = run_once(&shell(script), &target).expect("runs");
    let words = &failure(&outcome).last_words;
    assert!(words.ends_with("number 2999 of many lines"), "{words}");
    assert!(words.len() <= LAST_WORDS_MAX);
}

#[test]
fn the_stop_flag_ends_it_with_its_children() {
    let (folder, target) = file();
    let mark = folder.path().join("started");
    let script = format!("sleep 1000 & echo $! > '{}'; wait", mark.display());
    let stop = Arc::new(AtomicBool::new(false));
    let raiser = {
        let (stop, mark) = (Arc::clone(&stop), mark.clone());
        std::thread::spawn(move || {
            while !fs::read_to_string(&mark).is_ok_and(|text| text.ends_with('\n')) {
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, Ordering::Relaxed);
        })
    };
    let clock = Clock::calibrate();
    let spec = hot(&target);
    let ran = run(
        &shell(&script),
        &[(&target, 0..target.size())],
        &spec,
        &clock,
        &stop,
    )
    .expect("runs");
    let outcome = ran.outcome;
    raiser.join().expect("it ended");
    assert_eq!(outcome.ended, Ended::Interrupted);
    assert_eq!(outcome.failure, None);
    let sleeper = fs::read_to_string(&mark).expect("written");
    assert!(is_gone(sleeper.trim()), "the sleeper lives");
}

/// Whether a killed process has ended or is ending.
fn is_gone(pid: &str) -> bool {
    (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        match fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => true,
        }
    })
}

#[test]
fn what_outlives_the_program_is_killed() {
    let (folder, target) = file();
    let mark = folder.path().join("started");
    let script = format!("sleep 1000 & echo $! > '{}'", mark.display());
    let outcome = run_once(&shell(&script), &target).expect("runs");
    assert_eq!(outcome.ended, Ended::Done);
    assert!(is_gone(fs::read_to_string(&mark).expect("written").trim()));
}

#[test]
fn the_time_limit_ends_it() {
    let (_folder, target) = file();
    let limit = Duration::from_millis(50);
    let slow = Program {
        time_limit: Some(limit),
        ..program("sleep", &["1000"])
    };
    let outcome = run_once(&slow, &target).expect("runs");
    assert_eq!(failure(&outcome).end, ProgramEnd::Time(limit));
    assert!(outcome.elapsed_ns >= 50_000_000);
}

#[test]
fn missing_program_is_a_usage_error() {
    let (folder, target) = file();
    let missing = folder.path().join("missing");
    for name in [missing.as_path(), Path::new("no-such-program-anywhere")] {
        let error = Program::find(name).expect_err("missing");
        assert_eq!(error.kind(), Kind::Usage);
        assert!(
            error.message().contains(&*name.to_string_lossy()),
            "{error}"
        );
    }
    let error = Program::find(target.path()).expect_err("no program");
    let told = error
        .to_string()
        .replace(&folder.path().display().to_string(), "DIR");
    insta::assert_snapshot!(told, @r"
    DIR/data with a space is not an executable program
      give a program, or make it executable with chmod +x
    ");
    let directory = Program::find(folder.path()).expect_err("no program");
    assert_eq!(directory.kind(), Kind::Usage);
    // A program removed after it was found.
    let gone = Program {
        path: missing,
        arguments: Arguments::default(),
        time_limit: None,
        output_max: None,
    };
    assert_eq!(
        run_once(&gone, &target).expect_err("gone").kind(),
        Kind::Usage
    );
}

#[test]
fn output_is_kept_whole_or_ends_the_program() {
    let (_folder, target) = file();
    let kept = |script: &str, max| {
        let program = Program {
            output_max: Some(max),
            ..shell(script)
        };
        ran(&program, &target).expect("runs")
    };
    let whole = kept("head -c 300000 /dev/zero; echo end", 400_000);
    assert_eq!(whole.outcome.failure, None);
    assert_eq!(whole.output.len(), 300_004);
    assert!(whole.output.ends_with(b"end\n"));
    let endless = kept("cat /dev/zero", 1000);
    assert_eq!(failure(&endless.outcome).end, ProgramEnd::Output(1000));
    assert!(endless.output.len() <= 1000 + (1 << 16));
    assert!(
        ran(&shell("echo unheard"), &target)
            .expect("runs")
            .output
            .is_empty()
    );
}
