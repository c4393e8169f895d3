//! Damaged and hostile input: whatever is read from outside ends in a value or in an error, soon and in bounded memory.
//!
//! Each target runs for `IOLAB_FUZZ_SECONDS` (0.5 by default) on inputs that follow from `IOLAB_FUZZ_SEED` (1 by
//! default); for a long hunt: `IOLAB_FUZZ_SECONDS=600 IOLAB_FUZZ_SEED=$RANDOM cargo test --release --test fuzz`.

#![allow(clippy::print_stderr, reason = "what was found has to be told")]

#[path = "../support/mod.rs"]
mod support;

mod drive;
mod files;
mod mutate;
mod small;
mod texts;
