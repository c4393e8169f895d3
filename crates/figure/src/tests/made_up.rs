//! Runs that were made up, and the figures that are drawn of them.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::trial_values::{CellLatencies, of_cells};
use iolab_record::{
    LatencyOf, Operation, PartId, RunRecord, Sample, SampleLatency, SampleLatencyOverTime,
    SampleSeries, ServedBy,
};
use iolab_workload::Result;
use iolab_workload::histogram::new_latency_histogram;
use iolab_workload::response::Response;
use iolab_workload::stages::{
    CarriedBy, Journal, PerStage, StageSummary, SyncCounts, TraceCounts, TraceSummary,
};

use crate::{Figure, FigureKind, FigureRun, Options, draw};
use iolab_synthetic::{
    add_cell, around, latency_inside, rate_report, record, serve, size_curve, throughput_inside,
};

/// A throughput that grows with size and threads and ends at a ceiling.
fn throughput(bytes: f64, threads: f64) -> f64 {
    900.0 * (1.0 - (-(bytes * threads.sqrt()) / 300_000.0).exp())
}

const SIZES: [(&str, f64); 6] = [
    ("4KiB", 4096.0),
    ("16KiB", 16_384.0),
    ("64KiB", 65_536.0),
    ("256KiB", 262_144.0),
    ("1MiB", 1_048_576.0),
    ("4MiB", 4_194_304.0),
];

/// Sizes by threads: a line for each of `lines` numbers of threads.
pub(super) fn sizes_by_threads(lines: usize) -> RunRecord {
    let mut record = record("read-random", &["bs", "threads"]);
    for (size, bytes) in SIZES {
        for threads in 1..=lines {
            let levels = [format!("bs={size}"), format!("threads={threads}")];
            let mb_s = throughput(bytes, threads as f64);
            add_cell(&mut record, &[&levels[0], &levels[1]], &around(mb_s));
        }
    }
    record
}

pub(super) fn sizes() -> RunRecord {
    let points = SIZES.map(|(size, bytes)| (size, throughput(bytes, 1.0)));
    let mut record = size_curve("read-size", &points);
    serve(
        &mut record,
        5,
        ServedBy::PageCache,
        "nothing was read from the device",
    );
    record
}

/// Bars: sync policies, with names too long for a narrow figure.
pub(super) fn policies() -> RunRecord {
    let mut record = record("write-random", &["sync", "bs"]);
    for (i, policy) in ["none", "end", "each", "osync", "a-rather-long-policy"]
        .iter()
        .enumerate()
    {
        for bs in ["4KiB", "64KiB"] {
            let levels = [format!("sync={policy}"), format!("bs={bs}")];
            add_cell(
                &mut record,
                &[&levels[0], &levels[1]],
                &around(100.0 / (i + 1) as f64),
            );
        }
    }
    record
}

/// Traced cells whose threads wait longer and longer for a CPU.
pub(super) fn traced() -> RunRecord {
    let mut record = record("read-size", &["threads"]);
    for threads in ["1", "4", "16"] {
        add_cell(
            &mut record,
            &[&format!("threads={threads}")],
            &around(100.0),
        );
    }
    for sample in &mut record.samples {
        let wait = 10f64.powi(sample.cell as i32);
        let stage = |mean_us: f64, tail_us: f64| {
            Some(StageSummary {
                mean_ns: mean_us * 1e3,
                p50_ns: (mean_us * 1e3) as u64,
                p99_ns: (tail_us * 1e3) as u64,
                tail_mean_ns: tail_us * 1e3,
            })
        };
        sample.traced = Some(Box::new(TraceSummary {
            counts: TraceCounts {
                joined: 1000,
                syncs: SyncCounts {
                    syncs: 1000,
                    commits: 1000,
                    flushes: 1000,
                    ..SyncCounts::default()
                },
                ..TraceCounts::default()
            },
            note: String::new(),
            carried_by: CarriedBy::Disk,
            journal: Some(Journal::Commits),
            stages: PerStage {
                admission: stage(5.0, 6.0),
                queue: stage(2.0, 5.0),
                device: stage(60.0, 80.0),
                delivery: stage(5.0 + wait, 10.0 + 30.0 * wait),
                completion: stage(2.0, 4.0),
                cpu_wait: stage(wait, 30.0 * wait),
                reaping: stage(3.0, 6.0),
                sync_admission: stage(4.0, 4.0),
                sync_host: stage(20.0, 20.0),
                sync_write: stage(10.0, 10.0),
                sync_journal: stage(50.0, 50.0),
                sync_flush: stage(30.0 * wait, 30.0 * wait),
                sync_delivery: stage(10.0, 10.0),
            },
        }));
    }
    record
}

pub(super) fn loaded() -> RunRecord {
    let mut record = record("load-latency", &["rate"]);
    record.experiment.response = Response::Latency;
    for (rate, mb_s) in [
        (1000, 4000.0),
        (4000, 3500.0),
        (16_000, 1500.0),
        (32_000, 400.0),
    ] {
        let cell = add_cell(&mut record, &[&format!("rate={rate}")], &around(mb_s));
        rate_report(&mut record, cell, rate, 0);
    }
    record
}

