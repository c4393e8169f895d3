//! What the requests of a worker are: a type, so that the loop of requests that are all alike pays for nothing else.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::chance::Chance;
use super::group_weights::FlowPart;
use super::pauses::{Pauses, Rest};
use super::repeats::{Repeats, Stamp};
use crate::request::{Action, Request};
use iolab_host::clock::Clock;
use iolab_workload::operation::PerOperation;
use iolab_workload::pattern::{Mix, Offsets, derive};
use iolab_workload::request_sizes::{RequestSizes, SizeCount};
use iolab_workload::trial::{SizeMix, TrialSpec, share};

/// What draws are for, so that they do not depend on each other.
const SIZES: u64 = 1 << 56;
const TRIMS: u64 = 2 << 56;

/// An endless stream of requests.
pub(crate) trait Requests {
    /// Whether anything but direction and offset changes from request to request.
    const VARIED: bool;

    /// The next request.
    fn next(&mut self) -> Request;

    /// Whether the bytes of the trial are used up, so that no request follows.
    #[inline(always)]
    fn are_spent(&self) -> bool {
        false
    }

    /// Whether a request may be issued at `now`; where not, the worker pauses once nothing is outstanding.
    #[inline(always)]
    fn may_go_on(&mut self, _now: u64) -> bool {
        true
    }

    /// The stamp of the data of the next write, which has this one unless it repeats data.
    #[inline(always)]
    fn stamp(&mut self, own: Stamp) -> Stamp {
        own
    }

    /// Begins a pause at `now`.
    fn rest(&mut self, now: u64) -> Rest {
        Rest::asleep(now)
    }

    /// How many requests of each size there were.
    fn sizes(&self) -> RequestSizes {
        RequestSizes::default()
    }
}

/// Requests of one size.
pub(crate) struct Plain {
    offsets: Offsets,
    mix: Mix,
    bs: u32,
}

impl Plain {
    /// Those of worker number `worker`.
    pub(crate) fn new(spec: &TrialSpec, worker: u32) -> Self {
        Self {
            offsets: Offsets::new(spec, worker),
            mix: Mix::new(spec, worker),
            bs: spec.bs as u32,
        }
    }
}

impl Requests for Plain {
    const VARIED: bool = false;

    #[inline(always)]
    fn next(&mut self) -> Request {
        Request {
            action: next_action(&mut self.mix),
            offset: self.offsets.next_offset(),
            at: 0,
            len: self.bs,
        }
    }
}

/// Requests that differ in more.
pub(crate) struct Varied {
    offsets: Offsets,
    mix: Mix,
    bs: u32,
    sizes: Option<Drawn>,
    trims: Option<Chance>,
    repeats: Option<Repeats>,
    sequences: Option<Sequences>,
    /// Whether the block of each write is trimmed before.
    trim_first: bool,
    /// The write whose block was trimmed.
    trimmed: Option<Request>,
    pauses: Option<Pauses>,
    flow: Option<FlowPart>,
    /// How long a group that is ahead of its share pauses before it looks again, ticks.
    flow_wait: u64,
}

/// That time, ns: short beside a request to a device, and long enough to sleep.
const FLOW_WAIT_NS: u64 = 100_000;

impl Varied {
    /// Whether a trial needs them.
    pub(crate) fn are_asked(spec: &TrialSpec) -> bool {
        spec.bs_mix.is_some()
            || spec.pauses()
            || spec.trims()
            || spec.dedup > 0
            || spec.flow.is_some()
            || spec.random_every > 1
    }

    /// Those of worker number `worker`.
    pub(crate) fn new(spec: &TrialSpec, worker: u32, clock: &Clock) -> Self {
        Self {
            pauses: Pauses::of(spec, clock),
            flow_wait: clock.ticks(FLOW_WAIT_NS),
            ..Self::again(spec, worker)
        }
    }

