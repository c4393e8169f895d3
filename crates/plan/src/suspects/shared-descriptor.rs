//! One file position for all threads.

use iolab_workload::stages::Stage;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::Descriptors;

use super::{ActsOn, Check, Compared, Counted, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "shared-descriptor",
    what: "the file descriptor that threads share",
    change: "descriptors=private",
    acts_on: ActsOn::Worse,
    order: 0,
    counted: Some(Counted::Stage(Stage::Admission)),
    check: Check::Settings,
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let uses_threads = sides.trials().iter().any(|trial| trial.threads > 1);
    match uses_threads && !sides.is_model {
        true => sides.changed(|cell: &mut CellSpec| cell.trial.descriptors = Descriptors::Private),
        false => Intervention::Irrelevant,
    }
}
