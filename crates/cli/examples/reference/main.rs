//! Prints docs/REFERENCE.md: `cargo run -p iolab --example reference > docs/REFERENCE.md`.

#![allow(clippy::print_stdout, reason = "this is what the program is for")]

#[allow(unreachable_pub)]
mod page;

fn main() {
    print!("{}", page::page(iolab::program(), &iolab::lists()));
}
