//! iolab as several ranks under mpirun.

use std::path::Path;

use needs::Need;

use crate::binary::binary;
use crate::iolab::{Seen, seen};
use crate::scene::Scene;
use crate::system::{Made, Unmade, failed, tool};

/// The message of a build without MPI.
const WITHOUT: &str = "cannot run across processes";

/// Runs a built-in experiment on two ranks, with further arguments.
///
/// # Errors
///
/// No mpirun, or a binary without MPI.
pub fn on_two_ranks(
    scene: &Scene,
    experiment: &str,
    target: &str,
    arguments: &[&str],
) -> Made<Seen> {
    let mpirun = tool(Need::Mpi)?;
    let file = scene.folder().join(format!("{experiment}.iolab"));
    let mut command = scene.command(Path::new(mpirun));
    command
        .env("COLUMNS", "160")
        .env("LC_ALL", "C.UTF-8")
        .env("NO_COLOR", "1");
    // Open MPI needs these to start as root, and more ranks than CPUs.
    for (name, value) in [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ] {
        command.env(name, value);
    }
    command
        .args(["-n", "2"])
        .arg(binary())
        .args(["run", experiment, target, "-o"])
        .arg(&file)
        .args(arguments);
    let output = scene.carry_out(&mut command, |_| ());
    let output = output.map_err(failed(mpirun))?;
    if String::from_utf8_lossy(&output.stderr).contains(WITHOUT) {
        return Err(Unmade::Missing(
            Need::Mpi,
            "the binary under test has no MPI: cargo build --features mpi; IOLAB=$PWD/target/debug/iolab cargo test ...".to_owned(),
        ));
    }
    Ok(seen(&output, &file))
}
