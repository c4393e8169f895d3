//! Streams of requests, as types, so that the loop for uniform requests pays for nothing else.
//!
//! Pauses of a worker after each request, and sleeps until a stamp.

use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::request::{Action, Request};
use iolab_host::clock::Clock;
use iolab_workload::outcome::{RequestSizes, SizeCount};
use iolab_workload::pattern::{Mix, Offsets, derive};
use iolab_workload::trial::{SizeMix, TrialSpec, share};

/// Random draws of a worker for one purpose.
struct Draws(Xoshiro256PlusPlus);

impl Draws {
    fn of(spec: &TrialSpec, worker: u32, purpose: u64) -> Self {
        let key = derive(spec.seed, purpose | (u64::from(spec.number_of(worker)) + 1));
        Self(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    /// A number below `end`.
    #[inline]
    fn below(&mut self, end: u64) -> u64 {
        ((self.0.next_u64() >> 32) * end) >> 32
    }
}

/// Purposes of random draws, which keep them independent.
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

    /// Whether a request may be issued; if not, the worker pauses once no request is outstanding.
    #[inline(always)]
    fn may_go_on(&self) -> bool {
        true
    }

    /// Begins a pause at `now`; returns its end, a stamp.
    fn rest(&mut self, now: u64) -> u64 {
        now
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
    /// The requests of worker number `worker`.
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
    /// Percentage of writes that are trims instead, with the draws that decide.
    trims: Option<(u64, Draws)>,
    /// Length of the pause after each request, ticks.
    pause: Option<u64>,
    /// Whether a request was issued since the last pause.
    is_pause_due: bool,
}

impl Varied {
    /// Whether requests of this trial vary: in size, by trims, or by pauses between them.
    pub(crate) fn are_asked(spec: &TrialSpec) -> bool {
        spec.bs_mix.is_some() || spec.thinktime.is_some() || spec.trims()
    }

    /// The requests of worker number `worker`.
    pub(crate) fn new(spec: &TrialSpec, worker: u32, clock: &Clock) -> Self {
        Self {
            pause: spec.thinktime.map(|t| clock.ticks(t.as_nanos() as u64)),
            ..Self::again(spec, worker)
        }
    }

    /// The requests of worker number `worker` once more, without pauses: their actions and offsets are the same.
    pub(crate) fn again(spec: &TrialSpec, worker: u32) -> Self {
        Self {
            pause: None,
            is_pause_due: false,
            trims: spec
                .trims()
                .then(|| (spec.trim_percent.into(), Draws::of(spec, worker, TRIMS))),
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

impl Requests for Varied {
    const VARIED: bool = true;

    #[inline]
    fn next(&mut self) -> Request {
        self.is_pause_due = self.pause.is_some();
        let mut action = next_action(&mut self.mix);
        if let Some((percent, draws)) = &mut self.trims
            && action == Action::Write
            && draws.below(100) < *percent
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
        let offset = match &self.sizes {
            None => self.offsets.next_offset(),
            Some(_) => self.offsets.next_offset_of(room, start),
        };
        Request {
            action,
            offset,
            at: 0,
            len,
        }
    }

    #[inline]
    fn are_spent(&self) -> bool {
        self.sizes
            .as_ref()
            .is_some_and(|sizes| sizes.bytes_left == Some(0))
    }

    fn may_go_on(&self) -> bool {
        !self.is_pause_due
    }

    fn rest(&mut self, now: u64) -> u64 {
        self.is_pause_due = false;
        now.saturating_add(self.pause.unwrap_or(0))
    }

    fn sizes(&self) -> RequestSizes {
        self.sizes
            .as_ref()
            .map_or_else(RequestSizes::default, Drawn::counts)
    }
}

/// The next action of a mix.
#[inline(always)]
fn next_action(mix: &mut Mix) -> Action {
    match mix.next_is_read() {
        true => Action::Read,
        false => Action::Write,
    }
}

/// Sizes drawn from a mix.
struct Drawn {
    mix: SizeMix,
    draws: Draws,
    /// Requests of each multiple of each size: of reads, of writes.
    counts: [Vec<Vec<u64>>; 2],
    /// Bytes that the worker may still ask for; what the last request has beyond them is part of it.
    bytes_left: Option<u64>,
}

impl Drawn {
    fn new(spec: &TrialSpec, mix: &SizeMix, worker: u32) -> Self {
        let own = |bytes| share(bytes, spec.number_of(worker), spec.workers()).1;
        Self {
            mix: mix.clone(),
            draws: Draws::of(spec, worker, SIZES),
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
        let sizes = self.mix.of(reads);
        let place = sizes.place(self.draws.below(100) as u32);
        let share = sizes.shares()[place];
        let multiple = match share.multiples {
            1 => 0,
            multiples => self.draws.below(multiples.into()),
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

/// Time before an exact end at which sleeping stops and looking at the clock begins: a sleeper wakes up late.
pub(super) const LEAD_NS: u64 = 50_000;

/// The longest sleep, so that a raised stop flag is seen.
const NAP_NS: u64 = 100_000_000;

/// Time to sleep until a stamp, at most [`NAP_NS`].
pub(super) fn time_until(clock: &Clock, until: u64) -> Duration {
    let left = clock.ns_between(clock.now(), until);
    Duration::from_nanos(left.min(NAP_NS))
}

/// Sleeps until a stamp. Returns early after a signal and after [`NAP_NS`].
#[inline(never)]
pub(super) fn sleep_until(clock: &Clock, until: u64) {
    let length = time_until(clock, until);
    if length.is_zero() {
        return std::hint::spin_loop();
    }
    // To a point in time, so that what comes between reading the clock and sleeping does not add up.
    let length = Timespec::try_from(length).unwrap_or_default();
    let end = clock_gettime(ClockId::Monotonic) + length;
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &end);
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;
    use iolab_workload::trial::{FileLayout, Pattern};
    use needs::settings;

    /// Standard deviations of the binomial that a count may be off: about one false alarm in 5e8.
    const DEVIATIONS: f64 = 6.0;

    proptest! {
        #[test]
        fn mixed_requests_keep_to_binomial_bounds(
            seed: u64, first in 1u32..99, second in 1u32..99, read_percent in 0u8..=100,
        ) {
            prop_assume!(first + second < 100);
            let rest = 100 - first - second;
            let mix = format!("4k:{first},16k:{second},64k:{rest}/8k:{rest},32k:{}", 100 - rest);
            let common = format!("read_percent={read_percent} pattern=rand bytes=1T");
            let spec = TrialSpec { seed, ..settings(&format!("{common} bs_mix={mix}")) };
            let mix: SizeMix = mix.parse().expect("a mix");
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
            // The recorded sizes are the issued ones.
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
        fn trims_are_the_requested_share_of_writes(
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
        fn mixed_requests_stay_in_range_and_bytes(
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
                ..settings(&format!("read_percent=50 bytes=1M bs_mix={mix}"))
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
    fn ordered_requests_of_a_mix_follow_each_other() {
        for pattern in [Pattern::Seq, Pattern::Reverse] {
            let spec = settings(&format!("pattern={pattern} region=1M bs_mix=4k:50,12k:50"));
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
    fn uniform_requests_equal_the_plain_ones() {
        let spec = settings("pattern=rand read_percent=70");
        let (mut plain, mut varied) = (
            Plain::new(&spec, 0),
            Varied::new(&spec, 0, &Clock::of_rate(1.0)),
        );
        for _ in 0..1000 {
            let (a, b) = (plain.next(), varied.next());
            assert_eq!((a.action, a.offset, a.len), (b.action, b.offset, b.len));
        }
    }

    fn cpu_ns() -> u64 {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
    }

    #[test]
    fn sleeping_leaves_the_cpu_to_others() {
        let clock = Clock::calibrate();
        let until = clock.now() + clock.ticks(200_000_000);
        let (before, mut naps) = (cpu_ns(), 0);
        while clock.now() < until {
            sleep_until(&clock, until);
            naps += 1;
        }
        let used = cpu_ns() - before;
        assert!(used < 100_000_000 && naps <= 100, "{used} ns, {naps}");
    }

    #[test]
    fn a_long_sleep_comes_back_to_look_around() {
        let clock = Clock::calibrate();
        let far = clock.now() + clock.ticks(3_600_000_000_000);
        let before = Instant::now();
        sleep_until(&clock, far);
        assert!(before.elapsed() < Duration::from_secs(60));
    }
}
