//! `iolab witness`: where the bytes of any program came from and went to, and who used a device.

use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use crate::NAME;
use crate::evidence::{Evidence, Witnessed};
use crate::judge::{claim, judged};
use crate::observed::ObservedEnd;
use crate::options::Options;
use crate::watch::{WitnessOf, end_by, observe};
use iolab_figure::FileFormat;
use iolab_host::program::Program;
use iolab_record::Observation;
use iolab_report::data_column::IOLAB_VERSION;
use iolab_report::observation::Seen;
use iolab_runfile::{Folder, NewFile};
use iolab_runner::peers::{PeerList, report_of};
use iolab_runner::{environment, now_utc};
use iolab_workload::Result;
use iolab_workload::escape_control::escape_control;
use serde_json::json;

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
    let (began, started_utc) = (SystemTime::now(), now_utc());
    let mut witnessed = judged(observe(of, options)?);
    add_claim(&mut witnessed, options, peers, began);
    let evidence = Evidence::of(witnessed.clone());
    match output {
        Some(output) => output.write(&evidence, &witnessed, started_utc)?,
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
    fn write(self, evidence: &Evidence, witnessed: &Witnessed, started_utc: String) -> Outcome {
        let (format, to) = match self {
            Self::RunFile(path, folder) => {
                output::told(text(evidence).trim_end());
                let devices = evidence.observed.devices.iter().map(|one| &*one.name);
                let kept = Observation {
                    command: NAME.to_owned(),
                    tool_version: IOLAB_VERSION.to_owned(),
                    started_utc,
                    content: json!(witnessed).to_string(),
                    environment: environment::of_devices(&devices.collect::<Vec<_>>()),
                };
                iolab_runfile::create_observation(folder.place(NewFile::At(path)), &kept)?;
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
