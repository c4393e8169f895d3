//! Space that writes to a new file are given while they wait.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::Allocate;

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "allocation",
    what: "allocation of space for a new file",
    change: "writes to space that was written before",
    acts_on: ActsOn::Worse,
    order: 1,
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
        let trial = &mut cell.trial;
        if trial.starts_fresh() {
            trial.allocate = Some(Allocate::Recycled);
        }
    })
}
