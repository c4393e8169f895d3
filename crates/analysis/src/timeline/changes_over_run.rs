//! Changes of the level over a run, between its trials or inside one of few long ones: the trials before and after that one show
//! that the change does not happen in each trial.

use std::collections::BTreeMap;

use super::recurring_changes::{INTERVALS_MIN, logarithms, rates};
use super::{
    Access, DisturbedTrials, FACTOR_MIN, IsDisturbed, Levels, Moment, RunShift, VALUES_MAX,
    VALUES_MIN, group_size, lasting, moments,
};
use iolab_record::{Interval, RunRecord, Sample};
use iolab_stats::{lasting_shifts, mean, median};

/// Rounds of the median polish; more rounds change nothing if blocks are complete.
const POLISHES: usize = 3;

/// Whether a sample is of a series.
type IsOf = fn(&Sample) -> bool;

/// The series that are searched until one has a change: measured trials, and warm-ups too.
const SERIES: [IsOf; 2] = [Sample::is_measured, |sample| sample.ok];

/// A trial of a cell.
struct Trial<'a> {
    sample: &'a Sample,
    /// The logarithm of its throughput relative to the usual one of its cell.
    value: f64,
}

/// The lasting changes of the throughput: for cells that write, then for those that only read, each in the order
/// of time.
///
/// The value of a trial is the logarithm of its throughput relative to the usual one of its cell, so that all
/// cells form one series. Where it has no change, warm-ups are a block more: one that came early leaves too few other blocks for a
/// level. If trials are too few or too long to show levels, the course inside them is searched.
pub fn over_run(record: &RunRecord, is_disturbed: IsDisturbed<'_>) -> Vec<RunShift> {
    let both = [Access::Writes, Access::Reads].into_iter();
    let of = |access| {
        let all = SERIES.iter();
        let mut all = all.map(|is_of| shifts(record, (access, *is_of), is_disturbed));
        let mut found = all.find(|found| !found.is_empty()).unwrap_or_default();
        if found.is_empty() {
            found.extend(inside_trials(record, access, is_disturbed));
        }
        found
    };
    both.flat_map(of).collect()
}

