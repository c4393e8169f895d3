//! Helpers of the tests of trial checks: trials written as settings, and the messages of refused ones.

use super::TrialSpec;
use crate::Kind;
use crate::settings::{CellSpec, Setting};

/// The default trial with these settings, separated by spaces.
pub(super) fn trial(sets: &str) -> TrialSpec {
    let mut cell = CellSpec::default();
    for set in sets.split_whitespace() {
        let (name, value) = set.split_once('=').expect(set);
        let setting = Setting::find(name).expect(set);
        setting.set(&mut cell, value).expect(set);
    }
    cell.trial
}

/// The message about each of these changes to a trial with the settings `possible`, a line each: a text for a snapshot.
pub(super) fn refusals(possible: &str, changes: &[&str]) -> String {
    trial(possible).check().expect(possible);
    let told = changes.iter().map(|change| {
        let wrong = trial(&format!("{possible} {change}"));
        let error = wrong.check().expect_err(change);
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        assert!(error.remedy().is_some(), "{error}");
        format!("{change}: {}", error.message())
    });
    told.collect::<Vec<_>>().join("\n")
}
