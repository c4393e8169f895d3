//! Test of the MPI transport with real processes: `cargo test -p iolab-cluster --features mpi --test mpi`.
//! Needs mpirun.
//!
//! This program starts itself under mpirun, and is then one of the ranks. All ranks run on this host and share
//! the kernel's clock. Each adds its own offset and drift, so the truth is known.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test without a harness"
)]

#[path = "networks/virtual_network.rs"]
mod virtual_network;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::virtual_network::Skew;
use iolab_cluster::clock::{Activity, Bounded, CumulativeBytes, TimeInterval};
use iolab_cluster::link::{Gathered, Link, List, Team};
use iolab_cluster::mpi::{Mpi, MpiTimeouts};
use iolab_cluster::trial::{Contribution, Halt, TrialTimeouts};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

/// Environment variable with the role of a rank.
const ROLE: &str = "IOLAB_CLUSTER_TEST";
/// Exit code of a root that gave up on a rank.
const GAVE_UP: i32 = 7;
const HABITS: TrialTimeouts = TrialTimeouts {
    rounds: 8,
    timeout: Duration::from_secs(5),
    trial: Duration::from_secs(20),
};
/// Role of ranks of which number 1 does not join.
const ABSENT: &str = "absent";
/// Role of ranks of which number 1 does not leave.
const LEAVING: &str = "leaving";
/// Number of trials in a run.
const TRIALS: u64 = 5;
/// Message lengths just below and above one piece, and above the window that needs an acknowledgement, bytes.
const LENGTHS: [usize; 6] = [1, 2 << 10, (2 << 10) + 1, 32 << 10, (34 << 10) + 1, 1 << 20];

fn main() -> ExitCode {
    if let Ok(role) = std::env::var(ROLE) {
        return rank(&role);
    }
    // Requested by test runners that look for a harness.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    if needs::mpirun().is_none() {
        return ExitCode::SUCCESS;
    }
    for ranks in [1, 2, 4, 20] {
        // They compare their own findings with the truth, and fail on a difference.
        let said = ended(ranks, "measure", true);
        let held = said.lines().filter(|line| line.starts_with("held:"));
        assert_eq!(held.count(), TRIALS as usize, "{said}");
    }
    let said = ended(4, "long", true);
    let arrived = said.lines().filter(|line| *line == "arrived");
    assert_eq!(arrived.count(), 4, "{said}");
    // It hangs during a message that is longer than MPI's buffers.
    for rank in [0, 1] {
        silent_rank_is_named(rank, &format!("deaf {rank}"));
    }
    // The root, a rank between and a leaf; the first trial and a later one.
    for (rank, trial) in [(0, 2), (1, 0), (3, 2)] {
        // mpirun may end all ranks before the root reports; either way nothing goes on.
        ended(4, &format!("kill {rank} {trial}"), false);
        silent_rank_is_named(rank, &format!("stop {rank} {trial}"));
    }
    those_who_wait_leave_the_cpu_alone();
    // MPI itself would wait for ever for a rank that does not join, or does not leave.
    for (role, wait) in [(ABSENT, "late: Start"), (LEAVING, "late: End")] {
        let said = ended(3, role, false);
        assert!(said.contains(wait), "{said}");
    }
    println!("ok: over mpirun");
    ExitCode::SUCCESS
}

