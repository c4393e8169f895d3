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

#[cfg(test)]
mod tests {
    use super::super::super::Severity::WorthKnowing;
    use super::super::testing::{is_silent, only};
    use super::*;

    #[test]
    fn working_backends_are_listed_failures_explained() {
        let mut facts = Facts {
            backends: vec![
                ("psync".to_owned(), Attempt::Works(None)),
                ("libaio".to_owned(), Attempt::Works(None)),
            ],
            ..Facts::default()
        };
        insta::assert_snapshot!(only(work(&facts)).1, @"work here, each tried with one read: psync, libaio");
        assert!(is_silent(fail(&facts)));
        facts.backends.push((
            "io_uring".to_owned(),
            Attempt::Fails("not permitted".to_owned(), Some("sudo sysctl x".to_owned())),
        ));
        let (severity, what, remedy) = only(fail(&facts));
        assert_eq!(severity, WorthKnowing);
        assert_eq!(what, "io_uring does not work here: not permitted");
        assert_eq!(remedy.as_deref(), Some("sudo sysctl x"));
        assert!(work(&Facts::default()).is_none());
    }

    #[test]
    fn a_target_that_cannot_be_trimmed_says_why() {
        let with = |attempt| Facts {
            trims: Some(attempt),
            ..Facts::default()
        };
        let found = only(trims(&with(Attempt::Fails("no holes".to_owned(), None))));
        assert_eq!(found.1, "trim_percent cannot be used: no holes");
        let found = only(trims(&with(Attempt::Works(None))));
        assert_eq!(found.1, "trims work (trim_percent)");
        assert!(is_silent(trims(&Facts::default())));
    }
}
