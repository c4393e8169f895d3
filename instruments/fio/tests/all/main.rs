//! Job files as experiments, and experiments as jobs. One program, so that it is linked once.

#[path = "../../../../crates/plan/tests/all/cases.rs"]
mod cases;
mod described;
mod jobs;
#[path = "../../../../crates/plan/tests/all/line_files.rs"]
mod line_files;
mod written;
