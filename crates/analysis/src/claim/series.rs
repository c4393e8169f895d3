//! Claims from the order and the distribution of a cell's trials: drift, dependence, two groups, a steady state, a block apart.

use std::collections::BTreeMap;

use iolab_stats::{SteadyLimits, TwoLevels, holm, median, two_levels_among, window_slopes};

use super::effect::{CellId, MARGIN, log_means};
use super::weaknesses::{Of, worst_first};
use super::{Claim, Point, Quantity, Standing, kind};
use crate::analysis::{Analysis, CellAnalysis, SteadyAnalysis, TRIALS_MIN};
use crate::timeline::FACTOR_MIN;
use crate::trial_values::SeriesTests;

/// Least drift over all trials that is claimed, as a share of the median. Smaller drifts are below the
/// resolution of request times, and far below any interval.
const DRIFT_LEAST: f64 = 1e-4;

/// Level of the test for a drift. At 5 %, it was claimed in 5.7 % of runs of three cells with ten trials and no drift.
const DRIFT_ALPHA: f64 = 0.04;
/// Level of the test for dependence. The distribution of its statistic is approximate: with 30 trials it rejects 1.5 times as
/// often as its level.
const DEPENDENCE_ALPHA: f64 = 0.01;

/// Level of the test for a block apart.
const BLOCK_ALPHA: f64 = 0.01;

/// Cells whose trials form two groups that are further apart than [`MARGIN`].
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// The cells whose trials form two groups.
    pub cells: Vec<CellId>,
    /// The cell whose groups are furthest apart.
    pub most: CellId,
    /// The groups of this cell.
    pub levels: TwoLevels,
}

pub(crate) fn id(run: usize, cell: &CellAnalysis) -> CellId {
    CellId {
        run,
        cell: cell.cell.id,
    }
}

/// The trials of these cells that form two groups.
pub fn two_groups(analysis: &Analysis, is_meant: impl Fn(&CellAnalysis) -> bool) -> Option<Groups> {
    let own = analysis.cells.iter().filter(|cell| is_meant(cell));
    let groups = own.filter_map(|cell| Some((cell, groups(analysis, cell)?)));
    let all: Vec<(&CellAnalysis, TwoLevels)> = groups.collect();
    let apart = |(_, levels): &(_, TwoLevels)| levels.high_median / levels.low_median;
    let (most, levels) = all.iter().max_by(|a, b| apart(a).total_cmp(&apart(b)))?;
    Some(Groups {
        cells: all.iter().map(|(cell, _)| id(0, cell)).collect(),
        most: id(0, most),
        levels: *levels,
    })
}

/// The two groups of a cell's trials, if they are further apart than the margin. All cells of a run are tested,
/// so the test is corrected for their number.
pub fn groups(analysis: &Analysis, cell: &CellAnalysis) -> Option<TwoLevels> {
    let cells = analysis.cells.len();
    let modes = cell.series_tests.modes;
    let modes = modes.filter(|modes| modes.stands_among(cells));
    let by_shape = modes.map(|modes| modes.levels);
    let levels = by_shape.or_else(|| two_levels_among(&cell.values, cells))?;
    (levels.high_median > (1.0 + MARGIN) * levels.low_median).then_some(levels)
}

/// Cells whose trials drift with time.
pub fn drifting_cells(analysis: &Analysis) -> Vec<&CellAnalysis> {
    let mut drifting = significant(analysis, DRIFT_ALPHA, |tests| {
        tests.trend.map(|trend| trend.p)
    });
    drifting.retain(|cell| drift_per_run(cell).is_none_or(|drift| drift.abs() >= DRIFT_LEAST));
    drifting
}

/// The greatest factor by which the response of one of these cells became worse over the run, if its trials
/// drift. It is the ratio of the medians of the first and the last third, and `None` if it is less than a change
/// of level. A limit that only one side reaches does not change all cells.
pub fn fell(run: &Analysis, cells: &[i64]) -> Option<f64> {
    let of_cell = |cell: &CellAnalysis| {
        let (values, _) = cell.trials();
        let third = values.len() / 3;
        let first = median(values.get(..third)?)?;
        let last = median(values.get(values.len() - third..)?)?;
        Some(match run.response.more_is_better() {
            true => first / last,
            false => last / first,
        })
    };
    let drifting = drifting_cells(run).into_iter();
    let own = drifting.filter(|cell| cells.contains(&cell.cell.id));
    let falls = own.filter_map(of_cell);
    let falls = falls.filter(|factor| *factor >= FACTOR_MIN);
    falls.max_by(f64::total_cmp)
}

