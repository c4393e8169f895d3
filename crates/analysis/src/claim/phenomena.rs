//! Differences between two cells of a run whose cause can be asked for.

use iolab_plan::suspect::Sides;
use iolab_workload::response::Response;

use super::best::{Best, Standing};
use super::comparison::{Comparison, Contrast};
use super::effect::{CellId, Difference, Effect, Estimate, MARGIN};
use super::{Claim, claims};
use crate::analysis::{Analysis, CellAnalysis};

/// Where more requests in flight gain less than this share of their number, that is the phenomenon.
const GAIN: f64 = 0.5;

/// Two cells, and by how much they differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phenomenon {
    /// The cell that is compared with.
    pub base: CellId,
    /// The cell that is compared with it.
    pub other: CellId,
    /// How many times as great the other's response is.
    pub seen: f64,
    /// How many times as great it would be without the phenomenon: the number of requests in flight over that of the base, where these gain little;
    /// else 1.
    pub expected: f64,
    /// The logarithm of the least ratio, of either sign, that the interval allows.
    pub size: f64,
}

/// The phenomena of a run, the greatest first; none of runs of programs, groups or several processes, whose cells are no trials of their own.
pub fn phenomena(run: &Analysis) -> Vec<Phenomenon> {
    let is_plain = |cell: &CellAnalysis| {
        let spec = &cell.cell.spec;
        !spec.runs_program() && !spec.has_groups() && !spec.tool.is_peer() && spec.target.is_none()
    };
    if run.spans_ranks() || run.inquiry.is_some() || !run.cells.iter().all(is_plain) {
        return Vec::new();
    }
    let mut all: Vec<Phenomenon> = Vec::new();
    for claim in claims(&[run]) {
        match claim {
            Claim::Comparison(comparison) => {
                let effects = comparison.effects.iter();
                all.extend(effects.filter_map(|effect| of_effect(&comparison, effect)));
            }
            Claim::Best(curves) => all.extend(curves.iter().filter_map(worst)),
            _ => {}
        }
    }
    all.retain(|one| one.size > MARGIN.ln_1p());
    // What the two sides differ in by construction explains itself.
    all.sort_by(|a, b| b.size.total_cmp(&a.size));
    all.sort_by_key(|one| sides(run, one).is_some_and(|sides| sides.is_by_construction()));
    all
}

/// The settings of both cells.
fn sides(run: &Analysis, phenomenon: &Phenomenon) -> Option<Sides> {
    let spec = |id: CellId| {
        let mut cells = run.cells.iter();
        let cell = cells.find(|cell| cell.cell.id == id.cell)?;
        Some(cell.cell.spec.clone())
    };
    Some(Sides {
        base: spec(phenomenon.base)?,
        other: spec(phenomenon.other)?,
        is_model: run.model.is_some(),
    })
}

/// An effect, or the gain that it lacks.
fn of_effect(comparison: &Comparison, effect: &Effect) -> Option<Phenomenon> {
    let phenomenon = |expected: f64, size: f64| Phenomenon {
        base: effect.base,
        other: effect.other,
        seen: effect.estimate.ratio,
        expected,
        size,
    };
    let in_flight = gained(comparison, effect);
    if let Some(expected) = in_flight.filter(|most| effect.estimate.ratio <= GAIN * most) {
        let (_, high) = effect.estimate.interval?;
        return Some(phenomenon(expected, (expected / high).ln()));
    }
    // More requests in flight that give as much more are what was asked for.
    if in_flight.is_some_and(|most| most > 1.0 && effect.estimate.ratio >= 1.0) {
        return None;
    }
    let is_shown = matches!(effect.difference, Difference::Higher | Difference::Lower);
    is_shown.then(|| phenomenon(1.0, effect.size()))
}

/// How many times as many requests are in flight, where that could raise the response as much.
fn gained(comparison: &Comparison, effect: &Effect) -> Option<f64> {
    let Contrast::Ordered { factor } = &comparison.contrast else {
        return None;
    };
    let is_rate = matches!(comparison.response, Response::Throughput | Response::Iops);
    let counts = matches!(factor.as_str(), "threads" | "depth") && is_rate;
    let number = |level: &String| level.parse::<f64>().ok().filter(|_| counts);
    Some(number(&effect.levels.1)? / number(&effect.levels.0)?)
}

/// The worst size of a curve against the best one.
fn worst(best: &Best) -> Option<Phenomenon> {
    let top = best.candidates.get(best.best)?;
    let size = |estimate: &Estimate| {
        let (low, high) = estimate.interval?;
        Some(low.ln().max(-high.ln()))
    };
    let worse = best
        .candidates
        .iter()
        .filter(|one| one.standing == Standing::Worse);
    let sized = worse.filter_map(|one| {
        let estimate = one.of_best?;
        Some((one, estimate, size(&estimate)?))
    });
    let (one, estimate, size) = sized.max_by(|a, b| a.2.total_cmp(&b.2))?;
    Some(Phenomenon {
        base: top.cell,
        other: one.cell,
        seen: estimate.ratio,
        expected: 1.0,
        size,
    })
}
