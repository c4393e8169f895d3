//! Buffers that the caches of a CPU do not hold: copies to them go to memory.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Backend, Batch, CacheState, DEPTH_MAX, TrialSpec};

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

/// Below this I/O size the cost of a system call decides, and another call is another cost.
const BS_MIN: u64 = 16 << 10;

pub(super) const SUSPECT: Suspect = Suspect {
    name: "buffer-footprint",
    what: "buffers larger than a cache of the CPU",
    change: "as much buffer memory on both sides, used in turn (libaio)",
    acts_on: ActsOn::Better,
    order: 1,
    counted: None,
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let one_at_a_time = |trial: &TrialSpec| {
        trial.cache != CacheState::Direct
            && trial.bs_mix.is_none()
            && trial.bs >= BS_MIN
            && trial.depth == 1
    };
    let trials = sides.trials();
    let is_alike = sides.share(|trial| trial.threads) && sides.share(|trial| trial.read_percent);
    if sides.is_model || !is_alike || !trials.into_iter().all(one_at_a_time) {
        return Intervention::Irrelevant;
    }
    let footprint = trials.map(|trial| trial.bs).into_iter().max().unwrap_or(0);
    let divides = |trial: &&TrialSpec| {
        footprint % trial.bs == 0 && footprint / trial.bs <= u64::from(DEPTH_MAX)
    };
    if sides.share(|trial| trial.bs) || !trials.iter().all(divides) {
        return Intervention::Irrelevant;
    }
    // Memory that is new on both sides would take the difference in page faults with it.
    if sides.have_faults() {
        return Intervention::After("page-faults");
    }
    sides.changed(|cell: &mut CellSpec| {
        let trial = &mut cell.trial;
        trial.backend = Backend::Libaio;
        trial.depth = (footprint / trial.bs) as u32;
        // A buffer is used again when all others have been.
        trial.batch = Batch::All;
    })
}
