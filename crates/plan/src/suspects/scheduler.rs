//! The I/O scheduler of the device, which sorts requests, merges them, and holds some back for others.

use iolab_workload::stages::Stage;
use iolab_workload::system_settings::SchedulerName;
use iolab_workload::trial::CacheState;

use super::{ActsOn, Check, Compared, Counted, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "scheduler",
    what: "the I/O scheduler",
    change: "system=scheduler:none",
    acts_on: ActsOn::Either,
    order: 3,
    counted: Some(Counted::Stage(Stage::Queue)),
    check: Check::Settings,
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let none = SchedulerName::none();
    let has_one = sides.machine.scheduler.as_deref().is_some_and(|name| name != none.name());
    let mut trials = sides.trials().into_iter();
    let reaches_device = trials.any(|trial| trial.cache != CacheState::Hot || trial.writes());
    let can_cause = has_one && reaches_device;
    match !sides.is_model && (can_cause || sides.differ_in(|system| system.scheduler.clone())) {
        true => sides.changed_system(|system| system.scheduler = Some(none.clone())),
        false => Intervention::Irrelevant,
    }
}
