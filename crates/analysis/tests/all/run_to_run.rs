//! The error rates of gates, simulated with the scatter of real runs: `tests/data/run-to-run.csv` has the medians of whole runs
//! of an unchanged machine. A simulated history is a random choice of these runs in random order, which keeps their distribution
//! with its tails, and the dependence between cells.

use iolab_analysis::compare::{ALPHA, Better, CellComparison, CellVerdict, Criteria};
use iolab_analysis::runs::{GATE_POWER, RunCell, judge};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const GATES: usize = 1000;

fn terms() -> Criteria {
    Criteria {
        better: Better::Higher,
        gate: Some(5),
        ..Criteria::default()
    }
}

/// The logarithms of the medians of an experiment: runs, each with its cells.
fn real_runs(experiment: &str) -> Vec<Vec<f64>> {
    include_str!("../data/run-to-run.csv")
        .lines()
        .filter_map(|line| line.strip_prefix(experiment)?.strip_prefix(','))
        .map(|cells| {
            let values = cells.split(',');
            values
                .map(|v| v.parse::<f64>().expect("a number").ln())
                .collect()
        })
        .collect()
}

struct Chance(Xoshiro256PlusPlus);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit as u64) as usize
    }

    fn normal(&mut self) -> f64 {
        let mut uniform = || (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * uniform()).cos()
    }

    /// This many different runs, in random order.
    fn choose<'a>(&mut self, runs: &'a [Vec<f64>], count: usize) -> Vec<&'a Vec<f64>> {
        let mut places: Vec<usize> = (0..runs.len()).collect();
        let chosen = (0..count).map(|at| {
            let other = at + self.below(runs.len() - at);
            places.swap(at, other);
            &runs[places[at]]
        });
        chosen.collect()
    }
}

/// The cells of a history and one new run, whose cells are changed by `shift`.
fn cells(runs: &[&Vec<f64>], shift: impl Fn(usize) -> f64) -> Vec<RunCell> {
    let (new, base) = runs.split_last().expect("runs");
    let cell = |place: usize| RunCell {
        base: base.iter().map(|run| Some(run[place].exp())).collect(),
        new: vec![Some((new[place] + shift(place)).exp())],
        ..RunCell::default()
    };
    (0..new.len()).map(cell).collect()
}

fn is_alarm(judged: &(Vec<CellComparison>, Option<CellComparison>)) -> bool {
    let all = judged.0.iter().chain(&judged.1);
    all.into_iter()
        .any(|judged| judged.verdict == CellVerdict::Slower)
}

/// Share of gates with an alarm.
fn alarms(
    runs: &[Vec<f64>],
    history: usize,
    places: &[usize],
    shift: impl Fn(usize) -> f64,
    seed: u64,
) -> f64 {
    let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(seed));
    let some: Vec<Vec<f64>> = runs
        .iter()
        .map(|run| places.iter().map(|place| run[*place]).collect())
        .collect();
    let alarms = (0..GATES).filter(|_| {
        let chosen = chance.choose(&some, history + 1);
        let cells = cells(&chosen, |place| shift(places[place]));
        is_alarm(&judge(&cells, &terms()))
    });
    alarms.count() as f64 / GATES as f64
}

#[test]
fn an_unchanged_machine_rarely_alarms() {
    for experiment in ["read-size", "write-size"] {
        let runs = real_runs(experiment);
        assert!(runs.len() >= 48, "{experiment}: {} runs", runs.len());
        let all: Vec<usize> = (0..7).collect();
        for history in [5, 10, 20] {
            for places in [&all[..], &all[..1], &all[3..5]] {
                let rate = alarms(&runs, history, places, |_| 0.0, 11);
                assert!(
                    rate <= ALPHA,
                    "{experiment}, {history} runs, cells {places:?}: {rate}"
                );
            }
        }
    }
}

/// The change has the stated detectable size, in one cell or in all.
#[test]
fn the_stated_power_is_right() {
    let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(13));
    for history in [5, 20] {
        for count in 1..=7 {
            let mut found_alone = 0;
            let mut found_together = 0;
            for _ in 0..GATES {
                let runs: Vec<Vec<f64>> = (0..=history)
                    .map(|_| (0..count).map(|_| 6.0 + 0.02 * chance.normal()).collect())
                    .collect();
                let chosen: Vec<&Vec<f64>> = runs.iter().collect();
                let before = cells(&chosen, |_| 0.0);
                let (of_cells, overall) = judge(&before, &terms());
                let down = |judged: &CellComparison| judged.detectable.expect("a spread").ln_1p();
                let alone = down(&of_cells[0]);
                let after = cells(&chosen, |place| if place == 0 { -alone } else { 0.0 });
                let judged = judge(&after, &terms());
                found_alone += usize::from(judged.0[0].verdict == CellVerdict::Slower);
                if let Some(overall) = overall {
                    let together = down(&overall);
                    let after = cells(&chosen, |_| -together);
                    let (_, overall) = judge(&after, &terms());
                    let verdict = overall.expect("several cells").verdict;
                    found_together += usize::from(verdict == CellVerdict::Slower);
                }
            }
            // Four standard errors of a share of 1000.
            let (low, high) = (GATE_POWER - 0.04, GATE_POWER + 0.04);
            let alone = found_alone as f64 / GATES as f64;
            assert!(
                (low..=high).contains(&alone),
                "{history} runs, {count} cells: {alone}"
            );
            if count > 1 {
                let together = found_together as f64 / GATES as f64;
                assert!(
                    (low..=high).contains(&together),
                    "{history} runs, {count} cells: {together}"
                );
            }
        }
    }
}
