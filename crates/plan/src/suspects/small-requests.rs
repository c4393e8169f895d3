//! Costs of each request, however small: credits of IOPS, or time in which a cache does not drain. The same bytes in few
//! requests use up little.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::TrialSpec;

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

/// The largest request that a cloud volume counts as one.
const LARGE: u64 = 256 << 10;
/// Larger requests are few already.
const SMALL: u64 = 64 << 10;
/// Fewest large requests of a load that ends by its bytes: the first one waits for no other, which makes a shorter load look faster.
const REQUESTS_MIN: u64 = 32;

pub(super) const SUSPECT: Suspect = Suspect {
    name: "small-requests",
    what: "many small requests (credits of IOPS, throttling, or a cost of each request in what drains a cache)",
    change: "bs=256KiB",
    acts_on: ActsOn::Either,
    order: 0,
    counted: None,
    check: Check::SameVolume,
    explains: &[Compared::Loads],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let is_small = |trial: &TrialSpec| trial.largest_request() < SMALL && trial.bs_mix.is_none();
    let has_many = |trial: &TrialSpec| {
        let bytes = trial.limit.bytes;
        bytes.is_none_or(|bytes| bytes >= REQUESTS_MIN * LARGE)
    };
    let can = |trial: &TrialSpec| is_small(trial) && has_many(trial);
    if !sides.trials().into_iter().all(can) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| cell.trial.bs = LARGE)
}
