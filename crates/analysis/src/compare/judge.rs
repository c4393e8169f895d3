//! From the trials of both sides to the verdict on each cell.

use iolab_stats::{
    Interval, Ratio, TTest, a12, holm, mann_kendall, mann_whitney, ratio_of_means,
    ratio_of_medians, student, summary, tost_log, tost_log_dependent, trials_for_difference,
    trials_for_equivalence, trimmed_test_dependent, trimmed_within_dependent, welch,
    welch_dependent,
};

use super::{
    ALPHA, CONFIDENCE, CellComparison, CellVerdict, Criteria, Further, HypothesisTest, Overall,
    POWER, Pair, Repeats, ReplicationUnit, Side,
};

/// More trials than this are no advice.
const TRIALS_ADVISED_MAX: usize = 1000;

/// Compares all pairs, in their order.
pub(super) fn compare(
    pairs: &[Pair],
    terms: &Criteria,
    unit: ReplicationUnit,
) -> Vec<CellComparison> {
    let mut cells = judge(pairs, terms);
    for (cell, pair) in cells.iter_mut().zip(pairs) {
        cell.verdict = allowed(cell.verdict, pair, unit);
    }
    let family = cells.iter().filter(|c| c.p_adjusted.is_some()).count();
    for (cell, pair) in cells.iter_mut().zip(pairs) {
        // Trials do not settle what differs from run to run.
        if cell.verdict == CellVerdict::CannotTell && unit != ReplicationUnit::Runs {
            cell.further = further(cell, pair, terms, family);
        }
    }
    cells
}

/// What may be said of a cell, given what the two sides are.
fn allowed(verdict: CellVerdict, pair: &Pair, unit: ReplicationUnit) -> CellVerdict {
    match (verdict, unit) {
        (_, ReplicationUnit::SameRun) => CellVerdict::Identical,
        (CellVerdict::CannotTell | CellVerdict::Drifting, _) => verdict,
        _ if !pair.disturbed.is_empty() => CellVerdict::Disturbed,
        (CellVerdict::Equivalent, _) => verdict,
        (_, ReplicationUnit::Runs) => CellVerdict::OneRunEach,
        _ => verdict,
    }
}

/// All cells put together, from the mean of their logarithms in each block.
pub(super) fn overall(together: &[f64], margin: f64) -> Option<Overall> {
    let test = trimmed_test_dependent(together, CONFIDENCE)?;
    let p = trimmed_within_dependent(together, margin.ln_1p())?;
    Some(Overall {
        ratio: ratio_of(test),
        blocks: together.len(),
        tost_p: p,
    })
}

/// A test on logarithms as the ratio that they are of.
fn ratio_of(test: TTest) -> Ratio {
    Ratio {
        ratio: test.difference.exp(),
        interval: Some(Interval {
            low: test.interval.low.exp(),
            high: test.interval.high.exp(),
            ..test.interval
        }),
    }
}

/// Everything but the number of further trials.
pub(super) fn judge(pairs: &[Pair], terms: &Criteria) -> Vec<CellComparison> {
    let mut cells: Vec<CellComparison> = pairs.iter().map(|pair| measure(pair, terms)).collect();
    adjust(&mut cells, terms.deciding());
    for cell in &mut cells {
        cell.verdict = verdict(cell, terms);
    }
    cells
}

fn measure(
    Pair {
        levels,
        base,
        new,
        served,
        within_blocks,
        ..
    }: &Pair,
    terms: &Criteria,
) -> CellComparison {
    let blocks = within_blocks
        .as_ref()
        .and_then(|ratios| trimmed_test_dependent(ratios, CONFIDENCE));
    let (dependent_p, tost_dependent_p) = match within_blocks {
        Some(ratios) => (
            blocks.map(|t| t.p),
            trimmed_within_dependent(ratios, terms.margin.ln_1p()),
        ),
        None => (
            welch_dependent(base, new, CONFIDENCE).map(|t| t.p),
            tost_log_dependent(base, new, terms.margin, ALPHA).map(|e| e.p),
        ),
    };
    CellComparison {
        levels: levels.clone(),
        base: side(base),
        new: side(new),
        served: served.clone(),
        ratio_within_blocks: blocks.map(ratio_of),
        ratio_of_medians: ratio_of_medians(base, new, CONFIDENCE),
        ratio_of_means: ratio_of_means(base, new, CONFIDENCE),
        welch: welch(base, new, CONFIDENCE),
        student: student(base, new, CONFIDENCE),
        mann_whitney: mann_whitney(base, new),
        a12: a12(base, new),
        equivalence: tost_log(base, new, terms.margin, ALPHA),
        p_adjusted: None,
        dependent_p,
        tost_dependent_p,
        dependent_p_adjusted: None,
        shares_blocks: within_blocks.is_some(),
        verdict: CellVerdict::CannotTell,
        further: None,
        repeats: terms
            .repeats
            .iter()
            .map(|n| repeats(base, new, *n))
            .collect(),
    }
}

fn side(values: &[f64]) -> Side {
    Side {
        summary: summary(values),
        drift_p: mann_kendall(values).map(|trend| trend.p),
    }
}

