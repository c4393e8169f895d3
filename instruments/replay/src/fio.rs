//! fio, as it replays the same requests from an iolog of version 3.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_engine::list::ListedRequest;
use iolab_host::clock::Clock;
use iolab_host::program::{Arguments, Program, run};
use iolab_runner::peers::find_program;
use iolab_storage::Target;
use iolab_workload::outcome::Ended;
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::trace::{Access, format};

/// First version that reads an iolog of version 3.
const OLDEST: (u32, u32) = (3, 31);
/// Most bytes that it may print.
const OUTPUT_MAX: usize = 1 << 20;
/// Its time for starting and ending.
const START: Duration = Duration::from_secs(30);
/// Times the span of the trace that it may take.
const SLOWER_MAX: u32 = 20;

/// The user's fio.
pub(crate) struct Fio {
    path: PathBuf,
    pub(crate) version: String,
}

impl Fio {
    /// The fio in `PATH`.
    ///
    /// # Errors
    /// Of kind usage: there is none, or it is too old.
    pub(crate) fn find(clock: &Clock, stop: &AtomicBool) -> Result<Self> {
        let (path, version) = find_program("fio", "--version", OLDEST, START, clock, stop)?;
        Ok(Self { path, version })
    }

    /// Replays requests on a target.
    ///
    /// # Errors
    /// It cannot be started, or fails; the user's interrupt.
    pub(crate) fn replay(
        &self,
        requests: &[ListedRequest],
        spec: &TrialSpec,
        target: &Target,
        clock: &Clock,
        stop: &AtomicBool,
    ) -> Result<()> {
        let lent = target.lend(spec.writes())?;
        let log = log(requests, &lent.given().display().to_string())
            .map_err(|error| Error::failed(format!("no iolog for fio in memory: {error}")))?;
        let log_name = format!("/proc/{}/fd/{}", std::process::id(), log.as_raw_fd());
        let readonly = (!spec.writes()).then(|| "--readonly".to_owned());
        let words = [
            "--output-format=terse".to_owned(),
            "--eta=never".to_owned(),
            "--name=replay".to_owned(),
            "--ioengine=libaio".to_owned(),
            "--direct=1".to_owned(),
            format!("--iodepth={}", spec.depth),
            format!("--read_iolog={log_name}"),
        ];
        let words: Vec<OsString> = readonly.into_iter().chain(words).map(Into::into).collect();
        let span = Duration::from_nanos(requests.last().map_or(0, |last| last.at_ns));
        let program = Program {
            path: self.path.clone(),
            arguments: Arguments::naming(vec![lent], |_| Ok::<_, Error>(words.clone()))?,
            time_limit: Some(span * SLOWER_MAX + START),
            output_max: Some(OUTPUT_MAX),
        };
        let outcome = run(&program, &[(target, 0..spec.region)], spec, clock, stop)?.outcome;
        if let Some(failure) = &outcome.failure {
            let (what, _) = iolab_runner::describe_failure(failure);
            return Err(Error::failed(what).hint("leave out --peer, or try another version of fio"));
        }
        match outcome.ended {
            Ended::Interrupted => Err(Error::interrupted()),
            _ => Ok(()),
        }
    }
}

/// The requests as an iolog, in memory: a file on a disk could be one of the disk that is measured.
fn log(requests: &[ListedRequest], name: &str) -> std::io::Result<File> {
    let file = File::from(memfd_create("iolog", MemfdFlags::CLOEXEC)?);
    let rows = requests.iter().map(|one| Access {
        at_ns: one.at_ns,
        writes: one.writes,
        offset: one.offset,
        bytes: one.bytes,
        depth: None,
    });
    let mut to = BufWriter::new(&file);
    format::write_iolog(&mut to, name, rows)?;
    to.flush()?;
    drop(to);
    Ok(file)
}
