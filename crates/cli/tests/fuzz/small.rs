//! Runs of hardly anything: no cell, one or two, no trial, one or two, values that are missing or zero. Everything that is
//! made of a run file is made of them, every kind of figure among it.

use std::io::sink;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::runs::RunName;
use iolab_analysis::trial_values::{CellLatencies, of_cells, of_groups};
use iolab_figure::{FigureKind, FigureRun, Options, draw};
use iolab_record::{
    EndedBy, Event, EventKind, LatencyOf, LatencySummary, Moved, Operation, OperationSummary,
    PartId, PerOperation, RunRecord, Sample, SampleLatency, SampleSeries, ServedBy, ServedVerdict,
};
use iolab_report::export::Writer;
use iolab_report::overview::Input;
use iolab_report::report::StudyReport;
use iolab_report::{document, export};
use iolab_workload::histogram::new_latency_histogram;
use iolab_workload::response::Response;
use iolab_workload::series::{Interval, Series};

use crate::drive::drive;
use crate::files::show;
use crate::mutate::Mutator;

/// Factors that figures, tables and findings look for, with levels of theirs.
const FACTORS: [(&str, [&str; 3]); 14] = [
    ("bs", ["4KiB", "64KiB", "1MiB"]),
    ("rate", ["100", "1000", "none"]),
    ("threads", ["1", "2", "4"]),
    ("depth", ["1", "8", "32"]),
    ("skip", ["0", "4KiB", "1MiB"]),
    ("region", ["1", "1MiB", "64MiB"]),
    ("pattern", ["seq", "rand", "zipf:1.2"]),
    ("sync", ["none", "end", "each"]),
    ("cache", ["direct", "cold", "hot"]),
    ("buffer_init", ["touched", "huge", "nohuge"]),
    ("linkage", ["static", "dynamic", "none"]),
    ("workload", ["RS", "WR", "RR"]),
    ("tool", ["iolab", "fio", "iozone"]),
    ("read_percent", ["0", "50", "100"]),
];

/// Names of experiments that something is said of by name.
const NAMES: [&str; 6] = [
    "read-size", "load-latency", "durable-log", "linkage", "interference", "mine",
];

/// Requests of a trial: around the numbers from which a quantile is known.
const REQUESTS: [u64; 8] = [0, 1, 5, 19, 20, 72, 150, 10_000];

const NANOSECONDS: [u64; 6] = [0, 1, 1_000, 100_000, 30_000_000_000, u64::MAX >> 1];

fn pick<T: Copy>(mutator: &mut Mutator, choices: &[T]) -> T {
    choices[mutator.below(choices.len())]
}

/// Up to two cells for every level of up to two factors, each with up to two trials.
fn small_run(mutator: &mut Mutator) -> RunRecord {
    let mut factors: Vec<(&str, [&str; 3])> = Vec::new();
    for _ in 0..mutator.below(4) {
        let factor = pick(mutator, &FACTORS);
        if factors.iter().all(|(name, _)| *name != factor.0) {
            factors.push(factor);
        }
    }
    let names: Vec<&str> = factors.iter().map(|(name, _)| *name).collect();
    let mut record = iolab_synthetic::record(pick(mutator, &NAMES), &names);
    record.experiment.response = pick(mutator, &Response::ALL);
    for _ in 0..mutator.below(4) {
        let levels: Vec<String> = factors
            .iter()
            .map(|(name, levels)| format!("{name}={}", pick(mutator, levels)))
            .collect();
        let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
        let cell = iolab_synthetic::add_cell(&mut record, &levels, &[]);
        if mutator.below(2) == 0 {
            record.samples.pop();
        }
        for _ in 0..mutator.below(3) {
            let sample = iolab_synthetic::add_trial(&mut record, cell, 100.0, false);
            little(mutator, sample);
        }
        if mutator.below(4) == 0 {
            iolab_synthetic::rate_report(&mut record, cell, pick(mutator, &[1, 100]), 0);
        }
        record.cells[cell].ended_by = pick(mutator, &[None, Some(EndedBy::Budget)]);
    }
    if mutator.below(8) == 0 {
        iolab_synthetic::by_ranks(&mut record, &[1.0, 0.5]);
    }
    record
}

