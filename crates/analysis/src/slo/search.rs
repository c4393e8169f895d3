//! Chooses the next rate of a search, and computes the limit.
//!
//! The limit is the rate at which half of the trials meet all levels. Rates are on a grid of [`STEPS`] per
//! doubling. The search doubles or halves the rate until one trial meets the levels and one misses them. Then it
//! visits rates in rounds: the estimate of the limit from all trials so far ([`Threshold`]), and the ends of its
//! interval. The order within a round is random, so that drift of the machine is not taken for an effect of the
//! rate.

use super::Shown;
use crate::fitness::Answer;
use iolab_plan::blocks::block_order;
use iolab_stats::{Outcomes, Threshold, share_bounds};

/// Rates of the grid per doubling: 4.4 % apart.
const STEPS: f64 = 16.0;
/// Probability on either side of the interval. In simulations it then contains the limit in at least 95 % of searches.
const TAIL: f64 = 0.005;
/// Quantiles of the limit's distribution at which a round has trials.
const ROUND: [f64; 3] = [0.05, 0.5, 0.95];
/// The interval is narrow enough when its ends are this many rates apart: 9 %.
const ENOUGH: f64 = 2.0;
/// Trials at a rate to show whether the levels hold there; if they do not decide, a rate farther out may.
const CONFIRMED: usize = 8;
/// Distances from an end of the interval, in grid steps, of the rates tried for a confirmation.
const OUTWARD: [i32; 5] = [0, 1, 2, 4, 8];
/// Level of the tests for a contradiction between two rates.
const ALPHA: f64 = 0.005;

/// A rate that was visited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePoint {
    /// Requests per second.
    pub rate: u64,
    /// Number of trials.
    pub trials: u32,
    /// Number of trials that met all levels.
    pub kept: u32,
}

/// The interval of the limit.
#[derive(Debug, Clone, PartialEq)]
pub struct RateLimit {
    /// Lower end; `None` where the limit may be below every visited rate.
    pub holds: Option<u64>,
    /// Upper end; `None` if the limit may be above every visited rate.
    pub fails: Option<u64>,
    /// The estimate; `None` where an end is missing.
    pub estimate: Option<f64>,
    /// The results at each rate, in ascending order.
    pub points: Vec<RatePoint>,
    /// Whether the trials show that some rate fails and a higher one holds. Then the target changed during the
    /// search, or fails at times at any rate.
    pub contradicts: bool,
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct Search {
    /// Number of successful trials and of all trials, by grid position.
    visits: Outcomes,
    ends: (i32, i32),
    next: Vec<i32>,
    seed: u64,
    rounds: u32,
    /// Grid positions at which to confirm that the levels hold, and that they fail.
    confirms: Option<(Option<i32>, Option<i32>)>,
}

impl Search {
    /// A search from a first rate within the given limits.
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

    /// The rate of the next trial, requests per second, the same until [`Search::visited`] is called; `None` if the limit is
    /// known well enough, or outside the possible rates.
    pub fn step(&mut self) -> Option<u64> {
        if self.next.is_empty() {
            self.next = self.bracket().unwrap_or_else(|| self.round());
        }
        self.next.last().map(|place| rate(*place))
    }

    /// Records whether a trial at the requested rate met all levels.
    pub fn visited(&mut self, kept: bool) {
        if let Some(place) = self.next.pop() {
            self.note(place, kept);
        }
    }

    /// Records a trial of an earlier session.
    pub fn recall(&mut self, at: u64, kept: bool) {
        self.note(place(at), kept);
    }

    fn note(&mut self, place: i32, kept: bool) {
        let (all_kept, trials) = self.visits.entry(place).or_default();
        *all_kept += u32::from(kept);
        *trials += 1;
    }

    /// Doubles or halves the rate until one trial meets the levels and one misses them; `None` after that.
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
        // A visited rate that decides nothing is left to the rounds.
        (!self.visits.contains_key(&next)).then(|| vec![next])
    }

    /// The posterior of the limit after all trials so far. Accounts for trials that miss the levels at any rate, because the
    /// machine or the storage stalls.
    fn known(&self) -> Threshold {
        Threshold::of(&self.visits, self.ends).expect("64 doublings hold every rate")
    }

