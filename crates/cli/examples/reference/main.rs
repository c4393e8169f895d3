//! Prints docs/REFERENCE.md: `cargo run -p iolab --example reference > docs/REFERENCE.md`.

#![allow(clippy::print_stdout, reason = "this is what the program is for")]

// The arguments of the binary, of which nothing but their help is used here.
#[allow(dead_code, unreachable_pub, unused_imports)]
#[path = "../../src"]
mod source {
    pub mod arguments;
}

#[allow(unreachable_pub)]
mod page;

use clap::CommandFactory;

fn main() {
    print!("{}", page::page(source::arguments::Arguments::command()));
}
