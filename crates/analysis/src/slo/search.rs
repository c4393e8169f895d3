//! Which rate comes next, and between which the limit lies.
//!
//! The limit is the rate at which half of the trials keep all levels. Rates lie on a grid of [`STEPS`] per doubling. The
//! search doubles or halves the rate until one trial keeps the levels and one misses them, then visits the rates in between in
//! rounds, each in random order, so that a machine that drifts cannot pose as an effect of the rate. What a single trial says
//! decides nothing but where to look: a rate is shown to hold when the trials at it and at some of the next greater rates
//! together reject that half of them miss (an exact binomial test), and to fail with the next smaller ones. More load never
//! makes requests faster, so that a greater rate that keeps the levels is evidence for this one.

use std::collections::BTreeMap;

use iolab_plan::blocks::block_order;
use iolab_stats::share_bounds;

/// Rates of the grid per doubling: 4.4 % apart.
const STEPS: f64 = 16.0;
/// Greater or smaller rates whose trials count too at most.
const NEIGHBOURS: i32 = 5;
/// Error of each test. Several are looked at, again and again: by simulation the interval then holds the limit in 95 of 100
/// searches or more.
const ALPHA: f64 = 0.008;
/// Gaps between the rates of a round at most.
const ROUND: i32 = 4;
/// By how many rates the first rounds look beyond a side that is not shown yet.
const BEYOND: i32 = 3;
/// After so many rounds they look one rate farther.
const WIDER_EVERY: u32 = 2;
/// The interval is narrow enough when its ends are so many rates apart: 9 %.
const ENOUGH: i32 = 2;

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
    pub trials: usize,
    /// Those that kept all levels.
    pub kept: usize,
    /// Whether the trials show that the levels hold (`true`) or that one is missed (`false`).
    pub shown: Option<bool>,
}

/// Between which rates the limit lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The greatest rate that is shown to hold, below every one that is shown to fail; `None` where none is.
    pub holds: Option<u64>,
    /// The least rate that is shown to fail, above every one that is shown to hold; `None` where none is.
    pub fails: Option<u64>,
    /// Where the share of trials that keep the levels falls through one half, by isotonic regression; `None` where it does
    /// not.
    pub estimate: Option<f64>,
    /// The curve that it rests on, in the order of the rates.
    pub points: Vec<RatePoint>,
    /// Whether some rate is shown to fail and a greater one to hold: the target changed while it was measured.
    pub contradicts: bool,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct Search {
    /// By the place of the rate on the grid: whether each trial kept all levels.
    visits: BTreeMap<i32, Vec<bool>>,
    ends: (i32, i32),
    next: Vec<i32>,
    seed: u64,
    rounds: u32,
}

impl Search {
    /// A search that begins at a rate and stays within the others.
    pub fn new(start: u64, least: u64, greatest: u64, seed: u64) -> Self {
        let ends = (place(least), place(greatest));
        Self {
            visits: BTreeMap::new(),
            ends,
            next: vec![place(start).clamp(ends.0, ends.1)],
            seed,
            rounds: 0,
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
            self.visits.entry(place).or_default().push(kept);
        }
    }

    /// Takes a trial of an earlier session.
    pub fn recall(&mut self, at: u64, kept: bool) {
        self.visits.entry(place(at)).or_default().push(kept);
    }

    /// Doubles or halves the rate until one trial keeps and one misses, then looks in between; `None` when that is done.
    fn bracket(&self) -> Option<Vec<i32>> {
        let misses = |place: &i32| self.kept_share(*place) <= 0.5;
        let fails = self.visits.keys().copied().find(misses);
        let below = |place: &i32| !misses(place) && fails.is_none_or(|fails| *place < fails);
        let holds = self.visits.keys().copied().rfind(below);
        let double = STEPS as i32;
        let next = match (holds, fails) {
            (Some(holds), None) => (holds + double).min(self.ends.1),
            (None, Some(fails)) => (fails - double).max(self.ends.0),
            (Some(holds), Some(fails)) if self.rounds == 0 && fails - holds > 2 * BEYOND => {
                i32::midpoint(holds, fails)
            }
            _ => return None,
        };
        let next = settled(next);
        // One that was visited and decides nothing is for the rounds.
        (!self.visits.contains_key(&next)).then(|| vec![next])
    }

    /// The rates of the next round, in random order; none when enough is known.
    fn round(&mut self) -> Vec<i32> {
        self.rounds += 1;
        let (holds, fails, _) = ends(&self.verdicts());
        if let (Some(holds), Some(fails)) = (holds, fails)
            && fails - holds <= ENOUGH
        {
            return Vec::new();
        }
        let guess = self.crossing().unwrap_or_else(|| self.nearest_end());
        // A share that falls slowly is told from one half farther away.
        let beyond = BEYOND + (self.rounds / WIDER_EVERY) as i32;
        let low = holds
            .unwrap_or(guess.floor() as i32 - beyond)
            .max(self.ends.0);
        let high = fails
            .unwrap_or(guess.ceil() as i32 + beyond)
            .min(self.ends.1);
        if low == high && self.visits.contains_key(&low) && self.shown(low).is_some() {
            return Vec::new();
        }
        // What is shown already is not asked again.
        let (low, high) = (
            low + i32::from(holds == Some(low)),
            high - i32::from(fails == Some(high)),
        );
        let step = ((high - low) / ROUND).max(1);
        // Every other round takes the rates between those of the one before.
        let offset = match self.rounds % 2 {
            0 => step / 2,
            _ => 0,
        };
        let mut places: Vec<i32> = (low + offset..=high.max(low + offset))
            .step_by(step as usize)
            .map(settled)
            .filter(|place| ![holds, fails].contains(&Some(*place)))
            .collect();
        places.dedup();
        let order = block_order(self.seed, self.rounds, places.len());
        order.into_iter().map(|at| places[at]).collect()
    }

