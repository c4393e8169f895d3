//! Rules: what a finding is for, and what it rests on.

use iolab_analysis::analysis::Analysis;
use schemars::JsonSchema;
use serde::Serialize;

use super::Finding;

/// What the number of requests that reach the device rests on.
pub(crate) const DEVICE_REQUESTS: &str =
    "the device's count of requests over iolab's, in each trial";

/// What a sentence is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Purpose")]
pub enum FindingKind {
    /// It answers a question.
    Result,
    /// It says how far the numbers can be trusted.
    Doubt,
    /// It says what the numbers do not tell.
    Limit,
}

/// What all findings of one sort have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name in reports.
    pub name: &'static str,
    /// What its sentences are for.
    pub kind: FindingKind,
    /// What they rest on.
    pub basis: &'static str,
}

impl Rule {
    /// A rule that answers a question.
    pub(crate) const fn result(name: &'static str, basis: &'static str) -> Self {
        Self::new(name, FindingKind::Result, basis)
    }

    /// A rule that says how far numbers can be trusted.
    pub(crate) const fn doubt(name: &'static str, basis: &'static str) -> Self {
        Self::new(name, FindingKind::Doubt, basis)
    }

    /// A rule that says what numbers do not tell.
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

/// A function that says something of one run, or nothing.
pub(crate) type Says = fn(&Analysis) -> Vec<Finding>;
