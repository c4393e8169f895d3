//! Findings sorted by the experiments that they are about.

use crate::block::Item;
use crate::findings::{Finding, FindingKind};

use super::clean;
use super::file_names::id;

/// The findings of a report.
pub(super) struct Findings {
    /// Findings of each run alone.
    pub(super) each: Vec<Vec<Item>>,
    /// Findings of several experiments.
    pub(super) across: Vec<Item>,
    /// Choices of settings.
    pub(super) choices: Vec<Item>,
    /// Limits that several experiments share.
    pub(super) limits: Vec<Item>,
    /// Names of the rules of all findings.
    pub(super) rules: Vec<&'static str>,
}

impl Findings {
    /// Sorts the findings of runs with these names. A finding of several runs is printed once.
    pub(super) fn new(
        together: &[Finding],
        choices: &[Finding],
        each: &[Vec<Finding>],
        names: &[String],
    ) -> Self {
        let all: Vec<Vec<(FindingKind, Item)>> = each.iter().map(|own| items(own)).collect();
        let mut shared = items(together);
        let alone = all.iter().map(|own| {
            let mut alone = Vec::new();
            for (kind, item) in own {
                let sharers = all.iter().zip(names).enumerate();
                let sharers =
                    sharers.filter(|(_, (theirs, _))| theirs.iter().any(|(_, one)| one == item));
                let about: Vec<(String, String)> = sharers
                    .map(|(place, (_, name))| (name.clone(), id(place)))
                    .collect();
                let is_shared = about.len() > 1;
                let one = (
                    *kind,
                    Item {
                        about,
                        ..item.clone()
                    },
                );
                if !is_shared {
                    alone.push(item.clone());
                } else if !shared.contains(&one) {
                    shared.push(one);
                }
            }
            alone
        });
        let each_alone = alone.collect();
        let of = |limits: bool| {
            let shared = shared.iter();
            let own = shared.filter(|(kind, _)| (*kind == FindingKind::Limit) == limits);
            own.map(|(_, item)| item.clone()).collect()
        };
        Self {
            each: each_alone,
            across: of(false),
            choices: items(choices).into_iter().map(|(_, item)| item).collect(),
            limits: of(true),
            rules: each
                .iter()
                .flatten()
                .map(|finding| finding.rule.name)
                .collect(),
        }
    }
}

/// Findings by their purpose: results, doubts, limits.
fn items(findings: &[Finding]) -> Vec<(FindingKind, Item)> {
    let kinds = [FindingKind::Result, FindingKind::Doubt, FindingKind::Limit];
    let of_kind = |kind| {
        let own = findings.iter().filter(move |one| one.rule.kind == kind);
        own.map(move |one| {
            let item = Item {
                basis: one.rule.basis.to_owned(),
                ..Item::of(clean(&one.text))
            };
            (kind, item)
        })
    };
    kinds.into_iter().flat_map(of_kind).collect()
}
