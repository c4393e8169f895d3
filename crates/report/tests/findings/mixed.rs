//! Latencies of trials that read and write.

use iolab_analysis::analysis::{Analysis, DoubtKind, analyse};
use iolab_analysis::headline_numbers::{AccessOperation, HeadlineNumbers};
use iolab_record::{LatencySummary, OperationSummary, RunRecord};
use iolab_report::findings::conclusions;
use iolab_workload::response::Response;

use crate::{all_findings, text};
use iolab_synthetic::{add_cell, around, record};

/// Summary of `requests` requests, each of which took `us` microseconds.
fn requests(requests: u64, us: u64) -> OperationSummary {
    let ns = (us * 1000) as f64;
    OperationSummary {
        requests,
        bytes: requests * 4096,
        latency: (requests > 0)
            .then(|| LatencySummary::from_fn(|of| of.is_latency().then_some(ns)).into()),
        ..OperationSummary::default()
    }
}

/// Reads take 700 µs, writes 900 µs; by chance, reads or writes are more frequent in every other trial.
fn mixed(shares: &[u8]) -> RunRecord {
    let mut record = record("mixed", &["read_percent"]);
    record.experiment.response = Response::P99;
    for share in shares {
        let cell = add_cell(
            &mut record,
            &[&format!("read_percent={share}")],
            &around(100.0),
        );
        record.cells[cell].spec.trial.read_percent = *share;
    }
    let cells = record.cells.clone();
    for (number, sample) in record.samples.iter_mut().enumerate() {
        let trial = cells[sample.cell as usize].trial();
        let more = if number % 2 == 0 { 1010 } else { 990 };
        let of = |is_asked: bool, count| if is_asked { count } else { 0 };
        sample.operations.read = requests(of(trial.reads(), more), 700);
        sample.operations.write = requests(of(trial.writes(), 2000 - more), 900);
    }
    record
}

fn medians(analysis: &Analysis) -> Vec<Option<f64>> {
    let cells = analysis.cells.iter();
    cells
        .map(|cell| cell.response.map(|response| response.median))
        .collect()
}

#[test]
fn all_trials_show_the_same_operation() {
    let analysis = analyse(&mixed(&[49, 50, 51]));
    assert_eq!(medians(&analysis), [Some(700e3); 3]);
    assert!(
        analysis
            .cells
            .iter()
            .all(|cell| cell.values.iter().all(|value| *value == 700e3))
    );
    // The latency of reads alone: writes take 900 µs.
    insta::assert_snapshot!(text(&all_findings(&analysis)));
    insta::assert_snapshot!(conclusions(&analysis, &[])[0].text, @"mixed on /data: 99th percentile of latency of reads 700 µs in all 3 cells, from the device");
    assert_eq!(
        analysis.response_name(),
        "99th percentile of latency of reads"
    );
}

#[test]
fn a_cell_without_that_operation_shows_no_latency() {
    let analysis = analyse(&mixed(&[0, 50, 100]));
    assert_eq!(medians(&analysis), [None, Some(700e3), Some(700e3)]);
    let writes = &analysis.cells[0];
    assert!(!writes.flags.contains(&DoubtKind::FewRequests) && !analysis.has_response(writes));
    let mix = writes.mix.as_ref().expect("beside a mix");
    let writes = mix.write.as_ref().expect("kept");
    assert_eq!(writes.medians[Response::Latency], Some(900e3));
    let main = HeadlineNumbers::of(&[&analysis]);
    let writes = main
        .rows
        .iter()
        .find(|row| row.operation == AccessOperation::Write);
    let writes = writes.expect("pure writes");
    let latency = writes.latency().expect("kept");
    assert_eq!(latency[Response::P99], Some(900e3));
    assert!(writes.has_tail());
    insta::assert_snapshot!(text(&all_findings(&analysis)));
}

#[test]
fn cells_without_a_mix_show_own_requests() {
    let analysis = analyse(&mixed(&[0, 100]));
    assert_eq!(medians(&analysis), [Some(900e3), Some(700e3)]);
    assert_eq!(analysis.response_name(), "99th percentile of latency");
}

#[test]
fn run_without_any_value_has_a_line() {
    let mut record = mixed(&[49, 51]);
    for sample in &mut record.samples {
        sample.operations.read = requests(10, 700);
        sample.operations.write = requests(10, 900);
    }
    let analysis = analyse(&record);
    assert_eq!(medians(&analysis), [None, None]);
    insta::assert_snapshot!(conclusions(&analysis, &[])[0].text, @"mixed on /data: too few requests for a value in both cells");
    let found = all_findings(&analysis);
    let of_tail = found.iter().find(|found| found.kind.name == "tail-unknown");
    insta::assert_snapshot!(of_tail.map_or("", |found| &found.text), @"Both cells had too few requests per trial to estimate the 99th percentile of latency (368 requests are needed). Increase --time.");
}
