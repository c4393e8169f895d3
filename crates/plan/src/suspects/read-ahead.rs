//! Data that is read before it is asked for, because reads follow each other in ascending order.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::Pattern;

use super::{Check, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "read-ahead",
    what: "read-ahead of sequential reads",
    change: "sequential reads in reverse order",
    order: 1,
    check: Check::Settings,
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    sides.changed(|cell: &mut CellSpec| {
        if cell.trial.pattern == Pattern::Seq && cell.trial.read_percent > 0 {
            cell.trial.pattern = Pattern::Reverse;
        }
    })
}
