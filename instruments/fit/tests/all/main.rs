//! Requirements, and answers from made-up runs. One program, so that it is linked once.

#![allow(clippy::disallowed_fields)] // records are made up

#[path = "../../../../crates/plan/tests/all/cases.rs"]
mod cases;
mod fitness;
mod requirements;
#[path = "../../../../crates/report/tests/all/timed.rs"]
mod timed;
