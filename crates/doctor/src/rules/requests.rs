//! Settings of requests that not every kernel, file system and device supports.

use super::super::facts::Attempt;
use super::{Facts, Finding, Topic, one};

/// Those that are supported.
pub(super) fn known(facts: &Facts) -> Vec<Finding> {
    let known: Vec<String> = facts
        .requests
        .iter()
        .filter_map(|(name, attempt)| match attempt {
            Attempt::Works(None) => Some(name.clone()),
            Attempt::Works(Some(remark)) => Some(format!("{name} ({remark})")),
            Attempt::Fails(..) => None,
        })
        .collect();
    if known.is_empty() {
        return Vec::new();
    }
    one(Finding::fine(
        Topic::Backends,
        "requests",
        format!("supported settings: {}", known.join(", ")),
    ))
}

/// Those that are not, with the reason.
pub(super) fn unknown(facts: &Facts) -> Vec<Finding> {
    let refused = |(name, attempt): &(String, Attempt)| match attempt {
        Attempt::Works(_) => None,
        Attempt::Fails(why, _) => Some(Finding::fine(
            Topic::Backends,
            "no-requests",
            format!("{name} cannot be used: {why}"),
        )),
    };
    facts.requests.iter().filter_map(refused).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_silent, only};
    use super::*;

    #[test]
    fn what_is_known_is_listed_and_what_is_not_says_why() {
        let facts = Facts {
            requests: vec![
                ("dontcache".to_owned(), Attempt::Works(None)),
                (
                    "atomic".to_owned(),
                    Attempt::Works(Some("4KiB to 16KiB".to_owned())),
                ),
                (
                    "trim_percent".to_owned(),
                    Attempt::Fails("no holes".to_owned(), None),
                ),
            ],
            ..Facts::default()
        };
        assert_eq!(
            only(known, &facts).1,
            "supported settings: dontcache, atomic (4KiB to 16KiB)"
        );
        assert_eq!(
            only(unknown, &facts).1,
            "trim_percent cannot be used: no holes"
        );
        assert!(is_silent(unknown, &facts));
        assert!(known(&Facts::default()).is_empty());
    }
}
