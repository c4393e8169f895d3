//! `iolab witness`: where the bytes of any program came from and went to, and who used a device.

use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use iolab_analysis::witness::{Evidence, Witnessed};
use iolab_figure::{FileFormat, Options};
use iolab_host::program::Program;
use iolab_host::witness::{Milestone, Witness, WitnessOf, end_by};
use iolab_record::Observation;
use iolab_report::observation::Seen;
use iolab_runfile::{Folder, NewFile};
use iolab_runner::peers::report_of;
use iolab_runner::witness::{claim, observe};
use iolab_workload::Result;
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::counted;
use iolab_workload::witness::ObservedEnd;
use serde_json::json;

use super::{PEERS, arguments};
use iolab_command::failure::{Failure, Outcome};
use iolab_command::output::{self, note};
use iolab_command::output_format::{Extensions, format_of};

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
pub(crate) fn witness(options: &arguments::Witness) -> Outcome {
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
    add_claim(&mut witnessed, options, began);
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
            let figure = evidence.figure(&Options::default())?;
            to.write_all(&figure.bytes(format)?)?;
        }
    }
    Ok(to.flush()?)
}

fn tell(milestone: Milestone, options: &arguments::Witness) {
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
fn add_claim(witnessed: &mut Witnessed, options: &arguments::Witness, began: SystemTime) {
    let by_arguments = || report_of(&options.command, PEERS);
    let Some(path) = options.claim.clone().or_else(by_arguments) else {
        return;
    };
    match claim(&path, PEERS, began) {
        Ok(claim) => witnessed.claim = Some(claim),
        // The evidence is complete without it, and the user did not ask for a report of another format.
        Err(error) if options.claim.is_some() => note(format_args!(
            "note: no claim is shown: {}",
            escape_control(error.message())
        )),
        Err(_) => {}
    }
}
