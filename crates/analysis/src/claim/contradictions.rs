//! Contradicting claims: two runs that compare the same two settings of one target with opposite results. Both claims become
//! "cannot tell".

use std::collections::{BTreeMap, HashMap};

use iolab_workload::settings::SETTINGS;

use super::effect::{CellId, Difference, Estimate, shown};
use super::{Claim, MARGIN, Payload, Standing};
use crate::analysis::Analysis;
use crate::doubt::{Doubt, DoubtKind};

/// Location of a comparison of two cells: the index of its claim, and its index in that claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Source {
    claim: usize,
    /// Index of the effect in a comparison, or of the point.
    part: usize,
}

/// Statement of one claim about two settings: the ratio of the second to the first, ordered by their text.
#[derive(Debug, Clone, Copy)]
struct Said {
    source: Source,
    interval: (f64, f64),
    relation: Difference,
}

/// Two settings of one target, and the quantity in which they are compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    target: String,
    storage: String,
    group: Option<String>,
    response: String,
    settings: (String, String),
}

/// Sets every pair of comparisons of the same settings and target that cannot both be true to [`Difference::CannotTell`].
pub(super) fn reconcile(claims: &mut [Claim], runs: &[&Analysis]) {
    for (one, other) in contradictions(claims, runs) {
        doubt(claims, one.source);
        doubt(claims, other.source);
    }
}

/// Pairs of comparisons that cannot both be true: their intervals do not overlap, and their conclusions differ.
fn contradictions(claims: &[Claim], runs: &[&Analysis]) -> Vec<(Said, Said)> {
    let mut found = Vec::new();
    for all in said(claims, runs).values() {
        for (i, one) in all.iter().enumerate() {
            let later = all.iter().skip(i + 1);
            found.extend(
                later
                    .filter(|other| one.contradicts(other))
                    .map(|o| (*one, *o)),
            );
        }
    }
    found
}

impl Said {
    fn contradicts(&self, other: &Self) -> bool {
        let is_apart = self.interval.0 > other.interval.1 || other.interval.0 > self.interval.1;
        is_apart && self.relation != other.relation
    }
}

/// Statements of the claims about each pair of settings. Only runs with different indices can contradict, since
/// one run compares two cells at most once.
fn said(claims: &[Claim], runs: &[&Analysis]) -> HashMap<Key, Vec<Said>> {
    let mut all: HashMap<Key, Vec<Said>> = HashMap::new();
    if runs.len() < 2 {
        return all;
    }
    let mut settings: BTreeMap<CellId, String> = BTreeMap::new();
    let mut note = |base: CellId, other: CellId, estimate: &Estimate, relation, source| {
        let (Some(run), Some(interval)) = (runs.get(other.run), estimate.interval) else {
            return;
        };
        let mut text = |id: CellId| {
            let of = || cell_settings(runs, id);
            settings.entry(id).or_insert_with(of).clone()
        };
        let (base_text, other_text) = (text(base), text(other));
        let turned = other_text < base_text;
        let said = Said {
            source,
            interval: match turned {
                false => interval,
                true => (1.0 / interval.1, 1.0 / interval.0),
            },
            relation: match (relation, turned) {
                (Difference::Higher, true) => Difference::Lower,
                (Difference::Lower, true) => Difference::Higher,
                (same, _) => same,
            },
        };
        let settings = match turned {
            false => (base_text, other_text),
            true => (other_text, base_text),
        };
        let key = Key {
            target: run.target.clone(),
            storage: run.storage.clone(),
            group: run.response_group.clone(),
            response: run.response.to_string(),
            settings,
        };
        all.entry(key).or_default().push(said);
    };
    for (claim, one) in claims.iter().enumerate() {
        let effects = one.comparison().map_or(&[][..], |found| &found.effects);
        for (place, effect) in effects.iter().enumerate() {
            let relation = effect.difference;
            if !matches!(relation, Difference::NotFound | Difference::CannotTell) {
                let source = Source { claim, part: place };
                note(
                    effect.base, effect.other, &effect.estimate, relation, source,
                );
            }
        }
        let top = one.ranked().next().and_then(|top| top.cell);
        for (part, point) in one.points.iter().enumerate() {
            let (Some(top), Some(own), Some(estimate)) = (top, point.cell, point.ratio) else {
                continue;
            };
            let relation = match point.standing {
                Standing::Worse if estimate.ratio < 1.0 => Difference::Lower,
                Standing::Worse => Difference::Higher,
                Standing::Near if is_alike(&estimate) => Difference::Equivalent,
                _ => continue,
            };
            note(top, own, &estimate, relation, Source { claim, part });
        }
    }
    all
}

/// Whether an interval lies within the margin.
fn is_alike(estimate: &Estimate) -> bool {
    let within = |interval| shown(interval, MARGIN) == Difference::Equivalent;
    estimate.interval.is_some_and(within)
}

/// All settings of a cell, as one text, so that cells of different runs can be matched.
fn cell_settings(runs: &[&Analysis], id: CellId) -> String {
    let run = runs.get(id.run);
    let cell = run.and_then(|run| run.cell(id.cell));
    let values = cell.map(|cell| SETTINGS.iter().map(|setting| setting.get(&cell.cell.spec)));
    let values: Vec<String> = values.into_iter().flatten().collect();
    values.join("\n")
}

/// Adds a doubt unless it is already listed: several runs may contradict the same claim.
fn note_once(doubts: &mut Vec<Doubt>, because: Doubt) {
    if !doubts.contains(&because) {
        doubts.push(because);
    }
}

/// Replaces a claim's statement about one comparison by "cannot tell".
fn doubt(claims: &mut [Claim], source: Source) {
    let because = Doubt::from(DoubtKind::Contradicted);
    let Some(claim) = claims.get_mut(source.claim) else {
        return;
    };
    if let Some(Payload::Comparison(comparison)) = &mut claim.payload {
        if let Some(effect) = comparison.effects.get_mut(source.part) {
            effect.difference = Difference::CannotTell;
            note_once(&mut effect.doubts, because);
        }
    } else if let Some(point) = claim.points.get_mut(source.part) {
        point.standing = Standing::Doubtful;
        note_once(&mut point.doubts, because);
        claim.settle();
    }
}
