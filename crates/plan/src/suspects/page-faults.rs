//! Page faults of buffers that were never touched.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::BufferInit;

use super::{ActsOn, Check, Compared, Counted, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "page-faults",
    what: "page faults of buffers that were never touched",
    change: "buffer_init=populated",
    acts_on: ActsOn::Worse,
    order: 1,
    counted: Some(Counted::PageFaults),
    check: Check::FewerFaults,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    sides.changed(|cell: &mut CellSpec| {
        if cell.trial.buffer_init == BufferInit::Untouched {
            cell.trial.buffer_init = BufferInit::Populated;
        }
    })
}
