//! Requests that come from outside, each with its own intended start, instead of from a pattern and a rate.
//!
//! A worker takes them one by one, so that a list needs no memory for all of them. A list that has to be waited for makes requests late:
//! its owner prepares them ahead, on another thread.
//!
//! The scheduled starts of an open loop: when each request is due, whether or not earlier ones have completed.

use std::cell::RefCell;
use std::rc::Rc;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::request::{Action, Request};
use crate::worker::Requests;
use iolab_host::clock::Clock;
use iolab_workload::pattern::derive;
use iolab_workload::trial::{Arrivals, Rate, TrialSpec};

/// A request of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedRequest {
    /// Intended start, ns since the start of the trial; not before the start of the request before it.
    pub at_ns: u64,
    /// Whether it writes.
    pub writes: bool,
    /// First byte.
    pub offset: u64,
    /// Bytes; at most the `bs` of the trial.
    pub bytes: u32,
}

/// How a request of a list was issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issue {
    /// Intended start, ns since the start of the trial.
    pub intended_ns: u64,
    /// Start, by the same clock.
    pub started_ns: u64,
    /// Part of the time between the two in which all slots were taken, ns.
    pub queue_ns: u64,
    /// Requests in flight with this one.
    pub outstanding: usize,
}

/// A list of requests.
pub trait RequestList: Send {
    /// The next request; `None` at the end, and from then on.
    fn next(&mut self) -> Option<ListedRequest>;

    /// Takes note of how the next request that has not been noted was issued, if they are issued by time.
    fn issued(&mut self, _issue: Issue) {}
}

/// A list as a worker goes through it.
pub(crate) struct Feed<'a> {
    list: &'a mut dyn RequestList,
    /// The request to issue now.
    current: Option<ListedRequest>,
    /// The request after it.
    ahead: Option<ListedRequest>,
}

impl<'a> Feed<'a> {
    /// The list, of which nothing has been issued.
    pub(crate) fn new(list: &'a mut dyn RequestList) -> Rc<RefCell<Self>> {
        let ahead = list.next();
        Rc::new(RefCell::new(Self {
            list,
            current: None,
            ahead,
        }))
    }

    fn advance(&mut self) {
        self.current = self.ahead;
        self.ahead = self.list.next();
    }
}

/// The intended starts of a list.
pub(crate) struct ListedStarts<'a> {
    feed: Rc<RefCell<Feed<'a>>>,
    clock: &'a Clock,
    next: u64,
    /// Whether all slots are taken.
    is_full: bool,
    /// Last time at which a slot became free after all were taken, ticks since the worker's own start.
    freed: u64,
}

impl<'a> ListedStarts<'a> {
    pub(crate) fn new(feed: &Rc<RefCell<Feed<'a>>>, clock: &'a Clock) -> Self {
        let mut own = Self {
            feed: Rc::clone(feed),
            clock,
            next: 0,
            is_full: false,
            freed: 0,
        };
        own.look_ahead();
        own
    }

    fn look_ahead(&mut self) {
        let ahead = self.feed.borrow().ahead;
        self.next = ahead.map_or(u64::MAX, |request| self.clock.ticks(request.at_ns));
    }
}

impl Starts for ListedStarts<'_> {
    const WAITS: bool = true;

    #[inline(always)]
    fn next(&self) -> u64 {
        self.next
    }

    fn advance(&mut self, now: u64, outstanding: usize) {
        let intended = self.next;
        let mut feed = self.feed.borrow_mut();
        feed.list.issued(Issue {
            intended_ns: self.clock.ns_between(0, intended),
            started_ns: self.clock.ns_between(0, now),
            queue_ns: self.clock.ns_between(intended, self.freed.min(now)),
            outstanding,
        });
        feed.advance();
        drop(feed);
        self.look_ahead();
    }

    /// The next one at least: later ones are not read yet.
    fn backlog(&self, at: u64) -> u64 {
        u64::from(self.next <= at)
    }

    fn has_slot(&mut self, now: u64) {
        if self.is_full {
            self.is_full = false;
            self.freed = now;
        }
    }

    fn lacks_slot(&mut self) {
        self.is_full = true;
    }
}

/// The requests of a list.
pub(crate) struct ListedRequests<'a>(pub(crate) Rc<RefCell<Feed<'a>>>);

impl Requests for ListedRequests<'_> {
    const VARIED: bool = true;

    fn next(&mut self) -> Request {
        let mut feed = self.0.borrow_mut();
        if feed.current.is_none() {
            // No intended start was taken before: each request follows as soon as another completes.
            feed.advance();
        }
        let request = feed.current.take();
        let request = request.expect("a list is not asked after its end");
        Request {
            action: match request.writes {
                true => Action::Write,
                false => Action::Read,
            },
            offset: request.offset,
            at: 0,
            len: request.bytes,
        }
    }

    fn are_spent(&self) -> bool {
        self.0.borrow().ahead.is_none()
    }
}

