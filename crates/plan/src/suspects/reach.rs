//! Requests so far apart that heads travel, or that caches and mapping tables do not cover them.

use iolab_workload::stages::Stage;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::Pattern;

use super::{ActsOn, Check, Compared, Counted, Intervention, Sides, Suspect};

/// The part of the region that is left, if that holds enough requests.
const SHARE: u64 = 64;
/// A larger rest of the region than one part in this many shows nothing about its size.
const MOST: u64 = 8;
/// Fewest requests of a thread that the rest of the region holds.
const REQUESTS_MIN: u64 = 64;

pub(super) const SUSPECT: Suspect = Suspect {
    name: "reach",
    what: "the size of the region (reach of caches and mapping tables, length of random seeks)",
    change: "an 8th of the region or less, down to a 64th",
    acts_on: ActsOn::Worse,
    order: 2,
    counted: Some(Counted::Stage(Stage::Device)),
    check: Check::Settings,
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let is_scattered = |pattern: Pattern| !matches!(pattern, Pattern::Seq | Pattern::Reverse);
    let scattered = sides
        .trials()
        .iter()
        .any(|trial| is_scattered(trial.pattern));
    if !scattered || !sides.share(|trial| trial.region) {
        return Intervention::Irrelevant;
    }
    // An equal range on both sides; otherwise their reach would differ again.
    let stride =
        |cell: &CellSpec| (cell.trial.bs + cell.trial.skip) * u64::from(cell.trial.threads);
    let unit = stride(&sides.base).max(stride(&sides.other));
    let region = (sides.base.trial.region / SHARE).max(unit * REQUESTS_MIN);
    if region > sides.base.trial.region / MOST {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| cell.trial.region = cell.trial.region.min(region))
}