    /// The end of the grid that every trial points to.
    fn nearest_end(&self) -> f64 {
        let kept = self.visits.values().flatten().filter(|kept| **kept).count();
        let all: usize = self.visits.values().map(Vec::len).sum();
        f64::from(if 2 * kept > all {
            self.ends.1
        } else {
            self.ends.0
        })
    }

    /// Share of the trials at a place that kept all levels.
    fn kept_share(&self, place: i32) -> f64 {
        let trials = self.visits.get(&place).map_or(&[][..], Vec::as_slice);
        let kept = trials.iter().filter(|kept| **kept).count();
        kept as f64 / trials.len().max(1) as f64
    }

    /// What the trials at a place and its neighbours show.
    fn shown(&self, place: i32) -> Option<bool> {
        let pooled = |from: i32, to: i32| {
            let trials = || self.visits.range(from..=to).flat_map(|(_, trials)| trials);
            let kept = trials().filter(|kept| **kept).count();
            share_bounds(kept as f64, trials().count() as f64, ALPHA)
        };
        // Where the limit lies right beside this rate, its neighbour would testify against it.
        let holds = (0..=NEIGHBOURS)
            .filter_map(|more| pooled(place, place + more))
            .any(|(low, _)| low > 0.5);
        let fails = (0..=NEIGHBOURS)
            .filter_map(|more| pooled(place - more, place))
            .any(|(_, high)| high < 0.5);
        match (holds, fails) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    }

    fn verdicts(&self) -> Vec<(i32, Option<bool>)> {
        let places = self.visits.keys();
        places.map(|place| (*place, self.shown(*place))).collect()
    }

    /// Where the share of trials that keep the levels falls through one half, a place on the grid: pool-adjacent-violators
    /// over the rates, then linear between them.
    fn crossing(&self) -> Option<f64> {
        let falling = self.isotonic();
        let at = falling.iter().position(|(_, share)| *share <= 0.5)?;
        let before = falling.get(at.checked_sub(1)?)?;
        let after = falling[at];
        let part = (before.1 - 0.5) / (before.1 - after.1);
        Some(before.0 + (after.0 - before.0) * part)
    }

    /// The share of each rate, made to fall by pooling neighbours that do not.
    fn isotonic(&self) -> Vec<(f64, f64)> {
        let mut blocks: Vec<(Vec<i32>, f64, f64)> = Vec::new();
        for (place, trials) in &self.visits {
            let mut block = (vec![*place], self.kept_share(*place), trials.len() as f64);
            while let Some(before) = blocks.pop_if(|before| before.1 < block.1) {
                let weight = before.2 + block.2;
                let share = (before.1 * before.2 + block.1 * block.2) / weight;
                block = ([before.0, block.0].concat(), share, weight);
            }
            blocks.push(block);
        }
        let points = blocks.into_iter().flat_map(|(places, share, _)| {
            places
                .into_iter()
                .map(move |place| (f64::from(place), share))
        });
        points.collect()
    }

    /// Between which rates the limit lies, as far as is known.
    pub fn limit(&self) -> Limit {
        let verdicts = self.verdicts();
        let (holds, fails, contradicts) = ends(&verdicts);
        let within = |place: f64| {
            let low = holds.map_or(place, f64::from);
            let high = fails.map_or(place, f64::from);
            place.max(low).min(high.max(low))
        };
        let point = |(place, shown): &(i32, Option<bool>)| {
            let trials = self.visits.get(place).map_or(&[][..], Vec::as_slice);
            RatePoint {
                rate: rate(*place),
                trials: trials.len(),
                kept: trials.iter().filter(|kept| **kept).count(),
                shown: *shown,
            }
        };
        Limit {
            holds: holds.map(rate),
            fails: fails.map(rate),
            estimate: self.crossing().map(|at| (within(at) / STEPS).exp2()),
            points: verdicts.iter().map(point).collect(),
            contradicts,
        }
    }
}

/// The ends of the interval, and whether rates that fail and rates that hold are mixed.
fn ends(verdicts: &[(i32, Option<bool>)]) -> (Option<i32>, Option<i32>, bool) {
    let of = |wanted: bool| {
        let places = verdicts.iter().filter(move |(_, v)| *v == Some(wanted));
        places.map(|(place, _)| *place)
    };
    let (least_fail, greatest_hold) = (of(false).min(), of(true).max());
    let holds = of(true).filter(|p| least_fail.is_none_or(|fail| *p < fail));
    let fails = of(false).filter(|p| greatest_hold.is_none_or(|hold| *p > hold));
    let mixed = matches!((least_fail, greatest_hold), (Some(fail), Some(hold)) if fail < hold);
    (holds.max(), fails.min(), mixed)
}

/// The rate at a place of the grid.
fn rate(place: i32) -> u64 {
    (f64::from(place) / STEPS).exp2().round().max(1.0) as u64
}

/// The place nearest to a rate.
fn place(rate: u64) -> i32 {
    ((rate.max(1) as f64).log2() * STEPS).round() as i32
}

/// The one place that stands for the rate of a place: rates are whole numbers, which at small rates several places share.
fn settled(shared: i32) -> i32 {
    place(rate(shared))
}
