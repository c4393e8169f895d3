//! Findings as the report prints them: each with what it rests on.

use iolab_lab::findings::{Finding, Kind};

use super::clean;
use super::section::Section;

/// A finding with what is behind it.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    /// The finding, in words.
    pub(super) text: String,
    /// What it rests on.
    pub(super) basis: String,
}

/// The statements about one experiment, or about all of them.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// Name of the experiment, and the id of its section; `None` for what several experiments tell together.
    pub(super) about: Option<(String, String)>,
    pub(super) statements: Vec<Statement>,
}

/// The findings of one kind; groups without any are left out.
pub(super) fn groups(
    kind: Kind,
    together: &[Finding],
    each: &[Vec<Finding>],
    sections: &[Section],
) -> Vec<Group> {
    let of_all = Group {
        about: None,
        statements: statements(kind, together, ""),
    };
    let of_each = each.iter().zip(sections).map(|(findings, section)| Group {
        about: Some((section.name.clone(), section.id.clone())),
        statements: statements(kind, findings, &section.trials),
    });
    let all = std::iter::once(of_all).chain(of_each);
    all.filter(|group| !group.statements.is_empty()).collect()
}

/// The findings of one kind, with what they and these trials give them to rest on.
pub(super) fn statements(kind: Kind, findings: &[Finding], trials: &str) -> Vec<Statement> {
    let of_kind = findings.iter().filter(|finding| finding.kind() == kind);
    of_kind
        .map(|finding| {
            let parts = [finding.basis(), trials];
            let parts: Vec<&str> = parts.into_iter().filter(|p| !p.is_empty()).collect();
            Statement {
                text: clean(&finding.text),
                basis: parts.join("; "),
            }
        })
        .collect()
}
