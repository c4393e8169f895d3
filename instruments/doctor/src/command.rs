//! `iolab doctor`: properties of a target, its trustworthiness, and recommended settings.
//!
//! The findings as text and as JSON.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use iolab_command::failure::Outcome;
use iolab_command::output;
use iolab_command::output_format::TextOrJson;
use iolab_command::signals::on_signals;
use iolab_host::clock::Clock;
use iolab_report::layout::{WIDTH_MIN, paragraph};
use iolab_report::rows::json_object;
use iolab_runner::Disk;
use iolab_runner::campaign::Program;
use iolab_runner::preflight::{Finding, Severity};
use iolab_workload::Error;
use iolab_workload::escape_control::escape_control;
use serde_json::{Map, Value, json};

use crate::{Diagnosis, examine};

/// Version of the JSON object; new fields do not change it.
const SCHEMA: u32 = 1;
/// Columns before the text: indent, longest severity, gap.
const INDENT: usize = 2;
const LABEL: usize = "worth knowing".len() + 2;

const DOCTOR_HELP: &str = "\
Each finding is 'fine', 'worth knowing' (it affects results) or 'must fix' (results \
would be wrong or mislabelled). doctor tries direct I/O and the backends: in a directory \
with a small scratch file, on files and devices by reading only. The exit code is 0 \
for any findings, unless the target cannot be used. For scripts:

  iolab doctor --format json | jq -e '.must_fix == 0'";

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_HELP)]
pub(crate) struct Arguments {
    /// Directory, file or block device
    #[arg(default_value = ".")]
    pub(crate) target: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    pub(crate) format: TextOrJson,
}

/// Examines the target and writes the findings to stdout. Succeeds also if something must be fixed.
pub(crate) fn doctor(options: &Arguments, program: Program) -> Outcome {
    if let Some(disk) = Disk::of_target(&options.target)? {
        let refused = Error::usage(format!(
            "{} is a model: doctor examines real storage",
            disk.name()
        ));
        return Err(refused
            .hint("give a directory, file or block device; 'iolab model show NAME' prints a model")
            .into());
    }
    let targets = [options.target.clone()];
    let watch = program.watch(&targets);
    // Before the scratch file exists, since signals must not leave the file.
    let stop = on_signals()?;
    program.restore_leftovers();
    if let Some(watch) = &watch {
        watch.opens(&targets);
    }
    let diagnosis = examine(&options.target, &Clock::calibrate(), &stop)?;
    drop(watch);
    let coloured = output::is_coloured() && options.format == TextOrJson::Text;
    let mut to = match coloured {
        true => output::open_raw(None)?,
        false => output::open(None)?,
    };
    match options.format {
        TextOrJson::Json => json(&diagnosis, &mut to)?,
        TextOrJson::Text => write!(to, "{}", text(&diagnosis, output::style().width, coloured))?,
    }
    Ok(to.flush()?)
}

/// The findings by topic, for a terminal of `width` columns. Commands stay on one line, to be copied.
pub fn text(diagnosis: &Diagnosis, width: u16, colour: bool) -> String {
    let mut text = format!(
        "{} ({})\n",
        escape_control(&diagnosis.target),
        diagnosis.kind
    );
    let mut topic = None;
    for finding in &diagnosis.findings {
        if topic != Some(finding.topic) {
            topic = Some(finding.topic);
            text.push_str(&format!("\n{}\n", finding.topic));
        }
        push(&mut text, finding, width, colour);
    }
    let count = |severity| diagnosis.count(severity);
    text.push_str(&format!(
        "\n{} must fix, {} worth knowing, {} fine\n",
        count(Severity::MustFix),
        count(Severity::WorthKnowing),
        count(Severity::Fine)
    ));
    text
}

fn push(text: &mut String, finding: &Finding, width: u16, colour: bool) {
    let label = format!("{:<LABEL$}", finding.severity.to_string());
    let mark = format!("{:INDENT$}{label}", "");
    let lines = paragraph(&escape_control(&finding.what), &mark, width.max(WIDTH_MIN));
    let code = match finding.severity {
        Severity::Fine => "32",
        Severity::WorthKnowing => "33",
        Severity::MustFix => "1;31",
    };
    let coloured = format!("\x1b[{code}m{label}\x1b[0m");
    text.push_str(&match colour {
        true => lines.replacen(&label, &coloured, 1),
        false => lines,
    });
    if let Some(command) = &finding.remedy {
        let margin = " ".repeat(INDENT + LABEL);
        text.push_str(&format!("{margin}$ {}\n", escape_control(command)));
    }
}

/// Writes a JSON object with the findings, their number by severity, and the environment.
///
/// # Errors
///
/// Errors of `to`.
pub fn json(diagnosis: &Diagnosis, to: &mut dyn Write) -> io::Result<()> {
    let count = |severity| diagnosis.count(severity);
    let environment: Map<String, Value> = diagnosis
        .environment
        .iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    let whole = json!({
        "schema": SCHEMA,
        "target": diagnosis.target,
        "kind": diagnosis.kind,
        "must_fix": count(Severity::MustFix),
        "worth_knowing": count(Severity::WorthKnowing),
        "fine": count(Severity::Fine),
        "findings": diagnosis.findings,
        "environment": environment,
    });
    json_object(&whole, to)
}
