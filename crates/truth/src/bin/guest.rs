//! The program in a guest that the host talks to: a line of JSON asks, a line of JSON answers ([`iolab_truth::vm::talk`]).

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::ExitCode;

use iolab_truth::system::warn;
use iolab_truth::vm::talk;

fn main() -> ExitCode {
    let Some(port) = std::env::args_os().nth(1) else {
        warn("usage: guest PORT");
        return ExitCode::from(2);
    };
    match serve(&port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            warn(&format!("guest: {}: {error}", port.display()));
            ExitCode::FAILURE
        }
    }
}

fn serve(port: &std::ffi::OsStr) -> std::io::Result<()> {
    let port = File::options().read(true).write(true).open(port)?;
    let mut answers = &port;
    writeln!(answers, "{}", talk::hello())?;
    for line in BufReader::new(&port).lines() {
        writeln!(answers, "{}", talk::answer(&line?))?;
    }
    Ok(())
}
