//! Changes of the level within the trials of a cell, at the same point in each, and short levels at their ends.

use std::collections::BTreeMap;

use super::{Access, FACTOR_MIN, courses, group_size, is_free, lasting};
use iolab_record::{Cell, Interval, RunRecord};
use iolab_stats::{Lasting, lasting_shifts, median, spread_within};

/// Fewest intervals of a trial that two levels are looked for in.
pub(super) const INTERVALS_MIN: usize = 20;

/// Most points of a profile; of more intervals neighbours are taken together.
const POINTS_MAX: usize = 200;

/// Fewest groups of intervals in a level.
const GROUPS_MIN: usize = 5;

/// Share of the trials that must show a change by themselves.
const SHOWN_MIN: f64 = 0.75;

/// An interval of a cell's trials, with the throughput over all trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThroughputPoint {
    /// Start, from the start of a trial, ns.
    pub start_ns: u64,
    /// Length of the interval, ns.
    pub length_ns: u64,
    /// Bytes transferred before it in a trial: median over the trials.
    pub moved_bytes: f64,
    /// The part of `moved_bytes` that was written, likewise.
    pub written_bytes: f64,
    /// Median over the trials, MB/s.
    pub throughput_mb_s: f64,
}

/// The greatest change of the level of throughput within each trial of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialShift {
    /// The cell.
    pub cell: i64,
    /// Number of measured trials in the profile.
    pub trials: usize,
    /// Time of the shift, from the start of a trial, ns.
    pub after_ns: u64,
    /// Bytes written before it in a trial, or read where nothing was written: median over the trials.
    pub moved_bytes: f64,
    /// Kind of access that moved these bytes.
    pub of: Access,
    /// Throughput before, MB/s.
    pub before_mb_s: f64,
    /// Throughput after, MB/s.
    pub after_mb_s: f64,
    /// All levels of the only trial of a cell, in the order of time; empty of several trials, which share this change alone.
    pub levels: Vec<TrialLevel>,
}

/// A level of throughput within a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialLevel {
    /// Since when, from the start of the trial, ns.
    pub from_ns: u64,
    /// Bytes written until then, or read where nothing is written.
    pub from_bytes: f64,
    /// Median of its intervals, MB/s.
    pub throughput_mb_s: f64,
}

impl TrialShift {
    /// Throughput after over throughput before.
    pub fn factor(&self) -> f64 {
        self.after_mb_s / self.before_mb_s
    }

    /// Whether a trial moves at least half as far, on the logarithms, in the same direction.
    fn is_in(&self, trial: &[Interval]) -> bool {
        let change = trial.partition_point(|interval| interval.start_ns < self.after_ns);
        let (before, after) = trial.split_at(change);
        let level = |part: &[Interval]| median(&rates(part, 1));
        let levels = level(before).zip(level(after));
        levels.is_some_and(|(before, after)| {
            let (moved, all) = ((after / before).ln(), self.factor().ln());
            // Nothing at all was done at one of the levels: that is as far as it goes.
            moved * all.signum() >= 0.5 * all.abs().min(f64::MAX)
        })
    }
}

/// The trials of a cell over time, up to the end of the shortest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile {
    /// Number of measured trials.
    pub trials: usize,
    /// Points of the profile, at most 200, in the order of time.
    pub points: Vec<ThroughputPoint>,
}

impl Profile {
    /// The throughput of its points, MB/s.
    pub(super) fn rates(&self) -> Vec<f64> {
        let points = self.points.iter();
        points.map(|point| point.throughput_mb_s).collect()
    }
}

/// The profile of a cell: medians over its measured trials, interval by interval.
pub fn profile(record: &RunRecord, cell: i64) -> Profile {
    let mut measured = measured(record);
    let own = measured.find(|(own, ..)| own.id == cell);
    own.map_or_else(Profile::default, |(.., own)| {
        of_trials(&alike(&own), POINTS_MAX)
    })
}

