//! False calls and power of `iolab time`, with hyperfine next to it in three readings: docs/VALIDATION.md, "Commands".
//!
//! `cargo run --release -p iolab-synthetic --example time [IOLAB [ROUNDS]]`: with the path of a built iolab also real
//! commands are timed, by it and by an installed hyperfine.

#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::process::Command;

use iolab_analysis::analysis::analyse;
use iolab_analysis::equivalence::{ProgramAnswer, program_pairs};
use iolab_plan::blocks::block_order;
use iolab_stats::{mean, sd, welch};
use iolab_synthetic::Scenario;
use rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Runs of each command in a round.
const RUNS: u32 = 20;
/// Synthetic rounds of each effect.
const ROUNDS: u64 = 300;
/// Ratio of the second command's time to the first's.
const EFFECTS: [f64; 3] = [1.0, 1.03, 1.1];
/// The commands of each effect: sleeps, without a shell.
const COMMANDS: [[&str; 2]; 3] = [
    ["sleep 0.020", "sleep 0.020"],
    ["sleep 0.020", "sleep 0.0206"],
    ["sleep 0.020", "sleep 0.022"],
];

/// Verdict of a reading on the second command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Slower,
    Faster,
    Neither,
}

/// The readings, in the order of the table.
const READINGS: [&str; 4] = [
    "iolab time",
    "hyperfine: its first line",
    "hyperfine: its range excludes 1",
    "hyperfine: its Welch script, p < 0.05",
];

/// Noise of the times of runs, one after the other: the logarithm is normal, with a level that wanders.
struct Machine {
    random: Xoshiro256PlusPlus,
    /// Standard deviation of each run.
    own: f64,
    /// Standard deviation of the level, and its correlation from run to run.
    wander: (f64, f64),
    level: f64,
}

impl Machine {
    fn new(seed: u64, wander: (f64, f64)) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let first: f64 = StandardNormal.sample(&mut random);
        Self {
            random,
            own: 0.03,
            wander,
            level: wander.0 * first,
        }
    }

    fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.random)
    }

    /// The time of the next run of a command that takes `seconds`.
    fn time(&mut self, seconds: f64) -> f64 {
        let (sigma, correlation) = self.wander;
        let step = sigma * (1.0 - correlation * correlation).sqrt() * self.normal();
        self.level = correlation * self.level + step;
        seconds * (self.level + self.own * self.normal()).exp()
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (iolab, rounds) = (arguments.next(), arguments.next());
    let rounds = rounds.map_or(40, |rounds| rounds.parse().expect("a number of rounds"));
    let quiet = synthetic((0.0, 0.0));
    let drifting = synthetic((0.05, 0.9));
    let real = iolab.map(|iolab| EFFECTS.map(|effect| real(&iolab, effect, rounds)));
    println!(
        "each: % of rounds that name a faster command for A against A, +3 %, +10 % (wrong way round)"
    );
    for (place, reading) in READINGS.iter().enumerate() {
        let real = real.as_ref().map(|real| shares(real, place));
        println!(
            "| {reading} | {} | {} | {} |",
            shares(&quiet, place),
            shares(&drifting, place),
            real.unwrap_or_default()
        );
    }
}

/// Shares of rounds in which a reading calls the second command slower, and faster.
fn shares(of: &[Vec<[Call; 4]>; 3], reading: usize) -> String {
    let each = of.each_ref().map(|rounds| {
        let share = |call: Call| {
            let count = rounds.iter().filter(|all| all[reading] == call).count();
            100.0 * count as f64 / rounds.len().max(1) as f64
        };
        (share(Call::Slower), share(Call::Faster))
    });
    let [same, small, large] = each;
    format!(
        "{:.0}, {:.0} ({:.0}), {:.0} ({:.0})",
        same.0 + same.1,
        small.0,
        small.1,
        large.0,
        large.1
    )
}

