//! Buffers in many pieces of physical memory, for which the kernel splits requests.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{BufferMemory, CacheState};

use super::{ActsOn, Check, Compared, Counted, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "buffer-pieces",
    what: "requests split because buffers lie in many pieces",
    change: "buffer_memory=contiguous",
    acts_on: ActsOn::Worse,
    order: 2,
    counted: Some(Counted::DeviceIos),
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    if sides.is_model {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        if cell.trial.cache == CacheState::Direct {
            cell.trial.buffer_memory = BufferMemory::Contiguous;
        }
    })
}