    /// The rates of the next round in random order; empty when enough is known.
    fn round(&mut self) -> Vec<i32> {
        self.rounds += 1;
        let known = self.known();
        let (low, high) = (known.quantile(TAIL), known.quantile(1.0 - TAIL));
        let outside = low > f64::from(self.ends.1) || high < f64::from(self.ends.0);
        let is_between_neighbours = ceiling(high) <= floor(low) + 1;
        if outside || high - low <= ENOUGH || is_between_neighbours {
            return Vec::new();
        }
        let [below, middle, above] = ROUND.map(|probability| known.quantile(probability));
        // Visits an end of the interval beyond the visited rates, to close it.
        let (is_low, is_high) = self
            .visited_ends(low, high)
            .map_or((true, true), |(low, high)| (low.is_some(), high.is_some()));
        let below = if is_low { below } else { low.floor() };
        let above = if is_high { above } else { high.ceil() };
        let on_grid = |place: f64| (place.round() as i32).clamp(self.ends.0, self.ends.1);
        let mut places = [below, middle, above]
            .map(|place| settled(on_grid(place)))
            .to_vec();
        places.dedup();
        let order = block_order(self.seed, self.rounds, places.len());
        order.into_iter().map(|at| places[at]).collect()
    }

    /// Whether the levels hold at this position, by an exact binomial test of one half over its own trials;
    /// `None` if undecided.
    fn shown(&self, place: i32) -> Option<bool> {
        let (kept, trials) = self.visits[&place];
        let (low, high) = share_bounds(f64::from(kept), f64::from(trials), ALPHA)?;
        match (low > 0.5, high < 0.5) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    /// The lowest rate that is shown to fail by its own trials, with a higher one that is shown to hold.
    fn contradiction(&self) -> Option<(i32, i32)> {
        let places = |wanted: bool| {
            let all = self.visits.keys().copied();
            all.filter(move |place| self.shown(*place) == Some(wanted))
        };
        let (fails, holds) = (places(false).min()?, places(true).max()?);
        (fails < holds).then_some((fails, holds))
    }

    /// The rate of the next trial to confirm that the levels hold, then that they fail. Tries the ends of the
    /// interval at the time of the first call, then rates farther out, as long as `shown` does not decide.
    /// `None` if both are confirmed, or cannot be.
    pub fn confirm(&mut self, shown: &dyn Fn(u64) -> Shown) -> Option<u64> {
        let (holds, fails) = match self.confirms {
            Some(ends) => ends,
            None => *self.confirms.insert(self.ends_of_limit()?),
        };
        let holds = holds.and_then(|end| self.outward(end, Answer::Yes, shown));
        holds.or_else(|| self.outward(fails?, Answer::No, shown))
    }

    /// The grid positions around the limit, as far as it is between visited rates.
    fn ends_of_limit(&self) -> Option<(Option<i32>, Option<i32>)> {
        let known = self.known();
        let (low, high) = self.visited_ends(known.quantile(TAIL), known.quantile(1.0 - TAIL))?;
        let (low, high) = (low.map(f64::floor), high.map(f64::ceil));
        Some((low.map(|low| low as i32), high.map(|high| high as i32)))
    }

    /// The ends of an interval of the limit, as far as they lie between visited rates; `None` without any.
    fn visited_ends(&self, low: f64, high: f64) -> Option<(Option<f64>, Option<f64>)> {
        let least = f64::from(*self.visits.first_key_value()?.0);
        let greatest = f64::from(*self.visits.last_key_value()?.0);
        Some((
            (low >= least).then(|| low.min(greatest)),
            (high <= greatest).then(|| high.max(least)),
        ))
    }

    /// The rate nearest to an end of the interval that is not decided yet.
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

    /// The interval of the limit, from the trials so far.
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
        let (holds, fails) = self.visited_ends(low, high).unwrap_or_default();
        let (holds, fails) = (holds.map(floor), fails.map(ceiling));
        let points = self.visits.iter().map(|(place, (kept, trials))| RatePoint {
            rate: rate(*place),
            trials: *trials,
            kept: *kept,
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

/// The rate at a grid position.
fn rate(place: i32) -> u64 {
    (f64::from(place) / STEPS).exp2().round().max(1.0) as u64
}

/// The highest integer rate up to a position.
fn floor(place: f64) -> u64 {
    (place / STEPS).exp2().floor().max(1.0) as u64
}

/// The lowest integer rate from a position on.
fn ceiling(place: f64) -> u64 {
    (place / STEPS).exp2().ceil().max(1.0) as u64
}

/// The grid position nearest to a rate.
fn place(rate: u64) -> i32 {
    ((rate.max(1) as f64).log2() * STEPS).round() as i32
}

/// A unique grid position for a rate: low integer rates are shared by several positions.
fn settled(shared: i32) -> i32 {
    place(rate(shared))
}
