//! The findings of `iolab doctor` about a target and its machine, as plain data.

use std::fmt;

use crate::environment::Environment;

/// The subject of a finding; the variants are in the order of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// The target and its file system.
    Target,
    /// The block device below it.
    Device,
    /// Whether the page cache can be bypassed.
    DirectIo,
    /// The content of the blocks.
    Data,
    /// Caches that may serve requests instead of the device.
    Cache,
    /// The clock.
    Clock,
    /// The processors.
    Processor,
    /// Limits on this process.
    Limits,
    /// Load by other processes at the moment.
    Load,
    /// The backends.
    Backends,
}

impl Topic {
    /// Name of the topic in JSON.
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

/// The importance of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing to do.
    Fine,
    /// Results are affected, and readers should know.
    WorthKnowing,
    /// Results would be wrong or misattributed.
    MustFix,
}

impl Severity {
    /// Name of the severity in JSON.
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

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Subject of the finding.
    pub topic: Topic,
    /// Stable name of the rule that made it, for scripts.
    pub rule: &'static str,
    /// Importance of the finding.
    pub severity: Severity,
    /// The finding in words.
    pub what: String,
    /// A command that helps; `None` if none does.
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

    /// A finding of severity [`Severity::Fine`].
    pub fn fine(topic: Topic, rule: &'static str, what: impl Into<String>) -> Self {
        Self::new(topic, rule, Severity::Fine, what)
    }

    /// A finding of severity [`Severity::WorthKnowing`].
    pub fn worth_knowing(topic: Topic, rule: &'static str, what: impl Into<String>) -> Self {
        Self::new(topic, rule, Severity::WorthKnowing, what)
    }

    /// A finding of severity [`Severity::MustFix`].
    pub fn must_fix(topic: Topic, rule: &'static str, what: impl Into<String>) -> Self {
        Self::new(topic, rule, Severity::MustFix, what)
    }

    /// Sets a command that helps.
    #[must_use]
    pub fn remedy(mut self, command: impl Into<String>) -> Self {
        self.remedy = Some(command.into());
        self
    }
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
