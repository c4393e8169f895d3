//! Changes of the level over a run, caused by the trials themselves or from outside.

use std::collections::BTreeMap;

use iolab_stats::{lasting_shifts, mean, median};

use super::change_inside_trial::inside_trials;
use super::run_shift::{Access, DisturbedTrials, IsDisturbed, Levels, RunShift, VALUES_MAX};
use super::{Moment, VALUES_MIN, group_size, lasting, moments};
use iolab_record::{RunRecord, Sample};

/// Rounds of the median polish; more rounds change nothing if blocks are complete.
const POLISHES: usize = 3;

/// A trial of a cell.
struct Trial<'a> {
    sample: &'a Sample,
    cell: i64,
    block: u32,
    throughput: f64,
    /// The logarithm of its throughput relative to the usual one of its cell.
    value: f64,
}

/// The lasting changes of the throughput: for cells that write, then for those that only read, each in the order
/// of time.
///
/// The value of a trial is the logarithm of its throughput relative to the usual one of its cell, so that all
/// cells form one series. Warm-ups are left out, but what they wrote counts as written. If trials are too few or
/// too long to show levels, the course inside them is searched (`change_inside_trial.rs`).
pub fn over_run(record: &RunRecord, is_disturbed: IsDisturbed<'_>) -> Vec<RunShift> {
    let both = [Access::Writes, Access::Reads].into_iter();
    let of = |access| {
        let found = shifts(record, access, is_disturbed);
        match found.is_empty() {
            true => inside_trials(record, access, is_disturbed)
                .into_iter()
                .collect(),
            false => found,
        }
    };
    both.flat_map(of).collect()
}

fn shifts(record: &RunRecord, access: Access, is_disturbed: IsDisturbed<'_>) -> Vec<RunShift> {
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
            shift(access, (before, after), &moments, is_disturbed)
        })
        .collect()
}

fn trials(record: &RunRecord, access: Access) -> Vec<Trial<'_>> {
    let own = access.cells(record);
    let measured = record.samples.iter().filter(|s| s.is_measured());
    let mut trials: Vec<Trial<'_>> = measured
        .filter(|s| own.contains(&s.cell) && s.bytes() > 0)
        .map(|s| Trial {
            sample: s,
            cell: s.cell,
            block: s.block,
            throughput: s.throughput_mb_s(),
            value: s.throughput_mb_s().ln(),
        })
        .collect();
    centre(&mut trials);
    trials
}

/// Subtracts from each trial what is usual in its cell, by Tukey's median polish over cells and blocks. The
/// median of a cell would not do: if the level changes half way, it lies at one level in some cells and at the
/// other in the rest.
fn centre(trials: &mut [Trial<'_>]) {
    let mut of_blocks: BTreeMap<u32, f64> = BTreeMap::new();
    let mut of_cells = BTreeMap::new();
    let effect = |of: &BTreeMap<u32, f64>, block| of.get(&block).copied().unwrap_or_default();
    for _ in 0..POLISHES {
        of_cells = medians(
            trials,
            |t| t.cell,
            |t| t.value - effect(&of_blocks, t.block),
        );
        let off_cell = |t: &Trial<'_>| t.value - of_cells.get(&t.cell).copied().unwrap_or_default();
        of_blocks = medians(trials, |t| t.block, off_cell);
    }
    for trial in trials {
        trial.value -= of_cells.get(&trial.cell).copied().unwrap_or_default();
    }
}

/// The median of each cell, or of each block.
fn medians<K: Ord>(
    trials: &[Trial<'_>],
    key: impl Fn(&Trial<'_>) -> K,
    value: impl Fn(&Trial<'_>) -> f64,
) -> BTreeMap<K, f64> {
    let mut groups: BTreeMap<K, Vec<f64>> = BTreeMap::new();
    for trial in trials {
        groups.entry(key(trial)).or_default().push(value(trial));
    }
    let medians = groups.into_iter();
    medians
        .filter_map(|(key, values)| Some((key, median(&values)?)))
        .collect()
}

/// The number of consecutive trials that always span three blocks, or 1 if a block has one trial. Trials of one
/// block share its conditions, so that two blocks are too few for a level.
fn three_blocks(trials: &[Trial<'_>]) -> usize {
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
    (before, after): (&[Trial<'_>], &[Trial<'_>]),
    moments: &[Moment],
    is_disturbed: IsDisturbed<'_>,
) -> Option<RunShift> {
    let (low, high) = (
        medians(before, |t| t.cell, |t| t.throughput),
        medians(after, |t| t.cell, |t| t.throughput),
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
    let of_fastest = |trials: &[Trial<'_>]| trials.iter().filter(|t| t.cell == fastest.0).count();
    let disturbed =
        |trials: &[Trial<'_>]| DisturbedTrials::of(trials.iter().map(|t| t.sample), is_disturbed);
    Some(RunShift {
        of,
        moved_bytes: match of {
            Access::Writes => at.written_bytes,
            Access::Reads => at.read_bytes,
        },
        after_ns: at.start_ns,
        factor: median(&ratios)?,
        cells: ratios.len(),
        levels: Levels::Trials {
            before: of_fastest(before),
            after: of_fastest(after),
        },
        disturbed_before: disturbed(before),
        disturbed_after: disturbed(after),
        cell: fastest.0,
        before_mb_s: fastest.1,
        after_mb_s: fastest.2,
    })
}

/// The position of the change: in the last trial before it or the first one after it, at the least sum of
/// squares about the two levels.
fn place<'a>(
    before: &[Trial<'_>],
    after: &[Trial<'_>],
    moments: &'a [Moment],
) -> Option<&'a Moment> {
    let level = |trials: &[Trial<'_>]| median(&trials.iter().map(|t| t.value).collect::<Vec<_>>());
    let (from, to) = (level(before)?, level(after)?);
    let around = [before.last()?, after.first()?];
    let near: Vec<(&Moment, f64)> = moments
        .iter()
        .filter_map(|moment| {
            let trial = around
                .iter()
                .find(|trial| trial.sample.id == moment.sample)?;
            let centre = trial.throughput.ln() - trial.value;
            // The logarithm of zero is undefined; a hundredth of the trial's throughput stands for it.
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
