//! Run records made trial by trial, from given throughputs.

use iolab_record::environment::{Environment, KEYS};
use iolab_record::{
    Cell, ClockDomain, Counters, DeviceStat, Effective, Ended, EndedBy, ExperimentRecord,
    LatencySummary, Moved, OperationSummary, Part, PartId, PerOperation, ProcessIo, Rank,
    RankActivity, RateReport, Region, ResourceUse, Run, RunRecord, RunStatus, Sample, ServedBy,
    ServedVerdict, TargetKind,
};
use iolab_workload::response::Response;
use iolab_workload::settings::{CellSpec, Setting};
use iolab_workload::trial::{Rate, SyncPolicy, TrialSpec};

/// Experiment definition of a made-up record: blocks with one trial of each cell in random order, after a
/// warm-up.
const DEFINITION: &str = "name = 'made-up'
question = 'How does throughput depend on the I/O size?'
response = 'throughput'
";

/// A record without cells.
pub fn record(name: &str, factors: &[&str]) -> RunRecord {
    let mut environment = Environment::default();
    environment.put(&KEYS.cpu_usable_count, 2);
    RunRecord {
        run: Run {
            status: RunStatus::Done,
            tool_version: "0.1.0".to_owned(),
            started_utc: "2026-01-02T03:04:05Z".to_owned(),
            ended_utc: Some("2026-01-02T03:05:05Z".to_owned()),
            target: "/data".to_owned(),
            target_kind: TargetKind::Scratch,
            target_bytes: 1 << 30,
            seed: 7,
            clock_domain: ClockDomain::Real,
            clock_cost_ns: Some(11.0),
            clock_resolution_ns: Some(0.5),
            clock_source: "tsc".to_owned(),
            floor_ns: Some(30.0),
        },
        environment,
        experiment: ExperimentRecord {
            name: name.to_owned(),
            question: "How does throughput depend on the I/O size?".to_owned(),
            response_group: None,
            asked: None,
            response: Response::Throughput,
            toml: DEFINITION.to_owned(),
            factors: factors.iter().map(|f| (*f).to_owned()).collect(),
            precision: 0.05,
            budget_ns: 60_000_000_000,
            trials_min: 5,
            trials_max: 30,
        },
        ..RunRecord::default()
    }
}

/// Adds a cell with these levels (`bs=4KiB`) and a measured trial for each throughput, MB/s, preceded by a warm-up with an
/// unrealistic throughput. Returns its index.
pub fn add_cell(record: &mut RunRecord, levels: &[&str], mb_s: &[f64]) -> usize {
    let index = record.cells.len();
    let mut cell = Cell {
        id: index as i64,
        levels: Vec::new(),
        spec: CellSpec {
            trial: TrialSpec {
                bs: 1 << 20,
                ..TrialSpec::default()
            },
            batch_auto: false,
            ..CellSpec::default()
        },
        ended_by: Some(EndedBy::Precision),
    };
    for level in levels {
        let (factor, value) = level.split_once('=').expect("factor=level");
        // Levels need not be valid values of a setting.
        let setting = Setting::find(factor).filter(|s| s.set(&mut cell.spec, value).is_ok());
        if record.experiment.factors.iter().any(|f| f == factor) {
            let level = setting.map(|setting| setting.get(&cell.spec));
            cell.levels.push(level.unwrap_or_else(|| value.to_owned()));
        }
    }
    record.cells.push(cell);
    add_trial(record, index, 1e6, true);
    for value in mb_s {
        add_trial(record, index, *value, false);
    }
    index
}

/// Adds a trial to a cell and returns its sample, for further changes.
pub fn add_trial(record: &mut RunRecord, cell: usize, mb_s: f64, warmup: bool) -> &mut Sample {
    let block = record.samples.iter().filter(|s| s.cell == cell as i64);
    let sample = Sample {
        id: record.samples.len() as i64 + 1,
        block: block.count() as u32,
        warmup,
        ..trial(&record.cells[cell], 1000, mb_s)
    };
    record.samples.push(sample);
    record.samples.last_mut().expect("just pushed")
}

/// Latencies of which the quantiles up to 0.5, 0.9, 0.99, 0.999 and 1 are these multiples of a time, ns; the mean is the first.
pub fn latencies(ns: f64, multiples: [f64; 5]) -> LatencySummary {
    LatencySummary::from_fn(|of| {
        let quantile = of.quantile().unwrap_or_default();
        let bounds = [0.5, 0.9, 0.99, 0.999, 1.0].into_iter();
        let multiple = bounds.zip(multiples).find(|(bound, _)| quantile <= *bound);
        let ns = (ns * multiple?.1).trunc();
        of.is_always_kept().then_some(ns)
    })
}

