//! Latencies over the time of a trial: a coarse log-linear histogram for each interval.
//!
//! Buckets are 4 ns wide up to 64 ns. Above, each power of two is divided into 16 buckets of equal width, so
//! that a bucket is at most a sixteenth of its lowest value wide. The last one, from 2^36 - 2^31 ns (66.6 s),
//! has no upper end.

use serde::{Deserialize, Serialize};

/// Buckets of a histogram.
pub const BUCKETS: usize = 496;
/// Most intervals; longer trials have longer ones.
pub const INTERVALS_MAX: usize = 512;

/// Width of the first buckets, as a power of two, ns.
const FINEST: u32 = 2;
/// Buckets of a power of two, as a power of two.
const PARTS: u32 = 4;
/// Most requests of a histogram over time; a reader refuses more.
const COUNT_MAX: u64 = 1 << 60;

/// Number of the bucket of a latency in ns.
#[inline]
pub fn bucket(ns: u64) -> usize {
    let value = ns >> FINEST;
    if value < 1 << PARTS {
        return value as usize;
    }
    let octave = value.ilog2() - PARTS;
    let part = (value >> octave) as usize & ((1 << PARTS) - 1);
    (((octave as usize + 1) << PARTS) + part).min(BUCKETS - 1)
}

/// Lowest latency of a bucket, ns.
pub fn lowest_ns(bucket: usize) -> u64 {
    let (octave, part) = (bucket >> PARTS, (bucket & ((1 << PARTS) - 1)) as u64);
    match octave {
        0 => part << FINEST,
        _ => ((1 << PARTS) + part) << (octave as u32 - 1 + FINEST),
    }
}

/// Highest latency of a bucket, ns; of the last one, which has no end, the greatest number.
pub fn highest_ns(bucket: usize) -> u64 {
    match bucket + 1 >= BUCKETS {
        true => u64::MAX,
        false => lowest_ns(bucket + 1) - 1,
    }
}

/// The latencies of one interval.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IntervalLatency {
    /// Buckets with requests, ascending, and how many.
    counts: Vec<(u16, u64)>,
    /// The greatest latency, ns; 0 without requests.
    pub max_ns: u64,
}

impl IntervalLatency {
    /// An interval from the number of requests in each bucket, and the greatest latency in ns.
    pub fn new(counts: &[u32], max_ns: u64) -> Self {
        let all = (0..).zip(counts);
        let used = all.filter(|(_, count)| **count > 0);
        Self {
            counts: used.map(|(b, count)| (b, u64::from(*count))).collect(),
            max_ns,
        }
    }

    /// Buckets with requests, ascending, and how many.
    pub fn counts(&self) -> &[(u16, u64)] {
        &self.counts
    }

    /// Number of requests; saturates, because the counts of a foreign file may add up to more than a number
    /// holds.
    pub fn total(&self) -> u64 {
        let counts = self.counts.iter().map(|(_, count)| *count);
        counts.fold(0, u64::saturating_add)
    }

    /// Bytes of memory that it takes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.counts.capacity() * size_of::<(u16, u64)>()
    }

    /// The smallest latency that this share of the requests does not exceed: the highest of its bucket, or the
    /// greatest of all. It is never below the exact one, and at most a sixteenth (below 64 ns, 3 ns) above it.
    /// `None` without requests.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let wanted = (share * self.total() as f64).ceil().max(1.0);
        let mut below = 0u64;
        for (bucket, count) in &self.counts {
            below = below.saturating_add(*count);
            if below as f64 >= wanted {
                return Some(highest_ns(usize::from(*bucket)).min(self.max_ns));
            }
        }
        (!self.counts.is_empty()).then_some(self.max_ns)
    }

    /// Both intervals as one: the sum of their requests, and the greater maximum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut counts = [&self.counts[..], &other.counts].concat();
        // Stable, which is fast for two ascending parts.
        counts.sort_by_key(|(bucket, _)| *bucket);
        counts.dedup_by(|(bucket, part), (kept, sum)| {
            let is_same = bucket == kept;
            if is_same {
                *sum = sum.saturating_add(*part);
            }
            is_same
        });
        Self {
            counts,
            max_ns: self.max_ns.max(other.max_ns),
        }
    }
}

/// The latencies of one operation over the time of a trial, in consecutive intervals of equal length from the
/// start of the timed span on. The last interval ends with the span.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LatencyOverTime {
    /// Length of an interval but the last, ns.
    pub interval_ns: u64,
    /// End of the last interval, from the start of the timed span, ns.
    pub span_ns: u64,
    /// The intervals in the order of time.
    pub intervals: Vec<IntervalLatency>,
}

