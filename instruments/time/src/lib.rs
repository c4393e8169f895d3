//! iolab-time: times commands against each other, in blocks of random order.
//!
//! Files to begin with: `time.rs` for the command, `executor.rs` for one run of a command, `answer.rs` for the first screen.

mod answer;
mod commands;
mod executor;
mod hyperfine;
mod options;
mod shell;
mod time;

use iolab_command::lists::{Command, Lists};
use iolab_command::output::Log;
use iolab_runner::campaign::Program;

/// The rows of this instrument.
pub fn lists(program: Program) -> Lists {
    Lists {
        commands: vec![Command::with_log(
            "time",
            "Find which of several commands is faster, and whether that is more than noise",
            |_| Log::Live,
            move |options, _| time::time(options, program),
        )],
        ..Lists::default()
    }
}
