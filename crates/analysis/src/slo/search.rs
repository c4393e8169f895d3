//! Which rate comes next, and between which the limit lies.
//!
//! The limit is the rate at which half of the trials keep all levels. Rates lie on a grid of [`STEPS`] per doubling. The
//! search doubles or halves the rate until one trial keeps the levels and one misses them, then visits rates in rounds: those
//! where the limit lies by all trials so far ([`Threshold`]), and those at the ends of its interval, each round in random
//! order, so that a machine that drifts cannot pose as an effect of the rate.

use super::Shown;
use crate::fitness::Answer;
use iolab_plan::blocks::block_order;
use iolab_stats::{Outcomes, Threshold, share_bounds};

/// Rates of the grid per doubling: 4.4 % apart.
const STEPS: f64 = 16.0;
/// Probability on either side of the interval. By simulation it then holds the limit in 95 of 100 searches or more.
const TAIL: f64 = 0.005;
/// Where the limit lies by what is known that the rates of a round are at.
const ROUND: [f64; 3] = [0.05, 0.5, 0.95];
/// The interval is narrow enough when its ends are so many rates apart: 9 %.
const ENOUGH: f64 = 2.0;
/// Trials at a rate that should show whether the levels hold there; where they do not, a rate farther out does.
const CONFIRMED: usize = 8;
/// How many places beyond an end of the interval rates are tried that should show it.
const OUTWARD: [i32; 5] = [0, 1, 2, 4, 8];
/// Error of the tests by which trials at two rates contradict each other.
const ALPHA: f64 = 0.005;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A trial at so many requests per second.
    Visit(u64),
    /// Nothing: the limit is known well enough, or lies outside of what can be asked for.
    Done,
}

/// A rate that was visited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePoint {
    /// Requests per second.
    pub rate: u64,
    /// Trials.
    pub trials: u32,
    /// Those that kept all levels.
    pub kept: u32,
    /// Whether the levels hold here (`true`) or fail (`false`); `None` within the interval of the limit.
    pub holds: Option<bool>,
}

/// Between which rates the limit lies.
#[derive(Debug, Clone, PartialEq)]
pub struct RateLimit {
    /// Lower end of its interval; `None` where the limit may lie below every rate that was visited.
    pub holds: Option<u64>,
    /// Upper end; `None` where it may lie above.
    pub fails: Option<u64>,
    /// The middle of what is known; `None` where an end is missing.
    pub estimate: Option<f64>,
    /// The curve that it rests on, in the order of the rates.
    pub points: Vec<RatePoint>,
    /// Whether the trials show that some rate fails and a greater one holds: the target changed while it was measured.
    pub contradicts: bool,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct Search {
    /// Kept trials and all trials, by the place of their rate.
    visits: Outcomes,
    ends: (i32, i32),
    next: Vec<i32>,
    seed: u64,
    rounds: u32,
    /// The places at which levels are to be shown to hold, and to fail.
    confirms: Option<(Option<i32>, Option<i32>)>,
}

impl Search {
    /// A search that begins at a rate and stays within the others.
    pub fn new(start: u64, least: u64, greatest: u64, seed: u64) -> Self {
        let ends = (place(least), place(greatest));
        Self {
            visits: Outcomes::new(),
            ends,
            next: vec![place(start).clamp(ends.0, ends.1)],
            seed,
            rounds: 0,
            confirms: None,
        }
    }

    /// What comes next; the same until [`Search::visited`] is called.
    pub fn step(&mut self) -> Step {
        if self.next.is_empty() {
            self.next = self.bracket().unwrap_or_else(|| self.round());
        }
        match self.next.last() {
            Some(place) => Step::Visit(rate(*place)),
            None => Step::Done,
        }
    }

    /// Takes whether a trial at the rate that was asked for kept all levels.
    pub fn visited(&mut self, kept: bool) {
        if let Some(place) = self.next.pop() {
            self.note(place, kept);
        }
    }

    /// Takes a trial of an earlier session.
    pub fn recall(&mut self, at: u64, kept: bool) {
        self.note(place(at), kept);
    }

