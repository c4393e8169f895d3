//! iolab: a laboratory for storage I/O. The command line: arguments, progress, messages, exit codes.
//!
//! Files to begin with: `arguments.rs` and `read_arguments.rs`, `command/` one file per command, `workspace.rs` target,
//! clock and stop flag of a session. `workspace/site.rs` leads from an experiment to a plan that is ready to run.

#[cfg(all(feature = "measure", not(target_os = "linux")))]
compile_error!("iolab measures on Linux only: build what reads results with --no-default-features");

mod arguments;
mod builtin_names;
mod command;
#[cfg(feature = "measure")]
mod dry_run;
#[cfg(feature = "measure")]
mod ending;
#[cfg(feature = "measure")]
mod experiment_options;
#[cfg(unix)]
mod file_limit;
mod job_file;
#[cfg(feature = "measure")]
mod kernel_settings;
#[cfg(feature = "measure")]
mod launcher;
mod model_text;
#[cfg(feature = "measure")]
mod progress;
mod read_arguments;
#[cfg(feature = "measure")]
mod screen;
#[cfg(feature = "measure")]
mod short_budget;
mod shown_help;
#[cfg(feature = "measure")]
mod signals;
mod target_names;
#[cfg(feature = "measure")]
mod workspace;

use std::panic::resume_unwind;
use std::process::ExitCode;
use std::thread;

use iolab_workload::Error;

use crate::arguments::{Arguments, Command};
use iolab_command::exit;
use iolab_command::failure::Failure;
#[cfg(feature = "measure")]
use iolab_command::output;

/// Stack of the main worker thread, bytes. The stack of the first thread may be limited by `ulimit -s`.
const STACK: usize = 8 << 20;

/// Memory that reading the arguments and the experiment takes, bytes, with room to spare.
const HEADROOM: usize = 8 << 20;

fn main() -> ExitCode {
    let work = thread::Builder::new().stack_size(STACK).spawn(work);
    match work.map(thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(error) => exit::code_of(Err(Error::usage(format!(
            "the first thread cannot be started: {error}"
        ))
        .hint("raise the limits of memory (ulimit -v) and of processes (ulimit -u)")
        .into())),
    }
}

fn work() -> ExitCode {
    // A later failure of an allocation would end the process without a message.
    if Vec::<u8>::new().try_reserve_exact(HEADROOM).is_err() {
        return exit::code_of(Err(Error::usage("there is too little memory to start")
            .hint("raise the limit of memory: ulimit -v unlimited")
            .into()));
    }
    #[cfg(unix)]
    if let Err(error) = file_limit::outlive() {
        return exit::code_of(Err(error.into()));
    }
    let is_silent = is_silent();
    match Arguments::read(is_silent) {
        Ok(arguments) => carry_out(arguments.command),
        Err(_) if is_silent => exit::code_of(Err(Failure::ToldElsewhere)),
        Err(error) => exit::code_of(Err(error.into())),
    }
}

/// Whether another process of the same launch prints messages for all of them.
fn is_silent() -> bool {
    #[cfg(feature = "measure")]
    return launcher::is_silent();
    #[cfg(not(feature = "measure"))]
    false
}

#[cfg(not(feature = "measure"))]
fn carry_out(command: Command) -> ExitCode {
    exit::code_of(command::carry_out(command))
}

/// Carries out a command, alone or with the other processes of a launcher.
#[cfg(feature = "measure")]
fn carry_out(command: Command) -> ExitCode {
    use std::rc::Rc;

    output::set_log(command.log());
    let ranks = match launcher::join(&command) {
        Ok(ranks) => ranks,
        Err(failure) => return exit::code_of(Err(failure)),
    };
    let Some(ranks) = ranks else {
        return exit::code_of(command::carry_out(command, None));
    };
    let code = exit::code_of(match (ranks.greet(), ranks.is_root()) {
        (Ok(()), true) => command::carry_out(command, Some(Rc::clone(&ranks))),
        (Ok(()), false) => launcher::follow(&ranks),
        (Err(error), true) => Err(error.into()),
        (Err(error), false) => launcher::give_way(&ranks, error),
    });
    launcher::leave(&ranks, code)
}
