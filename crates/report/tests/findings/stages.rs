//! Findings about the time of traced requests by layer, from made-up records.

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::claims;
use iolab_record::RunRecord;
use iolab_synthetic::{add_cell, record};
use iolab_workload::stages::{
    CarriedBy, Journal, PerStage, StageSummary, SyncCounts, TraceCounts, TraceSummary,
};

use crate::{named, text};

fn stage(mean_us: f64, tail_us: f64) -> Option<StageSummary> {
    Some(StageSummary {
        mean_ns: mean_us * 1e3,
        p50_ns: (mean_us * 1e3) as u64,
        p99_ns: (tail_us * 1e3) as u64,
        tail_mean_ns: tail_us * 1e3,
    })
}

/// Trace of a trial of 1000 requests: 100 us in the mean, and 1 ms for the slowest of them.
fn traced(shift: f64) -> TraceSummary {
    TraceSummary {
        counts: TraceCounts {
            joined: 1000,
            ..TraceCounts::default()
        },
        note: String::new(),
        carried_by: CarriedBy::Disk,
        journal: None,
        stages: PerStage {
            admission: stage(8.0, 10.0),
            queue: stage(2.0, 5.0),
            device: stage(60.0 + shift, 35.0),
            delivery: stage(30.0 - shift, 950.0),
            completion: stage(4.0, 5.0),
            cpu_wait: stage(20.0 - shift, 940.0),
            reaping: stage(6.0, 5.0),
            ..PerStage::default()
        },
    }
}

/// A run of two cells, of which the second was traced.
fn run(change: impl Fn(usize, &mut TraceSummary)) -> RunRecord {
    let mut record = record("traced", &["trace"]);
    for level in ["trace=false", "trace=true"] {
        add_cell(&mut record, &["bs=4KiB", level], &[40.0; 10]);
    }
    let own = record.samples.iter_mut().filter(|sample| sample.cell == 1);
    for (number, sample) in own.enumerate() {
        // The warm-up trial is not counted.
        let mut trace = traced(number as f64 / 10.0);
        change(number, &mut trace);
        sample.traced = (!sample.warmup).then(|| Box::new(trace));
    }
    record
}

#[test]
fn slowest_layer_is_named_for_mean_and_tail() {
    let analysis = analyse(&run(|_, _| ()));
    insta::assert_snapshot!(
        text(&named("time-by-layer", &analysis)),
        @"Largest part of the mean service time (100 µs) with trace: 61 % (60 % to 61 %) in the device. In the slowest 1 % of the requests: 94 % (94 % to 94 %) waiting for a CPU after the work of the device."
    );
    assert!(named("not-joined", &analysis).is_empty());
}

#[test]
fn unjoined_trials_have_a_reason_for_missing_stages() {
    let lost = run(|number, trace| {
        if number > 3 {
            trace.stages = PerStage::default();
            trace.counts.unjoined = 50;
            trace.note =
                "50 of 1050 requests have no complete set of events: at most 0.1 % may".to_owned();
        }
    });
    let analysis = analyse(&lost);
    // Three trials have no interval.
    assert!(named("time-by-layer", &analysis).is_empty());
    insta::assert_snapshot!(text(&named("not-joined", &analysis)), @"1 of 2 cells had traced trials without stages: 50 of 1050 requests have no complete set of events: at most 0.1 % may.");
}

/// The device does not spend the time of encryption.
#[test]
fn time_in_layers_is_not_device_time() {
    let mapped = |carried_by| analyse(&run(|_, trace| trace.carried_by = carried_by));
    let layers = mapped(CarriedBy::Layers);
    insta::assert_snapshot!(text(&named("time-by-layer", &layers)), @"Largest part of the mean service time (100 µs) with trace: 61 % (60 % to 61 %) in the layers of the target (device mapper, md) and the disks below them. In the slowest 1 % of the requests: 94 % (94 % to 94 %) waiting for a CPU after the work of the layers of the target (device mapper, md) and the disks below them.");
    let share = |analysis: &iolab_analysis::analysis::Analysis| {
        analysis.cells[1]
            .stages
            .as_ref()
            .expect("traced")
            .host_share()
    };
    let said = claims(&[&layers]);
    let said = said.iter().find(|one| one.kind.name == "time-by-layer");
    let points = &serde_json::to_value(&said.expect("a claim").points).unwrap();
    let named = [0, 1, 2].map(|place| (&points[place]["quantity"], &points[place]["value"]));
    let named = named.map(|(quantity, value)| format!("{quantity} {value}"));
    assert_eq!(
        (&*named[2], &points[2]["standing"]),
        ("\"trials\" 10.0", &"median_of".into())
    );
    assert!(
        named[0].starts_with("\"mean latency\"") && named[1].starts_with("\"layers\""),
        "{named:?}"
    );
    assert_eq!(share(&layers), None);
    assert!(share(&mapped(CarriedBy::Disk)).is_some());
}

/// Adds syncs after the writes: 800 us in the mean, mostly in the journal. The slowest ones spend most of their
/// time in the flush.
fn with_syncs(trace: &mut TraceSummary) {
    trace.journal = Some(Journal::Commits);
    trace.counts.syncs = SyncCounts {
        syncs: 1000,
        commits: 500,
        shared_commits: 500,
        flushes: 500,
        shared_flushes: 500,
    };
    trace.stages.sync_admission = stage(5.0, 5.0);
    trace.stages.sync_host = stage(15.0, 15.0);
    trace.stages.sync_write = stage(20.0, 20.0);
    trace.stages.sync_journal = stage(500.0, 500.0);
    trace.stages.sync_flush = stage(200.0, 9200.0);
    trace.stages.sync_delivery = stage(60.0, 260.0);
}

#[test]
fn syncs_have_a_claim_of_their_own() {
    let analysis = analyse(&run(|_, trace| with_syncs(trace)));
    insta::assert_snapshot!(text(&named("syncs-by-layer", &analysis)), @"Largest part of the mean time of a sync (800 µs) with trace: 62 % (62 % to 62 %) in the journal. In the slowest 1 % of the syncs: 92 % (92 % to 92 %) in cache flushes. Syncs, and journal commits that they waited for: 10000 syncs; 5000 journal commits. Commits that served several syncs at once: 5000 of 5000 journal commits.");
    insta::assert_snapshot!(text(&named("time-by-layer", &analysis)), @"Largest part of the mean service time without syncs (100 µs) with trace: 61 % (60 % to 61 %) in the device. In the slowest 1 % of the requests: 94 % (94 % to 94 %) waiting for a CPU after the work of the device.");
}

#[test]
fn file_system_without_journal_is_named_so() {
    let analysis = analyse(&run(|_, trace| {
        with_syncs(trace);
        trace.journal = Some(Journal::Absent);
        trace.stages.sync_journal = None;
    }));
    insta::assert_snapshot!(text(&named("syncs-by-layer", &analysis)), @"Largest part of the mean time of a sync (300 µs) with trace: 67 % (67 % to 67 %) in cache flushes. In the slowest 1 % of the syncs: 97 % (97 % to 97 %) in cache flushes. There is no journal.");
}