/// The courses of the only trials of cells, by cell.
pub(super) fn only_trials(record: &RunRecord) -> BTreeMap<i64, Profile> {
    let measured = measured(record);
    let only = measured.filter(|(_, trials, courses)| (*trials, courses.len()) == (1, 1));
    only.map(|(cell, _, own)| (cell.id, of_trials(&own, POINTS_MAX)))
        .collect()
}

/// The greatest lasting change within the trials of each cell that has one, in the order of the cells: what (nearly) every trial shows,
/// not only the median over them, which mixes trials before a change over the run with trials after it.
pub fn within_trials(record: &RunRecord) -> Vec<TrialShift> {
    let own = measured(record).filter(|(cell, ..)| cell.program().is_none());
    let tested = own.filter_map(|(cell, _, trials)| {
        let trials = alike(&trials);
        let length = trials.iter().map(|own| own.len()).min()?;
        (length >= INTERVALS_MIN).then_some((cell, trials))
    });
    let tested: Vec<(&Cell, Vec<&[Interval]>)> = tested.collect();
    let shifts = tested.iter().filter_map(|(cell, trials)| {
        let find = match trials.len() {
            1 => level_changes,
            _ => lasting_shifts,
        };
        let shift = shift(cell.id, trials, tested.len(), find)?;
        // A missed rate shows the storage's own throughput; catching up does not.
        if !is_free(cell) && shift.factor() > 1.0 {
            return None;
        }
        // A single trial cannot confirm the change that was found in it, nor contradict it.
        if trials.len() == 1 {
            return Some(shift);
        }
        let shown = trials.iter().filter(|trial| shift.is_in(trial)).count();
        (shown as f64 >= SHOWN_MIN * trials.len() as f64).then_some(shift)
    });
    shifts.collect()
}

/// The largest lasting change within the warm-up of each cell that writes, where the measured trials stay at the later level.
pub fn in_warm_ups(record: &RunRecord) -> Vec<TrialShift> {
    let writing = record.cells.iter();
    let writing = writing.filter(|cell| is_free(cell) && cell.trial().writes());
    let mut first: BTreeMap<i64, i64> = BTreeMap::new();
    for sample in record.samples.iter().filter(|one| one.warmup && one.ok) {
        first.entry(sample.cell).or_insert(sample.id);
    }
    let courses = courses(record);
    let warm_up = |cell: i64| {
        let own = courses.get(first.get(&cell)?)?;
        (own.len() >= INTERVALS_MIN).then_some((cell, *own))
    };
    let tested: Vec<(i64, &[Interval])> = writing.filter_map(|cell| warm_up(cell.id)).collect();
    let shifts = tested.iter().filter_map(|(cell, own)| {
        let shift = shift(*cell, &[*own], tested.len(), lasting_shifts);
        shift.filter(|shift| stays(record, shift))
    });
    shifts.collect()
}

/// Whether the measured trials of a cell have the level at the end of its warm-up, not the one at its beginning.
fn stays(record: &RunRecord, shift: &TrialShift) -> bool {
    let own = record.samples.iter();
    let own = own.filter(|sample| sample.cell == shift.cell && sample.is_measured());
    let measured: Vec<f64> = own.map(|sample| sample.throughput_mb_s()).collect();
    median(&measured).is_some_and(|level| {
        let off = |from: f64| (level / from).ln().abs();
        off(shift.after_mb_s) < FACTOR_MIN.ln().min(off(shift.before_mb_s))
    })
}

/// Each cell with the number of its measured trials, and their known courses in the order of time.
fn measured(record: &RunRecord) -> impl Iterator<Item = (&Cell, usize, Vec<&[Interval]>)> {
    let courses = courses(record);
    record.measured().map(move |(cell, trials)| {
        let known = trials.iter();
        let known = known.filter_map(|trial| courses.get(&trial.id).copied());
        (cell, trials.len(), known.collect())
    })
}

/// The trials whose intervals have the length of the first trial's.
fn alike<'a>(trials: &[&'a [Interval]]) -> Vec<&'a [Interval]> {
    let length = |intervals: &[Interval]| intervals.first().map(|one| one.length_ns);
    let first = trials.first().and_then(|first| length(first));
    let alike = trials.iter().filter(|trial| length(trial) == first);
    alike.copied().collect()
}

