//! iolab-doctor: properties of a target and a machine, the trust they deserve, and recommended settings. Facts
//! are collected, and pure rules turn them into findings. Reports state what is in effect, never what was
//! requested.
//!
//! Files to begin with: `environment.rs` (environment of a run), `facts.rs` and `probes.rs` (facts, and those
//! that need a trial), `rules/` (one function per rule), `preflight.rs` (checks right before a run).

pub mod environment;
mod facts;
mod preflight;
mod probes;
mod rules;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use iolab_host::clock::Clock;
use iolab_storage::Target;
use iolab_workload::{Error, Result};

pub use iolab_record::doctor_findings::{Diagnosis, Finding, Severity, Topic};

pub use facts::{Attempt, Direct, Facts, Space, TargetContent, TargetFacts, TimeStamps, Transfer};
pub use preflight::{Preflight, Remark, remarks_of_targets};

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
