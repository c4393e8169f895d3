//! What the writes of a trial fill or use up: those after it wait for storage. A trial of fewer requests ends before.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{SyncPolicy, TrialSpec};

use super::{Check, Compared, Intervention, QUANTILE_REQUESTS, Sides, Suspect};

/// The part of the requests that is left, where that is enough for the quantity.
const SHARE: f64 = 16.0;
/// More than one part in this many may still fill it.
const MOST: f64 = 4.0;

pub(super) const SUSPECT: Suspect = Suspect {
    name: "filling",
    what: "what the writes of a trial fill or use up (dirty pages of the page cache, a cache of the drive, credits)",
    change: "a 4th of the requests in a trial or fewer, down to a 16th",
    order: 1,
    check: Check::LessWriteBack,
    explains: &[Compared::Quantiles],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let is_deferred = |trial: &TrialSpec| {
        trial.writes() && matches!(trial.sync, SyncPolicy::None | SyncPolicy::End)
    };
    let time = sides.base.trial.limit.time;
    let requests = sides.iops.zip(time).map(|(iops, time)| iops * time.as_secs_f64());
    let Some(requests) = requests.filter(|_| sides.trials().into_iter().all(is_deferred)) else {
        return Intervention::Irrelevant;
    };
    let left = (requests / SHARE).max(QUANTILE_REQUESTS);
    if left > requests / MOST {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| cell.trial.limit.requests = Some(left.ceil() as u64))
}
