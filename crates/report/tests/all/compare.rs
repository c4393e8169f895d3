//! Comparisons and single series as text, reviewed before they were accepted.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::{Comparison, Criteria, HypothesisTest, RunSide};
use iolab_analysis::runs::FiledRun;
use iolab_record::environment::KEYS;
use iolab_record::{RunRecord, ServedBy};
use iolab_report::block::in_text;
use iolab_report::compare;

use iolab_synthetic::{Scenario, serve, size_curve};

const SIZES: [&str; 4] = ["4KiB", "64KiB", "1MiB", "16MiB"];

fn base() -> RunRecord {
    let mut record = size_curve("read-size", &SIZES.map(|size| (size, 100.0)));
    record
        .environment
        .put(&KEYS.kernel_release, "6.1".to_owned());
    record
}

/// A run with slower, faster and equivalent cells, and with one served from elsewhere.
fn new() -> RunRecord {
    let speeds = [80.0, 150.0, 101.0, 900.0];
    let points: Vec<(&str, f64)> = SIZES.into_iter().zip(speeds).collect();
    let mut record = size_curve("read-size", &points);
    record
        .environment
        .put(&KEYS.kernel_release, "6.2".to_owned());
    serve(&mut record, 3, ServedBy::PageCache, "all from memory");
    record
}

fn compared(base: &RunRecord, new: &RunRecord) -> Comparison {
    // Made-up runs all begin at the same time, so that only their seeds distinguish them.
    let mut new = new.clone();
    new.run.seed += 1;
    let runs = [base.clone(), new].map(AnalysedRun::of);
    let [base, new] = runs.each_ref().map(RunSide::whole);
    let terms = Criteria {
        margin: 0.05,
        tests: vec![
            HypothesisTest::Welch,
            HypothesisTest::Student,
            HypothesisTest::MannWhitney,
        ],
        within_run: true,
        ..Criteria::default()
    };
    let names = ["a.iolab", "b.iolab\u{1b}[31m"].map(|name| name.to_owned().into());
    Comparison::of_runs(names, base, new, terms).unwrap()
}

/// A run whose intervals are as wide as its difference, beyond the margin.
fn unclear() -> RunRecord {
    let mut record = size_curve("read-size", &[("4KiB", 100.0), ("8KiB", 100.0)]);
    for (i, sample) in record.samples.iter_mut().enumerate() {
        sample.elapsed_ns += sample.elapsed_ns / 4 * (i as u64 * 7 % 3);
    }
    record
}

fn written(comparison: &Comparison, width: u16) -> String {
    in_text(&compare::blocks(comparison), width)
}

#[test]
fn comparisons() {
    let comparison = compared(&base(), &new());
    insta::assert_snapshot!("compare_wide", written(&comparison, 140));
    let unclear = compared(
        &unclear(),
        &size_curve("read-size", &[("4KiB", 90.0), ("2MiB", 1.0)]),
    );
    insta::assert_snapshot!("compare_unclear", written(&unclear, 100));
}

/// The values come from no run of iolab, so that no run can get more trials.
#[test]
fn of_texts_more_values_are_advised() {
    let numbers = |scale: f64| -> Vec<f64> {
        let all = (0..20).map(|i| scale * (1.0 + f64::from(i * 7 % 20)));
        all.collect()
    };
    let names = ["a.txt", "b.txt"].map(|name| name.to_owned().into());
    let terms = Criteria {
        margin: 0.05,
        tests: vec![HypothesisTest::Welch],
        within_run: true,
        ..Criteria::default()
    };
    let compared = Comparison::of_numbers(names, numbers(1.0), numbers(1.5), terms);
    let written = written(&compared, 120);
    assert!(written.contains("cannot tell (+"), "{written}");
    assert!(!written.contains("trial"), "{written}");
    let advice = compare::remarks(&compared);
    insta::assert_snapshot!(advice[0], @"With this spread, 138 more values on each side would settle 1 cell with a chance of 80 %.");
}

/// Runs of one experiment on a target at about this throughput, one after the other.
fn runs_at(mb_s: f64, target: &str, seed: u64) -> Vec<AnalysedRun> {
    let scenario = Scenario {
        mb_s,
        ..Scenario::of("read-size", &["bs=64k,1M"]).on(target)
    };
    let seeds = seed..seed + 4;
    seeds
        .map(|seed| AnalysedRun::of(scenario.run(seed).0))
        .collect()
}

fn of_sides(base: &[AnalysedRun], new: &[AnalysedRun]) -> Comparison {
    fn side(runs: &[AnalysedRun]) -> Vec<FiledRun<'_>> {
        let of = |run| FiledRun { file: "run", run };
        runs.iter().map(of).collect()
    }
    let terms = Criteria {
        margin: 0.05,
        ..Criteria::default()
    };
    Comparison::of_several(&side(base), &side(new), terms).expect("the same cells")
}

/// A side of several targets is named so, with the cause of its spread.
#[test]
fn a_side_that_mixes_targets_is_named() {
    let [one, other] = ["/data", "/other"].map(|target| runs_at(100.0, target, 1));
    let mixed: Vec<AnalysedRun> = one.iter().chain(&other).cloned().collect();
    let new = runs_at(100.0, "/data", 21);
    let compared = of_sides(&mixed, &new);
    assert_eq!(compared.base.targets, ["/data", "/other"]);
    assert_eq!(compared.new.targets, ["/data"]);
    insta::assert_snapshot!(written(&compared, 100));
}
