//! Ratios of iolab's engine to a bare loop and to fio, in one run.
//!
//! `cargo bench -p iolab-engine` prints a line per goal and fails when one is missed; `-- hot-reads open-loop` prints these sections alone.
//! The contenders alternate, and a ratio is the median of the rounds' own ratios. A machine that gets slower thus gets slower for all.
//! Contenders that are not installed or not permitted are skipped with the reason.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod bare;
mod fio;
mod open_loop;
mod zram;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_engine::trial;
use iolab_host::clock::Clock;
use iolab_stats::{MedianEnds, median_difference, median_interval, two_modes};
use iolab_storage::{Need, Target};
use iolab_workload::outcome::Outcome;
use iolab_workload::trial::{
    Backend, Batch, BufferInit, CacheState, Pattern, TrialLimit, TrialSpec,
};

const ROUNDS: usize = 11;
/// Rounds of the loops whose modes are counted.
const MODE_ROUNDS: usize = 30;
/// Confidence of all intervals.
const CONFIDENCE: f64 = 0.95;
const HOT_FILE: u64 = 256 << 20;
const SMALL_FILE: u64 = 16 << 20;
const HOT_REQUESTS: u64 = 1 << 19;
const WRITE_SIZE: u64 = 2 << 20;

/// Rates of a contender in one round.
#[derive(Debug, Clone, Copy)]
pub struct Reached {
    /// Requests per second.
    pub iops: f64,
    /// CPU time in user mode per request, ns.
    pub user_ns: f64,
}

impl From<&Outcome> for Reached {
    fn from(outcome: &Outcome) -> Self {
        assert_eq!(outcome.errors, 0, "{:?}", outcome.failure);
        let requests = outcome.requests() as f64;
        Self {
            iops: requests * 1e9 / outcome.elapsed_ns as f64,
            user_ns: outcome.counters.usage.user_ns as f64 / requests,
        }
    }
}

fn median(rounds: &[f64]) -> f64 {
    iolab_stats::median(rounds).expect("rounds with finite values")
}

/// Ends of the interval of the median.
fn ends(rounds: &[f64]) -> (f64, f64) {
    let interval = median_interval(rounds, CONFIDENCE).expect("enough rounds for an interval");
    (interval.low, interval.high)
}

/// Verdicts so far, so that the whole table is printed before the run fails.
#[derive(Default)]
struct Score {
    missed: u32,
    undecided: u32,
}

impl Score {
    /// Compares the median of the rounds with a goal.
    fn goal(&mut self, what: &str, rounds: &[f64], at_least: f64) {
        let (low, high) = ends(rounds);
        self.judge(what, (median(rounds), low, high), at_least);
    }

    /// Compares the user CPU times of two contenders. The kernel counts them in ticks, too coarse for a ratio of each round.
    fn user_goal(&mut self, what: &str, theirs: &[Reached], own: &[Reached], at_least: f64) {
        if own.iter().chain(theirs).any(|round| round.user_ns == 0.0) {
            return println!("  {what}: not measured, a round took no tick of user CPU");
        }
        let side = |rounds: &[Reached]| {
            let logs: Vec<f64> = rounds.iter().map(|round| round.user_ns.ln()).collect();
            let (low, high) = ends(&logs);
            let median = median(&logs);
            MedianEnds { median, low, high }
        };
        let (own, theirs) = (side(own), side(theirs));
        let (low, high) = median_difference(&own, &theirs, false);
        let ratio = (theirs.median - own.median).exp();
        self.judge(what, (ratio, low.exp(), high.exp()), at_least);
    }

    /// A goal is missed if the whole interval lies below it; if only the median does, the rounds cannot tell.
    fn judge(&mut self, what: &str, (middle, low, high): (f64, f64, f64), at_least: f64) {
        let verdict = if middle >= at_least {
            "met"
        } else if high >= at_least {
            self.undecided += 1;
            "cannot tell"
        } else {
            self.missed += 1;
            "MISSED"
        };
        println!(
            "  {what}: {middle:.3} [{low:.3} to {high:.3}], goal at least {at_least:.3}: {verdict}"
        );
    }

    /// Compares the shapes of the rates of two loops that alternate: a second mode of the first alone is the first's own.
    fn one_mode(&mut self, own: &[Reached], other: &[Reached]) {
        let modes = |rounds: &[Reached]| {
            let rates: Vec<f64> = rounds.iter().map(|r| r.iops / 1e3).collect();
            two_modes(&rates).map(|found| found.levels)
        };
        let verdict = match (modes(own), modes(other)) {
            (None, _) => "one: met".to_owned(),
            (Some(_), Some(_)) => {
                self.undecided += 1;
                "two, as of the loop it is compared with: cannot tell".to_owned()
            }
            (Some(two), None) => {
                self.missed += 1;
                format!(
                    "two, {:.0} % of the rounds near {:.0} kIOPS, others near {:.0}: MISSED",
                    100.0 * two.low_share,
                    two.low_median,
                    two.high_median
                )
            }
        };
        println!("  modes of {} rounds: {verdict}", own.len());
    }

