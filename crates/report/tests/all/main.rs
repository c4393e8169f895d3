//! Texts and documents about made-up runs. One program, so that it is linked once.

#![allow(clippy::disallowed_fields)] // records are made up

mod browser;
mod compare;
mod first_lines;
mod live;
mod overview;
mod pages;
mod report;
mod schema;
mod screen;
mod slo;
mod snapshots;
mod timed;
