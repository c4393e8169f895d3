//! iolab-run: carries a plan out: runner, evidence, import.

mod elf;
pub mod evidence;
pub mod import;
pub mod peak_probe;
pub mod probe;
pub mod runner;
