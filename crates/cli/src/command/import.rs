//! `iolab import`: results that fio or IOzone measured.

use std::io::Write;

use iolab_report::findings::interpretation::Interpretation;

use crate::arguments::Import;
use crate::command::run::{check_output, place_of};
use iolab_command::failure::Outcome;
use iolab_command::output::{self, note};
use iolab_command::run_files::read_run;

/// Writes the results to a run file and prints its findings.
pub(crate) fn import(options: &Import) -> Outcome {
    check_output(options.output.as_deref(), 1)?;
    let import = iolab_runner::import::Import::read(&options.file)?;
    let import = import.on_host(options.host.as_deref())?;
    for text in import.notes() {
        note(format_args!("note: {text}"));
    }
    let name = iolab_runner::import::Import::name(&options.file);
    let place = place_of(options.output.as_deref(), &name);
    let path = import.write(&options.file, place)?;
    let run = read_run(&path)?;
    let mut to = output::open(None)?;
    output::report(&run, &Interpretation::of(&run), &mut to)?;
    to.flush()?;
    note(format_args!("\nrun file: {}", path.display()));
    Ok(())
}
