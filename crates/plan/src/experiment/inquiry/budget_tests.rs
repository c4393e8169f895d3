//! Planned time of explanations of the built-in experiments.

use std::time::Duration;

use iolab_workload::settings::CellSpec;

use super::super::{BUILTIN, Experiment};
use super::tests::{between, planned};
use super::{BLOCKS_MAX, Phenomenon};
use crate::cells::{OneProcess, Plan, PlannedCell, cells};
use crate::suspect::{Compared, Leftover, MachineState};
use crate::untried_suspect::Obstacle;

/// As if a cell of an experiment differed from its first one.
fn phenomenon(experiment: &Experiment, sides: [&CellSpec; 2], machine: MachineState) -> Phenomenon {
    let took = sides.map(|cell| cell.time_foreseen().unwrap_or(Duration::from_secs(1)));
    let mut asked = between(sides, took);
    asked.sides.is_model = false;
    asked.sides.machine = machine;
    asked.response = experiment.response;
    asked.precondition = experiment.design.precondition;
    asked
}

/// As if the last cell of a built-in experiment with these settings differed from the first on a modelled disk.
fn modelled(name: &str, sets: &[&str]) -> Phenomenon {
    let mut experiment = Experiment::find(name).expect("built in");
    for set in sets {
        experiment.apply_set(set).expect("a setting");
    }
    let all = cells(&experiment).expect("cells");
    let sides = [&all[0].spec, &all[all.len() - 1].spec];
    let mut asked = phenomenon(&experiment, sides, MachineState::default());
    asked.sides.is_model = true;
    asked
}

/// The time of all trials of an inquiry, with what lies around them; `None` if no suspect is tried.
fn takes(asked: &Phenomenon) -> Option<Duration> {
    let (experiment, inquiry) = planned(asked);
    if inquiry.tried.is_empty() {
        return None;
    }
    let blocks = experiment.design.trials_min + 1;
    let plan = Plan::of_new_run(experiment, &OneProcess).expect("a plan");
    let [first, second] = asked.took;
    let of_cell = |cell: &PlannedCell| {
        let most = cell.spec.trial.time_foreseen();
        // A trial that ends by its bytes takes its earlier time.
        most.unwrap_or(first.max(second)) + cell.spec.idle + asked.around()
    };
    Some(plan.cells().iter().map(of_cell).sum::<Duration>() * blocks)
}

/// Cells of an experiment that are compared with its first one.
const OTHERS: usize = 8;

/// Cells against the first one of their experiment, with all suspects that a machine can have, and with idle time that drained credits need.
#[test]
fn explanations_of_built_in_experiments_fit_their_budget() {
    let drained = |leftover| MachineState {
        may_change_system: true,
        may_raise_nice: true,
        may_be_realtime: true,
        cpu_wait: Some(0.5),
        leftover,
        ..MachineState::default()
    };
    let (mut explained, mut experiments) = (0, 0);
    for (name, text) in BUILTIN {
        let experiment = Experiment::from_toml(text, name).expect(name);
        let all = cells(&experiment).expect(name);
        let is_plain = |cell: &&PlannedCell| !cell.spec.has_groups() && !cell.spec.runs_program();
        let plain: Vec<&PlannedCell> = all.iter().filter(is_plain).collect();
        let before = explained;
        let step = plain.len().div_ceil(OTHERS).max(1);
        for other in plain.iter().skip(1).step_by(step) {
            let sides = [&plain[0].spec, &other.spec];
            for leftover in [Leftover::Nothing, Leftover::Drained(3.0)] {
                let asked = phenomenon(&experiment, sides, drained(leftover));
                let Some(takes) = takes(&asked) else { continue };
                assert!(takes <= asked.budget.mul_f64(1.2), "{name}: {takes:?}");
                explained += 1;
            }
        }
        experiments += usize::from(explained > before);
    }
    assert!(experiments >= 12, "{experiments} of {}", BUILTIN.len());
}

/// The scratch file is filled within the budget: less is left for trials, and nothing if that takes all of it.
#[test]
fn time_of_filling_leaves_less_for_trials() {
    let sets = ["pattern=seq,rand", "bs=64k", "time=300ms"];
    let mut slow = modelled("read-size", &sets);
    assert_eq!(planned(&slow).1.tried.len(), 3);
    slow.fill = Duration::from_secs(200);
    let (trials, inquiry) = planned(&slow);
    assert_eq!(trials.design.budget, Duration::from_secs(100));
    assert_eq!(inquiry.fill_ns, Some(200_000_000_000));
    // All three take 8 variants of two sides, and 21 trials of 0.3 s each.
    assert_eq!(inquiry.tried, ["read-ahead", "waiting"]);
    let no_time = Obstacle::NoTime {
        budget_s: 360,
        idle_ns: 0,
        fill_ns: 200_000_000_000,
    };
    assert_eq!(inquiry.untried[0].why, no_time);
    slow.fill = Duration::from_secs(600);
    assert!(planned(&slow).1.tried.is_empty());
}

/// Trials that end by their bytes long before their time: their actual time decides, on a modelled disk too. Their time
/// limit would let 20 blocks of all variants take three minutes.
#[test]
fn trials_ending_early_count_with_their_actual_time() {
    let sets = ["pattern=seq,rand", "bs=64k", "bytes=4M", "time=1s"];
    let mut short = modelled("read-size", &sets);
    short.took = [Duration::from_millis(2), Duration::from_millis(5)];
    short.budget = Duration::from_secs(5);
    let (experiment, inquiry) = planned(&short);
    assert_eq!(experiment.design.trials_min, BLOCKS_MAX);
    assert_eq!(inquiry.shorter_ns, None);
    assert_eq!(inquiry.tried, ["read-ahead", "waiting", "reach"]);
    assert_eq!(inquiry.untried, []);
}

/// Slow requests of a disk with 32 of them in flight: 1000 with one at a time take 160 s, and as they are 5 s.
#[test]
fn trials_for_slow_requests_keep_to_the_budget() {
    let sets = ["bs=4k", "depth=32", "backend=libaio", "time=160s"];
    let mut slow = modelled("read-random", &sets);
    slow.sides.compared = Compared::Quantiles;
    slow.sides.iops = Some(200.0);
    let (_, inquiry) = planned(&slow);
    assert_eq!(inquiry.shorter_ns, Some(5_000_000_000));
    assert_eq!(inquiry.tried, ["reach"]);
    assert_eq!(inquiry.untried[0].suspect, "queueing");
    let Obstacle::NoTime { budget_s, .. } = inquiry.untried[0].why else {
        panic!("{inquiry:?}");
    };
    slow.budget = Duration::from_secs(budget_s);
    let (_, inquiry) = planned(&slow);
    assert_eq!(inquiry.shorter_ns, None);
    assert_eq!(inquiry.tried, ["queueing", "reach"]);
}

/// Caches of a trial that take several times its own time to be written out are a part of each block.
#[test]
fn time_of_writing_out_leaves_less_for_trials() {
    let sets = ["bs=4k,64k", "sync=none", "time=300ms", "bytes=none"];
    let mut writes = modelled("write-random", &sets);
    let of = |asked: &Phenomenon| planned(asked).1.tried;
    assert_eq!(of(&writes), ["waiting", "reach"]);
    writes.write_out = Duration::from_secs(3);
    // Two sides of two variants: 13 s a block.
    assert_eq!(of(&writes), ["waiting"]);
    writes.write_out = Duration::from_secs(30);
    assert_eq!(of(&writes), [""; 0]);
}
