//! Differences that runs show and that can be explained, the experiments that do so, and their words. One program, so that it is linked once.

#[path = "../../../../crates/plan/tests/all/cases.rs"]
mod cases;
mod inquiries;
#[path = "../../../../crates/plan/tests/all/line_files.rs"]
mod line_files;
mod phenomena;
mod signs;
mod words;
