//! Untouched buffers compared with zeroed ones: the cost of page faults at the first touch.

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::{Standing, claims, kind};
use iolab_record::RunRecord;

use crate::all_findings;
use iolab_synthetic::{add_cell, record};

/// `n` values around a throughput, MB/s.
fn values(mb_s: f64, n: usize) -> Vec<f64> {
    (0..n)
        .map(|i| mb_s * (1.0 + 0.01 * ((i * 7 % 11) as f64 - 5.0) / 5.0))
        .collect()
}

/// At 8 MiB untouched buffers fault 2048 times a trial and are slower; at 4 KiB they are not.
pub(crate) fn buffers(n: usize) -> RunRecord {
    let mut record = record("buffer-size", &["buffer_init", "bs"]);
    for (init, bs, mb_s, faults) in [
        ("untouched", "4KiB", 5000.0, 1),
        ("untouched", "8MiB", 2998.0, 2048),
        ("zeroed", "4KiB", 5000.0, 0),
        ("zeroed", "8MiB", 8249.0, 0),
    ] {
        let levels = [format!("buffer_init={init}"), format!("bs={bs}")];
        let levels = levels.each_ref().map(String::as_str);
        let cell = add_cell(&mut record, &levels, &values(mb_s, n)) as i64;
        for sample in record.samples.iter_mut().filter(|s| s.cell == cell) {
            sample.counters.usage.minor_faults = faults;
        }
    }
    record
}

#[test]
fn faults_of_untouched_buffers_are_priced() {
    let analysis = analyse(&buffers(20));
    let all = claims(&[&analysis]);
    let told = all.iter().find(|claim| claim.kind == &kind::FAULT_COST);
    let told = told.expect("8 MiB are slower");
    assert!(told.held.contains(&("bs".to_owned(), "8MiB".to_owned())));
    let ratio = told.ratio.expect("of both").ratio;
    assert!((ratio - 2998.0 / 8249.0).abs() < 1e-3, "{told:?}");
    let numbers = |standing| told.of(standing).map(|point| point.value);
    assert_eq!(numbers(Standing::Faults).collect::<Vec<_>>(), [2048.0, 0.0]);
    // 1000 requests of 8 MiB take 2.80 s and 1.02 s: a difference of 1.78 s over 2048 faults.
    let expected = 8e3 * f64::from(1 << 20) * (1e3 / 2998.0 - 1e3 / 8249.0) / 2048.0;
    let ns = numbers(Standing::Cost).next().expect("a cost");
    assert!((ns / expected - 1.0).abs() < 0.01, "{ns} {expected}");
    // No difference at 4 KiB, no price.
    assert_eq!(numbers(Standing::Alike).collect::<Vec<_>>(), [1.0]);
}

/// A difference for another reason is left to the comparison of the levels.
#[test]
fn slower_buffers_without_faults_do_not_blame_them() {
    let mut record = buffers(20);
    for sample in &mut record.samples {
        sample.counters.usage.minor_faults = 12;
    }
    let found = all_findings(&analyse(&record));
    let has = |name: &str| found.iter().any(|finding| finding.kind.name == name);
    assert!(has("effect") && !has("cost-of-page-faults"), "{found:?}");
}
