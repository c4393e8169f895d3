//! The JSON of Google Benchmark, which its `tools/compare.py` reads: one entry per measured trial, then what it
//! calls aggregates.
//!
//! Source: `src/json_reporter.cc` and `docs/tools.md` of google/benchmark, schema version 1. Its time is that of one
//! iteration, here of one request (of the whole program where a program is run). Its label says where the bytes came from.

use std::io::{self, Write};

use iolab_record::environment::KEYS;
use iolab_record::{Cell, RunRecord, Sample};
use iolab_stats::{Summary, summary};
use serde_json::{Value, json};

use iolab_workload::escape_control::escape_control;

/// Writes the measured trials of all runs.
///
/// # Errors
/// When the output cannot be written.
pub fn runs(records: &[RunRecord], to: &mut dyn Write) -> io::Result<()> {
    let cells = records.iter().flat_map(|record| {
        let cells = record.measured();
        cells.map(move |(cell, trials)| (name(record, cell), cell, trials))
    });
    let entries: Vec<Value> = cells
        .enumerate()
        .flat_map(|(family, (name, cell, trials))| entries(&name, cell, &trials, family))
        .collect();
    let whole = json!({ "context": context(records), "benchmarks": entries });
    serde_json::to_writer_pretty(&mut *to, &whole)?;
    writeln!(to)
}

/// Facts about the machine, from the first run.
fn context(records: &[RunRecord]) -> Value {
    let cpus = records
        .first()
        .and_then(|r| r.environment.get(&KEYS.cpu_usable_count));
    json!({
        "date": records.first().map(|r| r.run.started_utc.as_str()),
        // Run files do not store it.
        "host_name": null,
        "executable": "iolab",
        "num_cpus": cpus,
        "library_version": records.first().map(|r| r.run.tool_version.as_str()),
        "library_build_type": "release",
        "json_schema_version": 1,
    })
}

fn entries(name: &str, cell: &Cell, trials: &[&Sample], family: usize) -> Vec<Value> {
    let base = |run_type: &str, iterations: u64| {
        json!({
            "name": name,
            "family_index": family,
            "per_family_instance_index": 0,
            "run_name": name,
            "run_type": run_type,
            "repetitions": trials.len(),
            "threads": cell.trial().workers(),
            "iterations": iterations,
            "time_unit": "ns",
        })
    };
    let trial = |(index, sample): (usize, &&Sample)| {
        let mut entry = base("iteration", iterations(cell, sample));
        entry["repetition_index"] = index.into();
        entry["label"] = sample.verdict.served_by.name().into();
        for (key, of) in MEASURES {
            entry[key] = of(cell, sample).into();
        }
        entry
    };
    let summaries = MEASURES.map(|(key, of)| {
        let values: Vec<f64> = trials.iter().map(|s| of(cell, s)).collect();
        (key, summary(&values))
    });
    let aggregate = |(aggregate, unit, of): (&str, &str, Statistic)| {
        let mut entry = base("aggregate", trials.len() as u64);
        entry["name"] = format!("{name}_{aggregate}").into();
        entry["aggregate_name"] = aggregate.into();
        entry["aggregate_unit"] = unit.into();
        for (key, summary) in &summaries {
            let value = summary.as_ref().and_then(of);
            entry[*key] = value.filter(|v| v.is_finite())?.into();
        }
        Some(entry)
    };
    let entries = trials.iter().enumerate().map(trial);
    entries
        .chain(AGGREGATES.into_iter().filter_map(aggregate))
        .collect()
}

type Statistic = fn(&Summary) -> Option<f64>;

const AGGREGATES: [(&str, &str, Statistic); 4] = [
    ("mean", "time", |s| s.mean),
    ("median", "time", |s| Some(s.median)),
    ("stddev", "time", |s| s.sd),
    ("cv", "percentage", |s| {
        s.sd.zip(s.mean).map(|(sd, mean)| sd / mean)
    }),
];

type Measure = fn(&Cell, &Sample) -> f64;

const MEASURES: [(&str, Measure); 4] = [
    ("real_time", |cell, s| {
        s.elapsed_ns as f64 / iterations(cell, s) as f64
    }),
    ("cpu_time", |cell, s| {
        s.cpu_ns() as f64 / iterations(cell, s) as f64
    }),
    ("bytes_per_second", |_, s| 1e6 * s.throughput_mb_s()),
    ("items_per_second", |_, s| s.iops()),
];

/// The divisor of its time.
fn iterations(cell: &Cell, sample: &Sample) -> u64 {
    match cell.program() {
        Some(_) => 1,
        None => sample.requests().max(1),
    }
}

/// `read-size/bs:4KiB/threads:1`, as Google Benchmark names arguments.
fn name(record: &RunRecord, cell: &Cell) -> String {
    let levels = record.experiment.factors.iter().zip(&cell.levels);
    levels.fold(
        escape_control(&record.experiment.name).into_owned(),
        |name, (factor, level)| {
            format!(
                "{name}/{}:{}",
                escape_control(factor),
                escape_control(level)
            )
        },
    )
}
