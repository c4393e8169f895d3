//! Experiments, plans and explanations as lines of text, and what follows from each. One program, so that it is linked once.

mod builtin;
mod cases;
mod documents;
mod fitted;
mod grouped;
mod line_files;
mod lines;
mod plans;
mod properties;
mod standard;
