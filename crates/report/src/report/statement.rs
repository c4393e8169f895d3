//! Findings as the report prints them, each with its basis.

use crate::findings::{Finding, FindingKind};

use super::clean;
use super::section::Section;
use crate::notation::on_page;

/// A finding with its basis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    /// The finding, in words.
    pub(super) text: String,
    /// The basis, in words.
    pub(super) basis: String,
}

/// Statements with the same subject.
#[derive(Debug, Clone)]
pub(super) struct StatementGroup {
    /// Subject of the statements.
    pub(super) about: About,
    pub(super) statements: Vec<Statement>,
}

impl Statement {
    /// The text with each share and its sign kept on one line.
    pub(super) fn bound(&self) -> String {
        on_page(&self.text)
    }
}

/// The subject of a group of statements.
#[derive(Debug, Clone)]
pub(super) enum About {
    /// Several experiments together.
    Together,
    /// Several experiments that each make the same statement: the name of each, and the id of its section.
    Several(Vec<(String, String)>),
    /// One experiment: its name, the id of its section, and the trials that its findings are based on.
    One {
        name: String,
        id: String,
        trials: String,
    },
}

impl About {
    /// The subject as text, for formats without links.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Together => "All together".to_owned(),
            Self::One { name, .. } => name.clone(),
            Self::Several(names) => {
                let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
                names.join(", ")
            }
        }
    }

    /// The trials that the statements are based on; empty if each experiment's section reports them.
    pub(super) fn trials(&self) -> &str {
        match self {
            Self::One { trials, .. } => trials,
            _ => "",
        }
    }
}

/// The findings of one kind by subject, without empty groups. Statements that several experiments share come
/// before statements on single experiments.
pub(super) fn groups(
    kind: FindingKind,
    together: &[Finding],
    each: &[Vec<Finding>],
    sections: &[Section],
) -> Vec<StatementGroup> {
    let place = |section: &Section| (section.name.clone(), section.id.clone());
    let mut groups = vec![StatementGroup {
        about: About::Together,
        statements: statements(kind, together),
    }];
    let mut alone: Vec<StatementGroup> = Vec::new();
    let all: Vec<Vec<Statement>> = each.iter().map(|f| statements(kind, f)).collect();
    for (i, (own, section)) in all.iter().zip(sections).enumerate() {
        let mut group = StatementGroup {
            about: About::One {
                name: section.name.clone(),
                id: section.id.clone(),
                trials: section.trials.clone(),
            },
            statements: Vec::new(),
        };
        for statement in own {
            let sharers = all.iter().zip(sections);
            let sharers = sharers.filter(|(theirs, _)| theirs.contains(statement));
            let names: Vec<(String, String)> = sharers.map(|(_, s)| place(s)).collect();
            if names.len() < 2 {
                group.statements.push(statement.clone());
            } else if !all[..i].iter().any(|before| before.contains(statement)) {
                tell_once(&mut groups, names, statement);
            }
        }
        alone.push(group);
    }
    groups.extend(alone);
    groups.retain(|group| !group.statements.is_empty());
    groups
}

/// Adds a statement to the group of the experiments that make it.
fn tell_once(
    groups: &mut Vec<StatementGroup>,
    names: Vec<(String, String)>,
    statement: &Statement,
) {
    let theirs =
        |group: &&mut StatementGroup| matches!(&group.about, About::Several(n) if *n == names);
    match groups.iter_mut().find(theirs) {
        Some(group) => group.statements.push(statement.clone()),
        None => groups.push(StatementGroup {
            about: About::Several(names),
            statements: vec![statement.clone()],
        }),
    }
}

/// The findings of one kind, with their basis.
pub(super) fn statements(kind: FindingKind, findings: &[Finding]) -> Vec<Statement> {
    let of_kind = findings.iter().filter(|finding| finding.rule.kind == kind);
    of_kind
        .map(|finding| Statement {
            text: clean(&finding.text),
            basis: finding.rule.basis.to_owned(),
        })
        .collect()
}
