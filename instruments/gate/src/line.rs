//! Experiments over time, per machine and target: levels, lasting shifts, and changes of the environment.

use iolab_analysis::analysis::{CellAnalysis, Response};
use iolab_analysis::compare::ALPHA;
use iolab_analysis::compare::matching::{Side, common_factors};
use iolab_analysis::runs::comparable_runs::{Comparability, ExcludedRun, ExclusionReason};
use iolab_analysis::runs::{FiledRun, RunName, in_time, sources};
use iolab_record::{RunStatus, environment};
use iolab_stats::{changepoint_penalty, changepoints, contrast, mean};
use iolab_workload::settings::cell_label;
use iolab_workload::{Error, Result};
use serde::Serialize;

/// The runs of a folder, grouped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// Groups of comparable runs, the longest first.
    pub lines: Vec<ExperimentLine>,
    /// Runs in no group, with the reason.
    pub left_out: Vec<ExcludedRun>,
}

/// Comparable runs of one experiment on one machine and target, in the order of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentLine {
    /// Name of the experiment.
    pub experiment: String,
    /// The measured quantity.
    pub response: Response,
    /// The target of the last run.
    pub target: String,
    /// The factors that distinguish the cells.
    pub factors: Vec<String>,
    /// The runs.
    pub runs: Vec<RunName>,
    /// Each cell over time.
    pub cells: Vec<Trajectory>,
    /// The mean of all cells, relative to their mean over all runs; `None` with fewer than two cells that every
    /// run has.
    pub overall: Option<Trajectory>,
    /// Changes of the environment.
    pub changes: Vec<Change>,
}

/// A cell over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trajectory {
    /// Levels of the cell; empty for all cells together.
    pub levels: Vec<String>,
    /// A point for each run; `None` where the run has no value.
    pub points: Vec<Option<RunPoint>>,
    /// Standard deviation of the logarithms between runs within the levels; `None` below three runs.
    pub sd: Option<f64>,
    /// Shifts of the level, in the order of time.
    pub shifts: Vec<Shift>,
}

/// A cell in one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunPoint {
    /// Median over the trials.
    pub median: f64,
    /// 95 % interval of the value within the run.
    pub interval: Option<(f64, f64)>,
    /// Number of measured trials.
    pub trials: usize,
}

/// A shift of the level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shift {
    /// Index in [`ExperimentLine::runs`] of the first run of the new level.
    pub at: usize,
    /// Index of the last run of the old level.
    pub after: usize,
    /// Ratio of the new level to the old one.
    pub ratio: f64,
    /// 95 % interval of the shift by itself.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p value of the shift.
    pub p: f64,
}

/// A change of the environment between two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Index in [`ExperimentLine::runs`] of the first run with the new value.
    pub at: usize,
    /// A key of the environment, or the version of iolab.
    pub what: String,
    /// The value before; `None` where unknown.
    pub before: Option<String>,
    /// The new value.
    pub now: Option<String>,
}