/// Cells whose trials drift by more than the goal of precision, the steepest first, with its drift as a share of the median.
pub(super) fn drift((analysis, run): Of<'_>) -> Option<Claim> {
    let drifting = drifting_cells(analysis).into_iter();
    let drifts = drifting.filter_map(|cell| Some((cell, drift_per_run(cell)?)));
    let drifts = drifts.filter(|(_, drift)| drift.abs() > analysis.precision_goal);
    let drifts = worst_first(drifts, |(_, drift)| drift.abs());
    let most = Point::main(Quantity::Share, drifts.first()?.1);
    let cells = drifts.iter().map(|(cell, _)| id(run, cell)).collect();
    Some(Claim::new(&kind::DRIFT, cells).with_points([most]))
}

/// Cells whose trials form two groups, the furthest apart first, with its groups.
pub(super) fn in_two_groups((analysis, run): Of<'_>) -> Option<Claim> {
    let all = analysis.cells.iter();
    let all = all.filter_map(|cell| Some((cell, groups(analysis, cell)?)));
    let all = worst_first(all, |(_, levels)| levels.high_median / levels.low_median);
    let levels = all.first()?.1;
    let median = |value| Point::main(Quantity::Of(analysis.response), value);
    let points = [
        Point::main(Quantity::Share, levels.low_share),
        median(levels.low_median),
        median(levels.high_median),
    ];
    let is_even = (0.4..=0.6).contains(&levels.low_share);
    let kind = &kind::TWO_GROUPS[usize::from(is_even)];
    let cells = all.iter().map(|(cell, _)| id(run, cell)).collect();
    Some(Claim::new(kind, cells).with_points(points))
}

/// The drift of a cell over all its trials, as a share of its median.
fn drift_per_run(cell: &CellAnalysis) -> Option<f64> {
    let slope = cell.series_tests.trend?.slope_per_trial / cell.response?.median;
    Some(slope * cell.n as f64).filter(|drift| drift.is_finite())
}

/// Cells whose trials depend on earlier ones without drifting.
pub fn dependent_cells(analysis: &Analysis) -> Vec<&CellAnalysis> {
    let drifting = drifting_cells(analysis);
    let mut dependent = significant(analysis, DEPENDENCE_ALPHA, |tests| tests.dependence_p);
    dependent.retain(|cell| !drifting.iter().any(|other| other.cell.id == cell.cell.id));
    dependent
}

/// Cells whose p value stays below a level after Holm's correction over all cells.
fn significant(
    analysis: &Analysis,
    level: f64,
    p: impl Fn(&SeriesTests) -> Option<f64>,
) -> Vec<&CellAnalysis> {
    let cells = analysis.cells.iter();
    let tested = cells.filter_map(|cell| Some((cell, p(&cell.series_tests)?)));
    let (cells, p): (Vec<&CellAnalysis>, Vec<f64>) = tested.unzip();
    let adjusted = cells.into_iter().zip(holm(&p).unwrap_or_default());
    let found = adjusted.filter(|(_, adjusted)| *adjusted < level);
    found.map(|(cell, _)| cell).collect()
}

