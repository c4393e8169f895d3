//! Grades of comparisons of two runs, and of two levels of one, with known truth: false claims, large effects
//! reported, and invariances. `claims.rs` explains how the table of docs/METHODS.md is made.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::{CellVerdict, Comparison, Criteria, HypothesisTest, RunSide};
use iolab_analysis::doubt::DoubtKind;
use iolab_record::RunRecord;
use iolab_stats::trials_for_apart;
use iolab_synthetic::{At, Disturbance, Disturber, Noise, Outcome, Scenario, Truth};

use super::claims::{SAID_MIN, hold_made, runs, shapes};

/// Cells of a grid, and so the size of the family of intervals.
const CELLS: usize = 12;
/// Trials of each cell: about the fewest with an interval, and more.
const TRIALS: [u32; 2] = [10, 16];
/// Smallest change that matters, a share.
const MARGIN: f64 = 0.05;

type Made = (RunRecord, Truth);

fn terms() -> Criteria {
    Criteria {
        margin: MARGIN,
        tests: vec![HypothesisTest::Welch],
        // Only the trials differ from run to run here.
        within_run: true,
        ..Criteria::default()
    }
}

fn compared(base: &AnalysedRun, new: &AnalysedRun) -> Comparison {
    let names = ["base", "new"].map(|name| name.to_owned().into());
    let sides = [base, new].map(RunSide::whole);
    let [base, new] = sides;
    Comparison::of_runs(names, base, new, terms()).expect("the same cells")
}

fn of_records(base: RunRecord, new: RunRecord) -> Comparison {
    compared(&AnalysedRun::of(base), &AnalysedRun::of(new))
}

/// Whether a verdict is true for this true ratio.
fn judged(verdict: CellVerdict, ratio: f64) -> Outcome {
    let is_true = match verdict {
        CellVerdict::Faster => ratio > 1.0,
        CellVerdict::Slower => ratio < 1.0,
        CellVerdict::Equivalent => ratio.ln().abs() <= MARGIN.ln_1p() + 1e-9,
        _ => return Outcome::NotClaimed,
    };
    match is_true {
        true => Outcome::True,
        false => Outcome::False,
    }
}

/// All verdicts of two runs.
fn of_runs((base, new): (Made, Made)) -> Outcome {
    let comparison = of_records(base.0, new.0);
    let cells = comparison.cells.iter().enumerate();
    // The cells are in the order of the definition, as in the truth.
    let all = cells.map(|(place, cell)| judged(cell.verdict, base.1.ratio_to(&new.1, place)));
    Outcome::of_all(all)
}

/// All verdicts of `--by threads=1,8`.
fn of_levels((record, truth): Made) -> Outcome {
    let run = AnalysedRun::of(record);
    let comparison = Comparison::of_levels(&run, "threads=1,8", "", terms()).expect("two levels");
    let place = |threads: &str, levels: &[String]| {
        let is = |cell: &&iolab_synthetic::TrueCell| {
            cell.cell.levels.iter().any(|level| level == threads)
                && levels.iter().all(|level| cell.cell.levels.contains(level))
        };
        let cell = truth.cells.iter().find(is).expect("a cell");
        cell.mb_s
    };
    Outcome::of_all(comparison.cells.iter().map(|cell| {
        let ratio = place("8", &cell.levels) / place("1", &cell.levels);
        judged(cell.verdict, ratio)
    }))
}

fn grid(noise: Noise, trials: u32) -> Scenario {
    Scenario {
        noise,
        trials,
        ..Scenario::of(
            "disk-grid",
            &["workload=RS,RR", "bs=4k,64k,1M", "threads=1,8"],
        )
    }
}

/// Two runs with the same cells.
fn pair(base: &Scenario, new: &Scenario) -> impl Fn(u64) -> (Made, Made) + use<> {
    let (base, new) = (base.runs(), new.runs());
    move |seed| (base(2 * seed), new(2 * seed + 1))
}

#[test]
fn equal_runs_are_rarely_called_different() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            let base = grid(noise, trials);
            let new = base.later();
            let name = format!("{name}, n = {trials}");
            hold_made(("compare, none", &name), runs(), pair(&base, &new), of_runs);
        }
    }
}

#[test]
fn runs_of_other_shapes_are_rarely_called_different() {
    let groups = Noise::TwoGroups {
        upper: 0.48,
        ratio: 1.2,
        sigma: 0.005,
    };
    let quiet = Noise::Lognormal { sigma: 0.05 };
    let wide = Noise::Lognormal { sigma: 0.5 };
    for (name, one, other) in [
        ("spread 5 % and 50 %", quiet, wide),
        ("two groups in the base", groups, quiet),
    ] {
        for trials in TRIALS {
            let base = grid(one, trials);
            let new = Scenario {
                noise: other,
                ..base.later()
            };
            let name = format!("{name}, n = {trials}");
            hold_made(("compare, none", &name), runs(), pair(&base, &new), of_runs);
        }
    }
}

/// Logarithm of the ratio that this number of trials with this spread shows with a chance of 80 %.
fn detectable(sigma: f64, trials: u32) -> f64 {
    let confidence = 1.0 - 0.05 / CELLS as f64;
    let found = |shift: f64| {
        let n = trials_for_apart(shift, &[sigma, sigma], confidence, 0.8);
        n.is_some_and(|n| n <= trials as usize)
    };
    let mut shifts = (1..).map(|step| f64::from(step) * sigma / 20.0);
    shifts.find(|shift| found(*shift)).expect("a shift")
}

