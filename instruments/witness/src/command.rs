//! `iolab witness`: where the bytes of any program came from and went to, and who used a device.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::{ArgGroup, Args};

use crate::evidence::{Evidence, Witnessed};
use crate::judge::{claim, observe};
use crate::observed::ObservedEnd;
use crate::watch::{Milestone, Witness, WitnessOf, end_by};
use iolab_figure::FileFormat;
use iolab_host::program::Program;
use iolab_record::Observation;
use iolab_report::observation::Seen;
use iolab_runfile::{Folder, NewFile};
use iolab_runner::peers::{PeerList, report_of};
use iolab_workload::Result;
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::{counted, parse_positive_duration};
use serde_json::json;

use iolab_command::failure::{Failure, Outcome};
use iolab_command::output::{self, note};
use iolab_command::output_format::{Extensions, format_of};

const HELP: &str = "\
Examples:
  iolab witness -- dd if=data of=/dev/null bs=1M
  iolab witness --on data -o evidence.json -- fio job.fio < /dev/null
  iolab witness -o course.svg -- dd if=data of=/dev/null bs=1M
  iolab witness -o evidence.iolab -- dd if=data of=/dev/null bs=1M
  iolab witness --trace -- dd if=/dev/zero of=new bs=64k count=100 oflag=dsync
  iolab witness -p 4711 --for 10s
  iolab witness --device vda --for 5s

The program runs as it would without iolab, with its own output; the evidence goes to \
stderr, or to FILE. --on records the page cache and the holes of a file before the program \
starts. iolab observes the program and its descendants until all have ended. Signals reach \
the program: Ctrl-C ends it as without iolab. After its end, Ctrl-C ends the observation of \
descendants, and they continue. With -p and --device, iolab observes until Ctrl-C or for \
--for; with -p also until the process ends.

iolab compares a report that the program writes (fio --output=FILE with \
--output-format=json; other files with --claim) with the counters of the devices.

-o FILE.iolab stores all evidence; table, report, plot and show read it.

As root, iolab also sees the I/O of other users' processes and of processes that have \
ended. --trace needs root: it counts syncs, and measures how long requests of the program \
were in the queue and in the device.

The exit code is that of the program; if a signal ended it, iolab ends by that signal. 2: \
the program could not be started. With -p and --device it is 0.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
#[command(group = ArgGroup::new("subject").required(true).args(["command", "pid", "device"]))]
pub(crate) struct Options {
    /// File, device or directory that the program works on
    #[arg(long, value_name = "TARGET", conflicts_with = "device")]
    pub(crate) on: Option<PathBuf>,
    /// Observe a running process and its descendants
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Observe a block device: vda, or its path; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Vec<PathBuf>,
    /// End the observation of a process or device after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive_duration, conflicts_with = "command")]
    pub(crate) time: Option<Duration>,
    /// Record the kernel's trace events (root): the program's syncs, and the time of its requests in queue and device
    #[arg(long, conflicts_with = "device")]
    pub(crate) trace: bool,
    /// Report that the program writes, of fio (JSON) or IOzone, to compare with the devices
    #[arg(long, value_name = "REPORT", requires = "command")]
    pub(crate) claim: Option<PathBuf>,
    /// New file for the evidence: .iolab, .json (iolab schema witness describes it) or .txt; over time: .svg, .png or .pdf
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Program to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Text,
    Json,
    Figure(FileFormat),
    RunFile,
}

const FORMATS: &Extensions<Format> = &[
    (Format::Json, &["json"]),
    (Format::Text, &["txt"]),
    (Format::RunFile, &["iolab"]),
    (Format::Figure(FileFormat::Svg), &["svg"]),
    (Format::Figure(FileFormat::Png), &["png"]),
    (Format::Figure(FileFormat::Pdf), &["pdf"]),
];

