//! What examining a target and its machine has found, as plain data.

use std::fmt;

use crate::environment::Environment;

/// What a finding is about; in the order in which they are reported.
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
    /// It affects results; a reader should know.
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
    /// A finding without a remedy.
    pub fn new(
        topic: Topic,
        rule: &'static str,
        severity: Severity,
        what: impl Into<String>,
    ) -> Self {
        Self {
            topic,
            rule,
            severity,
            what: what.into(),
            remedy: None,
        }
    }

    /// A finding that all is as it should be.
    pub fn fine(topic: Topic, rule: &'static str, what: impl Into<String>) -> Self {
        Self::new(topic, rule, Severity::Fine, what)
    }

    /// A finding that readers of results should know.
    pub fn worth_knowing(topic: Topic, rule: &'static str, what: impl Into<String>) -> Self {
        Self::new(topic, rule, Severity::WorthKnowing, what)
    }

    /// A finding that makes results wrong.
    pub fn must_fix(topic: Topic, rule: &'static str, what: impl Into<String>) -> Self {
        Self::new(topic, rule, Severity::MustFix, what)
    }

    /// Adds a command that helps.
    #[must_use]
    pub fn remedy(mut self, command: impl Into<String>) -> Self {
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
