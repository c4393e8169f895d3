//! Program in a guest: answers the host ([`iolab_truth::vm::talk`]), or builds a random stack
//! ([`iolab_truth::vm::stack`]).

use std::fs::File;
use std::io::{BufRead, BufReader, Result, Write};
use std::path::Path;
use std::process::ExitCode;

use iolab_truth::system::warn;
use iolab_truth::vm::{stack, talk};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        [port] => serve(Path::new(port)),
        ["stack", seed] => seed
            .parse()
            .map_err(std::io::Error::other)
            .and_then(|seed| writeln!(std::io::stdout(), "{}", stack::of(seed))),
        _ => Err(std::io::Error::other("usage: guest PORT | stack SEED")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            warn(&format!("guest: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(port: &Path) -> Result<()> {
    let port = File::options().read(true).write(true).open(port)?;
    let mut answers = &port;
    writeln!(answers, "{}", talk::hello())?;
    for line in BufReader::new(&port).lines() {
        writeln!(answers, "{}", talk::answer(&line?))?;
    }
    Ok(())
}