pub(super) fn programs() -> RunRecord {
    let mut record = record("linkage", &["region", "linkage"]);
    record.experiment.response = Response::Elapsed;
    for (i, size) in ["1", "4KiB", "1MiB", "128MiB"].iter().enumerate() {
        for (linkage, cost) in [
            ("static", 1.0),
            ("dynamic", 1.0 + 0.4 / 8f64.powi(i as i32)),
        ] {
            let levels = [format!("region={size}"), format!("linkage={linkage}")];
            let trials: Vec<f64> = around(900.0 / cost).repeat(3);
            add_cell(&mut record, &[&levels[0], &levels[1]], &trials);
        }
    }
    record
}

/// Latencies of each trial: a thousand requests of each operation with a tail.
fn latencies(record: &RunRecord) -> CellLatencies {
    let of = |(sample, operation): (&Sample, Operation)| {
        let mut histogram = new_latency_histogram();
        let latency = sample.operations[operation].latency.as_ref();
        let median = latency.map_or(Some(1.0), |own| own[Response::Latency]);
        let median = median.expect("a median") as u64;
        for i in 1..=1000u64 {
            histogram.saturating_record(
                median / 2 + median * i / 1000 + median * i.saturating_sub(980) / 2,
            );
        }
        Ok(SampleLatency {
            sample: sample.id,
            part: PartId::default(),
            of: LatencyOf::service(operation),
            histogram,
        })
    };
    let operations = record.samples.iter().flat_map(|sample| {
        let made = |operation: &Operation| sample.operations[*operation].requests > 0;
        let made = Operation::ALL.iter().copied().filter(made);
        made.map(move |operation| (sample, operation))
    });
    of_cells(record, operations.map(of)).unwrap()
}

/// Runs with all that figures are drawn from.
pub(super) struct Made {
    runs: Vec<AnalysedRun>,
    latencies: Vec<CellLatencies>,
    series: Vec<Vec<SampleSeries>>,
    over_time: Vec<Vec<SampleLatencyOverTime>>,
}

impl Made {
    pub(super) fn new(records: &[RunRecord]) -> Self {
        Self {
            runs: records.iter().cloned().map(AnalysedRun::of).collect(),
            latencies: records.iter().map(latencies).collect(),
            series: records.iter().map(throughput_inside).collect(),
            over_time: records.iter().map(latency_inside).collect(),
        }
    }

    pub(super) fn runs(&self) -> Vec<FigureRun<'_>> {
        let names = ["before", "after", "third"];
        (0..self.runs.len())
            .map(|i| FigureRun {
                name: names[i],
                run: &self.runs[i],
                level: None,
                latencies: &self.latencies[i],
                series: &self.series[i],
                over_time: &self.over_time[i],
            })
            .collect()
    }

    pub(super) fn draw(&self, options: &Options) -> Result<Figure> {
        draw(&self.runs(), options)
    }
}

pub(super) fn figure_of(records: &[RunRecord], options: &Options) -> Result<Figure> {
    Made::new(records).draw(options)
}

pub(super) fn kind(kind: FigureKind) -> Options {
    Options {
        kind: Some(kind),
        ..Options::default()
    }
}

/// Every kind of figure, with options that show most of what it has.
pub(super) fn gallery() -> Vec<(&'static str, Vec<RunRecord>, Options)> {
    let other = || {
        let mut record = sizes();
        record.run.seed += 1;
        for sample in record.samples.iter_mut().filter(|s| s.cell > 2) {
            sample.elapsed_ns = sample.elapsed_ns * 11 / 10;
        }
        record
    };
    let level = "throughput>950MB/s".parse().expect("a level");
    let with_points = Options {
        points: true,
        levels: vec![level],
        title: Some("Random reads & more".to_owned()),
        ..Options::default()
    };
    let facets = Options {
        facet: Some("threads".to_owned()),
        width_pt: 400.0,
        ..Options::default()
    };
    vec![
        ("response", vec![sizes()], with_points),
        ("lines", vec![sizes_by_threads(3)], Options::default()),
        ("facets", vec![sizes_by_threads(6)], facets),
        ("bars", vec![policies()], Options::default()),
        ("percentiles", vec![sizes()], kind(FigureKind::Percentiles)),
        ("load", vec![loaded()], Options::default()),
        ("ratio", vec![sizes(), other()], Options::default()),
        ("linkage", vec![programs()], Options::default()),
        ("p-values", vec![programs()], kind(FigureKind::PValues)),
        (
            "distribution",
            vec![sizes()],
            kind(FigureKind::Distribution),
        ),
        ("order", vec![sizes()], kind(FigureKind::Order)),
        ("stages", vec![traced()], kind(FigureKind::Stages)),
        (
            "course",
            vec![size_curve("read-size", &[("4KiB", 60.0)])],
            kind(FigureKind::Course),
        ),
        (
            "course-latency",
            vec![size_curve("read-size", &[("4KiB", 60.0)])],
            Options {
                y: Some(Response::P99),
                ..kind(FigureKind::Course)
            },
        ),
    ]
}