/// Rounds on a machine whose level wanders so, for each effect.
fn synthetic(wander: (f64, f64)) -> [Vec<[Call; 4]>; 3] {
    let scenario = Scenario {
        trials: RUNS,
        ..Scenario::of("linkage", &["command=a,b", "region=1"])
    };
    let run = scenario.runs();
    EFFECTS.map(|effect| {
        let round = |seed: u64| {
            let seconds = [0.02, 0.02 * effect];
            // iolab: blocks in random order.
            let (mut record, _) = run(seed);
            let mut machine = Machine::new(2 * seed, wander);
            for block in 0..=RUNS {
                for cell in block_order(seed, block, 2) {
                    let time = (1e9 * machine.time(seconds[cell])) as u64;
                    let is_own = |one: &&mut iolab_record::Sample| {
                        one.cell == cell as i64 && one.block == block
                    };
                    for sample in record.samples.iter_mut().filter(is_own) {
                        (sample.elapsed_ns, sample.all_active_ns) = (time, time);
                    }
                }
            }
            let pairs = program_pairs(&analyse(&record));
            let answer = pairs.first().and_then(|pair| pair.points.first());
            let iolab = match answer.map(|point| point.answer()) {
                Some(ProgramAnswer::Slower) => Call::Slower,
                Some(ProgramAnswer::Faster) => Call::Faster,
                _ => Call::Neither,
            };
            // hyperfine: all runs of a command, then all of the next.
            let mut machine = Machine::new(2 * seed + 1, wander);
            let times = seconds.map(|seconds| {
                let runs = 0..RUNS;
                runs.map(|_| machine.time(seconds)).collect::<Vec<f64>>()
            });
            with_readings(iolab, &times)
        };
        (0..ROUNDS).map(round).collect()
    })
}

/// iolab's call, and the readings of hyperfine's times.
fn with_readings(iolab: Call, [a, b]: &[Vec<f64>; 2]) -> [Call; 4] {
    let call = |is_told: bool| match (is_told, mean(a) < mean(b)) {
        (false, _) => Call::Neither,
        (true, true) => Call::Slower,
        (true, false) => Call::Faster,
    };
    let of = |all: &[f64]| mean(all).zip(sd(all)).expect("several runs");
    let ((m, s), (n, t)) = (of(a), of(b));
    // As hyperfine computes the range of its last lines.
    let ratio = m.max(n) / m.min(n);
    let range = ratio * ((s / m).powi(2) + (t / n).powi(2)).sqrt();
    let p = welch(a, b).unwrap_or(1.0);
    [iolab, call(true), call(ratio - range > 1.0), call(p < 0.05)]
}

/// Rounds of real commands.
fn real(iolab: &str, effect: f64, rounds: u64) -> Vec<[Call; 4]> {
    let place = EFFECTS
        .iter()
        .position(|one| *one == effect)
        .expect("one of them");
    let commands = COMMANDS[place];
    let runs = RUNS.to_string();
    let round = |_| {
        let common = ["-N", "--warmup", "1", "--runs", &runs];
        let timed = Command::new(iolab)
            .arg("time")
            .args(common)
            .args(commands)
            .output();
        let timed = timed.expect("iolab starts");
        let told = String::from_utf8_lossy(&timed.stdout).replace('\n', " ");
        let iolab = match told.starts_with("Cannot tell") {
            false if told.contains(" slower than ") => Call::Slower,
            false if told.contains(" faster than ") => Call::Faster,
            _ => Call::Neither,
        };
        let timed = Command::new("hyperfine")
            .args(common)
            .args(["--style", "none", "--export-json", "/dev/stdout"])
            .args(commands)
            .output()
            .expect("hyperfine starts");
        // It writes the document again after each command.
        let told = serde_json::Deserializer::from_slice(&timed.stdout);
        let told = told.into_iter::<serde_json::Value>().last();
        let told = told.expect("a document").expect("its JSON");
        let times = [0, 1].map(|command: usize| {
            let times = told["results"][command]["times"].as_array().expect("times");
            times
                .iter()
                .filter_map(serde_json::Value::as_f64)
                .collect::<Vec<f64>>()
        });
        with_readings(iolab, &times)
    };
    (0..rounds).map(round).collect()
}
