//! The largest request that the kernel sends to a device: larger ones are split.

use iolab_workload::system_settings::RequestLimit;
use iolab_workload::trial::{CacheState, TrialSpec};

use super::{ActsOn, Check, Compared, Counted, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "request-limit",
    what: "the largest request that the kernel sends to the device",
    change: "system=max_sectors_kb:max",
    acts_on: ActsOn::Worse,
    order: 0,
    counted: Some(Counted::DeviceIos),
    check: Check::FewerDeviceIos,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let limit = sides.machine.request_max_bytes;
    let is_split = |trial: &&TrialSpec| {
        trial.cache == CacheState::Direct
            && limit.is_some_and(|limit| trial.largest_request() > limit)
    };
    let differ = !sides.share(TrialSpec::largest_request);
    let can_cause = differ && sides.trials().iter().any(is_split);
    match !sides.is_model && (can_cause || sides.differ_in(|system| system.request_limit)) {
        true => sides
            .changed_system(|system| system.request_limit = Some(RequestLimit::Greatest)),
        false => Intervention::Irrelevant,
    }
}