/// Takes away from a trial what may be missing.
fn little(mutator: &mut Mutator, sample: &mut Sample) {
    let direction = |mutator: &mut Mutator| {
        let requests = pick(mutator, &REQUESTS);
        let ns = pick(mutator, &NANOSECONDS);
        let has_rare = mutator.below(2) == 0;
        let summary = LatencySummary::from_fn(|of| {
            (of.is_always_kept() || of.is_latency() && has_rare).then_some(ns as f64)
        });
        OperationSummary {
            requests,
            bytes: requests * pick(mutator, &[0, 512, 1 << 20]),
            latency: pick(mutator, &[None, Some(summary)]).map(Box::new),
            ..OperationSummary::default()
        }
    };
    sample.operations.read = direction(mutator);
    if mutator.below(3) == 0 {
        sample.operations.write = direction(mutator);
    }
    sample.elapsed_ns = pick(mutator, &NANOSECONDS);
    sample.all_active_ns = pick(mutator, &[0, sample.elapsed_ns]);
    sample.ok = mutator.below(5) > 0;
    sample.warmup = mutator.below(5) == 0;
    if mutator.below(3) == 0 {
        sample.counters = Default::default();
    }
    let served = [ServedBy::Device, ServedBy::PageCache, ServedBy::Unknown];
    sample.verdict = ServedVerdict {
        served_by: pick(mutator, &served),
        device_fraction: pick(mutator, &[None, Some(0.0), Some(1.0)]),
        reason: String::new(),
    };
}

/// Histograms of some of its trials, with as many requests as these have.
fn histograms(mutator: &mut Mutator, record: &RunRecord) -> Vec<SampleLatency> {
    let with = record.samples.iter().filter(|_| mutator.below(4) > 0);
    let samples: Vec<&Sample> = with.collect();
    let of = |sample: &&Sample| {
        let mut histogram = new_latency_histogram();
        for value in [1_000, 50_000].into_iter().take(mutator.below(3)) {
            histogram.saturating_record_n(value, sample.operations.read.requests.min(10_000));
        }
        SampleLatency {
            sample: sample.id,
            part: PartId::default(),
            of: LatencyOf::service(Operation::Read),
            histogram,
        }
    };
    samples.iter().map(of).collect()
}

/// Series of some of its trials: none, one or two intervals, also such as take no time.
fn series_of(mutator: &mut Mutator, record: &RunRecord) -> Vec<SampleSeries> {
    let mut all = Vec::new();
    for sample in &record.samples {
        let intervals = (0..mutator.below(4) as u64).map(|i| Interval {
            start_ns: i * 1_000,
            length_ns: pick(mutator, &[0, 1_000]),
            done: PerOperation {
                read: Moved {
                    requests: 1,
                    bytes: pick(mutator, &[0, 4096]),
                },
                ..PerOperation::default()
            },
            drive_millidegrees: None,
        });
        all.push(SampleSeries {
            sample: sample.id,
            series: Series {
                intervals: intervals.collect(),
            },
        });
    }
    all
}

/// Runs with what the figures are drawn from besides, and what is asked of figures.
#[derive(Debug)]
struct Small {
    records: Vec<RunRecord>,
    histograms: Vec<Vec<SampleLatency>>,
    series: Vec<Vec<SampleSeries>>,
    options: Options,
}

impl Small {
    fn new(mutator: &mut Mutator) -> Self {
        let mut records = vec![small_run(mutator)];
        // Another run of the same experiment, or of another one.
        match mutator.below(4) {
            0 => records.push(small_run(mutator)),
            1 => {
                let mut again = records[0].clone();
                again.run.seed += 1;
                again.samples.truncate(mutator.below(3));
                records.push(again);
            }
            _ => {}
        }
        let factors = &records[0].experiment.factors;
        let mut factor = || match factors.is_empty() || mutator.below(4) > 0 {
            true => None,
            false => Some(factors[mutator.below(factors.len())].clone()),
        };
        let (x, series, facet) = (factor(), factor(), factor());
        Self {
            options: Options {
                x,
                series,
                facet,
                y: (mutator.below(2) == 0).then(|| pick(mutator, &Response::ALL)),
                points: mutator.below(2) == 0,
                ..Options::default()
            },
            histograms: records.iter().map(|r| histograms(mutator, r)).collect(),
            series: records.iter().map(|r| series_of(mutator, r)).collect(),
            records,
        }
    }