    fn note(&mut self, place: i32, kept: bool) {
        let (all_kept, trials) = self.visits.entry(place).or_default();
        *all_kept += u32::from(kept);
        *trials += 1;
    }

    /// Doubles or halves the rate until one trial keeps and one misses; `None` when that is done.
    fn bracket(&self) -> Option<Vec<i32>> {
        let misses = |(_, (kept, trials)): &(&i32, &(u32, u32))| 2 * kept <= *trials;
        let fails = self.visits.iter().find(misses).map(|(place, _)| *place);
        let holds = self.visits.iter().rfind(|visit| !misses(visit));
        let next = match (holds, fails) {
            (Some((holds, _)), None) => (holds + STEPS as i32).min(self.ends.1),
            (None, Some(fails)) => (fails - STEPS as i32).max(self.ends.0),
            _ => return None,
        };
        let next = settled(next);
        // One that was visited and decides nothing is for the rounds.
        (!self.visits.contains_key(&next)).then(|| vec![next])
    }

    /// Where the limit lies by all trials so far. A share of the trials misses the levels at any rate, because the machine or the
    /// storage stalls.
    fn known(&self) -> Threshold {
        Threshold::of(&self.visits, self.ends).expect("64 doublings hold every rate")
    }

    /// The rates of the next round, in random order; none when enough is known.
    fn round(&mut self) -> Vec<i32> {
        self.rounds += 1;
        let known = self.known();
        let (low, high) = (known.quantile(TAIL), known.quantile(1.0 - TAIL));
        let outside = low > f64::from(self.ends.1) || high < f64::from(self.ends.0);
        if outside || high - low <= ENOUGH || self.is_between_neighbours(low, high) {
            return Vec::new();
        }
        let [below, middle, above] = ROUND.map(|probability| known.quantile(probability));
        // An end of the interval that lies beyond the visited rates is left open: visit it, so that the interval gets this end.
        let is_left_out = |end: f64, place: Option<(&i32, &(u32, u32))>, sign: f64| {
            place.is_some_and(|(place, _)| sign * (end - f64::from(*place)) > 0.0)
        };
        let below = match is_left_out(low, self.visits.first_key_value(), -1.0) {
            true => low.floor(),
            false => below,
        };
        let above = match is_left_out(high, self.visits.last_key_value(), 1.0) {
            true => high.ceil(),
            false => above,
        };
        let mut places: Vec<i32> = [below, middle, above]
            .map(|place| settled((place.round() as i32).clamp(self.ends.0, self.ends.1)))
            .to_vec();
        places.dedup();
        let order = block_order(self.seed, self.rounds, places.len());
        order.into_iter().map(|at| places[at]).collect()
    }

    /// Whether no whole rate lies inside of an interval.
    fn is_between_neighbours(&self, low: f64, high: f64) -> bool {
        ceiling(high) <= floor(low) + 1
    }

