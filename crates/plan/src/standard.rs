//! Tests of a standard that experiments follow, and deviations of an experiment or its run from them.
//!
//! Source: SNIA, Solid State Storage (SSS) Performance Test Specification (PTS), version 2.0.2 (2020). docs/METHODS.md says which clauses
//! were read in the standard's own text and which are interpretations.

use std::time::Duration;

use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::trial::CacheState;

use crate::cells::{PlannedCell, cells};
use crate::experiment::{Experiment, Standard};
use crate::precondition::Emptying;

/// Known facts about a target and its preparation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TargetFacts {
    /// Its medium; `None` before it is opened.
    pub medium: Option<Medium>,
    /// Usable bytes; `None` if unknown.
    pub bytes: Option<u64>,
    /// Whether its volatile write cache is on; `None` if unknown.
    pub write_cache: Option<bool>,
    /// Whether it was purged by the preparation; `None` if unknown.
    pub purged: Option<bool>,
    /// Whether it took the trims of the preparation; `None` if unknown.
    pub trimmed: Option<bool>,
    /// Size of the requests of its sequential passes, bytes; `None` if unknown.
    pub pass_bs: Option<u64>,
    /// Writes to it since its preparation; `None` before a run.
    pub written: Option<Written>,
}

/// Writes of a run to its target since the preparation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Written {
    /// Bytes of trials and preparation relative to the usable bytes of the target.
    pub fills: f64,
    /// Time of the trials.
    pub time: Duration,
    /// Whether the run ended by steady rounds.
    pub ended_steady: bool,
}

/// Kind of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// A block device.
    Device,
    /// A file on a file system.
    File,
    /// A computed disk, which is new when a run starts.
    Model,
}

/// Something in which an experiment or its run is not the test of the standard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Deviation {
    /// Some trials are shorter than the trials of the test.
    RoundTime {
        /// The shortest time of a trial.
        time: Duration,
        /// Time of a trial in the test.
        of: Duration,
    },
    /// The write saturation test ended before it had written the size of the target as often as required.
    Saturation {
        /// Bytes written, relative to the size of the target.
        fills: f64,
    },
    /// Some trials have no time, or may end before it.
    Bounded,
    /// The target is a file, so that a file system lies between.
    File,
    /// This share of the target is used, not all of it.
    ActiveRange(f64),
    /// The target was not purged, trimmed or otherwise emptied.
    NotPurged,
    /// The range was trimmed but not purged.
    TrimmedOnly,
    /// The target refused to be trimmed.
    TrimRefused,
    /// Other sequential passes than the test's come first.
    Passes,
    /// Data of a trial in a cache of the storage was written out before the next trial, which took a while.
    WrittenOut,
    /// The volatile write cache is on, which the standard turns off.
    WriteCacheOn,
    /// The test's cells that are missing, out of how many.
    Cells {
        /// Missing ones.
        missing: usize,
        /// All of the test.
        of: usize,
    },
    /// This number of cells that the test does not have.
    FurtherCells(usize),
    /// A round has its cells in another order.
    Order,
    /// Requests go to other addresses, or have other sizes.
    Requests,
    /// Another setting has another value in some cells than in the test; its name.
    Setting(&'static str),
    /// Other cells are tracked.
    Tracked,
    /// The window is shorter, its limits are wider, or there may be more rounds.
    Limits,
    /// Some requests go through the page cache.
    PageCache,
}

impl Deviation {
    /// Whether it makes the test smaller than the standard's: shorter, or on less of the device.
    pub fn scales(self) -> bool {
        matches!(
            self,
            Self::RoundTime { .. }
                | Self::Bounded
                | Self::ActiveRange(_)
                | Self::File
                | Self::Saturation { .. }
        )
    }
}

