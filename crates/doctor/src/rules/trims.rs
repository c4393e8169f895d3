//! Report whether the target can be trimmed.

use super::super::facts::Attempt;
use super::{Facts, Finding, Topic, one};

pub(super) fn possible(facts: &Facts) -> Vec<Finding> {
    match &facts.trims {
        None => Vec::new(),
        Some(Attempt::Works(_)) => one(Finding::fine(
            Topic::Backends,
            "trims",
            "trims work (trim_percent)".to_owned(),
        )),
        Some(Attempt::Fails(why, _)) => one(Finding::fine(
            Topic::Backends,
            "no-trims",
            format!("trim_percent cannot be used: {why}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_silent, only};
    use super::*;

    #[test]
    fn a_target_that_cannot_be_trimmed_says_why() {
        let with = |trims| Facts {
            trims: Some(trims),
            ..Facts::default()
        };
        let found = only(possible, &with(Attempt::Fails("no holes".to_owned(), None)));
        assert_eq!(found.1, "trim_percent cannot be used: no holes");
        let found = only(possible, &with(Attempt::Works(None)));
        assert_eq!(found.1, "trims work (trim_percent)");
        assert!(is_silent(possible, &Facts::default()));
    }
}
