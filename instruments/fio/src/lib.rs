//! iolab-fio: fio's job files as experiments, experiments as its job files, run files as its reports, and fio as a peer. fio's
//! HOWTO explains every option. Only what measures starts fio: any system reads and writes job files.
//!
//! Files to begin with: `job.rs` a job file as an experiment, `write_job.rs` an experiment as a job file, `options.rs` the
//! options of a job as a cell, `peer.rs` fio as a peer. `described.rs` measured cells as jobs, `reported.rs` the job of a
//! report's entry, `export.rs` run files as a report. `unsupported.rs` names the differences from fio, and everything that fio
//! cannot do.

pub mod described;
mod export;
pub mod job;
mod options;
#[cfg(feature = "measure")]
mod peer;
#[cfg(feature = "measure")]
mod reported;
mod unsupported;
pub mod write_job;

use iolab_command::{DefinitionFormat, Lists};
use iolab_report::export::{ExportFormat, Writer};

#[cfg(feature = "measure")]
pub use peer::PEER;

/// The rows of this instrument.
pub fn lists() -> Lists {
    Lists {
        definitions: vec![DefinitionFormat {
            name: "fio",
            words: "An experiment's cells as a job file for fio",
            file: "a job file of fio",
            extensions: &["fio", "job"],
            read: job::read,
            write: write_job::write,
        }],
        formats: vec![ExportFormat {
            name: "fio",
            words: "fio's JSON+: one job per cell or group, its trials merged",
            extensions: &["json"],
            writer: Writer::RunsWithLatencies(export::runs),
        }],
        ..Lists::default()
    }
}
