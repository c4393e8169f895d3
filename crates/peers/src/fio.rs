//! fio: its command line and its report. Its HOWTO explains every option and every number.

mod command;
mod import;
pub mod report;

use std::path::PathBuf;
use std::time::Duration;

use iolab_workload::Error;
use iolab_workload::Result;
use iolab_workload::operation::PerOperation;
use iolab_workload::outcome::{Outcome, Tally};
use iolab_workload::trial::TrialSpec;

use super::{CommandLine, Need, Peer, Results, Transferred};
use iolab_workload::settings::Tool;
use report::{Direction, FioReport};

const NAME: &str = "fio";
const FIO: Tool = Tool::named(NAME).expect("letters");

/// fio as a peer.
pub struct Fio;

impl Peer for Fio {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tool(&self) -> Tool {
        FIO
    }

    fn about(&self) -> &'static str {
        "fio, as found in PATH"
    }

    fn version_option(&self) -> &'static str {
        "--version"
    }

    fn overhead(&self, _spec: &TrialSpec) -> Duration {
        // Time for forking and summing up.
        Duration::from_millis(400)
    }

    fn oldest(&self) -> (u32, u32) {
        // First version with `sync=dsync`.
        (3, 20)
    }

    fn takes_devices(&self) -> bool {
        true
    }

    fn arguments(&self, spec: &TrialSpec, files: &[PathBuf]) -> CommandLine {
        command::arguments(spec, files)
    }

    fn needs(&self, _specs: &[&TrialSpec]) -> Vec<Need> {
        Vec::new()
    }

    fn take_over(&self, text: &str, _spec: &TrialSpec, outcome: &mut Outcome) -> Result<()> {
        take_over(text, outcome)
    }

    fn report(&self) -> &'static str {
        "what fio wrote with --output-format=json or json+"
    }

    fn recognises(&self, text: &str) -> bool {
        text.contains("\"fio version\"")
    }

    fn import(&self, text: &str) -> Result<Results> {
        import::import(text)
    }

    fn transferred(&self, text: &str) -> Result<Transferred> {
        import::transferred(text)
    }
}

/// Takes over fio's result of its one group of jobs.
fn take_over(text: &str, outcome: &mut Outcome) -> Result<()> {
    let report = FioReport::parse(text)?;
    let [job] = report.jobs.as_slice() else {
        return Err(Error::usage(format!(
            "it reports {} groups of jobs, but one was started",
            report.jobs.len()
        )));
    };
    if job.error != 0 {
        return Err(Error::usage(format!("it reports error {}", job.error)));
    }
    if job.elapsed_ns() == 0 {
        return Err(Error::usage(
            "it ended within a millisecond, which is fio's unit of time: give the trial more bytes or time",
        ));
    }
    let tally = |direction: &Direction| Tally {
        requests: direction.total_ios,
        bytes: direction.io_bytes,
        short_transfers: direction.short_ios,
        latency: direction.times().histogram(),
        waits: None,
    };
    outcome.operations = PerOperation {
        read: tally(&job.read),
        write: tally(&job.write),
        sync: Tally {
            requests: job.sync.count(),
            latency: job.sync.lat_ns.histogram(),
            ..Tally::default()
        },
        trim: tally(&job.trim),
    };
    outcome.elapsed_ns = job.elapsed_ns();
    // CPU time of the workers alone, as for iolab: without the start of the program.
    outcome.counters.usage.user_ns = job.cpu_ns(job.usr_cpu);
    outcome.counters.usage.system_ns = job.cpu_ns(job.sys_cpu);
    Ok(())
}
