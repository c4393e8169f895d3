//! The binary end to end: arguments in, text, files and exit codes out. All in one program, which is linked
//! once. Tests that need a process of their own are in targets beside this one.

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod browser;
mod buffer;
mod compare;
mod computed;
mod doctor;
mod documented;
mod evidence;
mod falls;
mod faults;
mod file_circles;
mod gate;
mod groups;
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
mod reference;
mod refuse;
mod report;
mod rooms;
mod run_file;
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
