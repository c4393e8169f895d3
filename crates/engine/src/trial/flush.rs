//! Writes out the page cache and the drive's cache after a trial. The next trial then neither waits for this data nor runs
//! while it is written.

use std::ops::Range;
use std::time::Instant;

use super::fail;
use iolab_host::page_cache::make_durable;
use iolab_storage::Target;
use iolab_workload::outcome::{Failure, Outcome};
use iolab_workload::trial::{SyncPolicy, TrialSpec};

/// Writes out what a trial has left in caches, if that was not requested, and notes how long it took. The next trial that writes
/// would have to wait for it anyway, and reads would be slowed by it. Data that cannot be written out makes the trial a failed one.
pub fn write_out(spec: &TrialSpec, files: &[(&Target, Range<u64>)], outcome: &mut Outcome) {
    if owes_sync(spec, outcome) {
        pay_sync(files.iter().cloned(), outcome);
    }
}

/// Whether a trial may have left data in the page cache, or in the volatile cache of the drive, that no sync of its own has made durable.
pub fn owes_sync(spec: &TrialSpec, outcome: &Outcome) -> bool {
    let unsynced = match spec.sync {
        SyncPolicy::None => true,
        // The writes of a worker since its last sync.
        _ if spec.sync_every > 1 => {
            let synced = outcome
                .operations
                .sync
                .requests
                .saturating_mul(u64::from(spec.sync_every));
            synced < outcome.operations.write.requests
        }
        _ => false,
    };
    unsynced && outcome.operations.write.bytes > 0 && outcome.ended.is_whole()
}

pub(super) fn pay_sync<'a>(
    parts: impl Iterator<Item = (&'a Target, Range<u64>)>,
    outcome: &mut Outcome,
) {
    let began = Instant::now();
    for (target, range) in parts {
        if let Err(request) = make_durable(target, range) {
            return fail(outcome, Failure::Request(request));
        }
    }
    outcome.region.owed_sync_ns = Some(began.elapsed().as_nanos() as u64);
}