/// Time of a trial of most tests.
const ROUND_TIME: Duration = Duration::from_secs(60);
/// Time of a round of the write saturation test.
const SATURATION_ROUND: Duration = Duration::from_secs(30 * 60);
/// Bytes that the write saturation test writes unless something ends it earlier, relative to the size of the target.
const SATURATION_FILLS: f64 = 4.0;
/// The longest time of the write saturation test.
const SATURATION_TIME: Duration = Duration::from_secs(24 * 3600);
/// Settings that the tests leave to the operator, that change nothing on the target, or that other deviations cover; their
/// names separated by spaces.
const OPEN: [&str; 3] = [
    // Other deviations.
    "bs bs_mix pattern cache time bytes",
    // The range, the target and the machine.
    "region offset first_offset target ranks hosts layout descriptors system",
    // How the host issues and observes requests.
    "backend batch sqpoll iopoll cpus placement buffer_init buffer_memory nice realtime latency latency_over_time hardware_counters trace",
];

/// Rounds of the window in the standard; longer ones keep its limits over more rounds.
const WINDOW: u32 = 5;

/// The sizes of the throughput test, each of which is a test of its own.
const THROUGHPUT_SIZES: [u64; 2] = [1 << 20, 128 << 10];

/// A cell of a test, by the settings that distinguish it from the others: % of reads, I/O size.
type MeasuringPoint = (u8, u64);

/// A test of a standard: the built-in experiment.
struct Test {
    experiment: Experiment,
    points: Vec<MeasuringPoint>,
    /// The cells whose response decides that the rounds are steady.
    tracked: Vec<MeasuringPoint>,
}

fn point(cell: &CellSpec) -> MeasuringPoint {
    (cell.trial.read_percent, cell.trial.bs)
}

impl Standard {
    /// Deviations of an experiment with these cells from the built-in one, and of its target as far as known.
    pub fn deviations(
        self,
        experiment: &Experiment,
        cells: &[&CellSpec],
        target: TargetFacts,
    ) -> Vec<Deviation> {
        let Some(test) = self.test(cells) else {
            return Vec::new();
        };
        let (of, missing) = (test.points.len(), test.missing(cells));
        // Cells that are none of the test, or one of it once more.
        let further = cells.len().saturating_sub(of - missing);
        let all = [
            self.round_time(cells),
            self.saturation(cells, target),
            cells
                .iter()
                .any(|cell| may_end_early(cell))
                .then_some(Deviation::Bounded),
            (target.medium == Some(Medium::File)).then_some(Deviation::File),
            active_range(cells, target),
            self.purge(experiment, target),
            self.passes(&test, experiment, cells, target),
            (target.write_cache == Some(true)).then_some(Deviation::WriteCacheOn),
            (missing > 0).then_some(Deviation::Cells { missing, of }),
            (further > 0).then_some(Deviation::FurtherCells(further)),
            test.has_other_order(cells).then_some(Deviation::Order),
            test.has_other_requests(cells)
                .then_some(Deviation::Requests),
            test.tracks_others(experiment, cells)
                .then_some(Deviation::Tracked),
            test.has_tighter_limits(experiment)
                .then_some(Deviation::Limits),
            cells
                .iter()
                .flat_map(|cell| cell.trials())
                .any(|trial| trial.cache != CacheState::Direct)
                .then_some(Deviation::PageCache),
        ];
        let settings = self.settings_differ(&test, cells);
        let settings = settings.into_iter().map(Deviation::Setting);
        all.into_iter().flatten().chain(settings).collect()
    }

    /// The test with the sizes of these cells.
    fn test(self, measured: &[&CellSpec]) -> Option<Test> {
        let experiment = Experiment::find(self.name()).ok()?;
        let cells = cells(&experiment).ok()?;
        let is_measured = |bs: &u64| measured.iter().any(|cell| cell.trial.bs == *bs);
        let is_any = THROUGHPUT_SIZES.iter().any(is_measured);
        let sizes = THROUGHPUT_SIZES.into_iter();
        let sizes: Vec<u64> = sizes.filter(|bs| !is_any || is_measured(bs)).collect();
        let points = |cell: &PlannedCell| {
            let (reads, bs) = point(&cell.spec);
            match self {
                Self::PtsThroughput => sizes.iter().map(|bs| (reads, *bs)).collect(),
                Self::PtsIops | Self::PtsLatency | Self::PtsWriteSaturation => vec![(reads, bs)],
            }
        };
        let tracked = experiment.tracked(cells.iter().map(|cell| &cell.spec));
        let tracked = tracked.into_iter().map(|place| &cells[place]);
        Some(Test {
            tracked: tracked.flat_map(points).collect(),
            points: cells.iter().flat_map(points).collect(),
            experiment,
        })
    }

