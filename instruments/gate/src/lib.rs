//! iolab-gate: compares a new run with earlier ones, and shows experiments over time.
//!
//! Files to begin with: `judgement.rs` for the conclusion of a gate, `line.rs` for runs over time.

mod figure;
mod gate;
mod history;
pub mod judgement;
mod judgement_text;
pub mod line;
pub mod line_text;

use iolab_command::lists::{Command, Lists};
use iolab_report::compare::CompareDocument;
use iolab_report::document::Document;
use iolab_report::report::SequenceFigure;

/// The rows of this instrument.
pub fn lists() -> Lists {
    Lists {
        commands: vec![
            Command::new(
                "gate",
                "Judge a new run by earlier runs of the same experiment; exit code for CI",
                |options, _| gate::gate(options),
            ),
            Command::new(
                "history",
                "Show experiments over time: level shifts, and what changed between runs",
                |options, _| history::history(options),
            ),
        ],
        documents: vec![Document::of::<CompareDocument<judgement::Gate>>(
            "gate", "iolab gate --format json",
        )],
        sequence_figures: vec![SequenceFigure {
            name: "over-time",
            draw: |runs, options| figure::figure(&line::ExperimentLine::of(runs)?, options),
        }],
        ..Lists::default()
    }
}
