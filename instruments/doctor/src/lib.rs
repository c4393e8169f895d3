//! iolab-doctor: properties of a target and a machine, the trust they deserve, and recommended settings. Facts
//! are collected, and pure rules turn them into findings. Reports state what is in effect, never what was
//! requested.
//!
//! Files to begin with: `facts.rs` and `probes.rs` (facts, and those that need a trial), `rules/` (one function per
//! rule), `preflight.rs` (checks right before a run), `command.rs` (the command).

pub mod command;
mod facts;
mod preflight;
mod probes;
mod rules;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use iolab_command::lists::{Command, Lists};
use iolab_host::clock::Clock;
use iolab_record::environment::Environment;
use iolab_runner::campaign::Program;
use iolab_runner::environment;
use iolab_runner::preflight::{Finding, Severity, Topic};
use iolab_storage::Target;
use iolab_workload::{Error, Result};

pub use facts::{Attempt, Direct, Facts, Space, TargetContent, TargetFacts, TimeStamps, Transfer};
pub use preflight::preflight;

/// The rows of this instrument.
pub fn lists(program: Program) -> Lists {
    Lists {
        commands: vec![Command::new(
            "doctor",
            "Check a target and this machine: what to trust, what to set",
            move |options, _| command::doctor(options, program),
        )],
        ..Lists::default()
    }
}

/// Examines a target: reads the system's information, and probes what it only promises. Writes to a scratch
/// file in a directory, and nowhere else. Takes about a second.
///
/// # Errors
/// As [`Target::open`], when the target cannot be used at all; of kind [`Failed`](iolab_workload::Kind::Failed)
/// when the scratch file cannot be filled; of kind [`Interrupted`](iolab_workload::Kind::Interrupted) soon
/// after `stop` is raised.
pub fn examine(named: &Path, clock: &Clock, stop: &AtomicBool) -> Result<Diagnosis> {
    let target = Target::open(named, &probes::need(named))?;
    let facts = probes::everything(named, &target, clock, stop)?;
    if stop.load(Ordering::Relaxed) {
        return Err(Error::interrupted());
    }
    let diagnosis = Diagnosis {
        target: facts.place.named.clone(),
        kind: facts.place.kind_name(),
        findings: diagnose(&facts),
        environment: environment::capture(&target, clock),
    };
    target.remove()?;
    Ok(diagnosis)
}

/// Findings of the rules on facts, in the order of their topics.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = rules::findings(facts).collect();
    findings.sort_by_key(|finding| finding.topic);
    findings
}

/// All findings about one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The target as the user wrote it.
    pub target: String,
    /// `directory`, `file`, `block-device`, `char-device`.
    pub kind: &'static str,
    /// The findings, ordered by topic.
    pub findings: Vec<Finding>,
    /// Facts about machine, kernel, file system and device, as in run files.
    pub environment: Environment,
}

impl Diagnosis {
    /// Number of findings with this severity.
    pub fn count(&self, severity: Severity) -> usize {
        let of_it = |finding: &&Finding| finding.severity == severity;
        self.findings.iter().filter(of_it).count()
    }
}
