//! Time of a request that passes while nothing else is done: latency that further requests in flight would overlap.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Backend, CacheState, SyncPolicy, TrialSpec};

use super::{ActsOn, Check, Compared, Intervention, Sides, Suspect};

/// Requests in flight with which latency no longer decides.
const DEPTH: u32 = 16;
/// Bytes in flight with which it does not either, and which any machine has as buffers.
const BYTES: u64 = 16 << 20;
/// The most requests in flight with which it may.
const FEW: u32 = 4;

pub(super) const SUSPECT: Suspect = Suspect {
    name: "waiting",
    what: "few requests in flight, which the storage could overlap or sort",
    change: "16 requests, or 16 MiB, in flight",
    acts_on: ActsOn::Worse,
    order: 0,
    counted: None,
    check: Check::InFlight,
    explains: &[Compared::Cells],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let in_flight = |trial: &TrialSpec| trial.threads * trial.depth;
    let can = |trial: &TrialSpec| {
        trial.cache == CacheState::Direct
            && trial.rate.is_none()
            && (!trial.writes() || matches!(trial.sync, SyncPolicy::None | SyncPolicy::End))
    };
    let trials = sides.trials();
    if !sides.share(in_flight) || in_flight(trials[0]) > FEW || !trials.into_iter().all(can) {
        return Intervention::Irrelevant;
    }
    sides.changed(|cell: &mut CellSpec| {
        let trial = &mut cell.trial;
        let depth = DEPTH.min((BYTES / trial.largest_request().max(1)) as u32);
        if depth <= trial.depth {
            return;
        }
        if !trial.backend.is_asynchronous() {
            trial.backend = Backend::Libaio;
        }
        trial.depth = depth;
    })
}
