//! The binary end to end: arguments in, text, files and exit codes out. All in one program, which is linked
//! once. Tests that need a process of their own are in targets next to this one.

#[path = "../support/mod.rs"]
mod support;

// Tests of instruments.
#[cfg(feature = "gate")]
#[path = "../../../../instruments/gate/tests/command.rs"]
mod gate;

mod answers;
mod browser;
mod buffer;
mod compare;
mod computed;
mod doctor;
#[cfg(feature = "instruments")]
mod documented;
mod evidence;
mod falls;
mod faults;
mod file_circles;
mod groups;
#[cfg(feature = "gate")]
mod imported;
mod install;
mod installed;
mod interrupt;
mod limits;
mod lines;
mod live;
mod measure;
mod model;
mod model_claims;
mod moments;
mod old_kernel;
mod paths;
mod peers;
mod planted;
mod plot;
mod programs;
mod python;
#[cfg(feature = "instruments")]
mod reference;
mod refuse;
mod report;
mod rooms;
mod run_file;
#[cfg(feature = "instruments")]
mod screens;
mod show;
mod skips;
mod soak;
mod standard;
mod targets;
mod terminal;
mod truth_table;
mod typed;
mod verify;
mod why;
mod witness;
