//! iolab-lab: experiment, plan, runner, evidence, environment, run file, analysis.

pub mod analysis;
pub mod ceiling;
pub mod cells;
pub mod command;
pub mod compare;
pub mod course;
pub mod crossing;
pub mod curve;
pub mod doctor;
mod document;
mod elf;
pub mod environment;
pub mod evidence;
pub mod experiment;
pub mod findings;
pub mod import;
pub mod knots;
pub mod numbers;
pub mod optimum;
pub mod pace;
pub mod peer;
pub mod plan;
pub mod precondition;
pub mod probe;
pub mod quantity;
pub mod record;
pub mod refine;
pub mod runfile;
pub mod runner;
pub mod settings;
pub mod suite;
pub mod thresholds;
pub mod timeline;
pub mod units;
pub mod workload;

pub use iolab_engine::{Error, Kind, Result};
