//! IOzone in throughput mode (`-T`): its command line and its output.

mod command;
mod import;
pub mod report;

use std::path::PathBuf;
use std::time::Duration;

use iolab_workload::Error;
use iolab_workload::Result;
use iolab_workload::counters::Counters;
use iolab_workload::operation::PerOperation;
use iolab_workload::outcome::{Outcome, Tally};
use iolab_workload::trial::{Pattern, TrialSpec};

use super::{CommandLine, Need, Peer, Results};
use iolab_workload::tool::Tool;
use report::{IozoneReport, IozoneResult, IozoneTest};

const NAME: &str = "iozone";
const IOZONE: Tool = Tool::named(NAME).expect("letters");

/// IOzone as a peer.
pub struct Iozone;

impl Peer for Iozone {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tool(&self) -> Tool {
        IOZONE
    }

    fn about(&self) -> &'static str {
        "IOzone in throughput mode"
    }

    fn version_option(&self) -> &'static str {
        "-v"
    }

    fn overhead(&self, spec: &TrialSpec) -> Duration {
        // IOzone sleeps for about two seconds at its start and at each of its tests. Random writes are the
        // third of three.
        let seconds = match (spec.writes(), spec.pattern) {
            (_, Pattern::Seq) => 4.2,
            (true, _) => 12.3,
            (false, _) => 6.2,
        };
        Duration::from_secs_f64(seconds)
    }

    fn oldest(&self) -> (u32, u32) {
        // First version that reads foreign files (`-+E`) and leaves the length of existing ones alone (`-+N`).
        (3, 432)
    }

    fn takes_devices(&self) -> bool {
        false
    }

    fn arguments(&self, spec: &TrialSpec, files: &[PathBuf]) -> CommandLine {
        command::arguments(spec, files)
    }

    fn needs(&self, specs: &[&TrialSpec]) -> Vec<Need> {
        command::needs(specs)
    }

    fn take_over(&self, text: &str, spec: &TrialSpec, outcome: &mut Outcome) -> Result<()> {
        take_over(text, spec, outcome)
    }

    fn report(&self) -> &'static str {
        "iozone's standard output"
    }

    fn recognises(&self, text: &str) -> bool {
        text.contains("ozone") || text.contains("Children see")
    }

    fn import(&self, text: &str) -> Result<Results> {
        import::import(text)
    }
}

/// Takes over IOzone's result of the cell's test.
fn take_over(text: &str, spec: &TrialSpec, outcome: &mut Outcome) -> Result<()> {
    let report = IozoneReport::parse(text)?;
    let row = result(&report, spec)?;
    if report.rows.len() > 1 {
        forget_counts(&mut outcome.counters);
        outcome.effective.note =
            "(what was counted is of all its tests together, and is left out)".to_owned();
    }
    let done = Tally {
        requests: spec.region / spec.bs,
        bytes: spec.region,
        ..Tally::default()
    };
    outcome.operations = PerOperation::default();
    match row.test.writes() {
        true => outcome.operations.write = done,
        false => outcome.operations.read = done,
    }
    outcome.elapsed_ns = (spec.region as f64 * 1e9 / row.bytes_per_s) as u64;
    Ok(())
}

/// The one result of the cell.
fn result(report: &IozoneReport, spec: &TrialSpec) -> Result<IozoneResult> {
    let test = wanted(spec);
    let mut rows = report.rows.iter().filter(|row| row.test == test);
    let (Some(row), None) = (rows.next(), rows.next()) else {
        return Err(Error::usage(format!(
            "of its {} results not exactly one is of the test that was started",
            report.rows.len()
        )));
    };
    let told = (row.threads, row.record_bytes, row.file_bytes);
    if told != (spec.threads, spec.bs, spec.private_bytes(0)) {
        return Err(Error::usage(
            "it reports other threads, records or files than requested",
        ));
    }
    Ok(*row)
}

/// Test whose result is the cell's.
fn wanted(spec: &TrialSpec) -> IozoneTest {
    match (spec.writes(), spec.pattern == Pattern::Seq) {
        (true, true) => IozoneTest::Write,
        (true, false) => IozoneTest::RandomWrite,
        (false, true) => IozoneTest::Read,
        (false, false) => IozoneTest::RandomRead,
    }
}

/// Counts over several tests mean nothing for one.
fn forget_counts(counters: &mut Counters) {
    *counters = Counters {
        pressure: counters.pressure,
        ..Counters::default()
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\tFile size set to 1024 kB\n\tRecord Size 4 kB\n\tChildren see throughput for  4 initial writers \t=  100000.00 kB/sec\n\tChildren see throughput for 4 random readers \t=   50000.00 kB/sec\n\tChildren see throughput for 4 random writers \t=   40960.00 kB/sec\n";

    fn asked() -> TrialSpec {
        TrialSpec {
            read_percent: 0,
            pattern: Pattern::Rand,
            threads: 4,
            region: 4 << 20,
            ..TrialSpec::default()
        }
    }

    #[test]
    fn result_of_the_requested_test_counts() {
        let report = IozoneReport::parse(OUTPUT).expect("a report");
        let row = result(&report, &asked()).expect("a result");
        assert_eq!(
            (row.test, row.bytes_per_s),
            (IozoneTest::RandomWrite, 40960.0 * 1024.0)
        );
    }

    #[test]
    fn results_of_other_settings_are_rejected() {
        let report = IozoneReport::parse(OUTPUT).expect("a report");
        let threads = TrialSpec {
            threads: 2,
            ..asked()
        };
        let read = TrialSpec {
            read_percent: 100,
            pattern: Pattern::Seq,
            ..asked()
        };
        for spec in [threads, read] {
            result(&report, &spec).expect_err("of no use");
        }
        let twice = IozoneReport::parse(&OUTPUT.repeat(2)).expect("a report");
        result(&twice, &asked()).expect_err("twice");
    }
}
