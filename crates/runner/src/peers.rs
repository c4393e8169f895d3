//! Peers: the user's own tools that measure the same cells as iolab.
//!
//! Their trials are in the same blocks, on the same target, with the same preparation, and the kernel's
//! counters are read around them as around iolab's own. Their output is untrusted text, and read with limits.

mod common_plan;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_engine::trial;
use iolab_host::clock::Clock;
use iolab_host::program::{self, Arguments, Program};
use iolab_record::environment::{Environment, KEYS};
use iolab_record::{LatencyOf, Sample};
use iolab_storage::{Target, TargetKind};
use iolab_workload::counters::Pressure;
use iolab_workload::histogram::LatencyHistogram;
use iolab_workload::names::unknown;
use iolab_workload::outcome::{Effective, Ended, FailedProgram, Failure, Outcome, ProgramEnd};
use iolab_workload::settings::{CellSpec, Tool};
use iolab_workload::trial::{Descriptors, FileLayout, TrialSpec};
use iolab_workload::{Error, Kind, Result};

pub use common_plan::{Gap, Need, adapt, gap_anywhere, gaps, needed, waiting};

/// Arguments of a command line, or the reason why there are none.
pub type CommandLine = std::result::Result<Vec<OsString>, String>;

/// The peers of a program, in the order of help.
pub type PeerList = &'static [&'static Peer];

/// Another tool: its command line and its output.
pub struct Peer {
    /// The peer's identity in definitions and run files; its name is its command.
    pub tool: Tool,
    /// Description in help.
    pub about: &'static str,
    /// Option that makes it print its version.
    pub version_option: &'static str,
    /// First version with everything that its command lines use.
    pub oldest: (u32, u32),
    /// Whether the tool accepts devices; all accept files.
    pub takes_devices: bool,
    /// Time of a run for such a cell in addition to its I/O.
    pub overhead: fn(&TrialSpec) -> Duration,
    /// Arguments with which it does the equivalent of a cell on these files: one file, or one for each worker.
    pub arguments: fn(&TrialSpec, &[PathBuf]) -> CommandLine,
    /// Settings that have to change so that it can run these trials: bounds, layout, data. The caller handles
    /// files, descriptors and buffers, which are the same for every peer.
    pub needs: fn(&[&TrialSpec]) -> Vec<Need>,
    /// Transfers its output for a trial into the outcome. An error is of kind [`Kind::Usage`], as of `import` and
    /// `transferred`: the unusable part of its report.
    pub take_over: fn(&str, &TrialSpec, &mut Outcome) -> Result<()>,
    /// Kind of report for `iolab import`, for messages.
    pub report: &'static str,
    /// Report file that its arguments name.
    pub report_in: fn(&[OsString]) -> Option<PathBuf>,
    /// Whether a text is a report of this tool.
    pub recognises: fn(&str) -> bool,
    /// Parses results that it measured without iolab.
    pub import: fn(&str) -> Result<Results>,
    /// Samples of the jobs or tests of a report that were active, whether or not iolab could measure the same.
    pub transferred: fn(&str) -> Result<Vec<Sample>>,
}

fn known(all: PeerList, tool: Tool) -> Option<&'static Peer> {
    all.iter().copied().find(|peer| peer.tool == tool)
}

/// Peer of a name in the list of a program.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): there is none; with the nearest names.
pub fn find(all: PeerList, tool: Tool) -> Result<&'static Peer> {
    known(all, tool).ok_or_else(|| {
        let peers = all.iter().map(|peer| peer.tool.name());
        let known: Vec<&str> = ["iolab"].into_iter().chain(peers).collect();
        unknown("tool", tool.name(), &known)
    })
}

/// The report file of a program, by its arguments, if it is one of these tools.
pub fn report_of(words: &[OsString], peers: PeerList) -> Option<PathBuf> {
    let (program, arguments) = words.split_first()?;
    let name = Path::new(program).file_name()?;
    let peer = peers.iter().find(|peer| name == peer.tool.name())?;
    (peer.report_in)(arguments)
}

