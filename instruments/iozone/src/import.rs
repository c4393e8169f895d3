//! Reports of IOzone: its tests by name.

use iolab_workload::Result;
use iolab_workload::trial::{CacheState, FileLayout, Pattern, SyncPolicy, TrialSpec};

use super::IOZONE;
use super::report::{IozoneReport, IozoneResult, IozoneTest};
use iolab_record::{OperationSummary, Sample};
use iolab_runner::peers::{PeerResult, Results};
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
pub(super) fn transferred(text: &str) -> Result<Vec<Sample>> {
    let entries = import(text)?.entries.into_iter();
    Ok(entries.map(|entry| entry.sample).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iozone_tests_become_cells_first_passes_warm_ups() {
        let text = "\tIozone: Performance Test of File I/O\n\tVersion $Revision: 3.489 $\n\tFile size set to 4096 kB\n\tRecord Size 64 kB\n\
            \tChildren see throughput for  2 readers \t= 1000.00 kB/sec\n\tChildren see throughput for 2 re-readers \t= 2000.00 kB/sec\n\
            \tChildren see throughput for 2 random writers \t= 500.00 kB/sec\n";
        let entries = import(text).expect("a report").entries.into_iter();
        let told = entries.map(|PeerResult { cell, sample, .. }| {
            let mb_s = |done: OperationSummary| done.bytes as f64 * 1e3 / sample.elapsed_ns as f64;
            let (read, write) = (sample.operations.read, sample.operations.write);
            let (pattern, warmup) = (cell.trial.pattern, sample.warmup);
            format!("{pattern} {:.3} {:.3} {warmup}", mb_s(read), mb_s(write))
        });
        let wanted = [
            "seq 1.024 0.000 true", "seq 2.048 0.000 false", "rand 0.000 0.512 false",
        ];
        assert_eq!(told.collect::<Vec<_>>(), wanted);
        let error = import("iozone test complete.").expect_err("no result");
        assert!(error.remedy().is_some(), "{error}");
    }
}