impl LatencyOverTime {
    /// Start and end of an interval, from the start of the timed span, ns.
    pub fn bounds_ns(&self, number: usize) -> (u64, u64) {
        let start = self.interval_ns.saturating_mul(number as u64);
        let end = match number + 1 >= self.intervals.len() {
            true => self.span_ns,
            false => start.saturating_add(self.interval_ns),
        };
        (start, end)
    }

    /// Number of requests; saturates.
    pub fn total(&self) -> u64 {
        let totals = self.intervals.iter().map(IntervalLatency::total);
        totals.fold(0, u64::saturating_add)
    }

    /// All intervals together.
    pub fn whole(&self) -> IntervalLatency {
        let all = self.intervals.iter();
        all.fold(IntervalLatency::default(), |sum, one| sum.plus(one))
    }

    /// Merges pairs of neighbouring intervals, so that intervals are twice as long.
    fn doubled(&mut self) {
        let pairs = self.intervals.chunks(2);
        let joined = pairs.filter_map(|pair| pair.iter().cloned().reduce(|a, b| a.plus(&b)));
        self.intervals = joined.collect();
        self.interval_ns = self.interval_ns.saturating_mul(2);
    }

    /// Latencies of two series together, in the longer of their intervals. Both lengths must be one length
    /// doubled any number of times.
    #[must_use]
    pub fn plus(mut self, mut other: Self) -> Self {
        if self.intervals.is_empty() {
            return other;
        }
        if other.intervals.is_empty() {
            return self;
        }
        while self.interval_ns < other.interval_ns {
            self.doubled();
        }
        while other.interval_ns < self.interval_ns {
            other.doubled();
        }
        let span_ns = self.span_ns.max(other.span_ns);
        if self.intervals.len() < other.intervals.len() {
            std::mem::swap(&mut self, &mut other);
        }
        for (sum, part) in self.intervals.iter_mut().zip(&other.intervals) {
            *sum = sum.plus(part);
        }
        self.ended_at(span_ns)
    }

    /// The series ended with the timed span, as a series of throughput is: a remainder shorter than half an
    /// interval is part of the last interval.
    #[must_use]
    pub fn ended_at(mut self, span_ns: u64) -> Self {
        let length = self.interval_ns.max(1);
        let (whole, rest) = (span_ns / length, span_ns % length);
        let count = whole as usize + usize::from(whole == 0 || rest.saturating_mul(2) >= length);
        self.span_ns = span_ns;
        // More than there can be only where times round differently.
        while self.intervals.len() > count.max(1) {
            let rest = self.intervals.pop().unwrap_or_default();
            if let Some(last) = self.intervals.last_mut() {
                *last = last.plus(&rest);
            }
        }
        let count = count.min(INTERVALS_MAX);
        self.intervals
            .resize(count.max(1), IntervalLatency::default());
        self
    }

    /// The series with neighbours merged until there are at most `most` intervals (at least 1).
    #[must_use]
    pub fn folded(mut self, most: usize) -> Self {
        while self.intervals.len() > most.max(1) {
            self.doubled();
        }
        self
    }

    /// Bytes of memory that its intervals take.
    pub fn bytes(&self) -> usize {
        self.intervals.iter().map(IntervalLatency::bytes).sum()
    }

    /// The series with neighbours merged until the intervals take at most `bytes` bytes of memory, or one is
    /// left.
    #[must_use]
    pub fn within(mut self, bytes: usize) -> Self {
        while self.intervals.len() > 1 && self.bytes() > bytes {
            self.doubled();
        }
        self
    }

