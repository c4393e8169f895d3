//! What the groups of a cell did, each by itself.

use iolab_record::{Cell, Sample};
use iolab_workload::group::{ALL, GroupSpec};

use super::{Analysis, CellAnalysis, Context, Flag, Response, Tails, flag};

/// What one group of a cell did, or all of them together.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupAnalysis {
    /// Its name; [`ALL`] for all groups.
    pub name: String,
    /// The same numbers as of a cell without groups. Its response is what the experiment asks about, of this group.
    pub cell: CellAnalysis,
}

impl Analysis {
    /// What the experiment asks about, with the group that it asks about it of.
    pub fn asked(&self) -> String {
        match &self.response_group {
            Some(group) => format!("{} of {group}", self.response),
            None => self.response.to_string(),
        }
    }

    /// Whether any cell has groups.
    pub fn has_groups(&self) -> bool {
        self.cells.iter().any(|cell| !cell.groups.is_empty())
    }
}

impl Context {
    /// A cell with what its groups did. Where the experiment asks about one of them, the cell's numbers are that group's;
    /// where the bytes came from and what went on around is known of all together.
    pub(super) fn with_groups<'a>(
        &self,
        whole: CellAnalysis,
        asked: Option<&str>,
        samples: impl Fn(u32) -> &'a [&'a Sample],
    ) -> CellAnalysis {
        let cell = whole.cell.clone();
        if !cell.spec.has_groups() {
            return whole;
        }
        let whole = merge_groups(whole, self.response);
        let of_group = |number: u32, group: &GroupSpec| {
            let own = Cell {
                spec: group.spec.clone(),
                ..cell.clone()
            };
            GroupAnalysis {
                name: group.name.clone(),
                cell: self.cell(&own, samples(number), None),
            }
        };
        let numbered = (1..).zip(&cell.spec.groups);
        let mut groups: Vec<GroupAnalysis> = numbered
            .filter(|(_, group)| !group.is_idle())
            .map(|(number, group)| of_group(number, group))
            .collect();
        let is_asked = |group: &&GroupAnalysis| Some(group.name.as_str()) == asked;
        let mut told: CellAnalysis = match groups.iter().find(is_asked) {
            Some(GroupAnalysis { cell: own, .. }) => CellAnalysis {
                cell,
                n: whole.n,
                failed: whole.failed,
                served: whole.served.clone(),
                verified: whole.verified,
                disturbance: whole.disturbance,
                concurrency: None,
                gap: whole.gap.clone(),
                ..own.clone()
            },
            // It does nothing in this cell.
            None if asked.is_some() => CellAnalysis {
                response: None,
                values: Vec::new(),
                blocks: Vec::new(),
                precision: None,
                ..whole.clone()
            },
            None => whole.clone(),
        };
        groups.push(GroupAnalysis {
            name: ALL.to_owned(),
            cell: whole,
        });
        told.groups = groups;
        told
    }
}

/// Raises the flags of the groups of a cell, whose own were raised from `whole`, the samples of all groups together. A rate that
/// one group does not hold is not what was asked for of the cell either.
pub(super) fn flag<'a>(
    context: &Context,
    cell: &mut CellAnalysis,
    whole: &'a [&'a Sample],
    samples: impl Fn(u32) -> &'a [&'a Sample],
) {
    let spec = &cell.cell.spec;
    for group in &mut cell.groups {
        let number = spec.number_of(Some(&group.name));
        let own = number.map_or(whole, &samples);
        group.cell.flags = flag::of(context, &group.cell, own);
        if number.is_none() {
            // No latency is told of all together.
            group.cell.flags.retain(|flag| *flag != Flag::FewTrials);
        }
        if group.cell.flags.contains(&Flag::RateNotHeld) {
            cell.flags.push(Flag::RateNotHeld);
        }
    }
    cell.flags.sort_unstable();
    cell.flags.dedup();
}

/// All groups together, without what has a meaning for requests of one kind only.
fn merge_groups(whole: CellAnalysis, response: Response) -> CellAnalysis {
    let mut whole = CellAnalysis {
        latency_p50: None,
        latency: None,
        sync: None,
        rate_report: None,
        mix: None,
        tail: None,
        tail_ratios: Vec::new(),
        tails: Tails {
            cpu: whole.tails.cpu,
            ..Tails::default()
        },
        ..whole
    };
    if response.is_latency() {
        whole.response = None;
        whole.values = Vec::new();
        whole.blocks = Vec::new();
        whole.precision = None;
    }
    whole
}