/// The intended starts of one worker.
pub(crate) trait Starts {
    /// Whether advancing may wait, so that each request needs a stamp of its own.
    const WAITS: bool = false;

    /// The next intended start, ticks since the worker's own start; `u64::MAX` if none is left.
    fn next(&self) -> u64;

    /// Advances to the next start: the request of this one is issued at the stamp `now`, in ticks since the worker's own start, and is one
    /// of `outstanding` in flight.
    fn advance(&mut self, now: u64, outstanding: usize);

    /// The last intended start that lies within `slack` after the next one, as far as starts are known. Ticks as in [`Starts::next`].
    fn last_within(&self, _slack: u64) -> u64 {
        self.next()
    }

    /// Number of intended starts up to `at` that have not been taken.
    fn backlog(&self, at: u64) -> u64;

    /// There is a free slot at `now`, ticks since the worker's own start.
    fn has_slot(&mut self, _now: u64) {}

    /// All slots are taken.
    fn lacks_slot(&mut self) {}
}

/// One worker's endless stream of intended starts, in ticks since its own start; its memory is constant.
///
/// The workers share the rate evenly. Constant arrivals: worker k of W starts its requests at `(k + 1/2 + iW) / rate`,
/// so that all of them together are evenly spaced. Poisson arrivals: each worker draws exponential gaps of mean
/// `W / rate` by inverse transform (L. Devroye, Non-Uniform Random Variate Generation (1986), II.2); independent
/// Poisson processes together are one (J. F. C. Kingman, Poisson Processes (1993), 2.2).
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// The next intended start, with [`FRACTION`] fractional bits, so that rounding does not add up.
    next: u128,
    /// The mean gap, with the same fractional bits.
    gap: u128,
    /// Draws the gaps of Poisson arrivals.
    random: Option<Xoshiro256PlusPlus>,
}

/// Fractional bits of a stamp.
const FRACTION: u32 = 32;

impl Schedule {
    /// The stream of worker `worker`; `rate` is above zero.
    pub(crate) fn new(spec: &TrialSpec, rate: Rate, worker: u32, clock: &Clock) -> Self {
        let worker = spec.number_of(worker);
        let second = u128::from(clock.ticks(1_000_000_000)) << FRACTION;
        // Units of the rate that a request takes, and the rate.
        let (unit, rate) = match rate {
            Rate::Requests(requests) => (1, u128::from(requests)),
            Rate::Bytes(bytes) => (spec.mean_request().round() as u128, u128::from(bytes)),
        };
        // Distance between two starts of all workers together.
        let spacing = second * unit / rate;
        let mut schedule = Self {
            next: spacing * u128::from(worker) + spacing / 2,
            gap: second * unit * u128::from(spec.workers()) / rate,
            random: None,
        };
        if spec.arrivals == Arrivals::Poisson {
            let key = derive(spec.seed, (u64::from(worker) + 1) << 48);
            schedule.random = Some(Xoshiro256PlusPlus::seed_from_u64(key));
            schedule.next = 0;
            schedule.advance(0, 0);
        }
        schedule
    }
}

impl Starts for Schedule {
    #[inline(always)]
    fn next(&self) -> u64 {
        (self.next >> FRACTION) as u64
    }

    #[inline(always)]
    fn advance(&mut self, _now: u64, _outstanding: usize) {
        let gap = match &mut self.random {
            None => self.gap,
            Some(random) => {
                // 53 bits make a number from 0 to below 1.
                let uniform = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                (-(-uniform).ln_1p() * self.gap as f64) as u128
            }
        };
        self.next += gap;
    }

    /// Exact for constant arrivals. Poisson arrivals have not been drawn yet: the mean gap stands for each.
    fn last_within(&self, slack: u64) -> u64 {
        let gaps = (u128::from(slack) << FRACTION) / self.gap;
        ((self.next + gaps * self.gap) >> FRACTION) as u64
    }

