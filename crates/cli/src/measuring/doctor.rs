//! `iolab doctor`: properties of a target, its trustworthiness, and recommended settings.

use std::io::Write;

use iolab_doctor::{examine, text as report};
use iolab_host::clock::Clock;
use iolab_runner::Disk;
use iolab_workload::Error;

use super::arguments::Doctor;
use super::campaign::PROGRAM;
use iolab_command::failure::Outcome;
use iolab_command::output;
use iolab_command::output_format::TextOrJson;
use iolab_command::signals::on_signals;

/// Examines the target and writes the findings to stdout. Succeeds also if something must be fixed.
pub(crate) fn doctor(options: &Doctor) -> Outcome {
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
    let watch = PROGRAM.watch(&targets);
    // Before the scratch file exists, since signals must not leave the file.
    let stop = on_signals()?;
    PROGRAM.restore_leftovers();
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
