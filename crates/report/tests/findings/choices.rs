//! Rules about choices and wrong conclusions, each once with a finding and once without.

use iolab_analysis::analysis::analyse;

use crate::{named, text};
use iolab_synthetic::size_curve;

#[test]
fn few_requests_have_no_tail() {
    let mut record = size_curve("x", &[("4KiB", 40.0), ("8KiB", 80.0)]);
    for sample in &mut record.samples {
        sample.operations.read.requests = 367;
    }
    let found = text(&named("tail-unknown", &analyse(&record)));
    insta::assert_snapshot!(found, @"Both cells had too few requests per trial to estimate the 99th percentile of latency (368 requests are needed): p99 is close to the maximum of a trial there, and may be far from the true one. Increase --time.");
}
