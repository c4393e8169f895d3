//! What the order and the shape of a cell's trials show: a drift, dependence, two groups, a steady state.

use iolab_stats::{TwoLevels, holm, two_levels};

use super::effect::{CellId, MARGIN};
use crate::analysis::{Analysis, CellAnalysis};
use crate::series_tests::SeriesTests;

/// Drift over all trials of a cell below which it is not claimed, as a share of the median: less than the times of single
/// requests resolve, and far below any interval.
const DRIFT_LEAST: f64 = 1e-4;

/// Level of the test for a drift: graded at 5 %, it was claimed of 5.7 % of runs of three cells with ten trials and none.
const DRIFT_ALPHA: f64 = 0.04;
/// Level of the test for dependence. Its distribution is an approximation that rejects half as often again as it should with 30 trials.
const DEPENDENCE_ALPHA: f64 = 0.01;

/// What trials show that intervals take for granted that they do not.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// The cells concerned, in the order of the definition.
    pub cells: Vec<CellId>,
    /// The one in which it shows most.
    pub most: CellId,
    /// What it is.
    pub shape: Shape,
    /// How many times as wide the interval of that cell would be if its trials told as much as their effective number does:
    /// the square root of trials over effective trials; `None` where order is not what is wrong.
    pub widening: Option<f64>,
}

/// What is wrong with the order or the shape of trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// They drift with time (Mann and Kendall's test, Holm's correction over the cells).
    Drifting {
        /// Slope per trial, as a share of the median (Theil and Sen).
        slope: f64,
    },
    /// They depend on the ones before, without drifting (Ljung and Box's test, Holm's correction over the cells).
    Dependent,
    /// They form two groups that are further apart than [`MARGIN`].
    TwoGroups(TwoLevels),
}

/// What can be said of a cell that writes, each trial being a round of the SNIA's rule for a steady state.
#[derive(Debug, Clone, PartialEq)]
pub struct Steady {
    /// The cells of which it holds, in the order of the definition.
    pub cells: Vec<CellId>,
    /// Cells that write and have trials enough to be judged, drifting ones included.
    pub judged: usize,
    /// What holds.
    pub state: State,
}

/// Whether a steady state was reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum State {
    /// It was, after the region was written over.
    Reached,
    /// The last trials are alike, and too little had been written before them.
    NotWrittenOver {
        /// The least share of the region that was written.
        least: f64,
    },
    /// The last trials are not alike.
    NotReached {
        /// The cell in which they differ most.
        worst: CellId,
        /// Their range over their mean.
        range: f64,
        /// The change along their line over their mean.
        slope: f64,
    },
}

fn ids(run: usize, cells: &[&CellAnalysis]) -> Vec<CellId> {
    cells.iter().map(|cell| id(run, cell)).collect()
}

pub(super) fn id(run: usize, cell: &CellAnalysis) -> CellId {
    CellId {
        run,
        cell: cell.cell.id,
    }
}

/// What the trials of a run show that intervals take for granted that they do not.
pub(super) fn courses(analysis: &Analysis, run: usize) -> Vec<Course> {
    let all = [
        drift(analysis, run),
        dependence(analysis, run),
        two_groups(analysis, run),
    ];
    all.into_iter().flatten().collect()
}

fn drift(analysis: &Analysis, run: usize) -> Option<Course> {
    let cells = drifting_cells(analysis);
    let slope = |cell: &CellAnalysis| {
        let median = cell.response.map(|r| r.median)?;
        Some(cell.series_tests.trend?.slope_per_trial / median).filter(|slope| slope.is_finite())
    };
    let slopes = cells.iter().filter_map(|cell| Some((*cell, slope(cell)?)));
    let (most, slope) = slopes.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    Some(Course {
        cells: ids(run, &cells),
        most: id(run, most),
        shape: Shape::Drifting { slope },
        widening: widening(most),
    })
}

fn dependence(analysis: &Analysis, run: usize) -> Option<Course> {
    let cells = dependent_cells(analysis);
    let p = |cell: &CellAnalysis| {
        let test = cell.series_tests.ljung_box;
        test.map_or(1.0, |test| test.p)
    };
    let most = cells.iter().min_by(|a, b| p(a).total_cmp(&p(b)))?;
    Some(Course {
        cells: ids(run, &cells),
        most: id(run, most),
        shape: Shape::Dependent,
        widening: widening(most),
    })
}

fn two_groups(analysis: &Analysis, run: usize) -> Option<Course> {
    let groups = analysis
        .cells
        .iter()
        .filter_map(|cell| Some((cell, groups(cell)?)));
    let all: Vec<(&CellAnalysis, TwoLevels)> = groups.collect();
    let apart = |levels: &TwoLevels| levels.high_median / levels.low_median;
    let (most, levels) = all
        .iter()
        .max_by(|(_, a), (_, b)| apart(a).total_cmp(&apart(b)))?;
    Some(Course {
        cells: all.iter().map(|(cell, _)| id(run, cell)).collect(),
        most: id(run, most),
        shape: Shape::TwoGroups(*levels),
        widening: None,
    })
}