    /// The intervals as bytes; every number is an LEB128. An interval begins with the number of its buckets
    /// with requests. Where there are some, the greatest latency in ns follows. Each bucket then has its
    /// distance from the one before less one, and its requests.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for interval in &self.intervals {
            put(&mut bytes, interval.counts.len() as u64);
            if interval.counts.is_empty() {
                continue;
            }
            put(&mut bytes, interval.max_ns);
            let mut next = 0;
            for (bucket, count) in &interval.counts {
                put(&mut bytes, u64::from(*bucket - next));
                put(&mut bytes, *count);
                next = bucket + 1;
            }
        }
        bytes
    }

    /// Reads untrusted bytes that [`LatencyOverTime::encode`] wrote; the lengths in ns are stored apart from
    /// them.
    ///
    /// # Errors
    ///
    /// Why the bytes are refused, in a few words.
    pub fn decode(bytes: &[u8], interval_ns: u64, span_ns: u64) -> Result<Self, String> {
        let mut left = bytes;
        let mut found = Self {
            interval_ns,
            span_ns,
            intervals: Vec::new(),
        };
        let mut total = 0u64;
        while !left.is_empty() {
            if found.intervals.len() == INTERVALS_MAX {
                return Err(format!("it has more than {INTERVALS_MAX} intervals"));
            }
            let interval = take_interval(&mut left)?;
            total = total.saturating_add(interval.total());
            found.intervals.push(interval);
        }
        let before = (found.intervals.len() as u64).saturating_sub(1);
        if interval_ns == 0
            || before
                .checked_mul(interval_ns)
                .is_none_or(|ns| ns > span_ns)
        {
            return Err("its intervals are longer than its span".to_owned());
        }
        match total > COUNT_MAX {
            true => Err("its counts are beyond 2^60".to_owned()),
            false => Ok(found),
        }
    }
}

fn take_interval(left: &mut &[u8]) -> Result<IntervalLatency, String> {
    let used = take(left)?;
    if used > BUCKETS as u64 {
        return Err(format!("an interval has more than {BUCKETS} buckets"));
    }
    if used == 0 {
        return Ok(IntervalLatency::default());
    }
    let max_ns = take(left)?;
    let mut counts = Vec::with_capacity(used as usize);
    let (mut next, mut total) = (0u64, 0u64);
    for _ in 0..used {
        let bucket = next.saturating_add(take(left)?);
        let count = take(left)?;
        if bucket >= BUCKETS as u64 {
            return Err(format!("a bucket is beyond the last, {}", BUCKETS - 1));
        }
        total = total.saturating_add(count);
        if count == 0 || total > COUNT_MAX {
            return Err("a count is 0 or beyond 2^60".to_owned());
        }
        counts.push((bucket as u16, count));
        next = bucket + 1;
    }
    let last = (next - 1) as usize;
    if !(lowest_ns(last)..=highest_ns(last)).contains(&max_ns) {
        return Err("the greatest latency is not of the highest bucket".to_owned());
    }
    Ok(IntervalLatency { counts, max_ns })
}

