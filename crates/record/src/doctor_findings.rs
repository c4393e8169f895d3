//! The findings of `iolab doctor` about a target and its machine, as plain data.

use iolab_workload::named;
use serde::Serialize;

use crate::environment::Environment;

named! {
    /// The subject of a finding; the variants are in the order of the output.
    #[derive(PartialOrd, Ord)]
    pub enum Topic: "topic" {
        /// The target and its file system.
        Target = "target",
        /// The block device below it.
        Device = "device",
        /// Whether the page cache can be bypassed.
        DirectIo = "direct I/O",
        /// The content of the blocks.
        Data = "data",
        /// Caches that may serve requests instead of the device.
        Cache = "cache",
        /// The clock.
        Clock = "clock",
        /// The processors.
        Processor = "processor",
        /// Limits on this process.
        Limits = "limits",
        /// Load by other processes at the moment.
        Load = "load",
        /// The backends.
        Backends = "backends",
    }
}

named! {
    /// The importance of a finding.
    #[derive(PartialOrd, Ord)]
    pub enum Severity: "severity" {
        /// Nothing to do.
        Fine = "fine",
        /// Results are affected, and readers should know.
        WorthKnowing = "worth knowing",
        /// Results would be wrong or misattributed.
        MustFix = "must fix",
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
