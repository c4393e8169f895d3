//! Built-in names, and the command that accepts each.

#[cfg(feature = "measure")]
mod kinds;

use iolab_plan::experiment::BUILTIN;
use iolab_plan::requirement::BUILTIN_REQUIREMENTS;
use iolab_plan::suite::BUILTIN_SUITES;
use iolab_workload::Error;
use iolab_workload::names::unknown;

#[cfg(feature = "measure")]
pub(crate) use kinds::{Builtin, check_command, check_no_target};

/// The commands of the feature `measure`.
#[cfg(any(test, not(feature = "measure")))]
const MEASURING: [&str; 9] = [
    "study", "run", "fit", "why", "import", "resume", "doctor", "serve", "witness",
];

/// Refuses in the position of a command what this build lacks.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage).
#[cfg(not(feature = "measure"))]
pub(crate) fn check_command(name: &str) -> iolab_workload::Result<()> {
    match MEASURING.contains(&name) {
        true => Err(
            Error::usage(format!("this build reads results, and has no '{name}'"))
                .hint("iolab measures on Linux: use the build for it"),
        ),
        false => Ok(()),
    }
}

/// The error for a name that no built-in has.
pub(crate) fn unknown_name(name: &str) -> Error {
    let all = [BUILTIN, BUILTIN_SUITES, BUILTIN_REQUIREMENTS].concat();
    let mut known: Vec<&str> = Vec::new();
    for (name, _) in all {
        // Tests of a standard are experiments and suites.
        if !known.contains(&name) {
            known.push(name);
        }
    }
    unknown("experiment, suite or requirement", name, &known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measuring_commands_are_in_this_build() {
        let command = crate::program();
        let missing = |name: &&str| command.find_subcommand(name).is_none();
        let found = MEASURING.iter().copied().find(missing);
        assert_eq!(found.is_none(), cfg!(feature = "measure"));
    }
}
