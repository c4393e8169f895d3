//! iolab-latency: HDR histograms of latencies in nanoseconds with 3 significant digits, and their encoding.
//!
//! Instantiates the library's generic code once for all crates, and optimised also in tests.

pub mod over_time;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

/// Latencies in nanoseconds, 3 significant digits.
pub type LatencyHistogram = Histogram<u64>;

/// Highest latency distinguished, ns: one hour; longer ones count as one hour.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// An empty histogram whose memory is already touched, so that recording never causes a page fault.
pub fn new_latency_histogram() -> LatencyHistogram {
    let mut histogram = Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("valid bounds");
    histogram.reset();
    histogram
}

/// A placeholder for an operation that a worker does not use: a few bytes instead of hundreds of KiB.
pub fn unused_latency_histogram() -> LatencyHistogram {
    Histogram::new_with_bounds(1, 2, 0).expect("valid bounds")
}

/// Adds a histogram to a sum; values beyond the bounds of the sum count as its highest value.
pub fn add(sum: &mut LatencyHistogram, part: &LatencyHistogram) {
    if sum.add(part).is_err() {
        for bin in part.iter_recorded() {
            sum.saturating_record_n(bin.value_iterated_to(), bin.count_at_value());
        }
    }
}

/// As [`add`], but visits only counts that are not zero: for many parts of few counts each. Gives the sum of
/// the values of the part, in ns.
pub fn add_few(sum: &mut LatencyHistogram, part: &LatencyHistogram) -> f64 {
    let mut total = 0.0;
    for_each_count(part, |value, count| {
        sum.saturating_record_n(value, count);
        total += part.median_equivalent(value) as f64 * count as f64;
    });
    total
}

/// Buckets that are skipped together where all are empty, as most are in a histogram of a few hundred requests.
const STRETCH: u64 = 16;

/// The highest value of each bucket that is not empty, ascending, and its count.
pub fn counts(histogram: &LatencyHistogram) -> Vec<(u64, u64)> {
    let mut counts = Vec::new();
    for_each_count(histogram, |value, count| counts.push((value, count)));
    counts
}

/// A histogram in a message, as the [`counts`] of its buckets.
pub mod as_counts {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{LatencyHistogram, counts, new_latency_histogram};

    /// Writes a histogram.
    ///
    /// # Errors
    /// Those of the format.
    pub fn serialize<S: Serializer>(
        histogram: &LatencyHistogram,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        counts(histogram).serialize(to)
    }

    /// Reads a histogram.
    ///
    /// # Errors
    /// Those of the format.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<LatencyHistogram, D::Error> {
        let mut histogram = new_latency_histogram();
        for (value, count) in Vec::<(u64, u64)>::deserialize(from)? {
            histogram.saturating_record_n(value, count);
        }
        Ok(histogram)
    }
}

/// Calls `f` with the highest value and the count of each bucket that is not empty. The library's
/// `iter_recorded` stops at every bucket, empty or not.
fn for_each_count(histogram: &LatencyHistogram, mut f: impl FnMut(u64, u64)) {
    if histogram.is_empty() {
        return;
    }
    let (mut next, max) = (histogram.min(), histogram.max());
    while next <= max {
        // The last bucket may be wider than the first one, and end later; it is then looked at again.
        let width = histogram.equivalent_range(next);
        let end = next.saturating_add(STRETCH * width - 1).min(max);
        if histogram.count_between(next, end) == 0 {
            next = end + 1;
            continue;
        }
        while next <= end {
            let count = histogram.count_at(next);
            if count > 0 {
                f(histogram.highest_equivalent(next), count);
            }
            next = histogram.next_non_equivalent(next);
        }
    }
}

/// Bytes before the counts: cookie, length, offset, digits, low, high, ratio.
const HEADER: usize = 40;
/// Highest value that a histogram may be sized for; ours end at one hour.
const HIGHEST_NS: u64 = 1 << 62;

/// Encodes a histogram in format V2 of HdrHistogram.
///
/// # Errors
///
/// The message of the library.
pub fn encode(histogram: &LatencyHistogram) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Decodes a histogram from untrusted bytes.
///
/// # Errors
///
/// What is wrong with the bytes, in a few words.
pub fn decode(bytes: &[u8]) -> Result<LatencyHistogram, String> {
    check(bytes)?;
    let histogram: Histogram<u64> = Deserializer::new()
        .deserialize(&mut &bytes[..])
        .map_err(|error| error.to_string())?;
    // The library saturates the total, after which iterating would overflow.
    if histogram.len() > i64::MAX as u64 {
        return Err("its counts are beyond 2^63".to_owned());
    }
    Ok(histogram)
}

