//! `iolab doctor`: properties of a target, its trustworthiness, and recommended settings.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use iolab_command::failure::Outcome;
use iolab_command::output;
use iolab_command::output_format::TextOrJson;
use iolab_command::signals::on_signals;
use iolab_host::clock::Clock;
use iolab_runner::Disk;
use iolab_runner::campaign::Program;
use iolab_workload::Error;

use crate::{examine, text as report};

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
        TextOrJson::Json => report::json(&diagnosis, &mut to)?,
        TextOrJson::Text => {
            let width = output::style().width;
            write!(to, "{}", report::text(&diagnosis, width, coloured))?;
        }
    }
    Ok(to.flush()?)
}
