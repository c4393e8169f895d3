//! Histograms that workers of an earlier trial have recorded into. Each takes some hundreds of KiB, which the kernel would have to give to
//! each worker of each trial anew.

use std::sync::{Arc, Mutex, PoisonError};

use iolab_workload::histogram::{LatencyHistogram, is_placeholder, new_latency_histogram};
use iolab_workload::operation::PerOperation;
use iolab_workload::outcome::Tally;

/// Histograms that no worker uses; workers share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpareHistograms(Arc<Mutex<Vec<LatencyHistogram>>>);

impl SpareHistograms {
    /// An empty histogram whose memory is already touched.
    pub(crate) fn take(&self) -> LatencyHistogram {
        let spare = self.with(Vec::pop);
        spare.map_or_else(new_latency_histogram, |mut histogram| {
            histogram.reset();
            histogram
        })
    }

    /// Takes back the histograms that a worker has recorded into.
    pub(crate) fn put(&self, operations: PerOperation<Tally>) {
        let PerOperation {
            read,
            write,
            sync,
            trim,
        } = operations;
        let all = [read, write, sync, trim].into_iter().flat_map(|tally| {
            let waits = tally.waits.map(|waits| [waits.response, waits.lateness]);
            [tally.latency]
                .into_iter()
                .chain(waits.into_iter().flatten())
        });
        let used = all.filter(|histogram| !is_placeholder(histogram));
        self.with(|spare| spare.extend(used));
    }

    /// Frees all but `count` histograms.
    pub(crate) fn truncate(&self, count: usize) {
        self.with(|spare| spare.truncate(count));
    }

    /// Memory of the spare histograms, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = |histogram: &LatencyHistogram| size_of::<u64>() * histogram.distinct_values();
        self.with(|spare| spare.iter().map(bytes).sum::<usize>() as u64)
    }

    fn with<T>(&self, f: impl FnOnce(&mut Vec<LatencyHistogram>) -> T) -> T {
        // Nothing that it guards can be left half done.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use iolab_workload::histogram::unused_latency_histogram;
    use iolab_workload::outcome::Waits;

    use super::*;

    #[test]
    fn a_used_histogram_is_reused_empty() {
        let spare = SpareHistograms::default();
        let used = PerOperation::from_fn(|_| Tally {
            latency: unused_latency_histogram(),
            ..Tally::default()
        });
        let mut used = PerOperation {
            read: Tally::default(),
            ..used
        };
        let whole = spare.take();
        let [mut response, mut lateness] = [whole.clone(), whole.clone()];
        for histogram in [&mut used.read.latency, &mut response, &mut lateness] {
            histogram.saturating_record(4_000);
        }
        used.read.waits = Some(Waits { response, lateness });
        spare.put(used);
        for left in [3, 2, 1, 0] {
            assert_eq!(spare.bytes(), left * 8 * whole.distinct_values() as u64);
            assert_eq!(spare.take(), whole);
        }
    }
}
