//! iolab-serve: modelled disks as files in real time, through FUSE, so that any tool can be graded on a disk whose truth is known.
//!
//! A request is computed in the model's virtual time when it arrives, and answered when the clock reaches the time of its
//! completion. [`Playback`] is that computation, without a clock; a timer thread carries it out. [`ServeStatistics`] says how late
//! the answers were.
//!
//! Files to begin with: `disk.rs` takes requests and answers on time, `one_file.rs` is the file system, `command.rs` the command.

mod command;
mod disk;
pub mod one_file;
mod serving;

pub use disk::{Content, Due, PAGE, Playback, Speed};
pub use serving::{OpTally, Punctuality, ServeStatistics};

use iolab_command::lists::{Command, Lists};

/// The rows of this instrument.
pub fn lists() -> Lists {
    Lists {
        commands: vec![Command::new(
            "serve",
            "Serve a disk model as a file in real time, for any tool to measure",
            |options, _| command::serve(options),
        )],
        ..Lists::default()
    }
}