    /// Exact for constant arrivals. For Poisson arrivals it is the next one plus the mean number of later ones, since their times have not
    /// been drawn yet.
    fn backlog(&self, at: u64) -> u64 {
        let at = u128::from(at) << FRACTION;
        match at.checked_sub(self.next) {
            None => 0,
            Some(late) => 1 + (late / self.gap) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use iolab_workload::trial::{Arrivals, RATE_MAX};
    use needs::settings;

    fn spec(threads: u32, arrivals: Arrivals, seed: u64) -> TrialSpec {
        TrialSpec {
            threads,
            arrivals,
            seed,
            ..TrialSpec::default()
        }
    }

    fn starts(spec: &TrialSpec, rate: u64, worker: u32, clock: &Clock) -> Vec<u64> {
        let mut schedule = Schedule::new(spec, Rate::Requests(rate), worker, clock);
        let mut next = || {
            let at = schedule.next();
            schedule.advance(0, 0);
            at
        };
        (0..4096).map(|_| next()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn starts_ascend_at_rate_and_follow_the_seed(
            rate in 1..=RATE_MAX, threads in 1..64u32, worker in 0..64u32, seed: u64,
        ) {
            let worker = worker % threads;
            let clock = Clock::of_rate(1.0);
            for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
                let spec = spec(threads, arrivals, seed);
                let all = starts(&spec, rate, worker, &clock);
                prop_assert!(all.is_sorted());
                let mean = all[4095] as f64 / 4095.0;
                let ratio = mean / (1e9 * f64::from(threads) / rate as f64);
                // The mean of 4096 exponential gaps is known to 1.6 % (one standard deviation). Whole nanoseconds and the
                // phase of the worker add to that at the greatest rates.
                let within = if arrivals == Arrivals::Constant { 0.01 } else { 0.1 };
                prop_assert!((ratio - 1.0).abs() < within, "{arrivals}: {ratio}");
                prop_assert_eq!(&all, &starts(&spec, rate, worker, &clock));
            }
        }

        #[test]
        fn constant_arrivals_drift_by_no_rounding(rate in 1..=RATE_MAX, steps in 1..1_000_000u64) {
            let clock = Clock::of_rate(1.0);
            let mut schedule = Schedule::new(&spec(1, Arrivals::Constant, 1), Rate::Requests(rate), 0, &clock);
            for _ in 0..steps {
                schedule.advance(0, 0);
            }
            let exact = (steps as f64 + 0.5) * 1e9 / rate as f64;
            prop_assert!((schedule.next() as f64 - exact).abs() <= 2.0);
        }

        #[test]
        fn starts_within_the_slack_are_awaited_together(rate in 1..=RATE_MAX, slack in 0..1_000_000u64) {
            let clock = Clock::of_rate(1.0);
            let mut schedule = Schedule::new(&spec(1, Arrivals::Constant, 1), Rate::Requests(rate), 0, &clock);
            let (next, last) = (schedule.next, schedule.last_within(slack));
            let within = next + (u128::from(slack) << FRACTION);
            while schedule.next + schedule.gap <= within {
                schedule.advance(0, 0);
            }
            prop_assert_eq!(schedule.next(), last);
        }

        #[test]
        fn the_backlog_of_constant_arrivals_is_counted(rate in 1..=RATE_MAX, late in -2_000..2_000i64) {
            let clock = Clock::of_rate(1.0);
            let mut schedule = Schedule::new(&spec(1, Arrivals::Constant, 1), Rate::Requests(rate), 0, &clock);
            let at = schedule.next().saturating_add_signed(late);
            let expected = schedule.backlog(at);
            let mut counted = 0;
            while schedule.next <= u128::from(at) << FRACTION {
                counted += 1;
                schedule.advance(0, 0);
            }
            prop_assert_eq!(counted, expected);
        }
    }

    #[test]
    fn workers_together_are_evenly_spaced() {
        let clock = Clock::of_rate(1.0);
        let spec = spec(4, Arrivals::Constant, 1);
        let mut all: Vec<u64> = (0..4)
            .flat_map(|w| starts(&spec, 1000, w, &clock))
            .collect();
        all.sort_unstable();
        assert_eq!(all[0], 500_000, "half a gap after the start");
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000));
    }

    #[test]
    fn poisson_gaps_are_exponential_and_differ_by_seed() {
        let clock = Clock::of_rate(1.0);
        let of = |worker, seed| starts(&spec(2, Arrivals::Poisson, seed), 2000, worker, &clock);
        let gaps: Vec<u64> = of(0, 1).windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Mean gap 1 ms. P(gap > x) is exp(-x / mean); 4095 gaps show it to within 0.03 (nearly 4 standard deviations).
        for (limit, expected) in [(105_361, 0.9), (693_147, 0.5), (2_302_585, 0.1)] {
            let share = gaps.iter().filter(|gap| **gap > limit).count() as f64 / gaps.len() as f64;
            assert!((share - expected).abs() < 0.03, "{limit}: {share}");
        }
        assert_ne!(of(0, 1), of(1, 1));
        assert_ne!(of(0, 1), of(0, 2));
    }

    #[test]
    fn the_first_bound_decides_the_foreseen_time() {
        let second = Duration::from_secs(1);
        for (sets, expected) in [
            ("bytes=4000k", None),
            ("time=1s", Some(second)),
            ("rate=100 bytes=4000k", Some(10 * second)),
            ("rate=100 bytes=4000k time=1s", Some(second)),
            ("rate=1000 bytes=2000k time=3s", Some(second)),
            // One pass of 1 GiB in blocks of 4 KiB.
            ("rate=1024", Some(256 * second)),
        ] {
            assert_eq!(settings(sets).time_foreseen(), expected, "{sets}");
        }
    }
}
