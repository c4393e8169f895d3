//! Writes the man pages, one for each command, into a directory: `cargo run -p iolab --example man -- DIR`.

// The arguments of the binary, of which nothing but their help is used here.
#[allow(dead_code, unreachable_pub, unused_imports)]
#[path = "../src"]
mod source {
    pub mod arguments;
}

use std::path::Path;

use clap::CommandFactory;

/// The arguments of the binary.
pub fn program() -> clap::Command {
    source::arguments::Arguments::command()
}

/// Writes all of them into this folder, which exists.
pub fn write(folder: &Path) -> std::io::Result<()> {
    clap_mangen::generate_to(program(), folder)
}

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1) else {
        return Err(std::io::Error::other("usage: man DIR"));
    };
    std::fs::create_dir_all(&folder)?;
    write(Path::new(&folder))
}
