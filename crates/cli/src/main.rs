//! iolab: a laboratory for storage I/O. The command line: arguments, progress, messages, exit codes.

mod arguments;
mod bench;
mod changes;
mod command;
mod exit;
mod output;
mod progress;
mod stop;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    exit::code_of(command::carry_out(arguments.command))
}
