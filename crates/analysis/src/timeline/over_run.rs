//! Changes of the level over a run, caused by the trials themselves or from outside.

use std::collections::{BTreeMap, BTreeSet};

use iolab_stats::{lasting_shifts, mean, median};

use super::{Moment, VALUES_MIN, group_size, is_free, lasting, moments};
use iolab_record::{Cell, RunRecord};

/// Most values in a search, since the cost grows with the square. More trials are merged with their neighbours.
const VALUES_MAX: usize = 1000;

/// A change of the level of throughput during a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunShift {
    /// The cells concerned.
    pub of: Access,
    /// Bytes that the trials had written before, or read, for cells that only read.
    pub moved_bytes: u64,
    /// Sum of the timed spans before, ns.
    pub after_ns: u64,
    /// Throughput after over throughput before: the median over the cells with trials of both levels.
    pub factor: f64,
    /// Number of trials before.
    pub trials_before: usize,
    /// Number of trials after.
    pub trials_after: usize,
    /// The cell with the highest throughput that has trials of both levels.
    pub cell: i64,
    /// Its median before, MB/s.
    pub before_mb_s: f64,
    /// Its median after, MB/s.
    pub after_mb_s: f64,
}

/// Which cells change their level together: writes may change a device permanently; reads and writes may use up a credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Cells that write.
    Writes,
    /// Cells that only read.
    Reads,
}

/// A trial of a cell.
struct Trial {
    sample: i64,
    cell: i64,
    block: u32,
    throughput: f64,
    /// The logarithm of its throughput over the median of its cell.
    value: f64,
}

/// The lasting changes of the throughput: of cells that write, then of those that only read, each in the order of time.
///
/// The value of a trial is the logarithm of its throughput over the median of its cell, which makes cells comparable. Excludes
/// warm-ups, but counts what they wrote.
pub fn over_run(record: &RunRecord) -> Vec<RunShift> {
    let both = [Access::Writes, Access::Reads].into_iter();
    both.flat_map(|access| shifts(record, access)).collect()
}

fn shifts(record: &RunRecord, access: Access) -> Vec<RunShift> {
    let trials = trials(record, access);
    if trials.len() < VALUES_MIN {
        return Vec::new();
    }
    let size = group_size(trials.len(), VALUES_MAX);
    let values: Vec<f64> = trials
        .chunks(size)
        .filter_map(|group| mean(&group.iter().map(|t| t.value).collect::<Vec<_>>()))
        .collect();
    let mut must = lasting(values.len(), 1);
    must.length = must.length.max(three_blocks(&trials).div_ceil(size));
    let changes = lasting_shifts(&values, &must).unwrap_or_default();
    let mut ends = vec![0];
    ends.extend(changes.iter().map(|change| change * size));
    ends.push(trials.len());
    let moments = if changes.is_empty() {
        Vec::new()
    } else {
        moments(record)
    };
    ends.windows(3)
        .filter_map(|at| {
            let (before, after) = (&trials[at[0]..at[1]], &trials[at[1]..at[2]]);
            shift(access, (before, after), &moments)
        })
        .collect()
}

fn trials(record: &RunRecord, access: Access) -> Vec<Trial> {
    let is_of = |cell: &Cell| (cell.trial().read_percent < 100) == (access == Access::Writes);
    let own: BTreeSet<i64> = record
        .cells
        .iter()
        .filter(|cell| is_free(cell) && is_of(cell))
        .map(|cell| cell.id)
        .collect();
    let measured = record.samples.iter().filter(|s| s.is_measured());
    let mut trials: Vec<Trial> = measured
        .filter(|s| own.contains(&s.cell) && s.bytes() > 0)
        .map(|s| Trial {
            sample: s.id,
            cell: s.cell,
            block: s.block,
            throughput: s.throughput_mb_s(),
            value: s.throughput_mb_s().ln(),
        })
        .collect();
    let centres = medians(&trials, |trial| trial.value);
    for trial in &mut trials {
        trial.value -= centres.get(&trial.cell).copied().unwrap_or_default();
    }
    trials
}

/// The median of each cell.
fn medians(trials: &[Trial], value: impl Fn(&Trial) -> f64) -> BTreeMap<i64, f64> {
    let mut cells: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for trial in trials {
        cells.entry(trial.cell).or_default().push(value(trial));
    }
    let medians = cells.into_iter();
    medians
        .filter_map(|(cell, values)| Some((cell, median(&values)?)))
        .collect()
}

/// The number of consecutive trials that always reach into three blocks: trials of one block share its conditions, so that two
/// blocks are too few for a level. 1 where a block has one trial.
fn three_blocks(trials: &[Trial]) -> usize {
    let mut blocks: BTreeMap<u32, usize> = BTreeMap::new();
    for trial in trials {
        *blocks.entry(trial.block).or_default() += 1;
    }
    match blocks.into_values().max().unwrap_or(0) {
        0 | 1 => 1,
        most => 2 * most + 1,
    }
}

fn shift(
    of: Access,
    (before, after): (&[Trial], &[Trial]),
    moments: &[Moment],
) -> Option<RunShift> {
    let (low, high) = (
        medians(before, |t| t.throughput),
        medians(after, |t| t.throughput),
    );
    let both: Vec<(i64, f64, f64)> = low
        .iter()
        .filter_map(|(cell, before)| Some((*cell, *before, *high.get(cell)?)))
        .collect();
    let ratios: Vec<f64> = both
        .iter()
        .map(|(_, before, after)| after / before)
        .collect();
    let fastest = both
        .iter()
        .max_by(|a, b| f64::max(a.1, a.2).total_cmp(&f64::max(b.1, b.2)))?;
    let at = place(before, after, moments)?;
    Some(RunShift {
        of,
        moved_bytes: match of {
            Access::Writes => at.written_bytes,
            Access::Reads => at.read_bytes,
        },
        after_ns: at.start_ns,
        factor: median(&ratios)?,
        trials_before: before.len(),
        trials_after: after.len(),
        cell: fastest.0,
        before_mb_s: fastest.1,
        after_mb_s: fastest.2,
    })
}

/// The position of the change: in the last trial before it or the first one after it, where the sum of squares about the two
/// levels is least.
fn place<'a>(before: &[Trial], after: &[Trial], moments: &'a [Moment]) -> Option<&'a Moment> {
    let level = |trials: &[Trial]| median(&trials.iter().map(|t| t.value).collect::<Vec<_>>());
    let (from, to) = (level(before)?, level(after)?);
    let around = [before.last()?, after.first()?];
    let near: Vec<(&Moment, f64)> = moments
        .iter()
        .filter_map(|moment| {
            let trial = around.iter().find(|trial| trial.sample == moment.sample)?;
            let centre = trial.throughput.ln() - trial.value;
            // The logarithm of zero is undefined; a hundredth of the trial's throughput serves as well.
            let throughput = moment.throughput_mb_s().max(0.01 * trial.throughput);
            Some((moment, throughput.ln() - centre))
        })
        .collect();
    let off = |value: f64, level: f64| (value - level).powi(2);
    let mut squares: f64 = near.iter().map(|(_, value)| off(*value, to)).sum();
    let mut best = (squares, near.first()?.0);
    for pair in near.windows(2) {
        let (value, next) = (pair[0].1, pair[1].0);
        squares += off(value, from) - off(value, to);
        if squares < best.0 {
            best = (squares, next);
        }
    }
    Some(best.1)
}