/// Time of a cell's trial in addition to its I/O, for plans; negligible for iolab itself.
pub fn overhead(all: PeerList) -> impl Fn(&CellSpec) -> Duration {
    move |cell| {
        let peer = known(all, cell.tool);
        let of_peer = peer.map_or(Duration::ZERO, |peer| (peer.overhead)(&cell.trial));
        // Written data is read back, which takes about as long.
        let trials = cell.trials().into_iter().filter(|trial| trial.verify);
        let verifying = trials.filter_map(TrialSpec::time_foreseen).max();
        of_peer + verifying.unwrap_or_default()
    }
}

/// Most bytes that a peer may print in a trial.
const OUTPUT_MAX: usize = 16 << 20;
/// Time that a peer may take to start and to end, however small its share of the budget.
const START: Duration = Duration::from_secs(2);
/// Time that a trial without a time limit may take, however small the peer's share of the budget.
const UNBOUNDED: Duration = Duration::from_secs(60);
/// Time limit for printing its version, unless the peer's share of the budget is shorter.
const VERSION_TIME: Duration = Duration::from_secs(10);

/// An installed peer.
struct Installed {
    peer: &'static Peer,
    /// Its program.
    path: PathBuf,
    /// Its name and version.
    version: String,
    /// Share of the budget: no trial takes longer, unless its own bounds say so.
    share: Duration,
}

impl Installed {
    /// Time limit of a trial by it.
    fn time_limit(&self, spec: &TrialSpec) -> Duration {
        let least = spec.limit.time.map_or(UNBOUNDED, |time| time * 2 + START);
        self.share.max(least)
    }
}

/// Files of a trial, each with its range.
type Files<'a> = [(&'a Target, Range<u64>)];

/// Peers that the cells of a run request; the reason for a missing one.
pub struct Peers(BTreeMap<Tool, std::result::Result<Installed, String>>);

impl Peers {
    /// Finds the peers among the tools of the cells, and asks each for its version. A missing or too old one is
    /// not an error: its cells become gaps.
    ///
    /// # Errors
    /// `stop` is raised meanwhile; an installed peer does not report its version, and so will not work; of kind
    /// [`Usage`](iolab_workload::Kind::Usage): no peer has the name of the tool.
    pub fn find(
        all: PeerList,
        cells: &[Tool],
        budget: Duration,
        clock: &Clock,
        stop: &AtomicBool,
    ) -> Result<Self> {
        let tools: BTreeSet<Tool> = cells.iter().copied().filter(|t| t.is_peer()).collect();
        let found = tools.into_iter().map(|tool| {
            let own = cells.iter().filter(|cell| **cell == tool).count();
            let share = budget.mul_f64(own as f64 / cells.len() as f64);
            let peer = find(all, tool)?;
            let name = tool.name();
            let found = find_program(name, peer.version_option, peer.oldest, share, clock, stop);
            let found = found.map(|(path, version)| Installed {
                peer,
                path,
                version,
                share,
            });
            match found {
                Err(error) if error.kind() != Kind::Usage => Err(error),
                found => Ok((tool, found.map_err(|error| in_a_line(&error)))),
            }
        });
        found.collect::<Result<_>>().map(Self)
    }

    /// Environment entries of a run file: paths and versions of the peers.
    pub fn environment(&self) -> Environment {
        let mut list = Environment::default();
        for found in self.0.values().flatten() {
            let tool = found.peer.tool;
            list.put(&KEYS.tool_version.of(tool), found.version.clone());
            list.put(&KEYS.tool_path.of(tool), found.path.display().to_string());
        }
        list
    }

    /// Reason why a cell's peer cannot run it; `None` if it can.
    pub fn gap(&self, cell: &CellSpec, target: &Target) -> Option<String> {
        let peer = match self.0.get(&cell.tool)? {
            Ok(found) => found.peer,
            Err(why) => return Some(why.clone()),
        };
        let files = trial::files_of(&cell.trial, target).map_err(|error| in_a_line(&error));
        files
            .and_then(|files| {
                check(peer, &cell.trial, &files)?;
                let paths = files.iter().map(|(file, _)| file.path().to_owned());
                (peer.arguments)(&cell.trial, &paths.collect::<Vec<_>>())
            })
            .err()
    }

