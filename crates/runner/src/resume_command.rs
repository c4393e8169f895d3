//! The command that finishes a run.

use std::path::Path;

/// The command that finishes a run of so many processes, with the `consent` that it takes.
pub(super) fn resume_command(run_file: &Path, processes: usize, consent: &str) -> String {
    let launcher = match processes {
        1 => String::new(),
        ranks => format!("mpirun -n {ranks} "),
    };
    format!("{launcher}iolab resume {}{consent}", run_file.display())
}