/// Checks the header, from which the library sizes its buffers.
fn check(bytes: &[u8]) -> Result<(), String> {
    let field = |from: usize, to: usize| -> Option<u64> {
        let part = bytes.get(from..to)?;
        Some(part.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let (Some(length), Some(digits), Some(low), Some(high)) =
        (field(4, 8), field(12, 16), field(16, 24), field(24, 32))
    else {
        return Err("it is too short".to_owned());
    };
    if bytes.len() < HEADER || length != (bytes.len() - HEADER) as u64 {
        return Err("its length is not the one it states".to_owned());
    }
    if low != 1 || digits > 3 || high > HIGHEST_NS {
        return Err(format!(
            "its range {low} to {high} with {digits} digits is not one of iolab's"
        ));
    }
    // This code means -2^63 zeros, whose negation overflows in the library.
    if bytes[HEADER..].windows(9).any(|code| code == [0xff; 9]) {
        return Err("it holds an impossible count".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> LatencyHistogram {
        let mut histogram = new_latency_histogram();
        let record = |value: &u64| histogram.saturating_record(*value);
        values.iter().for_each(record);
        histogram
    }

    fn bytes_of(values: &[u64]) -> Vec<u8> {
        encode(&of(values)).unwrap()
    }

    proptest! {
        #[test]
        fn histograms_round_trip(values in prop::collection::vec(1u64..3_600_000_000_000, 0..200)) {
            let histogram = of(&values);
            let again = decode(&encode(&histogram).unwrap()).unwrap();
            prop_assert_eq!(again, histogram);
        }

        #[test]
        fn no_bytes_panic(
            at in 0usize..80,
            with in prop::collection::vec(any::<u8>(), 0..24),
            cut in 0usize..200,
        ) {
            let mut bytes = bytes_of(&[1, 1000, 1_000_000, 5_000_000_000]);
            let _ = decode(&with);
            let at = at.min(bytes.len());
            let end = (at + with.len()).min(bytes.len());
            bytes.splice(at..end, with);
            bytes.truncate(bytes.len().saturating_sub(cut % 7));
            if let Ok(histogram) = decode(&bytes) {
                let counts = counts(&histogram);
                prop_assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), histogram.len());
                let recorded = histogram.iter_recorded();
                let recorded = recorded.map(|bin| (bin.value_iterated_to(), bin.count_at_value()));
                prop_assert_eq!(counts, recorded.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_part_is_added_whole_whichever_way() {
        let parts = [
            of(&[]),
            of(&[0, 7, 7, 2_047, 2_048, 123_456_789]),
            of(&[3, u64::MAX]),
        ];
        let (mut whole, mut few) = (new_latency_histogram(), new_latency_histogram());
        for part in &parts {
            add(&mut whole, part);
            let total = add_few(&mut few, part);
            let expected = part.mean() * part.len() as f64;
            assert!((total - expected).abs() <= 1e-12 * expected, "{total}");
            assert_eq!(few, whole);
            assert_eq!((few.min(), few.max()), (whole.min(), whole.max()));
        }
    }

    #[test]
    fn sizes_from_a_header_are_not_believed() {
        let good = bytes_of(&[1000]);
        assert!(decode(&good).is_ok());
        let mut long = good.clone();
        long[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        insta::assert_snapshot!(decode(&long).unwrap_err(), @"its length is not the one it states");
        let mut digits = good.clone();
        digits[15] = 5;
        insta::assert_snapshot!(decode(&digits).unwrap_err(), @"its range 1 to 3600000000000 with 5 digits is not one of iolab's");
        let mut zeros = good.clone();
        zeros.truncate(HEADER);
        zeros.extend([0xff; 9]);
        zeros[4..8].copy_from_slice(&9u32.to_be_bytes());
        insta::assert_snapshot!(decode(&zeros).unwrap_err(), @"it holds an impossible count");
        assert!(decode(&[]).is_err());
    }
}
