//! Job files as experiments, and experiments as jobs. One program, so that it is linked once.

mod described;
mod jobs;
#[path = "../../../plan/tests/all/line_files.rs"]
mod line_files;
mod written;