    /// Those of worker number `worker` once more, one right after the other: what they do and where is the same.
    pub(crate) fn again(spec: &TrialSpec, worker: u32) -> Self {
        Self {
            pauses: None,
            flow: None,
            flow_wait: 0,
            trims: Chance::of(spec.trim_percent, spec, worker, TRIMS),
            repeats: Repeats::of(spec, worker),
            sequences: (spec.random_every > 1).then(|| Sequences::new(spec.random_every)),
            trim_first: spec.trim_first,
            trimmed: None,
            offsets: Offsets::new(spec, worker),
            mix: Mix::new(spec, worker),
            bs: spec.bs as u32,
            sizes: spec
                .bs_mix
                .as_ref()
                .map(|mix| Drawn::new(spec, mix, worker)),
        }
    }
}

impl Varied {
    /// With the proportion that they keep to those of other groups.
    pub(crate) fn in_flow(mut self, flow: Option<FlowPart>) -> Self {
        self.flow = flow;
        self
    }
}

impl Requests for Varied {
    const VARIED: bool = true;

    #[inline]
    fn next(&mut self) -> Request {
        if let Some(pauses) = &mut self.pauses {
            pauses.issued();
        }
        if let Some(flow) = &self.flow {
            flow.issued();
        }
        if let Some(write) = self.trimmed.take() {
            return write;
        }
        let mut action = next_action(&mut self.mix);
        if let Some(trims) = &mut self.trims
            && action == Action::Write
            && trims.comes()
        {
            action = Action::Trim;
        }
        let bs = u64::from(self.bs);
        let (len, start) = match &mut self.sizes {
            None => (self.bs, bs),
            Some(sizes) => {
                let reads = action == Action::Read;
                let start = sizes.mix.of(reads).start();
                (sizes.draw(reads), start.unwrap_or(bs))
            }
        };
        // A smaller request begins at a block too.
        let room = u64::from(len.max(self.bs));
        let offset = match (&mut self.sequences, &self.sizes) {
            (Some(sequences), _) => sequences.next_offset(&mut self.offsets, action, room, start),
            (None, None) => self.offsets.next_offset(),
            (None, Some(_)) => self.offsets.next_offset_of(room, start),
        };
        let request = Request {
            action,
            offset,
            at: 0,
            len,
        };
        match self.trim_first && action == Action::Write {
            false => request,
            true => {
                self.trimmed = Some(request);
                Request {
                    action: Action::Trim,
                    ..request
                }
            }
        }
    }

    #[inline]
    fn are_spent(&self) -> bool {
        self.sizes
            .as_ref()
            .is_some_and(|sizes| sizes.bytes_left == Some(0))
    }

    fn may_go_on(&mut self, now: u64) -> bool {
        self.pauses.as_mut().is_none_or(|pauses| pauses.allow(now))
            && self.flow.as_mut().is_none_or(FlowPart::allows)
    }

    fn stamp(&mut self, own: Stamp) -> Stamp {
        match &mut self.repeats {
            None => own,
            Some(repeats) => repeats.stamp(own),
        }
    }

    fn rest(&mut self, now: u64) -> Rest {
        match &mut self.pauses {
            Some(pauses) => pauses.begin(now),
            None if self.flow.is_some() => Rest::asleep(now.saturating_add(self.flow_wait)),
            None => Rest::asleep(now),
        }
    }

    fn sizes(&self) -> RequestSizes {
        self.sizes
            .as_ref()
            .map_or_else(RequestSizes::default, Drawn::counts)
    }
}

/// What the next request of a mix does.
#[inline(always)]
fn next_action(mix: &mut Mix) -> Action {
    match mix.next_is_read() {
        true => Action::Read,
        false => Action::Write,
    }
}

/// Random offsets with requests between them that follow the last one of their direction.
struct Sequences {
    /// Requests from one random offset to the next.
    every: u32,
    /// Requests until the next one.
    left: u32,
    /// Where the last request of each direction ended.
    ends: PerOperation<u64>,
}