    /// The settings that have other values in some of these cells than in all cells of the test.
    fn settings_differ(self, test: &Test, cells: &[&CellSpec]) -> Vec<&'static str> {
        let Ok(wanted) = test.experiment.base() else {
            return Vec::new();
        };
        // Groups are examined one by one.
        let own = |cell: &'_ &CellSpec| -> Vec<CellSpec> {
            match cell.has_groups() {
                true => cell.active().map(|group| group.spec.clone()).collect(),
                false => vec![(*cell).clone()],
            }
        };
        let parts: Vec<CellSpec> = cells.iter().flat_map(own).collect();
        let differs = |setting: &&Setting| {
            let wanted = setting.get(&wanted);
            parts.iter().any(|part| setting.get(part) != wanted)
        };
        let compared = SETTINGS.iter();
        let compared = compared.filter(|setting| !self.leaves_open(setting.name));
        compared
            .filter(differs)
            .map(|setting| setting.name)
            .collect()
    }

    /// Whether the test leaves a setting to the operator, or another deviation covers it.
    fn leaves_open(self, setting: &str) -> bool {
        match setting {
            "threads" | "depth" => self != Self::PtsLatency,
            "read_percent" => true,
            _ => OPEN
                .iter()
                .any(|names| names.split(' ').any(|name| name == setting)),
        }
    }

    /// Time of a trial of the test.
    fn round(self) -> Duration {
        match self {
            Self::PtsWriteSaturation => SATURATION_ROUND,
            Self::PtsIops | Self::PtsThroughput | Self::PtsLatency => ROUND_TIME,
        }
    }

    /// Whether some trials of these cells are shorter than the test's, so that its limits for steady rounds do not show
    /// steady storage.
    pub fn has_short_rounds(self, cells: &[&CellSpec]) -> bool {
        self.round_time(cells).is_some()
    }

    /// The shortest trial, if it is shorter than the test's.
    fn round_time(self, cells: &[&CellSpec]) -> Option<Deviation> {
        let of = self.round();
        let trials = cells.iter().flat_map(|cell| cell.trials());
        let times = trials.filter_map(|trial| trial.limit.time);
        let time = times.min().filter(|time| *time < of)?;
        Some(Deviation::RoundTime { time, of })
    }

    /// Whether the write saturation test ended otherwise than by writing four times the size of the target, by its time, or by steady
    /// rounds of its length.
    fn saturation(self, cells: &[&CellSpec], target: TargetFacts) -> Option<Deviation> {
        let Written {
            fills,
            time,
            ended_steady,
        } = target
            .written
            .filter(|_| self == Self::PtsWriteSaturation)?;
        let is_by_rounds = ended_steady && self.round_time(cells).is_none();
        let is_complete = fills >= SATURATION_FILLS || time >= SATURATION_TIME || is_by_rounds;
        (!is_complete).then_some(Deviation::Saturation { fills })
    }

    fn purge(self, experiment: &Experiment, target: TargetFacts) -> Option<Deviation> {
        let only_trimmed = || match target.trimmed {
            Some(false) => Deviation::TrimRefused,
            Some(true) | None => Deviation::TrimmedOnly,
        };
        match (experiment.design.precondition.emptying, target.medium) {
            // A run on a model starts with a new one.
            (_, Some(Medium::Model)) => None,
            (Emptying::Not, _) => Some(Deviation::NotPurged),
            (Emptying::Trim, _) | (Emptying::Purge, Some(Medium::File)) => Some(only_trimmed()),
            (Emptying::Purge, _) => match target.purged {
                Some(true) => None,
                Some(false) => Some(only_trimmed()),
                // A plan does not show the features of the device.
                None => target.trimmed.map(|_| only_trimmed()),
            },
        }
    }

    fn passes(
        self,
        test: &Test,
        experiment: &Experiment,
        cells: &[&CellSpec],
        target: TargetFacts,
    ) -> Option<Deviation> {
        let [asked, own] = [experiment, &test.experiment].map(|of| of.design.precondition);
        let other_size = target.pass_bs.is_some_and(|bs| bs != asked.seq_bs);
        let has_size = match self {
            Self::PtsIops | Self::PtsLatency => asked.seq_bs == own.seq_bs,
            Self::PtsThroughput => cells.iter().all(|cell| cell.trial.bs == asked.seq_bs),
            Self::PtsWriteSaturation => true,
        };
        let is_so = asked.seq == own.seq && has_size;
        (!is_so || asked.rand > 0 || other_size).then_some(Deviation::Passes)
    }
}