    /// Time limit of a cell's trial by its peer; `None` for a missing peer.
    pub fn time_limit(&self, cell: &CellSpec) -> Option<Duration> {
        Some(self.of(cell)?.time_limit(&cell.trial))
    }

    /// Peer of a cell.
    fn of(&self, cell: &CellSpec) -> Option<&Installed> {
        self.0.get(&cell.tool)?.as_ref().ok()
    }

    /// One trial of a cell without a gap.
    ///
    /// # Errors
    /// The peer cannot be started; its own errors become a failure of the outcome instead.
    pub fn run(
        &self,
        cell: &CellSpec,
        target: &Target,
        clock: &Clock,
        stop: &AtomicBool,
    ) -> Result<Outcome> {
        let spec = &cell.trial;
        let unprepared = |why: String| Error::failed(format!("{}: {why}", cell.tool));
        let peer = self
            .of(cell)
            .ok_or_else(|| unprepared("it was not looked for".to_owned()))?;
        let files = trial::files_of(spec, target)?;
        check(peer.peer, spec, &files).map_err(unprepared)?;
        let lent = files.iter().map(|(file, _)| file.lend(spec.writes()));
        let arguments = Arguments::naming(lent.collect::<Result<_>>()?, |paths| {
            (peer.peer.arguments)(spec, paths)
        });
        let program = Program {
            path: peer.path.clone(),
            arguments: arguments.map_err(unprepared)?,
            time_limit: Some(peer.time_limit(spec)),
            output_max: Some(OUTPUT_MAX),
        };
        let ran = program::run(&program, &files, spec, clock, stop)?;
        let mut outcome = ran.outcome;
        outcome.effective = Effective {
            command: Some(format!("{}: {}", peer.version, program.line())),
            ..Effective::default()
        };
        // The kernel counted from the start of the program to its end, which is longer than the program's own
        // time.
        outcome.counters.pressure = Pressure {
            suspended_ns: outcome.counters.pressure.suspended_ns,
            ..Pressure::default()
        };
        if outcome.ended == Ended::Done {
            let text = String::from_utf8_lossy(&ran.output);
            match (peer.peer.take_over)(&text, spec, &mut outcome) {
                Ok(()) => settle(spec, &files, &mut outcome),
                Err(error) => fail(&mut outcome, &program, &error),
            }
        }
        Ok(outcome)
    }
}

/// An error with its remedy, as one sentence among others.
fn in_a_line(error: &Error) -> String {
    match error.remedy() {
        Some(remedy) => format!("{}: {remedy}", error.message()),
        None => error.message().to_owned(),
    }
}

/// Completes an outcome once the numbers of a trial are known.
fn settle(spec: &TrialSpec, files: &Files<'_>, outcome: &mut Outcome) {
    let asked = spec.requests_bound();
    if asked.is_none_or(|asked| outcome.requests() < asked) {
        outcome.ended = Ended::Time;
    }
    outcome.all_active_ns = outcome.elapsed_ns;
    trial::write_out(spec, files, outcome);
}

/// Turns a trial with unreadable numbers into a failed one.
fn fail(outcome: &mut Outcome, program: &Program, error: &Error) {
    outcome.ended = Ended::Failed;
    outcome.errors = 1;
    outcome.failure = Some(Failure::Program(FailedProgram {
        command: program.line(),
        end: ProgramEnd::Report,
        last_words: program.arguments.shown_in(&format!(
            "wrote a report that cannot be used: {}",
            error.message()
        )),
    }));
}

