//! Writes the man pages, one for each command, into a directory: `cargo run -p iolab --example man -- DIR`.

use std::path::Path;

/// Writes all of them into this folder, which exists.
pub fn write(folder: &Path) -> std::io::Result<()> {
    clap_mangen::generate_to(iolab::program(), folder)
}

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1) else {
        return Err(std::io::Error::other("usage: man DIR"));
    };
    std::fs::create_dir_all(&folder)?;
    write(Path::new(&folder))
}