/// The profile of trials whose intervals are equally long, with at most `most` points.
fn of_trials(alike: &[&[Interval]], most: usize) -> Profile {
    let shortest = alike.iter().map(|intervals| intervals.len()).min();
    let shortest = shortest.unwrap_or(0);
    let size = group_size(shortest, most);
    // Bytes of each trial so far: all, and those written.
    let mut moved = vec![0.0; alike.len()];
    let mut written = vec![0.0; alike.len()];
    let point = |number: usize| {
        let groups = alike.iter().map(|i| &i[number * size..(number + 1) * size]);
        let totals: Vec<(f64, f64)> = groups.clone().map(total).collect();
        let lengths: Vec<f64> = totals.iter().map(|(_, ns)| *ns).collect();
        let rates = totals.iter().map(|(bytes, ns)| bytes * 1e3 / ns.max(1.0));
        let rates: Vec<f64> = rates.collect();
        let point = ThroughputPoint {
            start_ns: groups.clone().next()?.first()?.start_ns,
            length_ns: median(&lengths)? as u64,
            moved_bytes: median(&moved)?,
            written_bytes: median(&written)?,
            throughput_mb_s: median(&rates)?,
        };
        for (place, (group, (bytes, _))) in groups.zip(totals).enumerate() {
            moved[place] += bytes;
            let own = group.iter().map(|one| one.done.write.bytes as f64);
            written[place] += own.sum::<f64>();
        }
        Some(point)
    };
    Profile {
        trials: alike.len(),
        points: (0..shortest / size).filter_map(point).collect(),
    }
}

/// Sum of bytes and ns of neighbouring intervals.
fn total(intervals: &[Interval]) -> (f64, f64) {
    intervals.iter().fold((0.0, 0.0), |(bytes, ns), interval| {
        (
            bytes + interval.done.bytes() as f64,
            ns + interval.length_ns as f64,
        )
    })
}

/// Throughput of each `size` neighbouring intervals, MB/s; an incomplete group at the end is left out.
pub(super) fn rates(intervals: &[Interval], size: usize) -> Vec<f64> {
    let rate = |group: &[Interval]| {
        let (bytes, ns) = total(group);
        bytes * 1e3 / ns.max(1.0)
    };
    intervals.chunks_exact(size).map(rate).collect()
}

/// Finds the places in a series at which its level changes.
type FindChanges = fn(&[f64], &Lasting) -> Option<Vec<usize>>;

/// The greatest of the changes that `find` finds in the profile of these trials, corrected for `series` profiles that are
/// searched.
fn shift(cell: i64, own: &[&[Interval]], series: usize, find: FindChanges) -> Option<TrialShift> {
    let values = logarithms(&of_trials(own, POINTS_MAX).rates())?;
    let changes = find(&values, &lasting(values.len(), series))?;
    let profile = of_trials(own, usize::MAX);
    let (points, rates) = (&profile.points, profile.rates());
    let of = match points.last()?.written_bytes > 0.0 {
        true => Access::Writes,
        false => Access::Reads,
    };
    let size = group_size(points.len(), POINTS_MAX);
    let ends = [&[0], &changes[..], &[values.len()]].concat();
    let mut ends: Vec<usize> = ends.iter().map(|end| end * size).collect();
    for change in 1..ends.len() - 1 {
        ends[change] = in_intervals(&rates, &ends[change - 1..=change + 1], size)?;
    }
    let levels = ends.windows(2).map(|at| {
        let point = points[at[0]];
        let own: Vec<&[Interval]> = own.iter().map(|trial| &trial[at[0]..at[1]]).collect();
        // A short level has small groups, so that an interval with the change in it does not decide.
        let groups = (at[1] - at[0]).div_ceil(size).max(GROUPS_MIN);
        Some(TrialLevel {
            from_ns: point.start_ns,
            from_bytes: match of {
                Access::Writes => point.written_bytes,
                Access::Reads => point.moved_bytes,
            },
            throughput_mb_s: median(&of_trials(&own, groups).rates())?,
        })
    });
    let levels: Vec<TrialLevel> = levels.collect::<Option<_>>()?;
    let size = |pair: &&[TrialLevel]| {
        let factor = pair[1].throughput_mb_s / pair[0].throughput_mb_s;
        factor.ln().abs()
    };
    let pairs = levels.windows(2);
    let greatest = pairs.max_by(|a, b| size(a).total_cmp(&size(b)))?;
    let [before, after] = [greatest[0], greatest[1]];
    Some(TrialShift {
        cell,
        trials: own.len(),
        after_ns: after.from_ns,
        moved_bytes: after.from_bytes,
        of,
        before_mb_s: before.throughput_mb_s,
        after_mb_s: after.throughput_mb_s,
        levels: match own.len() {
            1 => levels,
            _ => Vec::new(),
        },
    })
}

