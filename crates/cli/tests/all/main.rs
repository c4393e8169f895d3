//! The binary end to end: arguments in, text, files and exit codes out. All in one program, which is linked
//! once. Tests that need a process of their own are in targets next to this one.

#[path = "../support/mod.rs"]
mod support;

// Tests of instruments.
#[cfg(all(feature = "measure", feature = "doctor"))]
#[path = "../../../../instruments/doctor/tests/command.rs"]
mod doctor;
#[cfg(all(feature = "measure", feature = "limits"))]
#[path = "../../../../instruments/limits/tests/command.rs"]
mod exported_limits;
#[cfg(all(feature = "measure", feature = "fit"))]
#[path = "../../../../instruments/fit/tests/command.rs"]
mod fit;
#[cfg(all(feature = "measure", feature = "programs"))]
#[path = "../../../../instruments/programs/tests/command.rs"]
mod programs;
#[cfg(feature = "replay")]
#[path = "../../../../instruments/replay/tests/command.rs"]
mod replay;
#[cfg(all(feature = "measure", feature = "time"))]
#[path = "../../../../instruments/time/tests/command.rs"]
mod time;
#[cfg(all(feature = "measure", feature = "witness"))]
#[path = "../../../../instruments/witness/tests/command.rs"]
mod witness;

mod commands;
#[cfg(feature = "instruments")]
mod documented;
mod faults;
mod file_circles;
mod installed;
mod interrupt;
mod limits;
mod live;
mod moments;
mod old_kernel;
mod paths;
#[cfg(all(feature = "measure", feature = "fio", feature = "iozone"))]
mod peers;
mod python;
#[cfg(feature = "instruments")]
mod reference;
mod rooms;
mod run_file;
mod schemas;
mod terminal;
mod truth_table;