impl Test {
    /// Number of its cells that these are not.
    fn missing(&self, cells: &[&CellSpec]) -> usize {
        let is_missing = |own: &&MeasuringPoint| cells.iter().all(|cell| point(cell) != **own);
        self.points.iter().filter(is_missing).count()
    }

    fn has_other_order(&self, cells: &[&CellSpec]) -> bool {
        let place = |cell: &&CellSpec| self.points.iter().position(|own| *own == point(cell));
        let places: Vec<usize> = cells.iter().filter_map(place).collect();
        !places.is_sorted()
    }

    fn has_other_requests(&self, cells: &[&CellSpec]) -> bool {
        let pattern = self.experiment.base().map(|own| own.trial.pattern);
        let is_so = |cell: &&CellSpec| {
            let is_own = pattern.as_ref().is_ok_and(|own| *own == cell.trial.pattern);
            is_own && cell.trial.bs_mix.is_none() && !cell.has_groups()
        };
        !cells.iter().all(is_so)
    }

    /// Whether other cells decide that the rounds are steady.
    fn tracks_others(&self, experiment: &Experiment, cells: &[&CellSpec]) -> bool {
        let tracked = experiment.tracked(cells.iter().copied());
        let is_wanted = |place: usize| self.tracked.contains(&point(cells[place]));
        tracked.len() != self.tracked.len() || !tracked.into_iter().all(is_wanted)
    }

    /// Whether the rounds of an experiment end, steady or not, where the test goes on.
    fn has_tighter_limits(&self, experiment: &Experiment) -> bool {
        let of = |experiment: &Experiment| experiment.design.precondition.rounds_of_cells();
        let rounds = of(experiment).zip(of(&self.experiment));
        rounds.is_some_and(|(asked, usual)| {
            asked.window < usual.window.min(WINDOW)
                || asked.range > usual.range
                || asked.slope > usual.slope
                || asked.rounds > usual.rounds
        })
    }
}

/// Whether a trial has no time, or another limit that may end it before.
fn may_end_early(cell: &CellSpec) -> bool {
    cell.trials().into_iter().any(|trial| {
        let limit = trial.limit;
        limit.time.is_none() || limit.bytes.is_some()
    })
}

fn active_range(cells: &[&CellSpec], target: TargetFacts) -> Option<Deviation> {
    let trials = cells.iter().flat_map(|cell| cell.trials());
    let used = trials.map(|trial| trial.region).max()?;
    let share = used as f64 / target.bytes.filter(|bytes| *bytes > 0)? as f64;
    // Regions are cut to whole units.
    (share < 0.995 && target.medium != Some(Medium::File)).then_some(Deviation::ActiveRange(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A renamed setting would fall out of the list, and be reported as a deviation of every run.
    #[test]
    fn the_operators_choices_are_settings() {
        for name in OPEN.iter().flat_map(|names| names.split(' ')) {
            assert!(Setting::find(name).is_some(), "{name}");
        }
    }
}