/// The interval at which the values change the most, near the middle one of three places that were found in groups of `size`
/// intervals: that with the least scatter about the mean before and the mean after.
fn in_intervals(values: &[f64], places: &[usize], size: usize) -> Option<usize> {
    let (place, reach) = (places[1], (BETWEEN + BESIDE) * size);
    let from = place.saturating_sub(reach).max(places[0]);
    let to = (place + reach).min(places[2]);
    let scatter = |at: usize| spread_within(&[&values[from..at], &values[at..to]]);
    let moved = BETWEEN * (size - 1);
    let near = place.saturating_sub(moved).max(from + 1)..(place + moved + 1).min(to);
    let near = near.filter_map(|at| Some((at, scatter(at)?)));
    near.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
}

/// The logarithms of some throughputs. That of zero is undefined; a hundredth of the median serves as well.
pub(super) fn logarithms(rates: &[f64]) -> Option<Vec<f64>> {
    let least = 0.01 * median(rates)?;
    Some(rates.iter().map(|rate| rate.max(least).ln()).collect())
}

/// Fewest values of a piece whose ends are searched for a short level.
const PIECE_MIN: usize = 100;

/// Fewest values of a short level at an end of a piece.
const VALUES_MIN: usize = 2;

/// Greatest length of a short level, as the inverse of its share of the piece.
const PARTS: usize = 5;

/// Values on either side of a change that are skipped, as the change takes that long.
const BETWEEN: usize = 2;

/// Number of values before and after the skipped ones that are compared.
const BESIDE: usize = 3;

/// Least share of a change that happens between the compared values: the rest of a decline is not a step.
const STEP_MIN: f64 = 0.5;

/// Least factor between all values of the level and nine tenths of the others of its piece.
const APART_MIN: f64 = 2.0;

/// Least factor between a single first value and all others of its piece, as when a cache fills up within that
/// interval.
const BURST_MIN: f64 = 5.0;

/// The places at which the level of an only trial changes, as indices of the first value of a new level. These
/// are the lasting shifts, and within the first and the last piece the longest beginning and the longest end
/// that lie apart. Values are logarithms.
pub(super) fn level_changes(values: &[f64], must: &Lasting) -> Option<Vec<usize>> {
    let mut places = lasting_shifts(values, must)?;
    let first = places.first().copied().unwrap_or(values.len());
    let last = places.last().copied().unwrap_or(0);
    if let Some(length) = apart(&values[..first]).or_else(|| burst(&values[..first])) {
        places.insert(0, length);
    }
    let from_the_end: Vec<f64> = values[last..].iter().rev().copied().collect();
    if let Some(length) = apart(&from_the_end) {
        places.push(values.len() - length);
    }
    let levels = [&[0], &places[..], &[values.len()]].concat();
    let is_step = |around: &[usize]| {
        let (before, after) = (around[0]..around[1], around[1]..around[2]);
        step(values, around[1])
            .zip(median(&values[after]).zip(median(&values[before])))
            .is_some_and(|(step, (after, before))| step / (after - before) >= STEP_MIN)
    };
    places.is_sorted().then(|| {
        let found = levels.windows(3).filter(|around| is_step(around));
        found.map(|around| around[1]).collect()
    })
}

