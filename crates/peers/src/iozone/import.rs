//! Reports of IOzone: its tests by name.

use iolab_workload::Result;
use iolab_workload::trial::{CacheState, FileLayout, Pattern, SyncPolicy, TrialSpec};

use super::IOZONE;
use super::report::{IozoneReport, IozoneResult, IozoneTest};
use crate::{PeerResult, Results, Transferred};
use iolab_record::{OperationSummary, Sample};
use iolab_workload::settings::CellSpec;

/// Parses a report. Of two passes of one kind the first is a warm-up, as everywhere in iolab.
pub(super) fn import(text: &str) -> Result<Results> {
    let report = IozoneReport::parse(text)?;
    let entries = report.rows.iter().map(|row| entry(&report, row));
    let entries: Vec<PeerResult> = entries.collect();
    let mut notes = vec![
        Results::note_on_samples("test", &entries),
        "of write and rewrite, and of read and reread, the first is a warm-up".to_owned(),
    ];
    if !report.direct {
        notes.push(
            "without -I its tests find what the one before left in the page cache: cache=hot"
                .to_owned(),
        );
    }
    if !report.left_out.is_empty() {
        notes.push(format!("left out: {}", report.left_out.join(", ")));
    }
    Ok(Results {
        tool: IOZONE,
        version: format!("iozone-{}", report.version),
        measured_utc: None,
        target: target(&report.command),
        host: None,
        entries,
        notes,
    })
}

/// File named in a command line.
fn target(command: &str) -> Option<String> {
    let mut words = command.split_whitespace();
    words.find(|word| *word == "-f")?;
    words.next().map(str::to_owned)
}

fn entry(report: &IozoneReport, row: &IozoneResult) -> PeerResult {
    let bytes = row
        .file_bytes
        .saturating_mul(u64::from(row.threads))
        .min(1 << 60);
    let done = OperationSummary {
        requests: bytes / row.record_bytes,
        bytes,
        ..OperationSummary::default()
    };
    let again = match row.test {
        IozoneTest::Write => Some(IozoneTest::Rewrite),
        IozoneTest::Read => Some(IozoneTest::Reread),
        _ => None,
    };
    let like = |other: &&IozoneResult| {
        let sizes = |row: &IozoneResult| (row.threads, row.file_bytes, row.record_bytes);
        again == Some(other.test) && sizes(other) == sizes(row)
    };
    let mut sample = Sample {
        warmup: report.rows.iter().any(|other| like(&other)),
        elapsed_ns: (bytes as f64 * 1e9 / row.bytes_per_s).min((1u64 << 60) as f64) as u64,
        ..Sample::default()
    };
    match row.test.writes() {
        true => sample.operations.write = done,
        false => sample.operations.read = done,
    }
    sample.effective.command = Some(report.command.clone());
    PeerResult {
        cell: cell(report, row, bytes),
        sample,
        histograms: Vec::new(),
    }
}

/// Transfers of the tests in a report.
pub(super) fn transferred(text: &str) -> Result<Transferred> {
    let results = import(text)?;
    let samples = results.entries.into_iter().map(|entry| entry.sample);
    Ok((results.tool, samples.collect()))
}

fn cell(report: &IozoneReport, row: &IozoneResult, region: u64) -> CellSpec {
    // The options apply to all tests, so cells differ only in their results.
    let sync = match (report.osync, report.end_sync) {
        (true, _) => SyncPolicy::Osync,
        (false, true) => SyncPolicy::End,
        (false, false) => SyncPolicy::None,
    };
    CellSpec {
        trial: TrialSpec {
            bs: row.record_bytes,
            region,
            threads: row.threads,
            pattern: match row.test.is_random() {
                true => Pattern::Rand,
                false => Pattern::Seq,
            },
            read_percent: if row.test.writes() { 0 } else { 100 },
            sync,
            cache: match report.direct {
                true => CacheState::Direct,
                false => CacheState::Hot,
            },
            layout: match report.rows.iter().any(|row| row.threads > 1) {
                true => FileLayout::Private,
                false => FileLayout::Shared,
            },
            ..TrialSpec::default()
        },
        batch_auto: false,
        tool: IOZONE,
        ..CellSpec::default()
    }
}
