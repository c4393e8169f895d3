//! A limit of bytes per second, which requests in flight cannot raise.

use iolab_workload::stages::Stage;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::TrialSpec;

use super::{ActsOn, Check, Compared, Counted, Intervention, Sides, Suspect};

/// The I/O size whose bytes do not decide.
const SMALL: u64 = 4096;
/// The least size whose bytes may.
const LARGE: u64 = 16 << 10;

pub(super) const SUSPECT: Suspect = Suspect {
    name: "bandwidth",
    what: "a limit of bytes per second",
    change: "bs=4KiB",
    acts_on: ActsOn::Either,
    order: 0,
    counted: Some(Counted::Stage(Stage::Device)),
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let in_flight = |trial: &TrialSpec| trial.threads * trial.depth;
    let is_large = |trial: &TrialSpec| trial.bs >= LARGE && trial.bs_mix.is_none();
    if sides.share(in_flight) || !sides.trials().into_iter().all(is_large) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| cell.trial.bs = SMALL)
}