/// Difference of the values after a place to those before it.
fn step(values: &[f64], place: usize) -> Option<f64> {
    let before = place.saturating_sub(BETWEEN).max(1);
    let after = (place + BETWEEN).min(values.len() - 1);
    let before = median(&values[before.saturating_sub(BESIDE)..before])?;
    Some(median(&values[after..(after + BESIDE).min(values.len())])? - before)
}

/// The length of the longest beginning whose values lie apart from the rest.
fn apart(piece: &[f64]) -> Option<usize> {
    let longest = piece.len() / PARTS;
    let far = APART_MIN.ln();
    let lies_apart = |begin: &[f64], (low, high): (f64, f64)| {
        begin.iter().all(|value| value - high >= far)
            || begin.iter().all(|value| low - value >= far)
    };
    // Range of some values without the `without` lowest and highest ones.
    let range = |values: &[f64], without: usize| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        (sorted[without], sorted[sorted.len() - 1 - without])
    };
    // Quick check: the first values of any such beginning lie outside the middle range of the piece.
    let middle = || range(piece, piece.len() / 10 + longest);
    if piece.len() < PIECE_MIN || !lies_apart(&piece[..VALUES_MIN], middle()) {
        return None;
    }
    let is_apart = |length: &usize| {
        let (begin, others) = piece.split_at(*length);
        lies_apart(begin, range(others, others.len() / 10))
    };
    (VALUES_MIN..=longest).rev().find(is_apart)
}

/// The length of a beginning that is far above all other values: one value, or `None`.
fn burst(piece: &[f64]) -> Option<usize> {
    let (first, others) = piece.split_first()?;
    let highest = others.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (piece.len() >= PIECE_MIN && first - highest >= BURST_MIN.ln()).then_some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUST: Lasting = Lasting {
        length: 10,
        shift: 0.22,
        alpha: 0.01,
    };

    fn changes(mb_s: impl Fn(usize) -> f64) -> Vec<usize> {
        let values: Vec<f64> = (0..200).map(|at| mb_s(at).ln()).collect();
        level_changes(&values, &MUST).expect("values")
    }

    #[test]
    fn short_ends_of_a_trial_are_levels() {
        // An exhausted credit, with one interval between both levels.
        assert_eq!(
            changes(|at| [12.3, 7.6, 1.2][usize::from(at > 5) + usize::from(at > 6)]),
            [7]
        );
        // A slow start, after which some intervals are slow too.
        let start = |at: usize| match at {
            0..6 => 100.0 * 1.3_f64.powi(at as i32),
            _ if at.is_multiple_of(30) => 150.0,
            _ => 1300.0,
        };
        assert_eq!(changes(start), [6]);
        assert_eq!(changes(|at| if at < 196 { 100.0 } else { 20.0 }), [196]);
        // The cache is full within the first interval.
        assert_eq!(changes(|at| if at == 0 { 3580.0 } else { 50.0 }), [1]);
    }

    #[test]
    fn a_smooth_decline_has_no_step() {
        for steepness in [1.0, 3.0, 10.0, 30.0, 100.0] {
            let part = |at: usize| at as f64 / 200.0;
            let noise = |at: usize| 1.0 + 0.02 * ((at * at + at / 3) % 5) as f64;
            let found = [
                changes(|at| noise(at) / (1.0 + steepness * part(at))),
                changes(|at| noise(at) * (1.0 - part(at) * steepness / (1.0 + steepness))),
                changes(|at| noise(at) * (-part(at) * steepness.ln_1p()).exp()),
                changes(|at| noise(at) * (1.0 + steepness * part(at))),
            ];
            assert!(found.iter().all(Vec::is_empty), "{steepness}: {found:?}");
        }
    }

    #[test]
    fn recurring_and_single_values_are_not_levels() {
        assert!(changes(|at| if at % 20 < 4 { 20.0 } else { 100.0 }).is_empty());
        assert!(changes(|at| if at == 0 { 1.0 } else { 100.0 }).is_empty());
        assert_eq!(changes(|at| if at < 50 { 100.0 } else { 20.0 }), [50]);
    }
}