/// Checks that a peer accepts the files of a trial.
///
/// # Errors
/// The reason why it does not.
fn check(peer: &Peer, spec: &TrialSpec, files: &Files<'_>) -> std::result::Result<(), String> {
    let shares = spec.layout != FileLayout::Interleaved && spec.descriptors == Descriptors::Private;
    if !shares || spec.starts_fresh() {
        return Err(
            "it works on existing files, one for all threads or one for each, and each thread opens its own: set layout=shared or private, descriptors=private and allocate=none".to_owned(),
        );
    }
    let is_file = |kind| matches!(kind, TargetKind::Scratch | TargetKind::File);
    if !peer.takes_devices && !files.iter().all(|(file, _)| is_file(file.kind())) {
        return Err("it takes files only".to_owned());
    }
    Ok(())
}

/// Finds the program of a tool, of this version or newer, and asks it for its version within this time. The path, with name and
/// version.
///
/// # Errors
/// As [`Peers::find`]; of kind [`Usage`](iolab_workload::Kind::Usage): it is missing or too old.
pub fn find_program(
    name: &str,
    version_option: &'static str,
    (major, minor): (u32, u32),
    time: Duration,
    clock: &Clock,
    stop: &AtomicBool,
) -> Result<(PathBuf, String)> {
    let path = Program::find(Path::new(name))
        .map_err(|error| error.hint(format!("install {name}, or add its folder to PATH")))?;
    let program = Program {
        path: path.clone(),
        arguments: Arguments::plain([version_option]),
        time_limit: Some(time.clamp(START, VERSION_TIME)),
        output_max: Some(OUTPUT_MAX),
    };
    let ran = program::run(&program, &[], &TrialSpec::default(), clock, stop)?;
    if ran.outcome.ended == Ended::Interrupted {
        return Err(Error::interrupted());
    }
    let text = String::from_utf8_lossy(&ran.output);
    let place = path.display();
    let number = version_number(&text).ok_or_else(|| {
        Error::failed(format!("{place} does not report its version"))
            .hint(format!("check that it is {name}: {place} {version_option}"))
    })?;
    let version = format!("{name}-{}.{}", number.0, number.1);
    if number < (major, minor) {
        return Err(Error::usage(format!("{version} at {place} is too old"))
            .hint(format!("install {name} {major}.{minor} or newer")));
    }
    Ok((path, version))
}

/// First `MAJOR.MINOR` in a text.
fn version_number(text: &str) -> Option<(u32, u32)> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let mut numbers = text[start..].split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Contents of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// Tool that measured.
    pub tool: Tool,
    /// Version in the tool's own words.
    pub version: String,
    /// Time of measurement, RFC 3339, UTC.
    pub measured_utc: Option<String>,
    /// File, folder or device of all results; `None` if the report names none, or several.
    pub target: Option<String>,
    /// Machine of all results; `None` if the report names none, or several.
    pub host: Option<String>,
    /// Jobs or tests.
    pub entries: Vec<PeerResult>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
}

impl Results {
    /// Remark on samples, each of which is one `unit` (a job, a test): whether any cell has several.
    pub fn note_on_samples(unit: &str, entries: &[PeerResult]) -> String {
        let measured = || entries.iter().filter(|entry| !entry.sample.warmup);
        let repeats = |(number, entry): (usize, &PeerResult)| {
            let mut earlier = measured().take(number);
            earlier.any(|other| other.cell == entry.cell)
        };
        match measured().enumerate().any(repeats) {
            false => format!("one {unit} is one sample: there is no interval"),
            true => {
                format!("{unit}s with the same settings and target are the samples of one cell")
            }
        }
    }
}

/// One job, or one test.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerResult {
    /// Requested cell.
    pub cell: CellSpec,
    /// The measured values. As a warm-up, the first of two equal results is left out of the summary.
    pub sample: Sample,
    /// Latencies, request by request.
    pub histograms: Vec<(LatencyOf, LatencyHistogram)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_the_tools_print() {
        assert_eq!(version_number("fio-3.33"), Some((3, 33)));
        assert_eq!(version_number("fio-3.42-135-gf5344384"), Some((3, 42)));
        let iozone =
            "       'Iozone' Filesystem Benchmark Program\n \n        Version $Revision: 3.489 $\n";
        assert_eq!(version_number(iozone), Some((3, 489)));
        assert_eq!(version_number("no number"), None);
        assert_eq!(version_number("99999999999999999999.1"), None);
    }
}
