//! iolab-replay: replays traces of block requests, and certifies how far the replay kept to the times of the trace.
//!
//! Files to begin with: `trace.rs` reads traces, `certificate.rs` judges a replay, `run.rs` carries replays out.

#[cfg(feature = "measure")]
mod ahead;
pub mod answer;
pub mod certificate;
mod distil;
#[cfg(feature = "measure")]
mod fio;
pub mod mapping;
#[cfg(feature = "measure")]
mod options;
#[cfg(feature = "measure")]
mod record;
#[cfg(feature = "measure")]
mod run;
pub mod text;
pub mod trace;

use iolab_command::{Command, Lists};
use iolab_report::document::Document;
#[cfg(feature = "measure")]
use iolab_runner::campaign::Program;

/// The rows of this instrument that read only.
pub fn lists() -> Lists {
    Lists {
        commands: vec![Command::new(
            "distil",
            "Make an experiment that resembles a trace, and show how well it does",
            |options, _| distil::distil(options),
        )],
        documents: vec![Document::of::<answer::Answer>(
            "replay", "iolab replay --format json",
        )],
        ..Lists::default()
    }
}

/// The rows that measure.
#[cfg(feature = "measure")]
pub fn measuring(program: Program) -> Lists {
    Lists {
        commands: vec![
            Command::new(
                "replay",
                "Replay a trace of block requests, with a certificate of its times",
                move |options, _| run::replay(options, program),
            ),
            Command::new(
                "record",
                "Record the requests of a device as a trace (root)",
                move |options, _| record::record(options, program),
            ),
        ],
        ..Lists::default()
    }
}
