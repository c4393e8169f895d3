//! Latency histograms as messages: only the used buckets are sent, and merging loses nothing.

use iolab_workload::histogram::over_time::LatencyOverTime;
use iolab_workload::histogram::{LatencyHistogram, counts, new_latency_histogram};

use crate::wire::{Reader, Wire, Writer};

/// Writes a histogram: for each used bucket, its distance from the one before, in ns, and its count.
pub fn write(histogram: &LatencyHistogram, to: &mut Writer) {
    let used = counts(histogram);
    to.number(used.len() as u64);
    let mut before = 0;
    for (value, count) in used {
        to.number(value - before);
        to.number(count);
        before = value;
    }
}

/// Adds a histogram from a message to another one; `None` if the message has none.
pub fn add(from: &mut Reader<'_>, sum: &mut LatencyHistogram) -> Option<()> {
    let mut value = 0u64;
    for _ in 0..from.length()? {
        value = value.checked_add(from.number()?)?;
        let count = from.number()?;
        sum.saturating_record_n(value, count);
    }
    Some(())
}

/// Reads a histogram from a message.
pub fn read(from: &mut Reader<'_>) -> Option<LatencyHistogram> {
    let mut histogram = new_latency_histogram();
    add(from, &mut histogram)?;
    Some(histogram)
}

/// Latencies over time, as in a run file.
impl Wire for LatencyOverTime {
    fn write(&self, to: &mut Writer) {
        self.interval_ns.write(to);
        self.span_ns.write(to);
        to.blob(&self.encode());
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let (interval_ns, span_ns) = (from.number()?, from.number()?);
        Self::decode(from.blob()?, interval_ns, span_ns).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> LatencyHistogram {
        let mut histogram = new_latency_histogram();
        values.iter().for_each(|v| histogram.saturating_record(*v));
        histogram
    }

    proptest! {
        // A histogram takes a quarter of a megabyte.
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn merging_on_the_way_equals_final_merging(
            parts in prop::collection::vec(prop::collection::vec(0u64..1 << 42, 0..200), 1..6)
        ) {
            let mut direct = new_latency_histogram();
            let mut sent = new_latency_histogram();
            for part in parts.iter().map(|values| of(values)) {
                direct.add(&part).expect("the same bounds");
                let mut to = Writer::default();
                write(&part, &mut to);
                let message = to.into_bytes();
                let mut from = Reader::new(&message);
                prop_assert_eq!(add(&mut from, &mut sent), Some(()));
                prop_assert!(from.is_at_end());
            }
            prop_assert_eq!(&direct, &sent);
            for quantile in [0.5, 0.99, 1.0] {
                prop_assert_eq!(direct.value_at_quantile(quantile), sent.value_at_quantile(quantile));
            }
        }

        #[test]
        fn noise_is_survived(bytes: Vec<u8>) {
            let _ = read(&mut Reader::new(&bytes));
        }
    }

    #[test]
    fn a_usual_histogram_takes_few_bytes() {
        // 100,000 requests of 60 to 160 us, typical of a trial on a disk.
        let values: Vec<u64> = (0..100_000).map(|i| 60_000 + i).collect();
        let mut to = Writer::default();
        write(&of(&values), &mut to);
        let bytes = to.into_bytes().len();
        assert!(bytes < 8_000, "{bytes} bytes");
    }
}
