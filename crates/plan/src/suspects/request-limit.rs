//! The largest request that the kernel sends to a device: larger ones are split.

use iolab_workload::trial::{CacheState, TrialSpec};

use super::{Check, Intervention, Sides, Suspect};

/// The least limit (`max_sectors_kb`) that is common, bytes.
const LIMIT: u64 = 128 << 10;

pub(super) const SUSPECT: Suspect = Suspect {
    name: "request-limit",
    what: "the largest request that the kernel sends to the device",
    change: "a larger max_sectors_kb",
    order: 3,
    check: Check::Settings,
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let is_split =
        |trial: &&TrialSpec| trial.cache == CacheState::Direct && trial.largest_request() > LIMIT;
    let differ = !sides.share(TrialSpec::largest_request);
    match !sides.is_model && differ && sides.trials().iter().any(is_split) {
        true => Intervention::Lacks(
            "max_sectors_kb is a setting of the system, which iolab leaves as it is",
        ),
        false => Intervention::Irrelevant,
    }
}
