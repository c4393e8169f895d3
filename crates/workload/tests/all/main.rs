//! Settings, trials, groups and words, as tables with one driver each. One program, so that it is linked once.

#[path = "../../../plan/tests/all/cases.rs"]
mod cases;
mod cells;
#[path = "../../../plan/tests/all/grouped.rs"]
mod grouped;
mod groups;
#[path = "../../../plan/tests/all/line_files.rs"]
mod line_files;
mod parts;
mod refusals;
mod series;
mod values;
mod words;