impl History {
    /// Groups runs and searches each group for shifts.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) where the definition in a run file is needed and cannot be read.
    pub fn of(runs: &[FiledRun<'_>], kinship: Comparability) -> Result<Self> {
        let mut lines: Vec<Vec<FiledRun<'_>>> = Vec::new();
        let mut left_out = Vec::new();
        for run in in_time(runs) {
            if run.run.record().run.status != RunStatus::Done {
                left_out.push((run.file.to_owned(), ExclusionReason::Unfinished));
                continue;
            }
            let mut home = None;
            for (place, line) in lines.iter().enumerate() {
                let last = line[line.len() - 1];
                if kinship.incompatibility(&last, &run)?.is_none() {
                    home = Some(place);
                    break;
                }
            }
            match home {
                Some(place) => lines[place].push(run),
                None => lines.push(vec![run]),
            }
        }
        let lines = lines.iter().map(|runs| ExperimentLine::of(runs));
        let mut lines: Vec<ExperimentLine> = lines.collect::<Result<_>>()?;
        lines.sort_by_key(|line| std::cmp::Reverse(line.runs.len()));
        Ok(Self { lines, left_out })
    }
}

impl ExperimentLine {
    /// A group of runs of one experiment, given in the order of time.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) where a definition in a run file cannot be read, or without runs.
    pub fn of(runs: &[FiledRun<'_>]) -> Result<Self> {
        let last = runs.last();
        let last = last.ok_or_else(|| Error::usage("there are no runs"))?;
        let last = last.run.record();
        let sources = sources(runs);
        let factors = common_factors(&sources);
        let side = Side::new(&sources, &factors)?;
        let of_cell = |levels: &Vec<String>| {
            let cells = side.cell(levels).into_iter();
            (levels.clone(), cells.map(|cell| point(cell?)).collect())
        };
        let all: Vec<(Vec<String>, Vec<Option<RunPoint>>)> =
            side.levels().into_iter().map(of_cell).collect();
        let together = merge_cells(&all);
        let series = all.len() + usize::from(together.is_some());
        Ok(Self {
            experiment: last.experiment.name.clone(),
            response: last.experiment.response,
            target: last.target_text(),
            factors,
            runs: runs.iter().map(FiledRun::name).collect(),
            overall: together.map(|points| trajectory(Vec::new(), points, series)),
            cells: all
                .into_iter()
                .map(|(levels, points)| trajectory(levels, points, series))
                .collect(),
            changes: changes(runs),
        })
    }

    /// The label of a cell.
    pub fn label(&self, trajectory: &Trajectory) -> String {
        cell_label(&self.factors, &trajectory.levels)
    }

    /// All cells together, then each cell.
    pub fn trajectories(&self) -> impl Iterator<Item = &Trajectory> {
        self.overall.iter().chain(&self.cells)
    }

    /// The runs at which any level shifts: distinct indices in the order of time.
    pub fn shifted_at(&self) -> Vec<usize> {
        let mut places: Vec<usize> = self
            .trajectories()
            .flat_map(|trajectory| trajectory.shifts.iter().map(|shift| shift.at))
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

fn point(cell: &CellAnalysis) -> Option<RunPoint> {
    let response = cell.response?;
    Some(RunPoint {
        median: response.median,
        interval: response.median_interval.map(|i| (i.low, i.high)),
        trials: response.n,
    })
}

/// The geometric mean over the cells that every run has, relative to its value over all runs.
fn merge_cells(cells: &[(Vec<String>, Vec<Option<RunPoint>>)]) -> Option<Vec<Option<RunPoint>>> {
    let logs: Vec<Vec<f64>> = cells
        .iter()
        .filter_map(|(_, points)| points.iter().map(|point| log(point.as_ref()?)).collect())
        .collect();
    if logs.len() < 2 {
        return None;
    }
    let runs = logs[0].len();
    let means: Vec<f64> = (0..runs)
        .map(|run| logs.iter().map(|cell| cell[run]).sum::<f64>() / logs.len() as f64)
        .collect();
    let centre = mean(&means)?;
    let point = |mean: &f64| {
        Some(RunPoint {
            median: (mean - centre).exp(),
            interval: None,
            trials: 0,
        })
    };
    Some(means.iter().map(point).collect())
}

fn log(point: &RunPoint) -> Option<f64> {
    (point.median > 0.0).then(|| point.median.ln())
}

/// Searches a series for shifts; `series` is the number of series in the family of tests.
fn trajectory(levels: Vec<String>, points: Vec<Option<RunPoint>>, series: usize) -> Trajectory {
    let (places, logs): (Vec<usize>, Vec<f64>) = points
        .iter()
        .enumerate()
        .filter_map(|(place, point)| Some((place, log(point.as_ref()?)?)))
        .unzip();
    let changes = shifts(&logs, series);
    let segments = segments(&logs, &changes);
    let shifts = changes
        .iter()
        .zip(segments.windows(2))
        .filter_map(|(change, pair)| {
            let contrast = contrast(pair[0], pair[1], 0.0)?;
            let interval = contrast.interval(1.0 - ALPHA);
            Some(Shift {
                at: places[*change],
                after: places[*change - 1],
                ratio: contrast.difference.exp(),
                interval: interval.map(|interval| (interval.low.exp(), interval.high.exp())),
                p: contrast.p(),
            })
        })
        .collect();
    Trajectory {
        levels,
        sd: spread(&segments),
        points,
        shifts,
    }
}

/// The positions of shifts: the significant ones among the proposals of PELT. As long as one is not significant,
/// the weakest is dropped, and the levels next to it are merged.
fn shifts(logs: &[f64], series: usize) -> Vec<usize> {
    // Each series and each position is a test, as in METHODS.md, "Median, ratio, equivalence".
    let questions = (series * logs.len()) as f64;
    let penalty = changepoint_penalty(logs.len()) + 2.0 * (series as f64).ln();
    let mut changes = changepoints(logs, Some(penalty)).unwrap_or_default();
    loop {
        let weakest = segments(logs, &changes)
            .windows(2)
            .map(|pair| contrast(pair[0], pair[1], 0.0).map_or(1.0, |contrast| contrast.p()))
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1));
        match weakest {
            Some((change, p)) if p * questions > ALPHA => changes.remove(change),
            _ => return changes,
        };
    }
}

/// The values between consecutive changes.
fn segments<'a>(logs: &'a [f64], changes: &[usize]) -> Vec<&'a [f64]> {
    let starts = std::iter::once(0).chain(changes.iter().copied());
    let ends = changes.iter().copied().chain([logs.len()]);
    starts.zip(ends).map(|(from, to)| &logs[from..to]).collect()
}