/// A trial of a cell with this number of requests and throughput, MB/s, all transferred by the device.
pub fn trial(cell: &Cell, requests: u64, mb_s: f64) -> Sample {
    let bytes = requests * cell.trial().bs;
    let elapsed_ns = (bytes as f64 * 1e3 / mb_s) as u64;
    let reads = requests * u64::from(cell.spec.trial.read_percent) / 100;
    let p50 = elapsed_ns * cell.trial().in_flight_of_all() / requests;
    let done = |requests: u64| OperationSummary {
        requests,
        bytes: requests * cell.trial().bs,
        latency: (requests > 0).then(|| latencies(p50 as f64, [1.0, 2.0, 3.0, 4.0, 5.0]).into()),
        ..OperationSummary::default()
    };
    let operations = PerOperation {
        read: done(reads),
        write: done(requests - reads),
        ..PerOperation::default()
    };
    let (read, written) = (operations.read.bytes, operations.write.bytes);
    Sample {
        group: 0,
        client: 0,
        start_ns: 0,
        id: 0,
        cell: cell.id,
        block: 0,
        position: 0,
        warmup: false,
        ok: true,
        started_utc: "2026-01-02T03:04:05Z".to_owned(),
        operations,
        unsplit: Moved::default(),
        errors: 0,
        failure: None,
        ended: Ended::Done,
        elapsed_ns,
        all_active_ns: elapsed_ns,
        in_flight: None,
        together: None,
        drives: Vec::new(),
        end_sync_ns: 0,
        paused_ns: 0,
        wall_ns: elapsed_ns + 1_000_000,
        clock_drift_ppm: Some(0.5),
        seed: 99,
        counters: Counters {
            usage: ResourceUse {
                user_ns: requests * 200,
                system_ns: requests * 800,
                minor_faults: 3,
                voluntary_switches: requests,
                involuntary_switches: 2,
                ..ResourceUse::default()
            },
            process_io: Some(ProcessIo {
                rchar: read,
                wchar: written,
                syscr: reads,
                syscw: requests - reads,
                read_bytes: read,
                write_bytes: written,
            }),
            device: Some(DeviceStat {
                read_ios: reads,
                read_bytes: read,
                write_ios: requests - reads,
                write_bytes: written,
                busy_ms: elapsed_ns / 1_000_000,
                ..DeviceStat::default()
            }),
            ..Counters::default()
        },
        region: Region {
            // Data left in a cache is written out before the next trial.
            owed_sync_ns: (written > 0 && cell.spec.trial.sync == SyncPolicy::None)
                .then_some(elapsed_ns / 100),
            ..Region::default()
        },
        rate_report: None,
        verified: None,
        traced: None,
        request_sizes: Default::default(),
        cpus_used: Default::default(),
        run_delay_ns: None,
        effective: Effective::default(),
        verdict: ServedVerdict {
            served_by: ServedBy::Device,
            device_fraction: Some(1.0),
            reason: "the device carried all bytes".to_owned(),
        },
    }
}

/// Makes a cell open-loop: its requests were late by half of their service time, and `left` of them were not
/// issued.
pub fn rate_report(record: &mut RunRecord, cell: usize, rate: u64, left: u64) {
    record.cells[cell].spec.trial.rate = Some(Rate::Requests(rate));
    for sample in record.samples.iter_mut().filter(|s| s.cell == cell as i64) {
        let made = sample.requests();
        // The last request completes when the schedule ends.
        sample.elapsed_ns = ((made + left) as f64 * 1e9 / rate as f64) as u64;
        sample.rate_report = Some(RateReport {
            rate_wanted: rate as f64,
            rate_achieved: rate as f64 * made as f64 / (made + left) as f64,
            backlog_max: left + 1,
            backlog_end: left,
        });
        for done in sample.operations.as_mut().into_values() {
            done.response = done.latency.as_ref().map(|service| times(service, 1.5));
            done.lateness = done.latency.as_ref().map(|service| times(service, 0.5));
        }
    }
}

/// Makes a cell open-loop with this median response time, ms. The trials with their number in `behind` reached
/// half of the rate, and left half a second's requests unissued.
pub fn rate_behind(
    record: &mut RunRecord,
    cell: usize,
    (rate, ms): (u64, u64),
    behind: impl Fn(usize) -> bool,
) {
    rate_report(record, cell, rate, 0);
    let of_cell = record.samples.iter_mut().filter(|s| s.cell == cell as i64);
    for (trial, sample) in of_cell.enumerate() {
        if let Some(times) = &mut sample.operations.read.response {
            times[Response::Latency] = Some((ms * 1_000_000 + trial as u64) as f64);
        }
        if let (true, Some(report)) = (behind(trial), &mut sample.rate_report) {
            report.rate_achieved = rate as f64 / 2.0;
            report.backlog_end = rate / 2;
        }
    }
}

fn times(latency: &LatencySummary, factor: f64) -> Box<LatencySummary> {
    latency.map(|ns| Some((ns? * factor).trunc())).into()
}