/// Output of ranks in this role, which end with success or without and leave no process.
fn ended(ranks: usize, role: &str, succeeds: bool) -> String {
    let own = std::env::current_exe().expect("this program has a path");
    let mut command = needs::mpirun().expect("it was there");
    let command = command.args(["-n", &ranks.to_string()]).arg(own);
    let output = command.env(ROLE, role).output().expect("mpirun starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (said, status) = (text(&output.stdout), output.status);
    println!("{ranks} ranks, {role}: mpirun ended with {status}\n{said}");
    assert_eq!(status.success(), succeeds, "{}", text(&output.stderr));
    assert_eq!(left_behind(&said), [0i32; 0]);
    said
}

/// Checks that when one of four ranks falls silent, the root names it; if it is the root itself, one of the others does.
fn silent_rank_is_named(rank: usize, order: &str) {
    let said = ended(4, order, false);
    let speaker = if rank == 0 { "" } else { "rank 0" };
    let expected = format!("{speaker}: rank {rank} has not answered");
    assert!(said.contains(&expected), "{said}");
}

/// Checks that a rank that waits for 3 s takes far less CPU time than that; MPI's own barrier would take all of
/// it.
fn those_who_wait_leave_the_cpu_alone() {
    let said = ended(3, "late 1 0", true);
    let shares = said
        .lines()
        .filter_map(|line| line.strip_prefix("share of a CPU: "));
    let shares: Vec<f64> = shares
        .map(|share| share.parse().expect("a number"))
        .collect();
    assert_eq!(shares.len(), 2, "{said}");
    assert!(shares.iter().all(|share| *share < 0.5), "{said}");
}

/// Ranks that do not end, by the process ids in their output. mpirun may return an instant before them.
fn left_behind(stdout: &str) -> Vec<i32> {
    let pids = stdout.lines().filter_map(|line| line.strip_prefix("pid: "));
    let pids = pids.map(|pid| pid.parse().expect("a number"));
    pids.filter(|pid| !ends(*pid)).collect()
}

/// Waits for the end of a process that is not a child. False after a minute.
fn ends(pid: i32) -> bool {
    let pid = Pid::from_raw(pid).expect("not 0");
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        // The process has ended.
        return true;
    };
    let minute = Timespec {
        tv_sec: 60,
        tv_nsec: 0,
    };
    let mut wanted = [PollFd::new(&process, PollFlags::IN)];
    poll(&mut wanted, Some(&minute)).is_ok_and(|ended| ended > 0)
}

/// Kernel's clock, shared by all ranks of a host, ns.
fn kernel_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// CPU time of this process so far, ns.
fn cpu_ns() -> i64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

fn signal_itself(signal: Signal) {
    kill_process(getpid(), signal).expect("it may signal itself");
}

/// Skew of a rank's clock.
fn skew_of(rank: usize) -> Skew {
    Skew {
        offset_ns: (rank as i64 * 3_777_777_777) % 10_000_000_000 - 5_000_000_000,
        drift_ppm: (rank * 37 % 200) as f64 - 100.0,
    }
}

/// Whole life of a rank.
fn rank(role: &str) -> ExitCode {
    // Known only once MPI is started; until then the clock is not read.
    let number = std::cell::Cell::new(0);
    let clock = || skew_of(number.get()).reading(kernel_ns());
    if role == ABSENT
        && std::env::var("PMI_RANK").or(std::env::var("OMPI_COMM_WORLD_RANK")) == Ok("1".to_owned())
    {
        println!("pid: {}", getpid().as_raw_nonzero());
        signal_itself(Signal::STOP);
    }
    let late = |wait| println!("late: {wait:?}");
    let limit = |is_short| Duration::from_secs(if is_short { 2 } else { 300 });
    let limits = MpiTimeouts {
        start: limit(role == ABSENT),
        end: limit(role == LEAVING),
    };
    let link = Mpi::join(&clock, limits, late).expect("MPI starts once");
    number.set(link.rank());
    let mut team = Team::new(Box::new(link), 3);
    println!("pid: {}", getpid().as_raw_nonzero());
    let mut words = role.split(' ');
    let fault = words.next();
    let moment: Vec<u64> = words.map(|word| word.parse().expect("a number")).collect();
    let habits = match fault {
        Some("stop") => TrialTimeouts {
            timeout: Duration::from_millis(500),
            trial: Duration::from_millis(1_500),
            ..HABITS
        },
        _ => HABITS,
    };
    if fault == Some("long") || fault == Some("deaf") {
        return talk(team, moment.first().copied());
    }
    for trial in 0..TRIALS {
        if moment == [number.get() as u64, trial] {
            match fault {
                Some("kill") => signal_itself(Signal::KILL),
                Some("stop") => signal_itself(Signal::STOP),
                _ => thread::sleep(Duration::from_secs(3)),
            }
        }
        let before = (kernel_ns(), cpu_ns());
        if let Err(halt) = measure(&mut team, habits) {
            println!("rank {}: {halt}", number.get());
            if !team.is_root() {
                // The root ends all ranks, unless it is the lost one itself.
                thread::sleep(team.timeout_in_all(habits.trial));
            }
            team.link().abort(GAVE_UP);
        }
        if fault == Some("late") && trial == 0 && number.get() != 1 {
            let (waited, worked) = (kernel_ns() - before.0, cpu_ns() - before.1);
            println!("share of a CPU: {:.4}", worked as f64 / waited as f64);
        }
    }
    if role == LEAVING && number.get() == 1 {
        signal_itself(Signal::STOP);
    }
    ExitCode::SUCCESS
}