/// The standard deviation of all values about the means of their levels.
fn spread(segments: &[&[f64]]) -> Option<f64> {
    let values: usize = segments.iter().map(|segment| segment.len()).sum();
    let free = values
        .checked_sub(segments.len())
        .filter(|free| *free > 1)?;
    let squares: f64 = segments
        .iter()
        .filter_map(|segment| {
            let mean = mean(segment)?;
            Some(segment.iter().map(|x| (x - mean).powi(2)).sum::<f64>())
        })
        .sum();
    Some((squares / free as f64).sqrt())
}

fn changes(runs: &[FiledRun<'_>]) -> Vec<Change> {
    let pairs = runs.windows(2).enumerate();
    pairs
        .flat_map(|(place, pair)| {
            let [before, now] = [pair[0], pair[1]].map(|run| run.run.record());
            environment::differences(&before.environment, &now.environment)
                .into_iter()
                .map(move |(what, before, now)| Change {
                    at: place + 1,
                    what,
                    before,
                    now,
                })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Number of times that one of eight series of independent normal values seems to shift.
    #[test]
    fn an_unchanged_line_rarely_shifts() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut normal = || {
            let mut uniform = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
            radius * (std::f64::consts::TAU * uniform()).cos()
        };
        const LINES: usize = 500;
        const SERIES: usize = 8;
        for runs in [6, 10, 20, 60] {
            let mut line = || {
                let point = |z: f64| RunPoint {
                    median: (0.1 * z).exp(),
                    interval: None,
                    trials: 10,
                };
                let points = (0..runs).map(|_| Some(point(normal()))).collect();
                !trajectory(Vec::new(), points, SERIES).shifts.is_empty()
            };
            let shifting =
                (0..LINES).filter(|_| (0..SERIES).map(|_| line()).filter(|s| *s).count() > 0);
            let rate = shifting.count() as f64 / LINES as f64;
            assert!(rate <= 0.05, "{runs} runs: {rate}");
        }
    }
}