#[test]
fn factor_of_three_times_the_detectable_is_reported() {
    let sigma = 0.05;
    for trials in [12, 16] {
        for sign in [1.0, -1.0] {
            let ratio = (sign * 3.0 * detectable(sigma, trials)).exp();
            let base = grid(Noise::Lognormal { sigma }, trials);
            let new = Scenario {
                effects: vec![(At::levels("threads=8"), ratio)],
                ..base.later()
            };
            let name = format!("lognormal 5 %, ratio {ratio:.2}, n = {trials}");
            let score = hold_made(("compare", &name), runs(), pair(&base, &new), of_runs);
            assert!(score.is_true_at_least(SAID_MIN), "{score}");
        }
    }
}

#[test]
fn disturbance_alone_makes_no_side_different() {
    for by in [Disturber::Traffic, Disturber::Cpu] {
        let quiet = grid(Noise::Lognormal { sigma: 0.03 }, 10);
        let disturbed = Scenario {
            disturbances: vec![Disturbance::of_every_trial(by, At::all(), 0.65)],
            ..quiet.later()
        };
        let name = format!("{by:?} in the new run");
        hold_made(
            ("compare, disturbed", &name),
            runs(),
            pair(&quiet, &disturbed),
            of_runs,
        );
        let name = format!("{by:?} in the base");
        hold_made(
            ("compare, disturbed", &name),
            runs(),
            pair(&disturbed, &quiet),
            of_runs,
        );
    }
}

#[test]
fn equal_levels_are_rarely_called_different() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            let run = grid(noise, trials).drifting(noise, trials);
            let name = format!("{name}, n = {trials}");
            let make = run.runs();
            hold_made(("compare --by, none", &name), runs(), make, of_levels);
        }
    }
}

/// Verdict of each cell, with its ratio and interval.
fn said(comparison: &Comparison) -> Vec<(Vec<String>, CellVerdict, String)> {
    let cells = comparison.cells.iter();
    let mut all: Vec<_> = cells
        .map(|cell| {
            let estimate = cell.estimate.map(|one| (one.ratio, one.interval));
            (cell.levels.clone(), cell.verdict, format!("{estimate:.9?}"))
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// Pairs of runs of many kinds: spreads, effects of either sign, disturbances.
fn pairs() -> impl Iterator<Item = (Made, Made)> {
    (1..=40).map(|seed| {
        let sigma = [0.005, 0.05, 0.2][seed as usize % 3];
        let mut base = grid(Noise::Lognormal { sigma }, 10 + seed as u32 % 5);
        let mut new = base.later();
        new.effects = vec![(
            At::levels("threads=8"),
            [1.0, 1.3, 0.6][seed as usize / 3 % 3],
        )];
        let disturbed = if seed % 2 == 0 { &mut new } else { &mut base };
        disturbed.disturbances = vec![Disturbance::of_every_trial(
            Disturber::Traffic,
            At::levels("bs=4k"),
            0.7,
        )];
        (base.run(2 * seed), new.run(2 * seed + 1))
    })
}

#[test]
fn swapped_sides_mirror_verdicts_and_invert_ratios() {
    let mut seen = Vec::new();
    for ((base, _), (new, _)) in pairs() {
        let there = of_records(base.clone(), new.clone());
        let back = of_records(new, base);
        for (one, other) in there.cells.iter().zip(&back.cells) {
            let mirrored = match one.verdict {
                CellVerdict::Faster => CellVerdict::Slower,
                CellVerdict::Slower => CellVerdict::Faster,
                same => same,
            };
            assert_eq!(other.verdict, mirrored);
            assert_eq!(one.doubts.len(), other.doubts.len());
            assert_eq!(one.further, other.further);
            let (one_ratio, other_ratio) = (one.estimate.unwrap(), other.estimate.unwrap());
            assert!((one_ratio.ratio * other_ratio.ratio - 1.0).abs() < 1e-9);
            let ((low, high), (other_low, other_high)) =
                (one_ratio.interval.unwrap(), other_ratio.interval.unwrap());
            assert!((low * other_high - 1.0).abs() < 1e-9);
            assert!((high * other_low - 1.0).abs() < 1e-9);
            if !seen.contains(&one.verdict) {
                seen.push(one.verdict);
            }
        }
    }
    for verdict in [
        CellVerdict::Faster,
        CellVerdict::Slower,
        CellVerdict::Equivalent,
        CellVerdict::CannotTell(DoubtKind::OtherTraffic),
        CellVerdict::CannotTell(DoubtKind::WideInterval),
    ] {
        assert!(seen.contains(&verdict), "{verdict:?} was not met: {seen:?}");
    }
}

#[test]
fn order_unit_of_time_and_names_change_nothing() {
    for ((base, _), (new, _)) in pairs() {
        let own = said(&of_records(base.clone(), new.clone()));
        let mut reversed = new.clone();
        reversed.cells.reverse();
        assert_eq!(said(&of_records(base.clone(), reversed)), own);
        let slow = |record: &RunRecord| {
            let mut record = record.clone();
            for sample in &mut record.samples {
                sample.elapsed_ns *= 16;
            }
            record
        };
        assert_eq!(said(&of_records(slow(&base), slow(&new))), own);
        let mut renamed = new;
        "another".clone_into(&mut renamed.experiment.name);
        renamed.run.target = "/other".to_owned();
        assert_eq!(said(&of_records(base, renamed)), own);
    }
}
