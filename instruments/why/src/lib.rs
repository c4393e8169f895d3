//! iolab-why: what causes a difference, a fall or slow requests of a run, by measuring without each suspect.
//!
//! Files to begin with: `phenomena.rs` what a run shows that can be explained, `inquiry.rs` the experiment that explains it, `command.rs`,
//! `study.rs` the effects of a study, `words.rs`. Suspects are in `suspect.rs` of `iolab-plan`, verdicts in `claim/causes.rs` of
//! `iolab-analysis`.

mod command;
pub mod inquiry;
pub mod phenomena;
pub mod phenomenon;
pub mod signs;
mod study;
pub mod words;

use iolab_command::{Command, Lists};

pub use command::{MeasureOne, Measuring};
pub use study::{addition, explain};

/// The rows of this instrument, by these parts of the program.
pub fn lists(by: Measuring) -> Lists {
    Lists {
        commands: vec![Command::with_log(
            "why",
            "Find what causes a difference that a run shows, by measuring without each suspect",
            |options: &command::Why| options.log.log(),
            move |options, _| command::why(options, by),
        )],
        ..Lists::default()
    }
}
