//! iolab-run: carries a plan out: runner, evidence, import.
//!
//! Files to begin with: `runner.rs` (`runner/session.rs` a run under way, `runner/strategy.rs` what it measures next,
//! `runner/repetition.rs` the stopping rule, `runner/execute.rs` the engine behind a trait, `runner/place.rs` what is measured: target, programs or model,
//! `runner/simulated.rs` models), `evidence.rs` counters to `served_by`.

mod elf;
pub mod evidence;
pub mod import;
pub mod peak_probe;
pub mod probe;
pub mod runner;
