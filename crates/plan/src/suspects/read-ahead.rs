//! Data that is read before it is asked for, because reads follow each other in ascending order.

use iolab_workload::stages::Stage;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Backend, CacheState, Pattern, TrialSpec};

use super::{ActsOn, Check, Compared, Counted, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "read-ahead",
    what: "read-ahead of sequential reads",
    change: "sequential reads in reverse order",
    acts_on: ActsOn::Better,
    order: 1,
    counted: Some(Counted::Stage(Stage::Device)),
    check: Check::Settings,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let of = |state: CacheState| move |trial: &&TrialSpec| trial.cache == state;
    let trials = sides.trials();
    if trials.iter().all(of(CacheState::Hot)) {
        return Intervention::Irrelevant;
    }
    // Reverse order takes away read-ahead of the kernel as well.
    let by_kernel = |cell: &&CellSpec| {
        let trial = &cell.trial;
        let is_off = trial.fadvise.is_some() || cell.system.read_ahead_kib == Some(0);
        trial.cache == CacheState::Cold && !is_off
    };
    if let Some(cell) = [&sides.base, &sides.other].into_iter().find(by_kernel) {
        return Intervention::After(match cell.trial.backend {
            Backend::Mmap => "mapped-read-ahead",
            _ => "host-read-ahead",
        });
    }
    sides.changed(|cell: &mut CellSpec| {
        if cell.trial.pattern == Pattern::Seq && cell.trial.read_percent > 0 {
            cell.trial.pattern = Pattern::Reverse;
        }
    })
}
