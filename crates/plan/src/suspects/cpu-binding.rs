//! Threads that wait for the CPU that they are bound to while another one is free.

use iolab_workload::cpus::Placement;
use iolab_workload::settings::CellSpec;

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "cpu-binding",
    what: "threads that wait for the CPU that they are bound to",
    change: "threads free to run on any CPU",
    acts_on: ActsOn::Worse,
    order: 0,
    counted: None,
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    if sides.is_model {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        cell.trial.cpus = None;
        cell.trial.placement = Placement::Float;
    })
}
