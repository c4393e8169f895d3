//! Rules about choices and wrong conclusions, each once with a finding and once without.

use iolab_analysis::analysis::analyse;
use iolab_report::findings::{limits, no_given_load, one_cache_state, tail_unknown};
use iolab_workload::trial::CacheState;

use crate::text;
use iolab_synthetic::{rate_report, record, size_curve};

#[test]
fn few_requests_have_no_tail() {
    let mut record = size_curve("x", &[("4KiB", 40.0), ("8KiB", 80.0)]);
    for sample in &mut record.samples {
        sample.operations.read.requests = 367;
    }
    let found = text(&tail_unknown(&analyse(&record)));
    insta::assert_snapshot!(found, @"Both cells had too few requests per trial to estimate the 99th percentile of latency (368 are needed): p99 is close to the maximum of a trial there, and may be far from the true one. Increase --time.");
}

#[test]
fn limits_name_what_was_not_asked() {
    let run = analyse(&size_curve("x", &[("4KiB", 100.0)]));
    let found = text(&limits(&[&run, &run]));
    insta::assert_snapshot!(found, @r"
    All requests were issued in a closed loop, so latencies are service times. --rate measures the response time at a given load.
    Everything was measured with cache=direct: programs that use the page cache get other results, often higher ones.
    ");
}

#[test]
fn limits_that_were_overcome_are_silent() {
    let mut direct = size_curve("x", &[("4KiB", 100.0)]);
    rate_report(&mut direct, 0, 1000, 0);
    let mut hot = size_curve("y", &[("4KiB", 100.0)]);
    hot.cells[0].spec.trial.cache = CacheState::Hot;
    let both = [&analyse(&direct), &analyse(&hot)];
    assert_eq!(no_given_load(&both), None);
    assert_eq!(one_cache_state(&both), None);
    let nothing = [&analyse(&record("x", &[]))];
    assert!(limits(&nothing).is_empty());
}
