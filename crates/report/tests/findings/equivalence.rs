//! Two programs side by side, in made-up runs: every number follows from the given times.

use iolab_analysis::analysis::{Analysis, analyse};
use iolab_analysis::equivalence::{MARGINS, ProgramPair, program_pairs};
use iolab_record::RunRecord;
use iolab_workload::response::Response;
use iolab_workload::units::{exact_size, format_size};
use proptest::prelude::*;

use crate::{all_findings, text};
use iolab_synthetic::{add_cell, record};

/// Times around `centre` that differ by up to 0.2 per mille either way and average to it.
fn around(centre: f64, trials: usize) -> Vec<f64> {
    let offset = |i: usize| (i % 5) as f64 - 2.0;
    (0..trials)
        .map(|i| centre * (1.0 + 0.0001 * offset(i)))
        .collect()
}

fn empty() -> RunRecord {
    let mut record = record("linkage", &["region", "linkage"]);
    record.experiment.response = Response::Elapsed;
    record
}

fn add(record: &mut RunRecord, size: u64, linkage: &str, times_ns: &[f64]) {
    let levels = [
        format!("region={}", format_size(size)),
        format!("linkage={linkage}"),
    ];
    let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
    // The helper takes throughputs; here only their number matters.
    let cell = add_cell(record, &levels, &vec![1.0; times_ns.len()]);
    record.cells[cell].spec.trial.region = size;
    record.cells[cell].spec.command = Some(
        format!("reader-{linkage} {{file}} {{bs}}")
            .parse()
            .expect("a command"),
    );
    let own = |s: &&mut iolab_record::Sample| s.cell == cell as i64 && !s.warmup;
    for (sample, ns) in record.samples.iter_mut().filter(own).zip(times_ns) {
        sample.elapsed_ns = *ns as u64;
    }
}

/// Reading takes 1 ns a byte, and the second program costs 300 us more.
fn run(sizes: &[u64], trials: usize) -> Analysis {
    let mut record = empty();
    for size in sizes {
        let base = 600_000.0 + *size as f64;
        add(&mut record, *size, "static", &around(base, trials));
        add(
            &mut record,
            *size,
            "dynamic",
            &around(base + 300_000.0, trials),
        );
    }
    analyse(&record)
}

fn only(analysis: &Analysis) -> ProgramPair {
    let mut program_pairs = program_pairs(analysis);
    assert_eq!(program_pairs.len(), 1);
    program_pairs.remove(0)
}

const MB: u64 = 1_000_000;

#[test]
fn crossing_is_where_fixed_cost_no_longer_matters() {
    // The ratio is 1 + 0.3 / (0.6 + size in MB): 5 % at 5.4 MB, 1 % at 29.4 MB.
    let sizes = [1, MB, 5 * MB, 6 * MB, 10 * MB, 29 * MB, 31 * MB, 100 * MB];
    let pair = only(&run(&sizes, 20));
    assert_eq!(
        (pair.base.as_str(), pair.new.as_str()),
        ("static", "dynamic")
    );
    assert_eq!(pair.naive_from(0), Some(6 * MB));
    assert_eq!(pair.naive_from(1), Some(31 * MB));
    assert_eq!(pair.equivalent_from(0), Some(6 * MB));
    assert_eq!(pair.equivalent_from(1), Some(31 * MB));
    let first = &pair.points[0];
    let ratio = first.ratio.expect("there are trials");
    assert!((ratio.ratio - 1.5).abs() < 1e-4, "{ratio:?}");
    assert!(
        ratio
            .interval
            .is_some_and(|(low, high)| low < 1.5 && high > 1.5)
    );
    for (welch, student) in first.first_trials.iter().flatten() {
        assert!(*welch < 1e-6 && *student < 1e-6);
    }
    assert_eq!(first.first_trials.iter().flatten().count(), 2);
}

#[test]
fn three_programs_are_compared_with_the_first() {
    let mut record = empty();
    for linkage in ["a", "b", "c"] {
        add(&mut record, MB, linkage, &around(1e6, 20));
    }
    let pairs = program_pairs(&analyse(&record));
    let names: Vec<_> = pairs
        .iter()
        .map(|pair| (pair.base.as_str(), pair.new.as_str()))
        .collect();
    assert_eq!(names, [("a", "b"), ("a", "c")]);
    insta::assert_snapshot!(text(&all_findings(&analyse(&record))), @"
    b against a: equivalent within 5.0 % (equivalence test, p <= 0.05). As measured: 1.00× at 1000000 B (1.00 ms against 1.00 ms).
    b against a: equivalent within 1.0 % (equivalence test, p <= 0.05). As measured: 1.00× at 1000000 B (1.00 ms against 1.00 ms).
    c against a: equivalent within 5.0 % (equivalence test, p <= 0.05). As measured: 1.00× at 1000000 B (1.00 ms against 1.00 ms).
    c against a: equivalent within 1.0 % (equivalence test, p <= 0.05). As measured: 1.00× at 1000000 B (1.00 ms against 1.00 ms).
    b against a. No difference found: at 1000000 B (1.00 ms against 1.00 ms).
    c against a. No difference found: at 1000000 B (1.00 ms against 1.00 ms).
    ");
}

#[test]
fn the_sentences_name_both_crossings() {
    let analysis = run(&[1, 6 * MB, 31 * MB], 20);
    let found = all_findings(&analysis);
    let text = |rule: &str| -> Vec<&str> {
        let of_rule = found.iter().filter(|f| f.kind.name == rule);
        of_rule.map(|f| f.text.as_str()).collect()
    };
    insta::assert_snapshot!(text("programs-differ").join("\n"), @"dynamic against static. Times differ: 1.50× slower at 1 B (900 µs against 600 µs); 1.01× slower at 31000000 B (31.9 ms against 31.6 ms).");
    let equivalent = text("programs-equivalent");
    assert_eq!(equivalent.len(), MARGINS.len());
    for (sentence, size) in equivalent.iter().zip([6 * MB, 31 * MB]) {
        let size = exact_size(size);
        assert_eq!(sentence.matches(&size).count(), 2, "{sentence}");
    }
}

proptest! {
    /// Times in another unit give the same answers.
    #[test]
    fn the_crossing_does_not_depend_on_the_unit(
        ratios in prop::collection::vec(0.9f64..1.2, 1..6),
        trials in 2usize..25,
    ) {
        let of = |unit: f64| {
            let mut record = empty();
            for (i, ratio) in ratios.iter().enumerate() {
                let size = 1u64 << i;
                add(&mut record, size, "static", &around(1e9 * unit, trials));
                add(&mut record, size, "dynamic", &around(1e9 * unit * ratio, trials));
            }
            only(&analyse(&record))
        };
        let (one, thousand) = (of(1.0), of(1000.0));
        for margin in 0..MARGINS.len() {
            prop_assert_eq!(one.equivalent_from(margin), thousand.equivalent_from(margin));
            prop_assert_eq!(one.naive_from(margin), thousand.naive_from(margin));
            // A result for the narrow margin also holds for the wide one.
            if one.equivalent_from(1).is_some() {
                prop_assert!(one.equivalent_from(0) <= one.equivalent_from(1));
            }
        }
    }
}
