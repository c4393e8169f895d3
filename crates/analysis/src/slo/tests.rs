//! Searches on simulated servers with a known limit.

use std::collections::BTreeMap;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use iolab_plan::experiment::Experiment;
use iolab_workload::trial::Rate;

use super::{RateLimit, Search, Shown};
use crate::fitness::Answer;

/// Accuracy of the limit itself: its simulation has a standard error of about half a percent.
const KNOWN: f64 = 1.01;
/// Time that a trial takes in addition to its load, s.
const AROUND: f64 = 0.02;

/// A server with one request at a time and a known service time.
#[derive(Clone, Copy)]
struct Server {
    /// Service time, s.
    service: f64,
    /// One of this many requests takes `stall`; 0 for none.
    stall_every: u64,
    stall: f64,
    /// Scatter of the service time between trials, on a log scale.
    noise: f64,
    /// Whether arrivals are independent.
    poisson: bool,
    /// Share of the trials in which the machine stops once for longer than the level allows, at any rate.
    pauses: f64,
    /// The level, s: `allowed` of a trial's requests may take longer.
    level: f64,
    allowed: f64,
}

const SERVER: Server = Server {
    service: 1e-3,
    stall_every: 0,
    stall: 0.0,
    noise: 0.0,
    poisson: true,
    pauses: 0.0,
    level: 5e-3,
    allowed: 0.01,
};

struct Draws(Xoshiro256PlusPlus);

impl Draws {
    fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

impl Server {
    /// The experiment of a search for its limit, with the defaults of `iolab run --slo`.
    fn experiment(&self) -> Experiment {
        let quantile = (1.0 - self.allowed) * 100.0;
        let levels = format!("p{quantile:.4}<{}us", self.level * 1e6);
        let mut experiment = Experiment::find("load-latency").expect("built in");
        let levels = levels.parse().expect("levels");
        experiment.answer(&levels, &|_| false).expect("a search");
        experiment
    }

    /// Whether a trial of this length at a rate meets the level: Lindley's recursion.
    fn keeps(&self, rate: f64, time: f64, draws: &mut Draws) -> bool {
        let slow = (self.noise * draws.normal()).exp();
        if self.pauses > 0.0 && draws.uniform() < self.pauses {
            return false;
        }
        let mut number = (draws.uniform() * 1e9) as u64;
        let (mut at, mut free, mut all, mut late) = (0.0, 0.0_f64, 0_u64, 0_u64);
        loop {
            at += match self.poisson {
                true => -draws.uniform().ln() / rate,
                false => 1.0 / rate,
            };
            if at > time {
                return late as f64 <= self.allowed * all as f64;
            }
            number += 1;
            all += 1;
            let stalls = self.stall_every > 0 && number.is_multiple_of(self.stall_every);
            let service = if stalls { self.stall } else { self.service };
            free = free.max(at) + service * slow;
            late += u64::from(free - at > self.level);
        }
    }

