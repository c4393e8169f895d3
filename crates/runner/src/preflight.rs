//! Examinations of targets and machine before the first trial, and their findings as plain data.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use iolab_host::clock::Clock;
use iolab_storage::Target;
use iolab_workload::named;
use iolab_workload::settings::CellSpec;
use serde::Serialize;

/// An examination of one target and the machine.
pub trait Preflight {
    /// Remarks on an experiment with these cells, the most important first.
    fn remarks(&self, cells: &[&CellSpec]) -> Vec<Remark>;
}

/// Examines a filled target with its name, and the machine. Direct I/O is probed if the last argument is set, which
/// writes to a scratch file. Raising the flag ends the probes early.
pub type NewPreflight = fn(&Path, &Target, &Clock, &AtomicBool, bool) -> Box<dyn Preflight>;

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

/// A finding, and whether the user should see it before the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The finding, never with severity fine.
    pub finding: Finding,
    /// Whether the remark affects the experiment, and is not common to all runs.
    pub shown: bool,
}

impl Remark {
    /// The finding in one line, with the command that helps.
    pub fn text(&self) -> String {
        match &self.finding.remedy {
            Some(command) => format!("{}; remedy: {command}", self.finding.what),
            None => self.finding.what.clone(),
        }
    }
}

/// Remarks on the targets of a run. A remark shared by several is made once. A remark on one target, but not on
/// the machine, names that target if there are several.
pub(crate) fn remarks_of_targets(each: Vec<(String, Vec<Remark>)>) -> Vec<Remark> {
    let are_several = each.len() > 1;
    let mut merged: Vec<(Remark, Vec<String>)> = Vec::new();
    for (target, remarks) in each {
        for remark in remarks {
            let known = merged.iter_mut().find(|(known, _)| is_same(known, &remark));
            match known {
                Some((known, targets)) => {
                    known.shown |= remark.shown;
                    targets.push(target.clone());
                }
                None => merged.push((remark, vec![target.clone()])),
            }
        }
    }
    let named = merged.into_iter().map(|(mut remark, targets)| {
        if are_several && is_of_target(remark.finding.topic) {
            remark.finding.what = format!("{}: {}", targets.join(", "), remark.finding.what);
        }
        remark
    });
    named.collect()
}

/// Whether two remarks are the same. The load of a machine or a device differs from one look to the next; the
/// command that shows it names the device.
fn is_same(known: &Remark, other: &Remark) -> bool {
    fn what(finding: &Finding) -> (Topic, &str, Option<&str>) {
        (finding.topic, finding.rule, finding.remedy.as_deref())
    }
    match known.finding.topic {
        Topic::Load => what(&known.finding) == what(&other.finding),
        _ => known.finding == other.finding,
    }
}

/// Whether a finding is about a target without naming it.
fn is_of_target(topic: Topic) -> bool {
    match topic {
        Topic::Target | Topic::Device | Topic::DirectIo | Topic::Data | Topic::Cache => true,
        Topic::Clock | Topic::Processor | Topic::Limits | Topic::Load | Topic::Backends => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rule: &'static str, what: &str, remedy: &str) -> Remark {
        Remark {
            finding: Finding::worth_knowing(Topic::Load, rule, what).remedy(remedy),
            shown: true,
        }
    }

    fn discard() -> Remark {
        Remark {
            finding: Finding::worth_knowing(Topic::Target, "mount-option", "mounted with discard"),
            shown: true,
        }
    }

    fn texts(each: Vec<(&str, Vec<Remark>)>) -> Vec<String> {
        let each = each.into_iter();
        let each = each.map(|(target, remarks)| (target.to_owned(), remarks));
        let all = remarks_of_targets(each.collect());
        all.into_iter().map(|one| one.finding.what).collect()
    }

    #[test]
    fn what_two_targets_share_is_said_once() {
        let one = |busy| {
            vec![
                load("processors", busy, "top"),
                load("device", busy, "iostat vda"),
            ]
        };
        assert_eq!(
            texts(vec![("/a", one("20 %")), ("/b", one("30 %"))]),
            ["20 %", "20 %"]
        );
        let other = vec![load("device", "5 MB/s", "iostat sdb")];
        assert_eq!(
            texts(vec![("/a", one("20 %")), ("/b", other)]),
            ["20 %", "20 %", "5 MB/s"]
        );
    }

    #[test]
    fn what_only_some_targets_show_names_them() {
        let of = |each: &[&'static str], plain: &[&'static str]| {
            let with = each.iter().map(|target| (*target, vec![discard()]));
            let without = plain.iter().map(|target| (*target, Vec::new()));
            texts(with.chain(without).collect())
        };
        assert_eq!(of(&["/a"], &["/b"]), ["/a: mounted with discard"]);
        assert_eq!(of(&["/a", "/b"], &[]), ["/a, /b: mounted with discard"]);
        assert_eq!(of(&["/a"], &[]), ["mounted with discard"]);
    }
}
