//! Waiting until each write is durable: flushes, and the revolution that a platter needs until the next block comes round.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::SyncPolicy;

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

pub(super) const SUSPECT: Suspect = Suspect {
    name: "durability",
    what: "waiting until each write is durable",
    change: "sync=none",
    acts_on: ActsOn::Worse,
    order: 0,
    counted: None,
    check: Check::Settings,
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    sides.changed(|cell: &mut CellSpec| {
        let trial = &mut cell.trial;
        if trial.writes() && !matches!(trial.sync, SyncPolicy::None | SyncPolicy::End) {
            trial.sync = SyncPolicy::None;
            trial.sync_every = 1;
        }
    })
}