    /// Prints the verdict on all goals; fails if one is missed.
    fn finish(&self) -> ExitCode {
        match (self.missed, self.undecided) {
            (0, 0) => println!("all goals met"),
            (missed, undecided) => {
                println!(
                    "goals missed: {missed}; cannot tell: {undecided} (repeat on an idle machine)"
                );
            }
        }
        ExitCode::from(u8::from(self.missed > 0))
    }
}

fn iops(rounds: &[Reached]) -> f64 {
    median(&rounds.iter().map(|r| r.iops).collect::<Vec<_>>())
}

fn user_ns(rounds: &[Reached]) -> f64 {
    median(&rounds.iter().map(|r| r.user_ns).collect::<Vec<_>>())
}

/// Ratio of the IOPS of `a` to the IOPS of `b`, round by round.
fn iops_ratios(a: &[Reached], b: &[Reached]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a.iops / b.iops).collect()
}

fn show(name: &str, rounds: &[Reached]) {
    let raw: Vec<String> = rounds
        .iter()
        .map(|r| format!("{:.*}", usize::from(r.iops < 1e5), r.iops / 1e3))
        .collect();
    let (low, high) = ends(&rounds.iter().map(|r| r.iops).collect::<Vec<_>>());
    println!(
        "  {name:<24} median {:>8.1} kIOPS [{:.1} to {:.1}], {:>4.0} ns user CPU per I/O; rounds in kIOPS: {}",
        iops(rounds) / 1e3,
        low / 1e3,
        high / 1e3,
        user_ns(rounds),
        raw.join(" ")
    );
}

fn run(spec: &TrialSpec, target: &Target, clock: &Clock) -> Outcome {
    trial::run(spec, target, clock, &AtomicBool::new(false)).expect("the trial runs")
}

fn scratch(directory: &Path, size: u64) -> Target {
    let need = Need::writing(size);
    let target = Target::open(directory, &need).expect("room for the scratch file");
    target
        .fill(1, &AtomicBool::new(false), &mut |_| {})
        .expect("the scratch file is filled");
    target
}

fn null(_: &Path, clock: &Clock, score: &mut Score) {
    println!("null backend, one thread, latency recorded");
    let rates: Vec<f64> = (0..ROUNDS)
        .filter_map(|_| trial::floor_ns(clock, true))
        .map(|ns| 1e3 / ns)
        .collect();
    score.goal("million requests per second", &rates, 25.0);
}

fn hot_reads(directory: &Path, clock: &Clock, score: &mut Score) {
    println!("4 KiB reads of a 256 MiB file that is hot in the page cache, one thread");
    let target = scratch(directory, HOT_FILE);
    let spec = TrialSpec {
        region: HOT_FILE,
        cache: CacheState::Hot,
        limit: TrialLimit {
            bytes: Some(HOT_REQUESTS * 4096),
            ..TrialLimit::default()
        },
        ..TrialSpec::default()
    };
    let (mut bare, mut own, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..MODE_ROUNDS {
        own.push(Reached::from(&run(&spec, &target, clock)));
        bare.push(bare::read(target.path(), HOT_FILE, HOT_REQUESTS, clock));
        if round < ROUNDS {
            theirs.extend(fio::run(target.path(), &fio::HOT));
        }
    }
    show("bare pread loop", &bare);
    show("iolab psync", &own);
    score.goal(
        "IOPS, iolab over bare loop",
        &iops_ratios(&own, &bare),
        0.98,
    );
    score.one_mode(&own, &bare);
    if theirs.is_empty() {
        return println!("  skipped: fio is not installed");
    }
    show("fio psync", &theirs);
    // Where the kernel takes long for a copy of 4 KiB, the bare loop itself is only 1.24 times as fast as fio.
    score.goal("IOPS, iolab over fio", &iops_ratios(&own, &theirs), 1.15);
    score.user_goal("user CPU per I/O, fio over iolab", &theirs, &own, 3.0);
}

fn small_reads(directory: &Path, clock: &Clock, score: &mut Score) {
    println!(
        "8 byte reads of a 16 MiB file that is hot in the page cache, one thread, no latency recorded"
    );
    let target = scratch(directory, SMALL_FILE);
    let spec = TrialSpec {
        backend: Backend::Sync,
        bs: bare::SMALL as u64,
        region: SMALL_FILE,
        cache: CacheState::Hot,
        latency: false,
        ..TrialSpec::default()
    };
    let (mut bare, mut own) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        own.push(Reached::from(&run(&spec, &target, clock)));
        bare.push(bare::read_small(target.path(), clock));
    }
    show("bare read loop", &bare);
    show("iolab sync", &own);
    score.goal(
        "IOPS, iolab over bare loop",
        &iops_ratios(&own, &bare),
        0.93,
    );
}

