//! iolab-fit: whether storage is good enough for a purpose: yes, no, or cannot tell.
//!
//! Files to begin with: `requirement.rs` requirements (`requirements/*.toml`), `fitness.rs` the answer from run files.
//! What measures: `command.rs`.

#[cfg(feature = "measure")]
mod command;
mod companions;
mod fitness;
pub mod requirement;

use iolab_command::Lists;
use iolab_command::built_in::BuiltIn;
use iolab_report::answer::AnsweredBy;
use iolab_report::document::Document;

#[cfg(feature = "measure")]
pub use command::{MeasureAsked, Measuring};
use fitness::FitDocument;
use requirement::{BUILTIN_REQUIREMENTS, Requirement};

/// The answers to requirements.
pub const ANSWERS: AnsweredBy = AnsweredBy {
    command: "fit",
    answers: fitness::answers,
    companions: companions::companions,
};

/// The rows of this instrument that read only.
pub fn lists() -> Lists {
    Lists {
        documents: vec![Document::of::<FitDocument<'_>>(
            "fit", "iolab fit --format json",
        )],
        built_in: vec![BuiltIn {
            one: "a requirement",
            argument: "<WHAT>",
            command: "iolab fit",
            example: "etcd",
            entries: BUILTIN_REQUIREMENTS,
            about: |name| Ok(Requirement::find(name, &[])?.question),
        }],
        answers: vec![ANSWERS],
        ..Lists::default()
    }
}

/// The rows that measure, by these parts of the program.
#[cfg(feature = "measure")]
pub fn measuring(by: Measuring) -> Lists {
    Lists {
        commands: vec![iolab_command::Command::with_log(
            "fit",
            "Check whether storage is good enough for a purpose: yes, no, or cannot tell",
            |options: &command::Fit| options.log.log(),
            move |options, lists| command::fit(options, lists, by),
        )],
        ..Lists::default()
    }
}