fn widening(cell: &CellAnalysis) -> Option<f64> {
    let effective = cell.series_tests.effective_sample_size?;
    Some((cell.values.len() as f64 / effective).sqrt())
}

/// The groups of a cell's trials, where they form two that are further apart than what matters.
pub fn groups(cell: &CellAnalysis) -> Option<TwoLevels> {
    let by_shape = cell.series_tests.modes.map(|modes| TwoLevels {
        low_share: modes.low_share,
        low_median: modes.low_median,
        high_median: modes.high_median,
    });
    let levels = by_shape.or_else(|| two_levels(&cell.values))?;
    (levels.low_median < (1.0 - MARGIN) * levels.high_median).then_some(levels)
}

/// Cells whose trials drift with time.
pub fn drifting_cells(analysis: &Analysis) -> Vec<&CellAnalysis> {
    let mut drifting = significant(analysis, DRIFT_ALPHA, |tests| {
        tests.trend.map(|trend| trend.p)
    });
    drifting.retain(|cell| drift_per_run(cell).is_none_or(|drift| drift >= DRIFT_LEAST));
    drifting
}

/// How far a cell drifts over its trials, as a share of its median.
fn drift_per_run(cell: &CellAnalysis) -> Option<f64> {
    let slope = cell.series_tests.trend?.slope_per_trial / cell.response?.median;
    Some((slope * cell.n as f64).abs()).filter(|drift| drift.is_finite())
}

/// Cells whose trials depend on the ones before without drifting.
pub fn dependent_cells(analysis: &Analysis) -> Vec<&CellAnalysis> {
    let drifting = drifting_cells(analysis);
    let mut dependent = significant(analysis, DEPENDENCE_ALPHA, |tests| {
        tests.ljung_box.map(|test| test.p)
    });
    dependent.retain(|cell| !drifting.iter().any(|other| other.cell.id == cell.cell.id));
    dependent
}

/// Cells whose p value stays below a level after Holm's correction over all cells.
fn significant(
    analysis: &Analysis,
    level: f64,
    p: impl Fn(&SeriesTests) -> Option<f64>,
) -> Vec<&CellAnalysis> {
    let tested: Vec<(&CellAnalysis, f64)> = analysis
        .cells
        .iter()
        .filter_map(|cell| Some((cell, p(&cell.series_tests)?)))
        .collect();
    let p: Vec<f64> = tested.iter().map(|(_, p)| *p).collect();
    let adjusted = holm(&p).unwrap_or_default();
    let cells = tested.into_iter().zip(adjusted);
    cells
        .filter(|(_, adjusted)| *adjusted < level)
        .map(|((cell, _), _)| cell)
        .collect()
}

/// What the cells that write show of a steady state: one claim for each state that some of them are in. A device that is written to may
/// start fast and end slow; reads hardly change it. Trials that are alike before the region was written over once are no steady state.
pub(super) fn steady(analysis: &Analysis, run: usize) -> Vec<Steady> {
    // The standard is about the throughput of the device; a group's latency is another quantity.
    if analysis.response.is_time() || analysis.response_group.is_some() {
        return Vec::new();
    }
    let drifting = drifting_cells(analysis);
    let drifts = |cell: &CellAnalysis| drifting.iter().any(|other| other.cell.id == cell.cell.id);
    let writes = |cell: &&CellAnalysis| {
        cell.cell.program().is_none() && cell.cell.trial().read_percent < 100
    };
    let (mut reached, mut early, mut not) = (Vec::new(), Vec::new(), Vec::new());
    let (mut least, mut worst) = (f64::INFINITY, None);
    let mut judged = 0;
    for cell in analysis.cells.iter().filter(writes) {
        let Some(steady) = cell.series_tests.steady else {
            continue;
        };
        judged += 1;
        // What drifts is told as that.
        if drifts(cell) {
            continue;
        }
        let written = cell.overwritten.filter(|times| *times < 1.0);
        match (steady.reached, written) {
            // What others did is no unsteadiness of the storage.
            (false, _) if cell.is_disturbed() => {}
            (false, _) => {
                not.push(cell);
                let (range, slope) = (steady.range, steady.slope);
                if worst.is_none_or(|(_, most, _)| range >= most) {
                    worst = Some((id(run, cell), range, slope));
                }
            }
            (true, Some(share)) => {
                early.push(cell);
                least = least.min(share);
            }
            (true, None) => reached.push(cell),
        }
    }
    let not_reached = worst.map(|(worst, range, slope)| State::NotReached {
        worst,
        range,
        slope,
    });
    let all = [
        (reached, Some(State::Reached)),
        (early, Some(State::NotWrittenOver { least })),
        (not, not_reached),
    ];
    let found = all.into_iter().filter(|(cells, _)| !cells.is_empty());
    found
        .filter_map(|(cells, state)| {
            Some(Steady {
                cells: ids(run, &cells),
                judged,
                state: state?,
            })
        })
        .collect()
}
