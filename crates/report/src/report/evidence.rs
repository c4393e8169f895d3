//! Counters of the kernel around the trials of each cell, next to the requests of the trials.

use std::collections::BTreeMap;

use iolab_analysis::analysis::{Analysis, CellAnalysis, CellServed, Response};
use iolab_figure::labels;
use iolab_record::{ResourceUse, RunRecord, Sample};
use iolab_stats::median;
use iolab_workload::units::{format_ns, format_percent, significant};

use super::clean;
use crate::block::Table;
use crate::layout::{columns_over, level_columns, none};

/// Part of the bytes of the requests from which a factor is shown, since it would round to more than 100 %.
const PART_MAX: f64 = 1.005;

/// The table, with one row for each cell.
pub(super) fn table(record: &RunRecord, analysis: &Analysis) -> Table {
    let exceeds = |part: fn(&Sample) -> Option<f64>| {
        let mut measured = record.samples.iter().filter(|s| s.is_measured());
        measured.any(|sample| part(sample).is_some_and(|part| part >= PART_MAX))
    };
    let notes = [
        (
            true,
            "by process and by device: the bytes that the process's account and the device's counters show, over the bytes of the requests",
        ),
        (
            exceeds(written_by_process),
            "the account counts a large folio of the page cache as a whole once a part of it is written",
        ),
        (
            exceeds(by_device),
            "a device that carried several times as much was read ahead of the requests, or used by others",
        ),
        (
            true,
            "faults (minor, major) and switches (voluntary, involuntary) per trial",
        ),
        (
            true,
            "CPU: user and kernel time per request, and over the elapsed time",
        ),
    ];
    let notes = notes.iter().filter(|(is_shown, _)| *is_shown);
    let notes = notes.map(|(_, note)| (*note).to_owned());
    let mut samples: BTreeMap<i64, Vec<&Sample>> = BTreeMap::new();
    for sample in record.samples.iter().filter(|s| s.is_measured()) {
        samples.entry(sample.cell).or_default().push(sample);
    }
    let rows: Vec<EvidenceRow> = analysis
        .cells
        .iter()
        .map(|cell| EvidenceRow {
            cell,
            trials: samples.get(&cell.cell.id).map_or(&[][..], Vec::as_slice),
        })
        .collect();
    let column = columns_over(&rows);
    let levels = rows.iter().map(|row| row.cell.cell.levels.as_slice());
    let mut columns = level_columns(&analysis.factors, levels);
    columns.extend([
        column("served by", 0, &|row| row.of_source(labels::served)).left(),
        column("by process", 0, &|row| row.part(by_process)),
        column("by device", 0, &|row| row.part(by_device)),
        column("faults", 0, &|row| {
            row.two(|of| of.minor_faults, |of| of.major_faults)
        }),
        column("switches", 0, &|row| {
            row.two(|of| of.voluntary_switches, |of| of.involuntary_switches)
        }),
        column("CPU per request", 0, &|row| {
            row.cell.median(Response::Cpu).map_or_else(none, format_ns)
        }),
        column("CPU", 0, &|row| row.share(cpu)),
        column("why", 0, &|row| {
            row.of_source(|served| clean(&served.reason))
        })
        .left(),
    ]);
    Table::new("Medians over the measured trials", notes, columns)
}

/// A cell and its measured trials.
struct EvidenceRow<'a> {
    cell: &'a CellAnalysis,
    trials: &'a [&'a Sample],
}

impl EvidenceRow<'_> {
    fn median(&self, value: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.trials.iter().filter_map(|s| value(s)).collect();
        median(&values)
    }

    fn share(&self, value: impl Fn(&Sample) -> Option<f64>) -> String {
        self.median(value).map_or_else(none, format_percent)
    }

    /// `98.5 %`, or `1.53 times` where the device carried more.
    fn part(&self, value: impl Fn(&Sample) -> Option<f64>) -> String {
        match self.median(&value) {
            Some(part) if part >= PART_MAX => format!("{} times", significant(part)),
            _ => self.share(value),
        }
    }

    fn of_source(&self, text: impl Fn(&CellServed) -> String) -> String {
        self.cell.served.as_ref().map_or_else(none, text)
    }

    fn two(&self, first: fn(&ResourceUse) -> u64, second: fn(&ResourceUse) -> u64) -> String {
        let of =
            |count: fn(&ResourceUse) -> u64| self.median(|s| Some(count(&s.counters.usage) as f64));
        match of(first).zip(of(second)) {
            Some((first, second)) => format!("{}, {}", times(first), times(second)),
            None => none(),
        }
    }
}

/// Formats a median of counts, which can lie between two counts.
fn times(count: f64) -> String {
    if count.fract() == 0.0 {
        format!("{count:.0}")
    } else {
        significant(count)
    }
}

fn by_process(sample: &Sample) -> Option<f64> {
    let io = sample.counters.process_io?;
    over_bytes(io.read_bytes as f64 + io.write_bytes as f64, sample)
}

fn written_by_process(sample: &Sample) -> Option<f64> {
    over_bytes(sample.counters.process_io?.write_bytes as f64, sample)
}

fn by_device(sample: &Sample) -> Option<f64> {
    let device = sample.counters.device?;
    over_bytes(device.read_bytes as f64 + device.write_bytes as f64, sample)
}

fn over_bytes(part: f64, sample: &Sample) -> Option<f64> {
    (sample.bytes() > 0).then(|| part / sample.bytes() as f64)
}

fn cpu(sample: &Sample) -> Option<f64> {
    (sample.elapsed_ns > 0).then(|| sample.cpu_ns() as f64 / sample.elapsed_ns as f64)
}
