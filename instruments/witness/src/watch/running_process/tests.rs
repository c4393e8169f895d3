use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::super::exits::tests::of;
use super::*;
use iolab_workload::counters::ProcessIo;

/// A shell that says "ready" and then waits for a line to go on.
struct Shell {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn run(script: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh is everywhere");
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().expect("piped")),
            child,
        }
    }

    fn wait_until_ready(&mut self) {
        let mut line = String::new();
        while line != "ready\n" {
            line.clear();
            assert!(self.output.read_line(&mut line).expect("read") > 0);
        }
    }

    fn go_on(&mut self) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(b"\n").expect("it waits");
        self.wait_until_ready();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The shell ends with its input.
        self.input = None;
        let _ = self.child.wait();
    }
}

fn unread() {
    needs::skip(
        needs::Need::IoAccount,
        "the account of a child cannot be read",
    );
}

/// Ended children leave a sum, and a process that reuses a number is another one.
#[test]
fn ended_children_are_added_up_and_forgotten() {
    let script = "while read go; do
        (dd if=/dev/zero of=/dev/null bs=1M count=1 2>&1; echo ready; read end); echo ready; done";
    let mut shell = Shell::run(script);
    let mut joined = RunningProcess::new(shell.child.id()).expect("it runs");
    for _ in 0..3 {
        shell.go_on();
        assert_eq!(joined.read_accounts(false).len(), 2);
        shell.go_on();
        assert_eq!(joined.read_accounts(false), [shell.child.id()]);
        assert_eq!((joined.members.len(), joined.tasks.len()), (1, 1));
    }
    assert_eq!(joined.gone.processes, 3);
    let stranger = Shell::run("read end");
    let number = stranger.child.id();
    let of_another = Member {
        started: started(number, number).expect("it runs") + 1,
        parent: shell.child.id(),
        delay: Seen::default(),
    };
    joined.members.insert(number, of_another);
    assert_eq!(joined.read_accounts(false), [shell.child.id()]);
    assert_eq!((joined.members.len(), joined.gone.processes), (1, 4));
    let totals = joined.totals(None);
    if !joined.is_read {
        return unread();
    }
    let read = totals.io.expect("read").rchar;
    assert!(((3 << 20)..(7 << 19)).contains(&read), "{totals:?}");
}

/// The parent has collected the process, and both sums date from the look before the read.
#[test]
fn a_collected_process_is_cut_short() {
    let script = "read go; dd if=/dev/zero of=/dev/null bs=1M count=1 2>&1; echo ready";
    let mut shell = Shell::run(script);
    let mut joined = RunningProcess::new(shell.child.id()).expect("it runs");
    shell.go_on();
    drop(shell);
    joined.read_accounts(false);
    let totals = joined.totals(None);
    assert_eq!((totals.running, totals.cut_short), (0, 1), "{totals:?}");
}

/// The orphan's account is in the process that collects orphans, which is not observed.
#[test]
fn an_orphan_that_has_ended_is_cut_short() {
    let shell = Shell::run("read end");
    let mut joined = RunningProcess::new(shell.child.id()).expect("it runs");
    // Numbers that no process has: an orphan, a child, and the child's child.
    let [orphan, child, of_child] = [1 << 29, 2 << 29, 3 << 29];
    for (number, parent) in [(orphan, 1), (child, shell.child.id()), (of_child, child)] {
        let member = Member {
            started: 1,
            parent,
            delay: Seen::default(),
        };
        joined.members.insert(number, member);
    }
    joined.bury();
    assert_eq!((joined.gone.processes, joined.gone.orphans), (3, 1));
    joined.read_accounts(false);
    let totals = joined.totals(None);
    if !joined.is_read {
        return unread();
    }
    assert_eq!(totals.cut_short, 1, "{totals:?}");
}

#[test]
fn ended_tasks_count_once_without_earlier_io() {
    let shell = Shell::run("read end");
    let mut joined = RunningProcess::new(shell.child.id()).expect("it runs");
    let rchar = |rchar| {
        let io = ProcessIo {
            rchar,
            ..ProcessIo::default()
        };
        (io, 0)
    };
    let seen = |before, last| Seen {
        before: rchar(before),
        last: rchar(last),
    };
    joined.tasks.clear();
    // Two that existed at the beginning, and a later one; numbers that no task has.
    let [first, second, late] = [1 << 29, 2 << 29, 3 << 29];
    for (number, account) in [
        (first, seen(100, 110)),
        (second, seen(200, 220)),
        (late, seen(0, 40)),
    ] {
        let task = Task {
            process: number,
            started: 1,
            account,
        };
        joined.tasks.insert(number, task);
    }
    joined.bury();
    assert!(joined.tasks.is_empty());
    let sum = |joined: &RunningProcess, ended: Option<&[Exit]>| joined.of_tasks(ended).0.rchar;
    assert_eq!(sum(&joined, None), 10 + 20 + 40);
    // The tasks went on after the last look; the second's account is missing, and 9 is a stranger.
    let ended = [
        of(first, 1, 111),
        of(late, 1, 44),
        of(77, late, 1000),
        of(9, 1, 5000),
    ];
    assert_eq!(sum(&joined, Some(&ended)), 11 + 20 + 44 + 1000);
    // If accounts are missing, ended tasks that began later are not kept.
    joined.gone.numbers.clear();
    assert_eq!(joined.numbers().len(), 1);
    assert_eq!(sum(&joined, None), 10 + 20 + 40);
}

#[test]
fn what_does_not_run_cannot_be_joined() {
    for number in [0, u32::MAX, std::process::id()] {
        assert!(RunningProcess::new(number).is_err(), "{number}");
    }
}
