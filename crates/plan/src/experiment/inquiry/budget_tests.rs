//! What explanations of the built-in experiments take, as planned.

use std::time::Duration;

use iolab_workload::settings::CellSpec;

use super::super::{BUILTIN, Experiment};
use super::Phenomenon;
use crate::cells::{OneProcess, Plan, PlannedCell, cells};
use crate::suspect::{Leftover, MachineState, Sides};

/// As if a cell of an experiment differed from its first one.
fn phenomenon(experiment: &Experiment, sides: [&CellSpec; 2], machine: MachineState) -> Phenomenon {
    let [base, other] = sides.map(CellSpec::clone);
    Phenomenon {
        text: "made up".to_owned(),
        seen: 0.5,
        expected: 1.0,
        took: [&base, &other].map(|cell| cell.time_foreseen().unwrap_or(Duration::from_secs(1))),
        sides: Sides {
            base,
            other,
            is_model: false,
            machine,
        },
        response: experiment.response,
        precondition: experiment.design.precondition,
        changes_inside: false,
        budget: Duration::from_secs(300),
    }
}

/// The time of all trials of an inquiry, with what lies around them; `None` where no suspect is tried.
fn takes(asked: &Phenomenon) -> Option<Duration> {
    let experiment = Experiment::inquiry(asked).expect("valid");
    let inquiry = experiment.inquiry.as_ref().expect("an inquiry");
    if inquiry.tried.is_empty() {
        return None;
    }
    let blocks = experiment.design.trials_min + 1;
    let plan = Plan::of_new_run(experiment, &OneProcess).expect("a plan");
    let [first, second] = asked.took;
    let of_cell = |cell: &PlannedCell| {
        let most = cell.spec.trial.time_foreseen();
        // A trial that ends by its bytes takes what it took.
        most.unwrap_or(first.max(second)) + cell.spec.idle + asked.around()
    };
    Some(plan.cells().iter().map(of_cell).sum::<Duration>() * blocks)
}

/// Cells of an experiment that are compared with its first one.
const OTHERS: usize = 8;

/// Cells against the first one of their experiment, with all suspects that a machine can have, and with idle time that drained credits need.
#[test]
fn explanations_of_all_built_in_experiments_fit_their_budget() {
    let drained = |leftover| MachineState {
        may_change_system: true,
        may_raise_priority: true,
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