fn repeats(base: &[f64], new: &[f64], n: usize) -> Repeats {
    let first = base.get(..n).zip(new.get(..n));
    Repeats {
        n,
        welch_p: first
            .and_then(|(a, b)| welch(a, b, CONFIDENCE))
            .map(|t| t.p),
        student_p: first
            .and_then(|(a, b)| student(a, b, CONFIDENCE))
            .map(|t| t.p),
        mann_whitney_p: first.and_then(|(a, b)| mann_whitney(a, b)).map(|t| t.p),
    }
}

/// Holm's correction over the cells that have a p value.
fn adjust(cells: &mut [CellComparison], test: HypothesisTest) {
    let deciding = |cell: &CellComparison| match cell.shares_blocks {
        true => cell.dependent_p,
        false => cell.p(test),
    };
    let plain: Vec<Option<f64>> = cells.iter().map(deciding).collect();
    let dependent: Vec<Option<f64>> = cells.iter().map(|cell| cell.dependent_p).collect();
    let (plain, dependent) = (adjusted(&plain), adjusted(&dependent));
    for ((cell, plain), dependent) in cells.iter_mut().zip(plain).zip(dependent) {
        cell.p_adjusted = plain;
        cell.dependent_p_adjusted = dependent;
    }
}

fn adjusted(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let known: Vec<f64> = p.iter().copied().flatten().collect();
    let mut adjusted = holm(&known).unwrap_or_default().into_iter();
    p.iter().map(|p| p.and_then(|_| adjusted.next())).collect()
}

/// A difference is reported when it is shown and the ratio lies outside the margin; equivalence when it is shown and
/// the ratio lies inside. So no verdict contradicts the ratio that stands beside it, and a change that is real but
/// too small to matter is no alarm. Both must hold too when it is allowed for that trials depend on each other.
fn verdict(cell: &CellComparison, terms: &Criteria) -> CellVerdict {
    let shown = |p: Option<f64>| p.is_some_and(|p| p < ALPHA);
    let differs = shown(cell.p_adjusted);
    let equivalent = match cell.shares_blocks {
        true => shown(cell.tost_dependent_p),
        false => shown(cell.equivalence.map(|e| e.p)),
    };
    let ratio = cell.ratio().map(|r| r.ratio);
    let claim = match (ratio, cell.welch) {
        (Some(ratio), _) if is_inside(ratio, terms.margin) => {
            equivalent.then_some((CellVerdict::Equivalent, cell.tost_dependent_p))
        }
        (Some(ratio), _) => {
            differs.then_some((terms.better.verdict(ratio > 1.0), cell.dependent_p_adjusted))
        }
        // Without a ratio, as with values that are not positive, the margin has no meaning.
        (None, Some(test)) => differs.then_some((
            terms.better.verdict(test.difference > 0.0),
            cell.dependent_p_adjusted,
        )),
        (None, None) => None,
    };
    match claim {
        Some((verdict, dependent)) if shown(dependent) => verdict,
        Some(_) => CellVerdict::Drifting,
        None => CellVerdict::CannotTell,
    }
}

fn is_inside(ratio: f64, margin: f64) -> bool {
    ratio.ln().abs() <= margin.ln_1p()
}

/// The shift of the logarithms, and their standard deviation on each side: where the sides share blocks, one that would
/// give the ratios within them the standard error that they have, blocks that depend on each other included.
fn log_shift(pair: &Pair) -> Option<(f64, f64)> {
    if let Some(ratios) = &pair.within_blocks {
        let test = trimmed_test_dependent(ratios, CONFIDENCE)?;
        let error = match test.t {
            Some(t) if t != 0.0 => (test.difference / t).abs(),
            // Without a shift the error shows in nothing but the spread; without a spread there is none.
            _ => summary(ratios)?.sd? / (ratios.len() as f64).sqrt(),
        };
        let sd = error * (ratios.len() as f64 / 2.0).sqrt();
        return Some((test.difference, sd));
    }
    let log = |values: &[f64]| -> Vec<f64> { values.iter().map(|x| x.ln()).collect() };
    let (base, new) = (summary(&log(&pair.base))?, summary(&log(&pair.new))?);
    let sd = ((base.sd?.powi(2) + new.sd?.powi(2)) / 2.0).sqrt();
    Some((new.mean? - base.mean?, sd))
}

/// Trials for the verdict that the estimates point to: equivalence when the ratio lies inside the margin, else a
/// difference at the level of Holm's first step.
fn further(cell: &CellComparison, pair: &Pair, terms: &Criteria, family: usize) -> Option<Further> {
    let there = pair.base.len().min(pair.new.len());
    let (shift, sd) = log_shift(pair)?;
    let margin = terms.margin.ln_1p();
    let inside = is_inside(cell.ratio()?.ratio, terms.margin) && shift.abs() < margin;
    let wanted = if inside {
        trials_for_equivalence(margin, shift, sd, ALPHA, POWER)
    } else {
        trials_for_difference(shift / sd, ALPHA / family.max(1) as f64, POWER)
    };
    Some(match wanted {
        // At least one: what there is did not suffice.
        Some(n) if n <= TRIALS_ADVISED_MAX => Further::Trials(n.saturating_sub(there).max(1)),
        _ => Further::TooMany,
    })
}
