//! Requests that wait for others in flight.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Pattern, TrialSpec};

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "queueing",
    what: "requests that wait for others in flight",
    change: "threads=1, depth=1",
    acts_on: ActsOn::Either,
    order: 0,
    counted: None,
    check: Check::Settings,
    explains: &[Compared::Quantiles],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    // A rate that one thread cannot keep makes requests wait all the more, and one thread of several in sequence leaves one stream.
    let is_other = |trial: &TrialSpec| {
        trial.rate.is_some() || (trial.threads > 1 && trial.pattern != Pattern::Rand)
    };
    if sides.trials().into_iter().any(is_other) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        cell.trial.threads = 1;
        cell.trial.depth = 1;
    })
}
