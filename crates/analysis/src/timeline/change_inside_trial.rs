//! A permanent change that lies inside one of few long trials. The course of that trial shows the change, and
//! the trials before and after it show that it does not happen in each trial.

use std::collections::{BTreeMap, HashMap};

use iolab_record::{Interval, RunRecord, Sample};
use iolab_stats::{lasting_shifts, median};

use super::recurring_changes::{INTERVALS_MIN, rates};
use super::run_shift::{Access, DisturbedTrials, IsDisturbed, Levels, RunShift, VALUES_MAX};
use super::{FACTOR_MIN, VALUES_MIN, group_size, lasting, moments};

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
pub(super) fn inside_trials(
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
    let series = record.series.iter();
    let by_sample: HashMap<i64, &[Interval]> = series
        .map(|one| (one.sample, one.series.intervals.as_slice()))
        .collect();
    let cells = access.cells(record).into_iter();
    let mut courses: BTreeMap<i64, Vec<Course<'_>>> =
        cells.map(|cell| (cell, Vec::new())).collect();
    for sample in record.samples.iter().filter(|sample| sample.ok) {
        let of_cell = courses.get_mut(&sample.cell);
        if let Some((own, intervals)) = of_cell.zip(by_sample.get(&sample.id)) {
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
    // The logarithm of no throughput is undefined; a hundredth of the median stands for it.
    let least = 0.01 * median(&rates)?;
    let values: Vec<f64> = rates.iter().map(|rate| rate.max(least).ln()).collect();
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
            moved_bytes: match access {
                Access::Writes => at_change.written_bytes,
                Access::Reads => at_change.read_bytes,
            },
            after_ns: at_change.start_ns,
            factor: self.after_mb_s / self.before_mb_s,
            cells: 1,
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
