//! Rules: each examines the facts and reports one thing, or nothing.

mod backends;
mod cache;
mod data;
mod device;
mod direct;
mod limits;
mod load;
mod overlay;
mod processor;
mod target;

use std::path::Path;

use iolab_storage::TargetKind;

use super::facts::{Facts, TargetFacts};
use super::{Finding, Topic};

/// A rule; most make one finding or none.
pub(super) type Rule = fn(&Facts) -> Vec<Finding>;

/// Every rule, in the order in which its findings are reported within a topic.
pub(super) const ALL: &[Rule] = &[
    target::what,
    target::memory,
    target::kind_of_file_system,
    overlay::layers,
    target::mount_options,
    target::space,
    device::what,
    device::memory,
    device::looped,
    device::layers,
    device::traffic_is_counted,
    device::link,
    device::scheduler,
    device::write_cache,
    device::rotation,
    device::alignment,
    device::heat,
    direct::direct,
    data::written,
    data::zeros,
    data::compressed,
    data::encrypted,
    data::shared,
    data::fragmented,
    cache::memory,
    cache::of_device,
    cache::of_host,
    processor::clock,
    processor::count,
    processor::core_kinds,
    processor::frequency,
    processor::power,
    processor::mitigations,
    processor::smt,
    processor::huge_pages,
    processor::events,
    processor::pressure,
    limits::cpu_time,
    limits::memory,
    limits::traffic,
    limits::open_files,
    limits::locked_memory,
    load::processors,
    load::stolen,
    load::memory,
    load::device,
    load::kernel_settings,
    backends::work,
    backends::fail,
    backends::trims,
];

/// A text as one word of a shell command.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Folder that a target is or lies in.
fn folder(place: &TargetFacts) -> String {
    let parent = Path::new(&place.named).parent();
    match parent.filter(|_| place.kind == TargetKind::File) {
        Some(parent) if parent.as_os_str().is_empty() => ".".to_owned(),
        Some(parent) => quoted(&parent.to_string_lossy()),
        None => quoted(&place.named),
    }
}

fn one(finding: Finding) -> Vec<Finding> {
    vec![finding]
}

#[cfg(test)]
pub(super) mod testing {
    //! Helpers for the tests of the rules.

    use super::super::Severity;
    use super::{Facts, Finding, Rule};

    /// Severity and text of the only finding of a rule.
    #[track_caller]
    pub(crate) fn only(rule: Rule, facts: &Facts) -> (Severity, String, Option<String>) {
        let mut found: Vec<Finding> = rule(facts);
        assert_eq!(found.len(), 1, "{found:?}");
        let finding = found.remove(0);
        (finding.severity, finding.what, finding.remedy)
    }

    /// Whether a rule reports at most that all is fine.
    pub(crate) fn is_silent(rule: Rule, facts: &Facts) -> bool {
        rule(facts).iter().all(|f| f.severity == Severity::Fine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_keep_odd_names_in_one_piece() {
        assert_eq!(quoted("/mnt/disk-1"), "/mnt/disk-1");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's; rm"), r"'it'\''s; rm'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn facts_that_tell_nothing_break_no_rule() {
        let findings = super::super::diagnose(&Facts::default());
        assert!(findings.iter().all(|f| !f.what.is_empty()));
    }
}
