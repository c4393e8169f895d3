//! fio as a peer: its command line and its report. Its HOWTO explains every option and every number.

mod command;
mod import;
mod report;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use iolab_workload::Error;
use iolab_workload::Result;
use iolab_workload::operation::PerOperation;
use iolab_workload::outcome::{Outcome, Tally};
use iolab_workload::trial::TrialSpec;

use iolab_runner::peers::Peer;
use iolab_workload::settings::Tool;
use report::{Direction, FioReport};

const FIO: Tool = Tool::named("fio").expect("letters");

/// fio as a peer.
pub static PEER: Peer = Peer {
    tool: FIO,
    about: "fio, as found in PATH",
    version_option: "--version",
    // First version with `sync=dsync`.
    oldest: (3, 20),
    takes_devices: true,
    // Time for forking and summing up.
    overhead: |_| Duration::from_millis(400),
    arguments: command::arguments,
    needs: |_| Vec::new(),
    take_over,
    report: "what fio wrote with --output-format=json or json+",
    report_in,
    recognises: |text| text.contains("\"fio version\""),
    import: import::import,
    transferred: import::transferred,
};

/// The value of the last `--output` among these arguments, as fio takes it.
fn report_in(arguments: &[OsString]) -> Option<PathBuf> {
    let mut found = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let option = argument.to_str().and_then(|one| one.strip_prefix('-'));
        let option = option.map(|one| one.trim_start_matches('-'));
        match option.and_then(|one| one.strip_prefix("output")) {
            None => {}
            Some("") => found = arguments.next().map(PathBuf::from),
            Some(rest) => found = rest.strip_prefix('=').map(PathBuf::from).or(found),
        }
    }
    found
}

/// Takes over fio's result of its one group of jobs.
fn take_over(text: &str, _spec: &TrialSpec, outcome: &mut Outcome) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use iolab_runner::peers::{PeerList, report_of};

    use super::*;

    const PEERS: PeerList = &[&PEER];

    #[test]
    fn the_report_of_fio_is_its_output_argument() {
        let of = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            report_of(&words, PEERS)
        };
        let named = Some(PathBuf::from("r.json"));
        assert_eq!(of("fio --output=r.json job"), named);
        assert_eq!(of("/usr/bin/fio --output r.json job"), named);
        assert_eq!(of("fio --output-format=json --output=r.json"), named);
        assert_eq!(of("fio --output=a.json --output=r.json job"), named);
        assert_eq!(of("fio --output-format=json"), None);
        assert_eq!(of("fio output job"), None);
        assert_eq!(of("dd --output=r.json"), None);
    }
}