impl Sequences {
    fn new(every: u32) -> Self {
        Self {
            every,
            left: 0,
            // Nothing lies there.
            ends: PerOperation::default().map(|()| u64::MAX),
        }
    }

    #[inline]
    fn next_offset(&mut self, offsets: &mut Offsets, action: Action, room: u64, start: u64) -> u64 {
        let end = &mut self.ends[action.completes()];
        let follows = self.left > 0 && offsets.holds(*end, room);
        let offset = match follows {
            true => *end,
            false => offsets.next_offset_of(room, start),
        };
        *end = offset + room;
        self.left = self.left.checked_sub(1).unwrap_or(self.every - 1);
        offset
    }
}

/// Sizes drawn from a mix.
struct Drawn {
    mix: SizeMix,
    rng: Xoshiro256PlusPlus,
    /// Requests of each multiple of each size: of reads, of writes.
    counts: [Vec<Vec<u64>>; 2],
    /// Bytes that the worker may still ask for; what the last request has beyond them is part of it.
    bytes_left: Option<u64>,
}

impl Drawn {
    fn new(spec: &TrialSpec, mix: &SizeMix, worker: u32) -> Self {
        let key = derive(spec.seed, SIZES | (u64::from(spec.number_of(worker)) + 1));
        let own = |bytes| share(bytes, spec.number_of(worker), spec.workers()).1;
        Self {
            mix: mix.clone(),
            rng: Xoshiro256PlusPlus::seed_from_u64(key),
            counts: [true, false].map(|reads| {
                let shares = mix.of(reads).shares().iter();
                shares
                    .map(|share| vec![0; share.multiples as usize])
                    .collect()
            }),
            bytes_left: spec.bytes_bound().map(own),
        }
    }

    #[inline]
    fn draw(&mut self, reads: bool) -> u32 {
        let draw = ((self.rng.next_u64() >> 32) * 100) >> 32;
        let sizes = self.mix.of(reads);
        let place = sizes.place(draw as u32);
        let share = sizes.shares()[place];
        let multiple = match share.multiples {
            1 => 0,
            multiples => ((self.rng.next_u64() >> 32) * u64::from(multiples)) >> 32,
        };
        self.counts[usize::from(!reads)][place][multiple as usize] += 1;
        let bytes = share.bytes * (multiple + 1);
        self.bytes_left = self.bytes_left.map(|left| left.saturating_sub(bytes));
        bytes as u32
    }