/// Observes the requested subject and writes the evidence; ends with the program's exit code.
pub(crate) fn witness(options: &Options, peers: PeerList) -> Outcome {
    let named = options.output.as_deref();
    let format = format_of(named, None, Some(Format::Text), FORMATS)?;
    let output = named
        .map(|path| Output::prepared(path, format))
        .transpose()?;
    if let Some(path) = options.on.as_deref().filter(|path| !path.exists()) {
        note(format_args!(
            "note: {} does not exist before the program starts, so that --on shows nothing of it",
            escape_control(&path.display().to_string())
        ));
    }
    let found;
    let of = match (options.pid, options.command.first()) {
        (Some(process), _) => WitnessOf::Process(process),
        (None, Some(name)) => {
            found = Program::find(Path::new(name))?;
            WitnessOf::Program {
                file: &found,
                words: &options.command,
            }
        }
        (None, None) => WitnessOf::Devices(&options.device),
    };
    let witness = Witness {
        of,
        target: options.on.as_deref(),
        time: options.time,
        trace: options.trace,
    };
    let began = SystemTime::now();
    let (mut witnessed, mut kept) = observe(&witness, &mut |milestone| tell(milestone, options))?;
    add_claim(&mut witnessed, options, peers, began);
    kept.content = json!(witnessed).to_string();
    let evidence = Evidence::of(witnessed);
    match output {
        Some(output) => output.write(&kept, &evidence)?,
        None => output::told(text(&evidence).trim_end()),
    }
    match evidence.observed.end {
        ObservedEnd::Code(0) | ObservedEnd::Gone | ObservedEnd::Running => Ok(()),
        // An exit code has 8 bits.
        ObservedEnd::Code(code) => Err(Failure::Code(code as u8)),
        ObservedEnd::Signal(signal) => {
            end_by(signal);
            Err(Failure::Code(128 + signal as u8))
        }
    }
}

/// The text on the terminal.
fn text(evidence: &Evidence) -> String {
    evidence.text(output::style().width)
}

/// A file for the evidence. It is prepared before the program runs, so that an unusable name is reported before the run.
enum Output<'a> {
    /// An open file, with its writer.
    Open(Format, Box<dyn Write>),
    /// A run file that is written at once, and its folder.
    RunFile(&'a Path, Folder),
}

impl<'a> Output<'a> {
    fn prepared(path: &'a Path, format: Format) -> Result<Self> {
        Ok(match format {
            Format::RunFile => {
                let place = NewFile::At(path);
                let folder = Folder::of(place)?;
                iolab_runfile::check_place(folder.place(place))?;
                Self::RunFile(path, folder)
            }
            Format::Figure(_) => Self::Open(format, output::open_raw(Some(path))?),
            Format::Text | Format::Json => Self::Open(format, output::open(Some(path))?),
        })
    }

    /// Writes the file. Evidence that is not in the file, or not in readable form, goes to the terminal.
    fn write(self, kept: &Observation, evidence: &Evidence) -> Outcome {
        let (format, to) = match self {
            Self::RunFile(path, folder) => {
                output::told(text(evidence).trim_end());
                iolab_runfile::create_observation(folder.place(NewFile::At(path)), kept)?;
                return Ok(());
            }
            Self::Open(format, to) => (format, to),
        };
        let written = fill(format, to, evidence);
        match (format, &written) {
            (Format::Json | Format::Text, Ok(())) => note(evidence.headline()),
            // The program does not run again for evidence that no file could take.
            _ => output::told(text(evidence).trim_end()),
        }
        written
    }
}

fn fill(format: Format, mut to: Box<dyn Write>, evidence: &Evidence) -> Outcome {
    match format {
        Format::Json => evidence.json(&mut to)?,
        Format::Text | Format::RunFile => write!(to, "{}", text(evidence))?,
        Format::Figure(format) => {
            let figure = evidence.figure(&iolab_figure::Options::default())?;
            to.write_all(&figure.bytes(format)?)?;
        }
    }
    Ok(to.flush()?)
}

fn tell(milestone: Milestone, options: &Options) {
    match milestone {
        // The program's own output shows it.
        Milestone::Began if !options.command.is_empty() || options.time.is_some() => {}
        Milestone::Began => note(match options.pid {
            Some(_) => "note: observing it until it ends; Ctrl-C ends the observation",
            None => "note: observing until Ctrl-C",
        }),
        Milestone::Outlived(left) => note(format_args!(
            "note: the program has ended; still running: {} that it started, observed until the end (Ctrl-C ends that)",
            counted(left as u64, "process")
        )),
        Milestone::TraceLost => {
            note("note: the kernel's trace events cannot be read; the evidence has none")
        }
    }
}

/// Adds the program's own claim: from the report that the user named, or from the one that its arguments name, if iolab can
/// read it.
fn add_claim(witnessed: &mut Witnessed, options: &Options, peers: PeerList, began: SystemTime) {
    let by_arguments = || report_of(&options.command, peers);
    let Some(path) = options.claim.clone().or_else(by_arguments) else {
        return;
    };
    match claim(&path, peers, began) {
        Ok(claim) => witnessed.claim = Some(claim),
        // The evidence is complete without it, and the user did not ask for a report of another format.
        Err(error) if options.claim.is_some() => note(format_args!(
            "note: no claim is shown: {}",
            escape_control(error.message())
        )),
        Err(_) => {}
    }
}
