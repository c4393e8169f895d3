//! iolab: a laboratory for storage I/O. The command line: arguments, progress, messages, exit codes.

mod arguments;
mod bench;
mod changes;
mod command;
mod exit;
mod output;
mod progress;
mod stop;

use std::panic::resume_unwind;
use std::process::ExitCode;
use std::thread;

use iolab_spec::Error;

/// Stack of the thread that does the work, bytes: that of the first thread is as small as `ulimit -s` says.
const STACK: usize = 8 << 20;

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
    let arguments = arguments::Arguments::read();
    exit::code_of(match arguments {
        Ok(arguments) => command::carry_out(arguments.command),
        Err(error) => Err(error.into()),
    })
}