/// Appends a number as LEB128: seven bits a byte, the lowest first, the highest bit set in all but the last.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number of 63 bits from the front.
fn take(left: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for shift in 0..9 {
        let (byte, rest) = left
            .split_first()
            .ok_or_else(|| "it ends within a number".to_owned())?;
        *left = rest;
        number |= u64::from(byte & 0x7f) << (7 * shift);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("a number is beyond 2^63".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> IntervalLatency {
        let mut counts = vec![0; BUCKETS];
        values.iter().for_each(|ns| counts[bucket(*ns)] += 1);
        IntervalLatency::new(&counts, values.iter().copied().max().unwrap_or(0))
    }

    fn over_time(intervals: &[Vec<u64>]) -> LatencyOverTime {
        LatencyOverTime {
            interval_ns: 100,
            span_ns: 100 * intervals.len() as u64,
            intervals: intervals.iter().map(|values| of(values)).collect(),
        }
    }

    #[test]
    fn buckets_follow_each_other_and_are_narrow() {
        for number in 0..BUCKETS {
            let (low, high) = (lowest_ns(number), highest_ns(number));
            assert_eq!((bucket(low), bucket(high)), (number, number));
            if number > 0 {
                assert_eq!(highest_ns(number - 1) + 1, low);
            }
            if (64..1 << 36).contains(&low) && number + 1 < BUCKETS {
                assert!((high - low) as f64 / (low as f64) < 1.0 / 16.0);
            }
        }
        assert_eq!(lowest_ns(BUCKETS - 1), (1 << 36) - (1 << 31));
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    /// Latencies of every size, the greatest that a file can hold included.
    fn latencies(most: usize) -> impl Strategy<Value = Vec<u64>> {
        let any = (0u32..63, 0u64..1 << 62).prop_map(|(bits, ns)| ns >> bits);
        prop::collection::vec(any, 0..most)
    }

    proptest! {
        #[test]
        fn quantiles_are_at_most_a_sixteenth_above(values in latencies(300), share in 0.0f64..=1.0) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let found = of(&values).quantile_ns(share);
            let place = ((share * sorted.len() as f64).ceil() as usize).max(1) - 1;
            let exact = sorted.get(place).copied();
            prop_assert_eq!(found.is_some(), exact.is_some());
            if let Some((found, exact)) = found.zip(exact) {
                prop_assert!(found >= exact);
                if exact < lowest_ns(BUCKETS - 1) {
                    prop_assert!(found - exact <= (exact / 16).max(3), "{found} {exact}");
                }
            }
            prop_assert_eq!(of(&values).quantile_ns(1.0), sorted.last().copied());
        }

        #[test]
        fn bytes_round_trip_and_others_do_not_panic(
            intervals in prop::collection::vec(latencies(20), 1..30),
            at in 0usize..400,
            with in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let all = over_time(&intervals);
            let mut bytes = all.encode();
            prop_assert_eq!(LatencyOverTime::decode(&bytes, 100, all.span_ns), Ok(all.clone()));
            let at = at.min(bytes.len());
            let end = (at + with.len()).min(bytes.len());
            bytes.splice(at..end, with);
            if let Ok(other) = LatencyOverTime::decode(&bytes, 100, all.span_ns) {
                prop_assert!(other.intervals.len() <= INTERVALS_MAX && other.total() <= COUNT_MAX);
            }
        }

        #[test]
        fn sums_hold_every_request(
            a in prop::collection::vec(latencies(10), 1..40),
            b in prop::collection::vec(latencies(10), 1..40),
            doublings in 0u32..4,
            span in 1u64..5000,
        ) {
            let count = |all: &[Vec<u64>]| all.iter().map(Vec::len).sum::<usize>() as u64;
            let (first, mut other) = (over_time(&a), over_time(&b));
            (0..doublings).for_each(|_| other.doubled());
            let sum = first.plus(other);
            prop_assert_eq!(sum.total(), count(&a) + count(&b));
            prop_assert_eq!(sum.interval_ns, 100 << doublings);
            let whole = of(&a.concat()).plus(&of(&b.concat()));
            prop_assert_eq!(sum.whole(), whole);
            for most in [1, 3, 100] {
                let folded = sum.clone().folded(most);
                prop_assert!(folded.intervals.len() <= most);
                prop_assert_eq!(folded.whole(), sum.whole());
            }
            let ended = sum.clone().ended_at(span);
            prop_assert_eq!(ended.whole(), sum.whole());
            let (start, end) = ended.bounds_ns(ended.intervals.len() - 1);
            prop_assert!(start < end && end == span, "{start} {end}");
        }
    }

    /// Each of many rows of a file may claim as many requests as a row can hold: no total overflows.
    #[test]
    fn sums_of_claims_end_at_the_greatest_number() {
        let row = |bucket| LatencyOverTime {
            interval_ns: 100,
            span_ns: 100,
            intervals: vec![IntervalLatency {
                counts: vec![(bucket, COUNT_MAX)],
                max_ns: lowest_ns(usize::from(bucket)),
            }],
        };
        let sum = (0..40)
            .map(|number| row(number % 20))
            .reduce(LatencyOverTime::plus);
        let sum = sum.expect("many");
        assert_eq!((sum.total(), sum.whole().total()), (u64::MAX, u64::MAX));
        assert_eq!(sum.whole().quantile_ns(0.5), Some(highest_ns(3)));
        assert!(sum.whole().quantile_ns(1.0).is_some());
    }

    #[test]
    fn what_no_trial_wrote_is_refused() {
        let decode = |numbers: &[u64], interval, span| {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|number| put(&mut bytes, *number));
            LatencyOverTime::decode(&bytes, interval, span).expect_err("refused")
        };
        let many = vec![0; INTERVALS_MAX + 1];
        let told = [
            (&[1, 100, 496, 1][..], 100, 100),
            (&[497], 100, 100),
            (&[1, 100, 0, 0], 100, 100),
            (&[1, 100, 0, 1 << 61], 100, 100),
            (&[1, 100, 0, 1], 100, 100),
            (&[1, 1], 100, 100),
            (&[1 << 63], 100, 100),
            (&[0, 0, 0], 100, 150),
            (&[0], 0, 100),
            (&many, 1, 1000),
        ]
        .map(|(numbers, interval, span)| decode(numbers, interval, span));
        insta::assert_snapshot!(told.join("\n"), @r"
        a bucket is beyond the last, 495
        an interval has more than 496 buckets
        a count is 0 or beyond 2^60
        a count is 0 or beyond 2^60
        the greatest latency is not of the highest bucket
        it ends within a number
        a number is beyond 2^63
        its intervals are longer than its span
        its intervals are longer than its span
        it has more than 512 intervals
        ");
    }
}
