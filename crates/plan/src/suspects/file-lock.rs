//! A lock of the file, which writes of several threads wait for.

use iolab_workload::stages::Stage;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Descriptors, FileLayout};

use super::{ActsOn, Check, Compared, Counted, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "file-lock",
    what: "a lock of the file or descriptor that threads share",
    change: "files and descriptors of their own",
    acts_on: ActsOn::Worse,
    order: 1,
    counted: Some(Counted::Stage(Stage::Admission)),
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let mut trials = sides.trials().into_iter();
    if sides.is_model || !trials.any(|trial| trial.threads > 1 && trial.writes()) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        cell.trial.layout = FileLayout::Private;
        cell.trial.descriptors = Descriptors::Private;
    })
}
