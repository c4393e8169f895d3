//! What a target and a machine are, what can be trusted on them, and what to set: facts are gathered, pure rules make
//! findings of them. What is in effect is reported, never what was asked for.

mod content;
mod facts;
mod gather;
mod preflight;
mod rules;
mod tries;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use iolab_engine::clock::Clock;
use iolab_engine::target::Target;
use iolab_engine::{Error, Result};

pub use content::Content;
pub use facts::{Attempt, Direct, Facts, Limits, Place, Space, Transfer};
pub use preflight::{Preflight, Remark};

use crate::environment::{self, Environment};

/// What a finding is about; in the order in which they are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// What is measured, and the file system around it.
    Target,
    /// The block device below.
    Device,
    /// Whether the page cache can be passed.
    DirectIo,
    /// What the blocks hold.
    Data,
    /// Caches that may stand in for the device.
    Cache,
    /// The clock.
    Clock,
    /// The processors.
    Processor,
    /// Limits on this process.
    Limits,
    /// What others do right now.
    Load,
    /// The ways to issue requests.
    Backends,
}

impl Topic {
    /// Its name in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Topic::Target => "target",
            Topic::Device => "device",
            Topic::DirectIo => "direct-io",
            Topic::Data => "data",
            Topic::Cache => "cache",
            Topic::Clock => "clock",
            Topic::Processor => "processor",
            Topic::Limits => "limits",
            Topic::Load => "load",
            Topic::Backends => "backends",
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Topic::DirectIo => "direct I/O",
            other => other.key(),
        })
    }
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// As it should be.
    Fine,
    /// It colours results; whoever reads them should know.
    WorthKnowing,
    /// Results would be wrong, or be called something that they are not.
    MustFix,
}

impl Severity {
    /// Its name in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Severity::Fine => "fine",
            Severity::WorthKnowing => "worth-knowing",
            Severity::MustFix => "must-fix",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Fine => "fine",
            Severity::WorthKnowing => "worth knowing",
            Severity::MustFix => "must fix",
        })
    }
}

/// One line of the diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub topic: Topic,
    /// Name of the rule that made it: stable, for scripts.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// A command that helps.
    pub remedy: Option<String>,
}

impl Finding {
    fn new(topic: Topic, rule: &'static str, severity: Severity, what: impl Into<String>) -> Self {
        Self {
            topic,
            rule,
            severity,
            what: what.into(),
            remedy: None,
        }
    }

    fn fine(topic: Topic, rule: &'static str, what: impl Into<String>) -> Self {
        Self::new(topic, rule, Severity::Fine, what)
    }

    fn worth_knowing(topic: Topic, rule: &'static str, what: impl Into<String>) -> Self {
        Self::new(topic, rule, Severity::WorthKnowing, what)
    }

    fn must_fix(topic: Topic, rule: &'static str, what: impl Into<String>) -> Self {
        Self::new(topic, rule, Severity::MustFix, what)
    }

    fn remedy(mut self, command: impl Into<String>) -> Self {
        self.remedy = Some(command.into());
        self
    }
}

/// Everything that was found on one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The target as the user named it.
    pub target: String,
    /// `directory`, `file`, `block-device`, `char-device`.
    pub kind: &'static str,
    /// The findings, by topic.
    pub findings: Vec<Finding>,
    /// Machine, kernel, file system and device, as run files keep them.
    pub environment: Environment,
}

impl Diagnosis {
    /// How many findings have this severity.
    pub fn count(&self, severity: Severity) -> usize {
        let of_it = |finding: &&Finding| finding.severity == severity;
        self.findings.iter().filter(of_it).count()
    }
}

/// Examines a target: reads what the system tells, and tries what it only promises. Writes to a scratch file of our own
/// in a directory, and nowhere else. Takes about a second.
///
/// # Errors
/// As [`Target::open`], when the target cannot be used at all; of kind failed when the scratch file cannot be filled;
/// of kind interrupted soon after `stop` is raised.
pub fn examine(named: &Path, clock: &Clock, stop: &AtomicBool) -> Result<Diagnosis> {
    let target = Target::open(named, &gather::need(named))?;
    let facts = gather::everything(named, &target, clock, stop)?;
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

/// The findings that the rules make of facts, in the order of their topics.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = rules::ALL.iter().flat_map(|rule| rule(facts)).collect();
    findings.sort_by_key(|finding| finding.topic);
    findings
}
