//! Rows with a value in every column, all different, so that swapped columns are detected.

use std::time::Duration;

use iolab_workload::histogram::new_latency_histogram;
use iolab_workload::trial::{Allocate, Backend, Pattern, Rate, SyncPolicy, TrialLimit, TrialSpec};

use iolab_record::column::{Access, Column, Table};
use iolab_record::tables::RUN;
use iolab_record::{Arrivals, Counters, Ended, OperationSummary, PerOperation, Region};
use iolab_workload::response::Response;
use iolab_workload::settings::CellSpec;

use super::super::*;

pub(super) const ENDED: &str = "2025-11-21T10:02:00Z";

/// Texts for columns that do not take every text.
const SPECIAL: [&str; 3] = [
    "read 4096 601,write 65536 299",
    "0-3,8",
    "single_issuer,iopoll",
];

/// A row with a value in each stored column but these and the key. Each column reads the value that it wrote.
pub(super) fn filled<T: Default>(table: &Table<T>, but: &[&str]) -> T {
    let mut row = T::default();
    let columns = || {
        let stored = table.stored();
        stored.filter(|column| !column.key && !but.contains(&column.name))
    };
    let written = (0..9_000).rev().zip(columns());
    let written: Vec<String> = written
        .map(|(n, column)| write(column, &mut row, n))
        .collect();
    for (column, written) in columns().zip(written) {
        assert_eq!(value(column, &row), written, "{}", column.name);
    }
    row
}

/// Writes a value that follows from a number; returns it as text.
fn write<T>(column: &Column<T>, row: &mut T, number: u64) -> String {
    match &column.access {
        Access::Number(_, put) => put(row, number.clamp(column.bounds.0, column.bounds.1)),
        Access::Real(_, put) => put(
            row,
            match column.range.1 > 1.0 {
                true => number as f64 + 0.5,
                false => 1.0 / number as f64,
            },
        ),
        Access::Flag(_, put) => put(row, true),
        Access::Bytes(_) => unreachable!("{} is read one by one", column.name),
        Access::Text(_, put) => {
            let own = format!("{} {number}", column.name);
            let word = column.words.iter().cycle().nth(number as usize % 7);
            let texts = word
                .copied()
                .into_iter()
                .chain([own.as_str()])
                .chain(SPECIAL);
            let text = texts.into_iter().find(|text| put(row, text));
            return text.expect("a text that it takes").to_owned();
        }
        Access::Setting(setting, get, _) => return setting.get(get(row)),
    }
    value(column, row)
}

/// The value of a column as text.
fn value<T>(column: &Column<T>, row: &T) -> String {
    let found = match &column.access {
        Access::Number(get, _) => get(row).map(|number| number.to_string()),
        Access::Real(get, _) => get(row).map(|number| number.to_string()),
        Access::Flag(get, _) => get(row).map(|on| on.to_string()),
        Access::Text(get, _) => get(row).map(|text| text.into_owned()),
        Access::Bytes(get) => Some(format!("{:?}", get(row))),
        Access::Setting(setting, get, _) => Some(setting.get(get(row))),
    };
    found.unwrap_or_default()
}

/// The fields of a row that hold nothing.
pub(super) fn empty_fields(row: &impl std::fmt::Debug) -> Vec<String> {
    let text = format!("{row:#?}");
    let is_empty = |line: &&str| {
        let ends = [": 0,", ": None,", ": \"\",", ": [],", ": false,", ": {},"];
        ends.iter().any(|end| line.ends_with(end))
    };
    let lines = text.lines().map(str::trim).filter(is_empty);
    lines.map(str::to_owned).collect()
}

pub(super) fn run_row() -> Run {
    Run {
        status: RunStatus::Running,
        ended_utc: None,
        ..filled(&RUN, &[])
    }
}

pub(super) fn experiment_row() -> ExperimentRecord {
    ExperimentRecord {
        name: "mine".to_owned(),
        question: "Why?".to_owned(),
        response_group: None,
        asked: None,
        response: Response::Iops,
        toml: "name = 'mine'\n".to_owned(),
        factors: vec!["pattern".to_owned(), "bs".to_owned()],
        precision: 0.05,
        budget_ns: 60_000_000_000,
        trials_min: 5,
        trials_max: 30,
    }
}

pub(super) fn cell_row(id: i64) -> Cell {
    Cell {
        id,
        levels: vec!["rand".to_owned(), format!("{}KiB", 4 << id)],
        spec: CellSpec {
            trial: TrialSpec {
                backend: Backend::IoUring,
                pattern: Pattern::Zipf(1.2),
                bs: 4096 << id,
                offset: 4096,
                region: 1 << 29,
                threads: 2,
                depth: 32,
                read_percent: 70,
                sync: SyncPolicy::Fdatasync,
                sync_every: 3,
                allocate: Some(Allocate::Preallocated),
                verify: id == 1,
                rate: Some(Rate::Requests(5000 + id as u64)),
                arrivals: Arrivals::Poisson,
                limit: TrialLimit {
                    bytes: Some(1 << 28),
                    time: Some(Duration::from_nanos(250_000_001)),
                },
                latency: false,
                hardware_counters: true,
                sqpoll: true,
                iopoll: true,
                ..TrialSpec::default()
            },
            ..CellSpec::default()
        },
        ended_by: None,
    }
}

/// A sample whose numbers all differ; the reason for missing hardware events would replace these.
pub(super) fn sample_row(cell: i64, block: u32) -> Sample {
    Sample {
        cell,
        block,
        warmup: block == 0,
        seed: i64::MAX as u64,
        traced: filled(&STAGES, &[]).traced,
        ..filled(&SAMPLE, &["hardware_missing"])
    }
}

/// A failed trial without any counters.
pub(super) fn bare_sample(cell: i64, block: u32) -> Sample {
    let whole = sample_row(cell, block);
    Sample {
        ok: false,
        operations: PerOperation {
            read: OperationSummary::default(),
            trim: OperationSummary::default(),
            ..whole.operations
        },
        ended: Ended::Failed,
        counters: Counters::default(),
        region: Region::default(),
        rate_report: None,
        verified: None,
        traced: None,
        request_sizes: Default::default(),
        cpus_used: Default::default(),
        run_delay_ns: None,
        together: None,
        ..whole
    }
}

pub(super) fn histogram(values: &[u64]) -> LatencyHistogram {
    let mut histogram = new_latency_histogram();
    values
        .iter()
        .for_each(|value| histogram.record(*value).unwrap());
    histogram
}
