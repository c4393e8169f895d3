//! Probes of the ways to issue requests.

use super::super::facts::Attempt;
use super::{Facts, Said, fine, worth_knowing};

/// Backends that work.
pub(super) fn work(facts: &Facts) -> Option<Said> {
    let names: Vec<&str> = facts
        .backends
        .iter()
        .filter(|(_, attempt)| matches!(attempt, Attempt::Works(None)))
        .map(|(name, _)| name.as_str())
        .collect();
    if names.is_empty() {
        return None;
    }
    Some(fine(format!(
        "work here, each tried with one read: {}",
        names.join(", ")
    )))
}

/// Backends that fail, or do not work as requested.
pub(super) fn fail(facts: &Facts) -> Vec<Said> {
    facts
        .backends
        .iter()
        .filter_map(|(name, attempt)| {
            let (what, remedy) = match attempt {
                Attempt::Works(None) => return None,
                Attempt::Works(Some(remark)) => (format!("{name} works, but: {remark}"), None),
                Attempt::Fails(why, remedy) => {
                    (format!("{name} does not work here: {why}"), remedy.clone())
                }
            };
            let mut finding = worth_knowing(what);
            finding.remedy = remedy;
            Some(finding)
        })
        .collect()
}

/// Whether the target can be trimmed.
pub(super) fn trims(facts: &Facts) -> Option<Said> {
    match &facts.trims {
        None => None,
        Some(Attempt::Works(_)) => Some(fine("trims work (trim_percent)".to_owned())),
        Some(Attempt::Fails(why, _)) => Some(fine(format!("trim_percent cannot be used: {why}"))),
    }
}