/// The block that lies apart from all others in every cell: what changed it is none of the settings. In each cell its trial is the
/// extreme one, on the same side, which independent trials are in `2 n^(1 - k)` of runs with `n` blocks and `k` cells; and from the
/// nearest block it is further than the others are from each other, so that neither a drift nor a lasting change makes one.
pub(super) fn block_apart(analysis: &Analysis, run: usize) -> Option<Claim> {
    let measured = analysis.cells.iter();
    let measured = measured.filter(|cell| cell.values.len() >= TRIALS_MIN);
    let own = measured.map(|cell| (cell, log_means(cell.trials())));
    let cells: Vec<(&CellAnalysis, BTreeMap<u32, f64>)> = own.collect();
    let blocks = cells.first()?.1.keys().copied();
    let shared = blocks.filter(|block| cells.iter().all(|(_, logs)| logs.contains_key(block)));
    let shared: Vec<u32> = shared.collect();
    let chance = 2.0 * (shared.len() as f64).powi(1 - cells.len() as i32);
    if shared.len() < TRIALS_MIN || chance > BLOCK_ALPHA {
        return None;
    }
    let is_extreme = |block: u32, sign: f64| {
        cells.iter().all(|(_, logs)| {
            let mut others = shared.iter().filter(|other| **other != block);
            others.all(|other| sign * logs[&block] > sign * logs[other])
        })
    };
    let level = |block: u32| {
        let relative = cells.iter().map(|(cell, logs)| {
            let centre = cell.response.map_or(f64::NAN, |of| of.median.ln());
            logs[&block] - centre
        });
        median(&relative.collect::<Vec<_>>())
    };
    let apart = |block: u32, sign: f64| {
        let others = shared.iter().filter(|other| **other != block);
        let others: Vec<f64> = others.map(|other| level(*other)).collect::<Option<_>>()?;
        let own = level(block)?;
        let ends = |sign: f64| others.iter().map(|one| sign * one).fold(f64::MIN, f64::max);
        let range = ends(1.0) + ends(-1.0);
        let is_apart = sign * own - ends(sign) > range.max(MARGIN.ln_1p());
        let size = sign * (own - median(&others)?);
        (is_extreme(block, sign) && is_apart).then_some((block, sign, size.exp()))
    };
    let both = shared
        .iter()
        .flat_map(|block| [(*block, 1.0), (*block, -1.0)]);
    let (block, sign, times) = both
        .into_iter()
        .find_map(|(block, sign)| apart(block, sign))?;
    let points = [
        Point::count(Standing::Main, "block", block as usize).of(f64::from(*shared.last()?)),
        Point::count(Standing::Main, "cell", cells.len()),
        Point::main(Quantity::Times, times),
    ];
    let ids = cells.iter().map(|(cell, _)| id(run, cell));
    let kind = &kind::BLOCK_APART[usize::from(sign > 0.0)];
    Some(Claim::new(kind, ids.collect()).with_points(points))
}

/// The steady states of the cells that write: one claim for each state. Reads are left out, since they hardly change the state of
/// a device. Trials that are alike before the whole region was written are not a steady state: a device may be fast at first.
pub(super) fn steady(analysis: &Analysis, run: usize) -> Vec<Claim> {
    // Only the definition says what prepared the storage, and which rounds the run repeated.
    if !analysis.has_definition {
        return Vec::new();
    }
    // Rounds of all cells have a claim of their own.
    let rounds = analysis.steady.as_ref();
    if rounds.is_some_and(SteadyAnalysis::is_of_cells) {
        return Vec::new();
    }
    // The standard covers the throughput of the device, not times or a group's latency.
    if analysis.response.is_time() || analysis.response_group.is_some() {
        return Vec::new();
    }
    let drifting = drifting_cells(analysis);
    let drifts = |cell: &CellAnalysis| drifting.iter().any(|other| other.cell.id == cell.cell.id);
    let writes = |cell: &&CellAnalysis| cell.cell.program().is_none() && cell.cell.trial().writes();
    let share = |value| Point::main(Quantity::Share, value);
    let (mut early, mut not) = (Vec::new(), Vec::new());
    let (mut judged, mut slopes) = (0, false);
    for cell in analysis.cells.iter().filter(writes) {
        let Some(steady) = cell.series_tests.steady else {
            continue;
        };
        judged += 1;
        // Another claim covers cells that drift.
        if drifts(cell) {
            continue;
        }
        let written = cell.overwritten.filter(|times| *times < 1.0);
        match (steady.reached, written) {
            // A disturbed cell does not show whether the storage is steady.
            (false, _) if cell.is_disturbed() => {}
            (false, _) => {
                let range = share(steady.range).of(SteadyLimits::SNIA.range);
                let slope = share(steady.slope).of(SteadyLimits::SNIA.slope);
                not.push((cell, vec![range, slope]));
                slopes |= window_slopes(&cell.values, SteadyLimits::SNIA).unwrap_or(false);
            }
            (true, Some(least)) => early.push((cell, vec![share(least)])),
            (true, None) => {}
        }
    }
    early.sort_by(|a, b| a.1[0].value.total_cmp(&b.1[0].value));
    not.sort_by(|a, b| b.1[0].value.total_cmp(&a.1[0].value));
    let kind = match slopes {
        true => &kind::NOT_STEADY,
        false => &kind::SCATTERED,
    };
    let both = [(early, &kind::NOT_WRITTEN_OVER), (not, kind)].into_iter();
    // The first cell is the one whose numbers are given.
    let claims = both.filter_map(|(cells, kind)| {
        let count = Point::count(Standing::Main, "writing cell", cells.len()).of(judged as f64);
        let ids = cells.iter().map(|(cell, _)| id(run, cell)).collect();
        let (_, numbers) = cells.into_iter().next()?;
        Some(Claim::new(kind, ids).with_points([count].into_iter().chain(numbers)))
    });
    claims.collect()
}
