//! Threads that wait for a CPU which other programs use.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::NICE;

use super::{Check, Intervention, Obstacle, Sides, Suspect};

/// The share of their time in which threads wait on any machine.
const USUAL: f64 = 0.05;

pub(super) const SUSPECT: Suspect = Suspect {
    name: "cpu-waiting",
    what: "threads that wait for a CPU which others use",
    change: "nice=-20",
    order: 2,
    check: Check::LessCpuWait,
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let waited = sides.machine.cpu_wait.is_some_and(|share| share > USUAL);
    if sides.is_model || !waited {
        return Intervention::Irrelevant;
    }
    let first = |cell: &mut CellSpec| cell.trial.nice = Some(*NICE.start());
    match sides.changed(first) {
        Intervention::Settings(_) if !sides.machine.may_raise_priority => {
            Intervention::Lacks(Obstacle::NeedsRoot)
        }
        intervention => intervention,
    }
}