/// Sets the verdict of every trial of a cell.
pub fn serve(record: &mut RunRecord, cell: usize, served_by: ServedBy, reason: &str) {
    let fraction = match served_by {
        ServedBy::Device => Some(1.0),
        ServedBy::Mixed => Some(0.37),
        ServedBy::PageCache | ServedBy::Hole | ServedBy::NotStorage => Some(0.0),
        ServedBy::Model | ServedBy::Network | ServedBy::Unknown => None,
    };
    for sample in record.samples.iter_mut().filter(|s| s.cell == cell as i64) {
        sample.verdict = ServedVerdict {
            served_by,
            device_fraction: fraction,
            reason: reason.to_owned(),
        };
    }
}

/// Eight trials within 1 % of a throughput, without a trend.
pub fn around(mb_s: f64) -> Vec<f64> {
    [-1.0, 0.1, 0.7, 0.4, 1.0, -0.7, -0.1, -0.4]
        .iter()
        .map(|percent| mb_s * (1.0 + percent / 100.0))
        .collect()
}

/// A curve over I/O sizes with eight trials each.
pub fn size_curve(name: &str, points: &[(&str, f64)]) -> RunRecord {
    let mut record = record(name, &["bs"]);
    for (size, mb_s) in points {
        add_cell(&mut record, &[&format!("bs={size}")], &around(*mb_s));
    }
    record
}

/// Divides every sample among ranks, each on its own host: all transfer the same bytes, at these relative speeds.
pub fn by_ranks(record: &mut RunRecord, speeds: &[f64]) {
    let hosts = speeds.iter().zip(0..);
    record.ranks = hosts
        .map(|(_, id)| Rank {
            id,
            host: id,
            name: format!("node{id:02}"),
        })
        .collect();
    let slowest = speeds.iter().copied().fold(f64::INFINITY, f64::min);
    let fastest = speeds.iter().copied().fold(0.0, f64::max);
    for sample in &mut record.samples {
        let each = sample.operations.read.bytes / speeds.len() as u64;
        let elapsed = sample.elapsed_ns as f64;
        let active = elapsed * slowest / fastest;
        let mut moved = 0.0;
        for (speed, rank) in speeds.iter().zip(0..) {
            let own = elapsed * slowest / speed;
            moved += each as f64 * active / own;
            record.parts.push(Part {
                sample: sample.id,
                id: PartId {
                    rank,
                    ..PartId::default()
                },
                elapsed_ns: own as u64,
                done: PerOperation {
                    read: Moved {
                        bytes: each,
                        ..Moved::default()
                    },
                    ..PerOperation::default()
                },
                ..Part::default()
            });
        }
        record
            .client_samples
            .extend(speeds.iter().zip(0..).map(|(speed, rank)| {
                let mut own = Sample {
                    client: rank,
                    elapsed_ns: (elapsed * slowest / speed) as u64,
                    ..sample.clone()
                };
                own.operations.read.bytes = each;
                own.operations.read.requests /= speeds.len() as u64;
                own
            }));
        sample.in_flight = Some(speeds.len() as f64);
        sample.all_active_ns = active as u64;
        sample.together = Some(RankActivity {
            elapsed_error_ns: sample.elapsed_ns / 1000,
            start_skew_ns: 2000,
            start_skew_error_ns: 500,
            all_active_least_bytes: (moved * 0.999) as u64,
            all_active_most_bytes: (moved * 1.001) as u64,
        });
    }
    record.span_ranks();
}

/// Runs of two cells around these throughputs, MB/s, one a day.
pub fn daily_runs(mb_s: &[f64]) -> Vec<RunRecord> {
    let run = |(day, mb_s): (usize, &f64)| {
        let mut run = record("read-size", &["bs"]);
        add_cell(&mut run, &["bs=4KiB"], &around(*mb_s));
        // The second cell has its own scatter.
        let other = 5.0 * mb_s * (1.0 + 0.01 * (day as f64 * 2.4).sin());
        add_cell(&mut run, &["bs=64KiB"], &around(other));
        run.run.started_utc = format!("2026-01-{:02}T03:04:05Z", day + 1);
        run.run.seed = day as u64;
        run
    };
    mb_s.iter().enumerate().map(run).collect()
}

/// Throughputs of ten runs, MB/s, within 2 % of 100.
pub const STEADY_MB_S: [f64; 10] = [
    100.0, 101.2, 99.1, 100.4, 98.9, 101.8, 99.6, 100.9, 98.4, 100.2,
];

/// A run that is later than all of [`daily_runs`].
pub fn later_run(mb_s: f64) -> RunRecord {
    let mut run = daily_runs(&[mb_s]).remove(0);
    run.run.started_utc = "2026-02-01T00:00:00Z".to_owned();
    run
}
