//! iolab: a laboratory for storage I/O. The command line: arguments, progress, messages, exit codes.
//!
//! Files to begin with: `arguments.rs` and `read_arguments.rs`. `command/` has the commands that read, `measuring/` those that
//! measure.
//! `measuring/campaign.rs` is the shared parts of commands that measure, apart from the campaign of the runner.

#[cfg(all(feature = "measure", not(target_os = "linux")))]
compile_error!("iolab measures on Linux only: build what reads results with --no-default-features");

mod arguments;
mod command;
mod instruments;
#[cfg(feature = "measure")]
mod measuring;
mod read_arguments;
mod target_names;

use std::panic::resume_unwind;
use std::process::ExitCode;
use std::thread;

use iolab_command::failure::{Failure, Outcome};
use iolab_command::{code_of, output};
use iolab_workload::Error;

pub use instruments::lists;

/// Stack of the main worker thread, bytes. The stack of the first thread may be limited by `ulimit -s`.
const STACK: usize = 8 << 20;

/// Memory that reading the arguments and the experiment takes, bytes, with room to spare.
const HEADROOM: usize = 16 << 20;

/// Carries out the command line of this process; the exit code is one of those that `iolab --help` names.
pub fn main() -> ExitCode {
    let work = thread::Builder::new()
        .stack_size(STACK)
        .spawn(|| code_of(work()));
    let code = match work.map(thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(error) => code_of(Err(Error::usage(format!(
            "the first thread cannot be started: {error}"
        ))
        .hint("raise the limits of memory (ulimit -v) and of processes (ulimit -u)")
        .into())),
    };
    ExitCode::from(code)
}

/// The command line with every command, as it is parsed and shown.
pub fn program() -> clap::Command {
    arguments::program(&lists())
}

fn work() -> Outcome {
    // A later failure of an allocation would end the process without a message.
    if Vec::<u8>::new().try_reserve_exact(HEADROOM).is_err() {
        return Err(Error::usage("there is too little memory to start")
            .hint("raise the limit of memory: ulimit -v unlimited")
            .into());
    }
    #[cfg(unix)]
    outlive_file_limit()?;
    let (is_silent, lists) = (is_silent(), lists());
    match read_arguments::read(&lists, is_silent) {
        Ok(task) => {
            output::set_log(task.log);
            (task.work)(&lists)
        }
        Err(_) if is_silent => Err(Failure::ToldElsewhere),
        Err(failure) => Err(failure),
    }
}

/// Whether another process of the same launch prints messages for all of them.
fn is_silent() -> bool {
    #[cfg(feature = "measure")]
    return measuring::is_silent();
    #[cfg(not(feature = "measure"))]
    false
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) fail with an error instead of a signal, which would leave half of a file.
///
/// # Errors
///
/// The system refuses the handler.
#[cfg(unix)]
fn outlive_file_limit() -> iolab_workload::Result<()> {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use signal_hook::consts::SIGXFSZ;

    let unused = Arc::new(AtomicBool::new(false));
    match signal_hook::flag::register(SIGXFSZ, unused) {
        Ok(_) => Ok(()),
        Err(error) => Err(
            Error::failed(format!("cannot catch signal {SIGXFSZ}: {error}"))
                .hint("iolab stops here, because half of a file could remain"),
        ),
    }
}