/// Sends long messages up and down. The rank `deaf` does not receive the last one; if that is the root, the one
/// coming up.
fn talk(mut team: Team<impl Link>, deaf: Option<u64>) -> ExitCode {
    let rank = team.link().rank();
    let is_deaf = deaf == Some(rank as u64);
    let timeout = Duration::from_millis(if deaf.is_some() { 500 } else { 20_000 });
    for length in LENGTHS {
        // A pattern in which no two pieces are equal.
        let message: Vec<u8> = (0..length).map(|at| (at / 251 + at) as u8).collect();
        let hangs = is_deaf && LENGTHS.last() == Some(&length);
        if hangs && rank > 0 {
            signal_itself(Signal::STOP);
        }
        let told = team.broadcast(&message, timeout);
        if hangs {
            signal_itself(Signal::STOP);
        }
        let told = told.and_then(|got| {
            assert_eq!(got, message);
            let rows = message.iter().map(|byte| (*byte).into());
            team.gather(List(rows.collect::<Vec<u64>>()), timeout)
        });
        match told {
            Ok(None) => {}
            Ok(Some(all)) => assert_eq!(all.0.len(), message.len() * team.link().size()),
            Err(lost) => {
                println!("rank {rank}: {lost}");
                if rank > 0 {
                    // The root ends all ranks, unless it is the lost one itself.
                    thread::sleep(timeout * 4);
                }
                team.link().abort(GAVE_UP);
            }
        }
    }
    println!("arrived");
    ExitCode::SUCCESS
}

/// A trial of 20 ms and more, without I/O, which the root compares with the truth.
fn measure(team: &mut Team<impl Link>, habits: TrialTimeouts) -> Result<(), Halt> {
    let start = team.start(habits, Ok(()))?;
    let link = team.link();
    let left = start.saturating_sub(link.now_ns()).max(0);
    thread::sleep(Duration::from_nanos(left as u64));
    let (begins, starts) = dated(link);
    thread::sleep(Duration::from_millis(20 + link.rank() as u64));
    let (ended, ends) = dated(link);
    let part = Contribution {
        activity: Activity::of([(starts, ends)].into_iter()).expect("a worker"),
        cumulative: CumulativeBytes::new(starts, [(ends, 1 << 20)].into_iter()),
        rest: Truth {
            first_start: begins,
            last_start: begins,
            last_end: ended,
            ranks: 1,
        },
    };
    let ranks = link.size() as u64;
    let Some(whole) = team.conclude(habits, Some(part))? else {
        return Ok(());
    };
    let truth = whole.rest;
    assert_eq!(truth.ranks, ranks);
    let elapsed = held(
        whole.activity.elapsed_ns(),
        truth.first_start,
        truth.last_end,
    );
    let skew = held(
        whole.activity.skew_ns(),
        truth.first_start,
        truth.last_start,
    );
    println!("held: elapsed {elapsed}, skew of the starts {skew}");
    Ok(())
}

/// Reading of the rank's clock, and the same moment on the kernel's clock.
fn dated(link: &impl Link) -> (TimeInterval, i64) {
    let earliest = kernel_ns();
    let reading = link.now_ns();
    let latest = kernel_ns();
    (TimeInterval { earliest, latest }, reading)
}

/// Compares a time found by the ranks with the truth; returns both in words.
fn held(found: Bounded, from: TimeInterval, to: TimeInterval) -> String {
    // The root's clock, which counts, runs fast or slow; its readings are whole ns.
    let rate = 1.0 + skew_of(0).drift_ppm * 1e-6;
    let least = (to.earliest - from.latest) as f64 * rate - 2.0;
    let greatest = (to.latest - from.earliest) as f64 * rate + 2.0;
    assert!(
        found.least <= greatest && least <= found.greatest,
        "found {found:?}, true {least} to {greatest}"
    );
    format!(
        "{:.1} us +/- {:.1} us (truth {:.1} us)",
        found.middle() / 1e3,
        found.error() / 1e3,
        f64::midpoint(least, greatest) / 1e3
    )
}

/// Truth about the ranks, by the kernel's clock.
#[derive(Serialize, Deserialize)]
struct Truth {
    first_start: TimeInterval,
    last_start: TimeInterval,
    last_end: TimeInterval,
    ranks: u64,
}

impl Gathered for Truth {
    fn join(self, other: Self) -> Self {
        Self {
            first_start: self.first_start.min(other.first_start),
            last_start: self.last_start.max(other.last_start),
            last_end: self.last_end.max(other.last_end),
            ranks: self.ranks + other.ranks,
        }
    }
}