    /// What the trials at this place and at greater ones, or smaller ones, show: an exact binomial test of one half.
    fn shown(&self, place: i32) -> Option<bool> {
        let (kept, trials) = self.visits[&place];
        let (low, high) = share_bounds(f64::from(kept), f64::from(trials), ALPHA)?;
        match (low > 0.5, high < 0.5) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    /// The least rate that is shown to fail by its own trials with a greater one that is shown to hold.
    fn contradiction(&self) -> Option<(i32, i32)> {
        let places = |wanted: bool| {
            let all = self.visits.keys().copied();
            all.filter(move |place| self.shown(*place) == Some(wanted))
        };
        let (fails, holds) = (places(false).min()?, places(true).max()?);
        (fails < holds).then_some((fails, holds))
    }

    /// The rate at which trials are to show that the levels hold, then that they fail, where `shown` says that they do not yet: the
    /// ends of the interval of the limit when this is first asked, and rates farther out where the nearer ones show nothing. `None`
    /// when both are shown, or cannot be.
    pub fn confirm(&mut self, shown: &dyn Fn(u64) -> Shown) -> Option<u64> {
        let (holds, fails) = match self.confirms {
            Some(ends) => ends,
            None => *self.confirms.insert(self.ends_of_limit()?),
        };
        let holds = holds.and_then(|end| self.outward(end, Answer::Yes, shown));
        holds.or_else(|| self.outward(fails?, Answer::No, shown))
    }

    /// The places around the limit, as far as it lies between rates that were visited.
    fn ends_of_limit(&self) -> Option<(Option<i32>, Option<i32>)> {
        let known = self.known();
        let (low, high) = (known.quantile(TAIL), known.quantile(1.0 - TAIL));
        let least = f64::from(*self.visits.first_key_value()?.0);
        let greatest = f64::from(*self.visits.last_key_value()?.0);
        Some((
            (low >= least).then(|| low.min(greatest).floor() as i32),
            (high <= greatest).then(|| high.max(least).ceil() as i32),
        ))
    }

    /// The rate nearest to an end of the interval that still has to show what is wanted.
    fn outward(&self, end: i32, wanted: Answer, shown: &dyn Fn(u64) -> Shown) -> Option<u64> {
        let sign = if wanted == Answer::Yes { -1 } else { 1 };
        for steps in OUTWARD {
            let place = settled(end + sign * steps);
            if !(self.ends.0..=self.ends.1).contains(&place) {
                return None;
            }
            let found = shown(rate(place));
            match found.trials {
                0..CONFIRMED if found.answer == wanted || found.answer == Answer::CannotTell => {
                    return Some(rate(place));
                }
                _ if found.answer == wanted => return None,
                _ => {}
            }
        }
        None
    }

    /// Between which rates the limit lies, as far as is known.
    pub fn limit(&self) -> RateLimit {
        let known = self.known();
        let (mut low, mut high) = (known.quantile(TAIL), known.quantile(1.0 - TAIL));
        let contradiction = self.contradiction();
        if let Some((fails, holds)) = contradiction {
            let below = self.visits.keys().copied().rfind(|place| *place < fails);
            let above = self.visits.keys().copied().find(|place| *place > holds);
            low = low.min(f64::from(below.unwrap_or(self.ends.0 - 1)));
            high = high.max(f64::from(above.unwrap_or(self.ends.1 + 1)));
        }
        // Of rates that were not visited nothing is said.
        let visited =
            |place: Option<(&i32, &(u32, u32))>| place.map(|(place, _)| f64::from(*place));
        let least = visited(self.visits.first_key_value());
        let greatest = visited(self.visits.last_key_value());
        let (holds, fails) = match (least, greatest) {
            (Some(least), Some(greatest)) => (
                (low >= least).then(|| floor(low.min(greatest))),
                (high <= greatest).then(|| ceiling(high.max(least))),
            ),
            _ => (None, None),
        };
        let points = self.visits.iter().map(|(place, (kept, trials))| RatePoint {
            rate: rate(*place),
            trials: *trials,
            kept: *kept,
            holds: match rate(*place) {
                at if holds.is_some_and(|holds| at <= holds) => Some(true),
                at if fails.is_some_and(|fails| at >= fails) => Some(false),
                _ => None,
            },
        });
        RateLimit {
            holds,
            fails,
            estimate: (holds.and(fails)).map(|_| (known.quantile(0.5) / STEPS).exp2()),
            points: points.collect(),
            contradicts: contradiction.is_some(),
        }
    }
}

/// The rate at a place of the grid.
fn rate(place: i32) -> u64 {
    (f64::from(place) / STEPS).exp2().round().max(1.0) as u64
}

/// The greatest rate up to a place.
fn floor(place: f64) -> u64 {
    (place / STEPS).exp2().floor().max(1.0) as u64
}

/// The least rate from a place on.
fn ceiling(place: f64) -> u64 {
    (place / STEPS).exp2().ceil().max(1.0) as u64
}

/// The place nearest to a rate.
fn place(rate: u64) -> i32 {
    ((rate.max(1) as f64).log2() * STEPS).round() as i32
}

/// The one place that stands for the rate of a place: rates are whole numbers, which at small rates several places share.
fn settled(shared: i32) -> i32 {
    place(rate(shared))
}
