//! Quality of a cluster's clocks and network: how far apart ranks start, and how precisely that is known.
//!
//!     cargo build --release -p iolab-cluster --features mpi --example clocks
//!     mpirun -n 64 target/release/examples/clocks [TRIALS]
//!
//! Nothing is read or written. Each trial is 100 ms of waiting on every rank. At the end it prints the cost of
//! a message between the first rank and the last, and the arguments for the example `collective_cost`.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use iolab_cluster::clock::{Activity, CumulativeBytes};
use iolab_cluster::link::{FANOUT, Gathered, Link, LostRank, Team};
use iolab_cluster::mpi::{Mpi, MpiTimeouts};
use iolab_cluster::trial::{Contribution, Halt, MergedTrial, TrialTimeouts};

const HABITS: TrialTimeouts = TrialTimeouts {
    rounds: 8,
    timeout: Duration::from_secs(10),
    trial: Duration::from_secs(60),
};

/// Names of the hosts.
#[derive(Serialize, Deserialize)]
struct Hosts(BTreeSet<String>);

impl Gathered for Hosts {
    fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

fn main() -> ExitCode {
    let trials = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let zero = Instant::now();
    let limit = Duration::from_secs(300);
    let limits = MpiTimeouts {
        start: limit,
        end: limit,
    };
    let late = |wait| println!("{wait:?}: a process hangs or was not started");
    let Some(link) = Mpi::join(|| zero.elapsed().as_nanos() as i64, limits, late) else {
        return ExitCode::FAILURE;
    };
    let mut team = Team::new(Box::new(link), FANOUT);
    for trial in 0..trials.unwrap_or(10) {
        match wait(&mut team) {
            Ok(Some((whole, took))) => print(trial, team.link().size(), &whole, took),
            Ok(None) => {}
            Err(halt) => {
                println!("rank {}: {halt}", team.link().rank());
                team.link().abort(1);
            }
        }
    }
    match exchange(team.link()) {
        Ok(Some(cost)) => cost.print(),
        Ok(None) => {}
        Err(lost) => {
            println!("rank {}: {lost:?}", team.link().rank());
            team.link().abort(1);
        }
    }
    ExitCode::SUCCESS
}

/// Cost of messages between two ranks, in the terms of LogGP.
struct MessageCost {
    /// Transit time, ns.
    latency_ns: f64,
    /// CPU time for sending a message, ns.
    overhead_ns: f64,
    /// Additional time per byte of a long message, ns.
    byte_ns: f64,
}

impl MessageCost {
    fn print(&self) {
        let Self {
            latency_ns,
            overhead_ns,
            byte_ns,
        } = self;
        println!(
            "a message: {:.1} µs on the way, {:.1} µs of the CPU, {byte_ns:.2} ns per byte",
            latency_ns / 1e3,
            overhead_ns / 1e3
        );
        println!(
            "  cargo run --release -p iolab-cluster --example collective_cost -- {latency_ns:.0} {overhead_ns:.0} {byte_ns:.2}"
        );
    }
}

/// Exchanges messages between the first rank and the last; the first one gets their cost.
fn exchange(link: &mut impl Link) -> Result<Option<MessageCost>, LostRank> {
    const TIMES: usize = 200;
    const LONG: usize = 1 << 20;
    let (rank, last) = (link.rank(), link.size() - 1);
    if last == 0 || (rank != 0 && rank != last) {
        return Ok(None);
    }
    let other = last - rank;
    let mut median = |bytes: usize, times: usize| -> Result<f64, LostRank> {
        let message = vec![0; bytes];
        let mut trips = Vec::with_capacity(times);
        for _ in 0..times {
            let began = Instant::now();
            if rank == 0 {
                link.send(other, &message, HABITS.timeout)?;
            }
            let answer = link.receive(other, HABITS.timeout)?;
            if rank != 0 {
                link.send(other, &answer, HABITS.timeout)?;
            }
            trips.push(began.elapsed().as_nanos() as f64 / 2.0);
        }
        trips.sort_by(f64::total_cmp);
        Ok(trips[times / 2])
    };
    let short = median(1, TIMES)?;
    let long = median(LONG, TIMES / 10)?;
    // The other rank takes them later: only the sending is timed.
    let began = Instant::now();
    for _ in 0..TIMES {
        if rank == 0 {
            link.send(other, &[0], HABITS.timeout)?;
        } else {
            link.receive(other, HABITS.timeout)?;
        }
    }
    let overhead_ns = began.elapsed().as_nanos() as f64 / TIMES as f64;
    let cost = MessageCost {
        latency_ns: (short - 2.0 * overhead_ns).max(0.0),
        overhead_ns,
        byte_ns: (long - short) / LONG as f64,
    };
    Ok((rank == 0).then_some(cost))
}

/// A trial without I/O; the root gets its result, and the time of its coordination.
fn wait(team: &mut Team<impl Link>) -> Result<Option<(MergedTrial<Hosts>, Duration)>, Halt> {
    let waiting = Duration::from_millis(100);
    let before = Instant::now();
    let start = team.start(HABITS, Ok(()))?;
    let left = start.saturating_sub(team.link().now_ns()).max(0);
    thread::sleep(Duration::from_nanos(left as u64));
    let starts = team.link().now_ns();
    thread::sleep(waiting);
    let ends = team.link().now_ns();
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let part = Contribution {
        activity: Activity::of([(starts, ends)].into_iter()).expect("a worker"),
        cumulative: CumulativeBytes::new(starts, [(ends, 1)].into_iter()),
        rest: Hosts([host].into()),
    };
    let whole = team.conclude(HABITS, Some(part))?;
    let took = before.elapsed().saturating_sub(waiting);
    Ok(whole.map(|whole| (whole, took)))
}

fn print(trial: u32, ranks: usize, whole: &MergedTrial<Hosts>, took: Duration) {
    if trial == 0 {
        println!("ranks: {ranks}, hosts: {}", whole.rest.0.len());
        println!("trial  starts apart, µs  bound of the clocks, µs  coordination, ms");
    }
    let skew = whole.activity.skew_ns();
    println!(
        "{trial:5}  {:7.1} to {:6.1}  {:23.1}  {:16.2}",
        skew.least / 1e3,
        skew.greatest / 1e3,
        whole.activity.elapsed_ns().error() / 1e3,
        took.as_secs_f64() * 1e3
    );
}