fn deep_reads(directory: &Path, clock: &Clock, score: &mut Score) {
    let device = zram::Zram::create(HOT_FILE);
    let target = match &device {
        Ok(zram) => {
            println!("4 KiB O_DIRECT random reads, io_uring, depth 32, on a zram device");
            let need = Need::reading(HOT_FILE);
            Target::open(zram.path(), &need).expect("the device opens")
        }
        Err(reason) => {
            println!(
                "4 KiB O_DIRECT random reads, io_uring, depth 32, on a file (no zram: {reason})"
            );
            scratch(directory, HOT_FILE)
        }
    };
    let spec = |batch| TrialSpec {
        backend: Backend::IoUring,
        pattern: Pattern::Rand,
        region: HOT_FILE,
        depth: 32,
        batch,
        limit: TrialLimit {
            time: Some(Duration::from_secs(1)),
            ..TrialLimit::default()
        },
        ..TrialSpec::default()
    };
    let strategies = [Batch::One, Batch::Percent(25), Batch::All];
    let mut own = strategies.map(|_| Vec::new());
    let mut theirs = Vec::new();
    for _ in 0..ROUNDS {
        for (batch, rounds) in strategies.iter().zip(&mut own) {
            rounds.push(Reached::from(&run(&spec(*batch), &target, clock)));
        }
        theirs.extend(fio::run(target.path(), &fio::DEEP));
    }
    for (batch, rounds) in strategies.iter().zip(&own) {
        show(&format!("iolab io_uring, wait {batch}"), rounds);
    }
    if theirs.is_empty() {
        return println!("  skipped: fio is not installed");
    }
    show("fio io_uring", &theirs);
    // One setting has to meet both goals: the cheapest one among the settings that keep up with fio.
    let ratio_of = |rounds: &[Reached]| median(&iops_ratios(rounds, &theirs));
    let worth = |rounds: &[Reached]| (ratio_of(rounds).min(1.0), -user_ns(rounds));
    let best = own
        .iter()
        .max_by(|a, b| worth(a).partial_cmp(&worth(b)).expect("numbers"))
        .expect("three strategies");
    score.goal("IOPS, iolab over fio", &iops_ratios(best, &theirs), 1.0);
    // Less than in the page cache: if only single completions keep up with fio, both enter the kernel for each request.
    score.user_goal("user CPU per I/O, fio over iolab", &theirs, best, 1.5);
}

fn writes(directory: &Path, clock: &Clock, score: &mut Score) {
    println!(
        "2 MiB O_DIRECT writes, unique incompressible data against a constant buffer of zeros"
    );
    let target = scratch(directory, HOT_FILE);
    // One huge page holds the buffer: whether small pages happen to lie side by side decides how often the kernel
    // splits a request, and would make the rounds fall into two groups.
    let spec = |compressible| TrialSpec {
        bs: WRITE_SIZE,
        region: HOT_FILE,
        read_percent: 0,
        buffer_init: BufferInit::Huge,
        compressible,
        limit: TrialLimit {
            bytes: Some(4 * HOT_FILE),
            ..TrialLimit::default()
        },
        ..TrialSpec::default()
    };
    let (mut unique, mut constant) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        unique.push(Reached::from(&run(&spec(0), &target, clock)));
        constant.push(Reached::from(&run(&spec(100), &target, clock)));
    }
    show("unique", &unique);
    show("constant", &constant);
    score.goal(
        "throughput, unique over constant",
        &iops_ratios(&unique, &constant),
        0.97,
    );
    println!(
        "  throughput in MB/s: unique {:.0}, constant {:.0}",
        iops(&unique) * WRITE_SIZE as f64 / 1e6,
        iops(&constant) * WRITE_SIZE as f64 / 1e6
    );
}

type Section = fn(&Path, &Clock, &mut Score);

const SECTIONS: [(&str, Section); 6] = [
    ("null", null),
    ("hot-reads", hot_reads),
    ("small-reads", small_reads),
    ("deep-reads", deep_reads),
    ("writes", writes),
    ("open-loop", open_loop::costs),
];

fn main() -> ExitCode {
    let asks = |name: &str| std::env::args().any(|word| word == name);
    let asks_all = !SECTIONS.iter().any(|(name, _)| asks(name));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let clock = Clock::calibrate();
    println!(
        "clock: {}, {:.1} ns a stamp",
        clock.source(),
        clock.cost_ns()
    );
    let mut score = Score::default();
    for (name, section) in SECTIONS {
        if asks_all || asks(name) {
            let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
            println!("load average: {}", load.trim_end());
            section(directory, &clock, &mut score);
        }
    }
    score.finish()
}