    /// The rate at which half of the trials meet the level, by bisection.
    fn limit(&self) -> f64 {
        /// Number of simulated requests at each rate, which make up the trials.
        const REQUESTS: f64 = 2.5e5;
        const TRIALS: (f64, f64) = (51.0, 4001.0);
        let mut draws = Draws::new(99);
        let capacity = 1.0 / self.service;
        let experiment = self.experiment();
        let (mut low, mut high) = (0.01 * capacity, 1.1 * capacity);
        for _ in 0..12 {
            let middle = (low * high).sqrt();
            let time = time_of_trial(&experiment, middle);
            let trials = (REQUESTS / (middle * time)).clamp(TRIALS.0, TRIALS.1) as usize;
            let kept = (0..trials).filter(|_| self.keeps(middle, time, &mut draws));
            match kept.count() > trials / 2 {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    fn searched(&self, seed: u64) -> RateLimit {
        let mut draws = Draws::new(seed * 7 + 1);
        let experiment = self.experiment();
        let least = experiment.least_rate().expect("a rate");
        let mut search = Search::new(1000, least, 10_000_000, seed);
        let mut left = experiment.design.budget.as_secs_f64();
        while left > 0.0 {
            let Some(rate) = search.step() else {
                break;
            };
            let time = time_of_trial(&experiment, rate as f64);
            search.visited(self.keeps(rate as f64, time, &mut draws));
            left -= time + AROUND;
        }
        search.limit()
    }
}

/// The length of a trial of a search, s.
fn time_of_trial(experiment: &Experiment, rate: f64) -> f64 {
    let mut trial = experiment.base().expect("settings").trial;
    trial.rate = Some(Rate::Requests(rate as u64));
    let time = experiment.trial_time(&trial).expect("a time");
    time.as_secs_f64()
}

/// How many of 100 searches have an interval that contains the limit, and how many have both ends.
fn graded(server: Server, limit: f64) -> (usize, usize) {
    let found: Vec<RateLimit> = (0..100).map(|seed| server.searched(seed)).collect();
    let holds = |found: &&RateLimit| {
        found.holds.is_none_or(|low| low as f64 <= limit * KNOWN)
            && found.fails.is_none_or(|high| limit <= high as f64 * KNOWN)
    };
    let closed = |found: &&RateLimit| found.holds.is_some() && found.fails.is_some();
    (
        found.iter().filter(holds).count(),
        found.iter().filter(closed).count(),
    )
}

/// Grades searches for the limit of a server; returns the limit.
#[track_caller]
fn is_found(server: Server, closed_least: usize) -> f64 {
    let limit = server.limit();
    let (held, closed) = graded(server, limit);
    println!("{held} of 100 intervals hold {limit}, {closed} have both ends");
    assert!(held >= 95, "{held} of 100 intervals hold the limit");
    assert!(closed >= closed_least, "{closed} of 100 have both ends");
    limit
}

#[test]
fn of_a_server_with_queue() {
    is_found(SERVER, 95);
}

#[test]
fn of_requests_that_come_evenly() {
    let even = Server {
        poisson: false,
        ..SERVER
    };
    let limit = is_found(even, 100);
    // The capacity, plus what a short trial does not detect.
    assert!((1000.0..1025.0).contains(&limit));
}

#[test]
fn of_a_server_that_stalls() {
    is_found(
        Server {
            service: 1e-4,
            stall_every: 400,
            stall: 20e-3,
            ..SERVER
        },
        70,
    );
}

#[test]
fn on_a_machine_that_pauses() {
    is_found(
        Server {
            pauses: 0.2,
            ..SERVER
        },
        90,
    );
}

#[test]
fn of_a_rare_quantile() {
    is_found(
        Server {
            service: 2e-4,
            level: 2e-3,
            allowed: 0.001,
            ..SERVER
        },
        95,
    );
}

#[test]
fn search_ends_if_all_or_no_rates_hold() {
    for (kept, ends) in [(true, (Some(1000), None)), (false, (None, Some(10)))] {
        let mut search = Search::new(100, 10, 1000, 1);
        let mut visits = 0;
        while search.step().is_some() {
            search.visited(kept);
            visits += 1;
            assert!(visits < 500);
        }
        let limit = search.limit();
        assert_eq!(limit.estimate, None);
        let near = |found: Option<u64>, wanted: Option<u64>| match (found, wanted) {
            (Some(found), Some(wanted)) => (found as f64 / wanted as f64 - 1.0).abs() < 0.05,
            (found, wanted) => found == wanted,
        };
        assert!(
            near(limit.holds, ends.0) && near(limit.fails, ends.1),
            "{limit:?}"
        );
    }
}

#[test]
fn tiny_rates_on_the_grid_are_listed_once() {
    for limit in 1..40 {
        let mut search = Search::new(1000, 1, 10_000, limit);
        let mut visits = 0;
        while let Some(rate) = search.step() {
            search.visited(rate <= limit);
            visits += 1;
            assert!(visits < 500, "{limit}");
        }
        let found = search.limit();
        let rates: Vec<u64> = found.points.iter().map(|point| point.rate).collect();
        assert!(rates.is_sorted_by(|a, b| a < b), "{limit}: {rates:?}");
        let (low, high) = (found.holds.expect("an end"), found.fails.expect("an end"));
        assert!(low <= limit && limit < high, "{limit}: {low} to {high}");
    }
}

#[test]
fn search_continues_from_recalled_trials() {
    let whole = SERVER.searched(3);
    let mut search = Search::new(1, 1, 10_000_000, 3);
    for point in &whole.points {
        for trial in 0..point.trials {
            search.recall(point.rate, trial < point.kept);
        }
    }
    let again = search.limit();
    assert_eq!((again.holds, again.fails), (whole.holds, whole.fails));
    assert_eq!(again.points, whole.points);
}

#[test]
fn rates_that_contradict_each_other_widen_the_interval() {
    let mut search = Search::new(100, 1, 10_000, 1);
    for (rate, kept) in [(100, true), (200, false), (400, true), (800, false)] {
        (0..12).for_each(|_| search.recall(rate, kept));
    }
    let limit = search.limit();
    assert!(limit.contradicts);
    let (low, high) = (limit.holds.expect("an end"), limit.fails.expect("an end"));
    assert!(low <= 104 && high >= 780, "{limit:?}");
}

/// The rates requested for confirmation until nothing is left; each is decided after a number of trials.
fn confirmed(search: &mut Search, show: impl Fn(u64) -> Answer) -> Vec<u64> {
    let mut trials: BTreeMap<u64, usize> = BTreeMap::new();
    let mut asked = Vec::new();
    loop {
        let shown = |rate: u64| {
            let trials = trials.get(&rate).copied().unwrap_or(0);
            let answer = match trials {
                0..6 => Answer::CannotTell,
                _ => show(rate),
            };
            Shown { answer, trials }
        };
        let Some(rate) = search.confirm(&shown) else {
            return asked;
        };
        *trials.entry(rate).or_default() += 1;
        asked.push(rate);
        assert!(asked.len() < 200, "{asked:?}");
    }
}

#[test]
fn holding_and_failing_rates_are_both_shown() {
    let searched = || {
        let mut search = Search::new(1000, 10, 100_000, 1);
        while let Some(rate) = search.step() {
            search.visited(rate <= 3000);
        }
        search
    };
    let limit = searched().limit();
    let (low, high) = (limit.holds.expect("an end"), limit.fails.expect("an end"));
    let sides = |rate: u64| match rate <= 3000 {
        true => Answer::Yes,
        false => Answer::No,
    };
    let mut asked = confirmed(&mut searched(), sides);
    assert_eq!(asked.len(), 16, "{asked:?}");
    asked.dedup();
    let [holds, fails] = asked[..] else {
        panic!("{asked:?}");
    };
    assert!(holds <= low && fails >= high - 1, "{asked:?}: {limit:?}");
    assert!(fails < 2 * holds, "{asked:?}");
    // Near the limit nothing is decided; farther out it is.
    let wide = |rate: u64| match rate {
        0..2400 => Answer::Yes,
        2400..4000 => Answer::CannotTell,
        _ => Answer::No,
    };
    let asked = confirmed(&mut searched(), wide);
    let last_that_holds = asked.iter().rfind(|rate| **rate < 3000);
    assert!(
        last_that_holds.is_some_and(|rate| *rate < 2400),
        "{asked:?}"
    );
    assert!(asked.last().is_some_and(|rate| *rate >= 4000), "{asked:?}");
    // If no rate fails, the search does not ask for one that does.
    let mut search = Search::new(100, 10, 1000, 1);
    while search.step().is_some() {
        search.visited(true);
    }
    assert!(
        confirmed(&mut search, |_| Answer::Yes)
            .iter()
            .all(|rate| *rate <= 1000)
    );
}
