//! Rules: the purpose of a finding, and its basis.

use iolab_analysis::analysis::Analysis;
use schemars::JsonSchema;
use serde::Serialize;

use super::Finding;

/// Basis of the number of requests that reach the device.
pub(crate) const DEVICE_REQUESTS: &str =
    "the device's count of requests over iolab's, in each trial";

/// Purpose of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Purpose")]
pub enum FindingKind {
    /// Answers a question.
    Result,
    /// States how far the numbers can be trusted.
    Doubt,
    /// States what the numbers do not show.
    Limit,
}

/// Properties that all findings of one sort share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Name of the rule in reports.
    pub name: &'static str,
    /// Purpose of its sentences.
    pub kind: FindingKind,
    /// Basis of its sentences.
    pub basis: &'static str,
}

impl Rule {
    /// A rule that answers a question.
    pub(crate) const fn result(name: &'static str, basis: &'static str) -> Self {
        Self::new(name, FindingKind::Result, basis)
    }

    /// A rule that states how far numbers can be trusted.
    pub(crate) const fn doubt(name: &'static str, basis: &'static str) -> Self {
        Self::new(name, FindingKind::Doubt, basis)
    }

    /// A rule that states what numbers do not show.
    pub(crate) const fn limit(name: &'static str, basis: &'static str) -> Self {
        Self::new(name, FindingKind::Limit, basis)
    }

    const fn new(name: &'static str, kind: FindingKind, basis: &'static str) -> Self {
        Self { name, kind, basis }
    }

    /// The only finding of a function.
    pub(crate) fn one(self, text: String) -> Vec<Finding> {
        vec![Finding { rule: self, text }]
    }
}

/// A function with the findings of one rule on a run.
pub(crate) type Says = fn(&Analysis) -> Vec<Finding>;