    fn counts(&self) -> RequestSizes {
        let of = |reads: bool| {
            let counts = self.counts[usize::from(!reads)].iter();
            let shares = self.mix.of(reads).shares().iter();
            shares.zip(counts).flat_map(move |(share, counts)| {
                (1..)
                    .zip(counts)
                    .map(move |(multiple, requests)| SizeCount {
                        reads,
                        bytes: share.bytes * multiple,
                        requests: *requests,
                    })
            })
        };
        RequestSizes::new(of(true).chain(of(false)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use iolab_workload::trial::{FileLayout, Pattern, TrialLimit};

    /// Standard deviations of the binomial that a count may be off: about one false alarm in 5e8.
    const DEVIATIONS: f64 = 6.0;

    proptest! {
        #[test]
        fn requests_of_a_mix_lie_within_binomial_bounds_of_what_was_asked(
            seed: u64, first in 1u32..99, second in 1u32..99, read_percent in 0u8..=100,
        ) {
            prop_assume!(first + second < 100);
            let rest = 100 - first - second;
            let text = format!("4k:{first},16k:{second},64k:{rest}/8k:{rest},32k:{}", 100 - rest);
            let mix: SizeMix = text.parse().expect("a mix");
            let spec = TrialSpec {
                seed,
                read_percent,
                pattern: Pattern::Rand,
                bs_mix: Some(mix.clone()),
                limit: TrialLimit { requests: Some(1), ..TrialLimit::default() },
                ..TrialSpec::default()
            };
            let mut requests = Varied::new(&spec, 0, &Clock::of_rate(1.0));
            let mut seen = RequestSizes::default();
            for _ in 0..10_000 {
                let request = requests.next();
                seen = seen.plus(RequestSizes::new([SizeCount {
                    reads: request.action == Action::Read,
                    bytes: request.len.into(),
                    requests: 1,
                }]));
            }
            // What is recorded is what was issued.
            for count in requests.sizes().counts() {
                prop_assert!(seen.counts().contains(count), "{count:?} in {seen}");
            }
            for reads in [true, false] {
                let of = |bytes: Option<u64>| -> u64 {
                    let mine = seen.counts().iter().filter(|c| c.reads == reads);
                    mine.filter(|c| bytes.is_none_or(|bytes| c.bytes == bytes)).map(|c| c.requests).sum()
                };
                let all = of(None) as f64;
                for share in mix.of(reads).shares() {
                    let p = f64::from(share.percent) / 100.0;
                    let bound = DEVIATIONS * (all * p * (1.0 - p)).sqrt();
                    let off = (of(Some(share.bytes)) as f64 - all * p).abs();
                    prop_assert!(off <= bound, "{} of {all} have {}", of(Some(share.bytes)), share.bytes);
                }
            }
        }

        #[test]
        fn trims_are_the_share_of_the_writes_that_was_asked(
            seed: u64, read_percent in 0u8..100, trim_percent in 1u8..=100,
        ) {
            let spec = TrialSpec { seed, read_percent, trim_percent, ..TrialSpec::default() };
            let mut requests = Varied::new(&spec, 0, &Clock::of_rate(1.0));
            let actions: Vec<Action> = (0..10_000).map(|_| requests.next().action).collect();
            let count = |action: Action| actions.iter().filter(|a| **a == action).count() as f64;
            let (trims, others) = (count(Action::Trim), 10_000.0 - count(Action::Read));
            let p = f64::from(trim_percent) / 100.0;
            let bound = DEVIATIONS * (others * p * (1.0 - p)).sqrt();
            prop_assert!((trims - others * p).abs() <= bound, "{trims} of {others}");
        }

        #[test]
        fn requests_of_a_mix_stay_in_their_part_and_end_with_the_bytes(
            seed: u64, threads in 1u32..5, blocks in 64u64..200, offset in 0u64..4,
            pattern in prop::sample::select(vec![
                Pattern::Seq, Pattern::Reverse, Pattern::Rand, Pattern::RandReplace, Pattern::Zipf(1.2),
            ]),
            layout in prop::sample::select(vec![FileLayout::Shared, FileLayout::Overlapping, FileLayout::Private]),
        ) {
            let offset = if layout == FileLayout::Private { 0 } else { offset * 4096 };
            let (mix, start) = match pattern {
                Pattern::Seq | Pattern::Reverse => ("4k:50,1k:20,8k:10,40k:20", 4096),
                _ => ("4k:50,1k:20,8k:10,40k:20/8k:50,40k:50@12k", 12_288),
            };
            let spec = TrialSpec {
                seed, threads, pattern, layout, offset,
                region: blocks * 4096,
                read_percent: 50,
                bs_mix: Some(mix.parse().expect("a mix")),
                limit: TrialLimit { bytes: Some(1 << 20), ..TrialLimit::default() },
                ..TrialSpec::default()
            };
            spec.check().expect("possible");
            let mut total = 0;
            for worker in 0..threads {
                let mut requests = Varied::new(&spec, worker, &Clock::of_rate(1.0));
                let end = match layout {
                    FileLayout::Private => spec.private_bytes(worker),
                    _ => offset + spec.region,
                };
                while !requests.are_spent() {
                    let request = requests.next();
                    total += u64::from(request.len);
                    prop_assert!(request.offset.is_multiple_of(4096));
                    let is_write = request.action == Action::Write;
                    prop_assert!(!is_write || threads > 1 || (request.offset - offset).is_multiple_of(start));
                    prop_assert!(request.offset >= offset);
                    prop_assert!(request.offset + u64::from(request.len) <= end);
                }
            }
            prop_assert!(total >= 1 << 20 && total < (1 << 20) + u64::from(threads) * 40_960);
        }
    }

    #[test]
    fn requests_between_random_offsets_follow_those_of_their_direction() {
        for (every, bs_mix) in [(4, None), (8, Some("4k-16k"))] {
            let spec = TrialSpec {
                pattern: Pattern::Rand,
                random_every: every,
                read_percent: 50,
                offset: 8192,
                region: 64 << 20,
                bs_mix: bs_mix.map(|mix| mix.parse().expect("a mix")),
                ..TrialSpec::default()
            };
            spec.check().expect("possible");
            let mut requests = Varied::new(&spec, 0, &Clock::of_rate(1.0));
            let mut ends = [None, None];
            let mut follow = 0;
            let count = 10_000;
            for number in 0..count {
                let request = requests.next();
                let end = &mut ends[usize::from(request.action == Action::Read)];
                let is_next = *end == Some(request.offset);
                follow += u32::from(is_next);
                // At a random offset it would be by chance alone.
                assert!(
                    is_next
                        || number % every == 0
                        || number < 64
                        || end.is_none_or(|end| end > spec.region)
                );
                assert!((8192..8192 + spec.region).contains(&request.offset));
                *end = Some(request.offset + u64::from(request.len));
            }
            let wanted = count - count / every;
            assert!(follow.abs_diff(wanted) < count / 50, "{follow} of {wanted}");
        }
    }

    #[test]
    fn the_block_of_each_write_is_trimmed_before() {
        let spec = TrialSpec {
            pattern: Pattern::Rand,
            read_percent: 0,
            trim_first: true,
            ..TrialSpec::default()
        };
        spec.check().expect("possible");
        let mut requests = Varied::new(&spec, 0, &Clock::of_rate(1.0));
        let mut trimmed = None;
        let mut writes = 0;
        for _ in 0..10_000 {
            let request = requests.next();
            match request.action {
                Action::Trim => trimmed = Some(request.offset),
                Action::Write => {
                    assert_eq!(trimmed.take(), Some(request.offset));
                    writes += 1;
                }
                Action::Read | Action::Fsync | Action::Fdatasync => panic!("{request:?}"),
            }
        }
        assert_eq!(writes, 5_000);
    }

    #[test]
    fn ordered_requests_of_a_mix_follow_each_other() {
        for pattern in [Pattern::Seq, Pattern::Reverse] {
            let spec = TrialSpec {
                pattern,
                region: 1 << 20,
                bs_mix: Some("4k:50,12k:50".parse().expect("a mix")),
                ..TrialSpec::default()
            };
            let mut requests = Varied::new(&spec, 0, &Clock::of_rate(1.0));
            let mut last = requests.next();
            for _ in 0..1000 {
                let next = requests.next();
                let (first, second) = match pattern {
                    Pattern::Seq => (last, next),
                    _ => (next, last),
                };
                let touches = first.offset + u64::from(first.len) == second.offset;
                let wraps = first.offset + u64::from(first.len) > (1 << 20) - 12_288
                    && second.offset == 0
                    || second.offset < 12_288 && first.offset + u64::from(first.len) == 1 << 20;
                assert!(touches || wraps, "{last:?} {next:?}");
                last = next;
            }
        }
    }

    #[test]
    fn requests_that_do_not_vary_are_the_plain_ones() {
        let spec = TrialSpec {
            pattern: Pattern::Rand,
            read_percent: 70,
            ..TrialSpec::default()
        };
        let (mut plain, mut varied) = (
            Plain::new(&spec, 0),
            Varied::new(&spec, 0, &Clock::of_rate(1.0)),
        );
        for _ in 0..1000 {
            let (a, b) = (plain.next(), varied.next());
            assert_eq!((a.action, a.offset, a.len), (b.action, b.offset, b.len));
        }
    }
}