fn shifts(
    record: &RunRecord,
    (access, is_of): (Access, IsOf),
    is_disturbed: IsDisturbed<'_>,
) -> Vec<RunShift> {
    let trials = trials(record, access, is_of);
    if trials.len() < VALUES_MIN {
        return Vec::new();
    }
    let size = group_size(trials.len(), VALUES_MAX);
    let values = |group: &[Trial<'_>]| group.iter().map(|t| t.value).collect::<Vec<_>>();
    let values = trials.chunks(size).filter_map(|group| mean(&values(group)));
    let values: Vec<f64> = values.collect();
    let mut must = lasting(values.len(), SERIES.len());
    must.length = must.length.max(three_blocks(&trials).div_ceil(size));
    let changes = lasting_shifts(&values, &must).unwrap_or_default();
    if changes.is_empty() {
        return Vec::new();
    }
    let mut ends = vec![0];
    ends.extend(changes.iter().map(|change| change * size));
    ends.push(trials.len());
    let moments = moments(record);
    let shifts = ends.windows(3).filter_map(|at| {
        let (before, after) = (&trials[at[0]..at[1]], &trials[at[1]..at[2]]);
        shift(access, (before, after), &moments, is_disturbed)
    });
    shifts.collect()
}

fn trials(record: &RunRecord, access: Access, is_of: IsOf) -> Vec<Trial<'_>> {
    let own = access.cells(record);
    let series = record.samples.iter().filter(|sample| is_of(sample));
    let mut trials: Vec<Trial<'_>> = series
        .filter(|s| own.contains(&s.cell) && s.bytes() > 0)
        .map(|s| Trial {
            sample: s,
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
    for _ in 0..POLISHES {
        let off_block = |t: &Trial<'_>| t.value - effect(&of_blocks, t.sample.block);
        of_cells = medians(trials, |t| t.sample.cell, off_block);
        let off_cell = |t: &Trial<'_>| t.value - effect(&of_cells, t.sample.cell);
        of_blocks = medians(trials, |t| t.sample.block, off_cell);
    }
    for trial in trials {
        trial.value -= effect(&of_cells, trial.sample.cell);
    }
}

/// The effect of a cell, or of a block.
fn effect<K: Ord>(of: &BTreeMap<K, f64>, key: K) -> f64 {
    of.get(&key).copied().unwrap_or_default()
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
    let groups = groups.into_iter();
    let medians = groups.filter_map(|(key, values)| Some((key, median(&values)?)));
    medians.collect()
}

/// The number of consecutive trials that always span three blocks, or 1 if a block has one trial. Trials of one
/// block share its conditions, so that two blocks are too few for a level.
fn three_blocks(trials: &[Trial<'_>]) -> usize {
    let mut blocks: BTreeMap<u32, usize> = BTreeMap::new();
    for trial in trials {
        *blocks.entry(trial.sample.block).or_default() += 1;
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
    let throughput = |t: &Trial<'_>| t.sample.throughput_mb_s();
    let [low, high] = [before, after].map(|part| medians(part, |t| t.sample.cell, throughput));
    let both = low.iter();
    let both = both.filter_map(|(cell, before)| Some((*cell, *before, *high.get(cell)?)));
    let both: Vec<(i64, f64, f64)> = both.collect();
    let ratios = both.iter().map(|(_, before, after)| after / before);
    let ratios: Vec<f64> = ratios.collect();
    let measured = |cell: i64| {
        let is_own = |sample: &Sample| sample.cell == cell && sample.is_measured();
        let own = |part: &[Trial<'_>]| part.iter().filter(|t| is_own(t.sample)).count();
        [before, after].map(own)
    };
    // The median of a cell hides a single trial of another level.
    let is_changed = |cell: i64| measured(cell).into_iter().all(|trials| trials > 1);
    let fastest = both.iter().max_by(|a, b| {
        let by_speed = f64::max(a.1, a.2).total_cmp(&f64::max(b.1, b.2));
        is_changed(a.0).cmp(&is_changed(b.0)).then(by_speed)
    })?;
    let at = place(before, after, moments)?;
    let [trials_before, trials_after] = measured(fastest.0);
    let cells = both.iter().map(|(cell, ..)| *cell);
    let cells = cells.filter(|cell| *cell == fastest.0 || is_changed(*cell));
    let disturbed =
        |trials: &[Trial<'_>]| DisturbedTrials::of(trials.iter().map(|t| t.sample), is_disturbed);
    Some(RunShift {
        of,
        moved_bytes: at.moved_bytes(of),
        after_ns: at.start_ns,
        factor: median(&ratios)?,
        cells: cells.collect(),
        levels: Levels::Trials {
            before: trials_before,
            after: trials_after,
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
    let near = moments.iter().filter_map(|moment| {
        let mut around = around.iter();
        let trial = around.find(|trial| trial.sample.id == moment.sample)?;
        let of_trial = trial.sample.throughput_mb_s();
        let centre = of_trial.ln() - trial.value;
        // The logarithm of zero is undefined; a hundredth of the trial's throughput stands for it.
        let throughput = moment.throughput_mb_s.max(0.01 * of_trial);
        Some((moment, throughput.ln() - centre))
    });
    let near: Vec<(&Moment, f64)> = near.collect();
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

/// A trial with its intervals.
type Course<'a> = (&'a Sample, &'a [Interval]);

/// A change inside one trial of a cell.
struct Inside<'a> {
    cell: i64,
    /// The trials of the cell in the order of time, warm-ups included, and the place of the one that changes.
    trials: &'a [Course<'a>],
    place: usize,
    /// Index of its first interval after the change.
    change: usize,
    before_mb_s: f64,
    after_mb_s: f64,
}

/// The greatest permanent change that lies inside a measured trial of one of these cells.
fn inside_trials(
    record: &RunRecord,
    access: Access,
    is_disturbed: IsDisturbed<'_>,
) -> Option<RunShift> {
    let cells = courses(record, access);
    let is_tested =
        |(sample, intervals): &Course<'_>| sample.is_measured() && intervals.len() >= INTERVALS_MIN;
    let all = cells.values().flatten();
    let tested = all.filter(|trial| is_tested(trial)).count();
    let found = cells.iter().flat_map(|(cell, trials)| {
        let places = (0..trials.len()).filter(|place| is_tested(&trials[*place]));
        places.filter_map(|place| inside(*cell, trials, place, tested))
    });
    let lasting = found.filter(Inside::is_for_good);
    let greatest = lasting.max_by(|a, b| a.size().total_cmp(&b.size()))?;
    greatest.shift(record, access, is_disturbed)
}

/// The trials of these cells whose course is known, cell by cell.
fn courses(record: &RunRecord, access: Access) -> BTreeMap<i64, Vec<Course<'_>>> {
    let by_sample = super::courses(record);
    let own = access.cells(record);
    let samples = record.samples.iter();
    let mut courses: BTreeMap<i64, Vec<Course<'_>>> = BTreeMap::new();
    for sample in samples.filter(|sample| sample.ok && own.contains(&sample.cell)) {
        if let Some(intervals) = by_sample.get(&sample.id) {
            let own = courses.entry(sample.cell).or_default();
            own.push((sample, *intervals));
        }
    }
    courses
}

/// The last change inside a trial, corrected for `tested` series that are searched.
fn inside<'a>(
    cell: i64,
    trials: &'a [Course<'a>],
    place: usize,
    tested: usize,
) -> Option<Inside<'a>> {
    let (_, intervals) = trials[place];
    let size = group_size(intervals.len(), VALUES_MAX);
    let rates = rates(intervals, size);
    let values = logarithms(&rates)?;
    let changes = lasting_shifts(&values, &lasting(values.len(), tested))?;
    let (change, earlier) = changes.split_last()?;
    let start = earlier.last().copied().unwrap_or(0);
    Some(Inside {
        cell,
        trials,
        place,
        change: change * size,
        before_mb_s: median(&rates[start..*change])?,
        after_mb_s: median(&rates[*change..])?,
    })
}

impl Inside<'_> {
    /// The absolute logarithm of the factor.
    fn size(&self) -> f64 {
        (self.after_mb_s / self.before_mb_s).ln().abs()
    }

    /// Whether all trials before are at the level before, and all later ones at the level after. Compares their
    /// ends if each trial would run into the change, and their beginnings if each would begin anew. One trial
    /// alone shows neither.
    fn is_for_good(&self) -> bool {
        let is_at = |part: &[Interval], level: f64| {
            let own = median(&rates(part, 1));
            own.is_some_and(|own| (own / level).ln().abs() < 0.5 * self.size())
        };
        let before = self.trials[..self.place].iter();
        let last = |own: &[Interval]| own.len().saturating_sub(VALUES_MIN / 2);
        let mut before = before.map(|(_, own)| &own[self.change.min(last(own))..]);
        let after = self.trials[self.place + 1..].iter();
        let mut after = after.map(|(_, own)| &own[..self.change.min(own.len())]);
        self.size() >= FACTOR_MIN.ln()
            && self.trials.len() > 1
            && before.all(|part| is_at(part, self.before_mb_s))
            && after.all(|part| is_at(part, self.after_mb_s))
    }

    fn shift(
        &self,
        record: &RunRecord,
        access: Access,
        is_disturbed: IsDisturbed<'_>,
    ) -> Option<RunShift> {
        let (sample, intervals) = self.trials[self.place];
        let moments = moments(record).into_iter();
        let mut own = moments.filter(|moment| moment.sample == sample.id);
        let at_change = own.nth(self.change)?;
        let with = |from_ns: u64, trials: &[Course<'_>]| {
            let elapsed = trials.iter().map(|(sample, _)| sample.elapsed_ns);
            elapsed.fold(from_ns, u64::saturating_add)
        };
        let offset_ns = intervals.get(self.change)?.start_ns;
        let before_ns = with(offset_ns, &self.trials[..self.place]);
        let rest_ns = sample.elapsed_ns.saturating_sub(offset_ns);
        let after_ns = with(rest_ns, &self.trials[self.place + 1..]);
        // A trial with both levels counts at the lower one, which a disturbance of it may have made.
        let (before, after) = match self.after_mb_s < self.before_mb_s {
            true => self.trials.split_at(self.place),
            false => self.trials.split_at(self.place + 1),
        };
        let disturbed = |trials: &[Course<'_>]| {
            DisturbedTrials::of(trials.iter().map(|(sample, _)| *sample), is_disturbed)
        };
        Some(RunShift {
            of: access,
            moved_bytes: at_change.moved_bytes(access),
            after_ns: at_change.start_ns,
            factor: self.after_mb_s / self.before_mb_s,
            cells: vec![self.cell],
            levels: Levels::Time {
                before_ns,
                after_ns,
            },
            disturbed_before: disturbed(before),
            disturbed_after: disturbed(after),
            cell: self.cell,
            before_mb_s: self.before_mb_s,
            after_mb_s: self.after_mb_s,
        })
    }
}