    fn analysed(&self) -> Vec<AnalysedRun> {
        self.records.iter().cloned().map(AnalysedRun::of).collect()
    }

    fn latencies(&self) -> Vec<CellLatencies> {
        let of = |(record, all): (&RunRecord, &Vec<SampleLatency>)| {
            of_cells(record, all.iter().cloned().map(Ok)).unwrap_or_default()
        };
        self.records.iter().zip(&self.histograms).map(of).collect()
    }
}

#[test]
fn figures_of_hardly_anything() {
    drive("figures of small runs", Small::new, |small| {
        let (analysed, latencies) = (small.analysed(), small.latencies());
        let runs: Vec<FigureRun<'_>> = (0..analysed.len())
            .map(|i| FigureRun {
                latencies: &latencies[i],
                series: &small.series[i],
                ..FigureRun::new(["a", "b"][i], &analysed[i])
            })
            .collect();
        for kind in FigureKind::ALL.iter().copied().map(Some).chain([None]) {
            let options = Options {
                kind,
                ..small.options.clone()
            };
            if let Ok(figure) = draw(&runs, &options) {
                let svg = figure.svg();
                assert!(!svg.contains("NaN") && !svg.contains("\"inf"), "{svg}");
            }
        }
    });
}

#[test]
fn documents_of_hardly_anything() {
    drive("documents of small runs", Small::new, |small| {
        small.analysed().iter().for_each(show);
        let input = |run: AnalysedRun| Input::new("x.iolab".into(), run);
        let inputs: Vec<Input> = small.analysed().into_iter().map(input).collect();
        let report = StudyReport::new(&inputs);
        report.html().expect("a page");
        report.markdown("x").expect("Markdown");
        report.latex("x").expect("LaTeX");
    });
}

#[test]
fn exports_of_hardly_anything() {
    drive("exports of small runs", Small::new, |small| {
        let analysed = small.analysed();
        let names = small.records.iter().map(|record| RunName::of("x", record));
        let named = names.clone().zip(&small.records);
        let samples: Vec<_> = named.map(|(name, record)| (name, record, None)).collect();
        let cells: Vec<(RunName, AnalysedRun)> = names.zip(analysed.iter().cloned()).collect();
        for format in iolab::lists().formats {
            let to = &mut sink();
            match format.writer {
                Writer::Rows(format) => export::samples(&samples, format, to)
                    .and_then(|()| export::cells(&cells, to))
                    .and_then(|()| document::table(&cells, to)),
                Writer::RunsWithLatencies(write) => {
                    let all = small.records.iter().zip(&small.histograms);
                    let with = all.map(|(record, all)| {
                        let groups = of_groups(record, all.iter().cloned().map(Ok));
                        (record.clone(), groups.unwrap_or_default())
                    });
                    write(&with.collect::<Vec<_>>(), to)
                }
                Writer::Gauges(write) => write(&analysed, to),
                Writer::Judged(write) => {
                    // Most of these runs lack what a format needs.
                    let _ = write(&analysed);
                    Ok(())
                }
            }
            .expect("written");
        }
    });
}

#[test]
fn runs_of_very_many_rows() {
    const ROWS: usize = 20_000;
    drive(
        "many rows",
        |mutator| mutator.below(3),
        |what| {
            let mut record = iolab_synthetic::record("read-size", &["bs"]);
            let cells = if *what == 0 { 1_000 } else { 2 };
            for cell in 0..cells {
                let level = format!("bs={}", 512 * (cell + 1));
                iolab_synthetic::add_cell(&mut record, &[&level], &[100.0, 101.0]);
            }
            match what {
                0 => {}
                1 => {
                    let facts = (0..ROWS).map(|i| (format!("fact_{i}"), i.to_string()));
                    record.environment.extend(facts);
                }
                _ => {
                    let event = |i: usize| Event {
                        kind: EventKind::Warning,
                        message: format!("event {i}"),
                        ..Event::default()
                    };
                    record.events.extend((0..ROWS).map(event));
                }
            }
            show(&AnalysedRun::of(record));
        },
    );
}
