//! Contradicting claims: two runs that compare the same two settings of one target with opposite results. Both claims become
//! "cannot tell".

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::comparison::settings_but;

use super::effect::{CellId, Difference, Estimate, shown};
use super::{Claim, MARGIN, Standing};
use crate::analysis::Analysis;
use crate::doubt::{Doubt, DoubtKind};

/// Location of a comparison of two cells: the index of its claim, and of the point in that claim.
type Place = (usize, usize);

/// Statement of one claim about two settings: the ratio of the second to the first, ordered by their text.
#[derive(Debug, Clone, Copy)]
struct Said {
    place: Place,
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
    let mut doubted = Vec::new();
    for all in said(claims, runs).values() {
        for (i, one) in all.iter().enumerate() {
            let others = all[i + 1..].iter().filter(|other| one.contradicts(other));
            doubted.extend(others.flat_map(|other| [one.place, other.place]));
        }
    }
    for place in &doubted {
        doubt(claims, *place);
    }
    // Settling a comparison moves its points.
    let doubted: BTreeSet<usize> = doubted.into_iter().map(|(claim, _)| claim).collect();
    for claim in doubted {
        claims[claim].settle();
    }
}

impl Said {
    /// Whether both cannot be true: their intervals do not overlap, and their conclusions differ.
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
    let mut note = |[base, other]: [CellId; 2], estimate: &Estimate, relation, place| {
        let (Some(run), Some(interval)) = (runs.get(other.run), estimate.interval) else {
            return;
        };
        let mut text = |id: CellId| {
            let cell = runs.get(id.run).and_then(|run| run.cell(id.cell));
            let of = || cell.map_or_else(String::new, |cell| settings_but(cell, &[]));
            settings.entry(id).or_insert_with(of).clone()
        };
        let (base_text, other_text) = (text(base), text(other));
        let turned = other_text < base_text;
        let said = Said {
            place,
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
        let top = one.ranked().next().and_then(|top| top.cell);
        for (part, point) in one.points.iter().enumerate() {
            let cells = point.base.or(top).zip(point.cell);
            let (Some((base, own)), Some(estimate)) = (cells, point.ratio) else {
                continue;
            };
            let relation = match point.standing {
                Standing::Near if is_alike(&estimate) => Difference::Equivalent,
                _ => point.difference(),
            };
            if !matches!(relation, Difference::NotFound | Difference::CannotTell) {
                note([base, own], &estimate, relation, (claim, part));
            }
        }
    }
    all
}

/// Whether an interval lies within the margin.
fn is_alike(estimate: &Estimate) -> bool {
    let within = |interval| shown(interval, MARGIN) == Difference::Equivalent;
    estimate.interval.is_some_and(within)
}

/// Replaces a claim's statement about one comparison by "cannot tell".
fn doubt(claims: &mut [Claim], (claim, part): Place) {
    let point = &mut claims[claim].points[part];
    point.standing = Standing::Doubtful;
    // Several runs may contradict the same claim.
    let because = Doubt::from(DoubtKind::Contradicted);
    if !point.doubts.contains(&because) {
        point.doubts.push(because);
    }
}
