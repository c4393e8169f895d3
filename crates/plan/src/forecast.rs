//! Forecast of the trials, time and written bytes of a plan, before anything is touched.

use std::collections::BTreeSet;
use std::time::Duration;

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::TrialSpec;

use crate::batch_probes;
use crate::carry_over::may_end_unsynced;
use crate::cells::{Plan, PlannedCell};
use crate::experiment::BlockTimes;
use crate::precondition::Precondition;

/// The assumed rate of fast storage, bytes per second, for estimates before the target has been measured.
pub const ASSUMED_RATE: f64 = 3e9;

/// Forecast of one experiment: number of cells and trials, time, bytes written.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// Name of the experiment.
    pub experiment: String,
    /// Number of cells.
    pub cells: usize,
    /// Fewest and most trials with which the repetition ends within the budget, including warm-ups.
    pub trials: (u64, u64),
    /// Shortest and longest time of measuring: the shortest on fast storage, `None` if a trial runs a program.
    pub time: (Option<Duration>, Duration),
    /// The longest time of one trial of each cell; `None` if a trial has no time limit.
    block: Option<Duration>,
    /// Whether trials trim blocks, which loses what these held.
    pub trims: bool,
    /// Whether the number of trials alone ends it, and no budget.
    pub is_counted: bool,
    /// Whether trials may end with writes that no sync followed. Such data is written out from caches between trials, which
    /// `time` does not count.
    pub leaves_writes: bool,
    /// Writes before the first trial, as passes over this many bytes.
    pub precondition: (Precondition, u64),
    /// Writes of each cell that writes data.
    writing: Vec<Writing>,
    /// Most bytes that it writes to all targets, with their fill.
    budget: Option<u64>,
}

impl Forecast {
    /// The forecast of a plan; `overhead` is the time of a trial besides its I/O.
    pub fn of(plan: &Plan, overhead: &dyn Fn(&CellSpec) -> Duration) -> Self {
        let (design, cells) = (plan.experiment().design, plan.cells());
        let trials = |measured: u32| cells.len() as u64 * u64::from(measured + design.warm_ups());
        let fewest = design.trials_wanted(cells.len());
        let trials = (trials(fewest), trials(design.trials_max));
        let own = cells.iter().map(|cell| overhead(&cell.spec));
        let own = own.fold(Duration::ZERO, Duration::saturating_add);
        let in_flight = block_time(cells);
        // Trials of other tools have no time limit, but take a minimum time on any storage.
        let is_bounded = in_flight.is_some() || !own.is_zero();
        let at_most = plan.block_at_most(overhead);
        let block = is_bounded.then_some(at_most);
        let runs_program = cells.iter().any(|cell| cell.spec.runs_program());
        let least = least_block_time(cells, overhead).saturating_mul(fewest + design.warm_ups());
        let region = cells.iter().flat_map(|cell| cell.spec.trials());
        let region = region.map(|trial| trial.region).max().unwrap_or(0);
        let probes = batch_probes::time(cells);
        let granted = at_most.saturating_mul(design.granted());
        let granted = granted.saturating_add(probes);
        let budget = design.time_at_most(block);
        let trials_of_each = match plan.adds_cells() {
            true => f64::INFINITY,
            false => f64::from(design.trials_max + design.warm_ups()),
        };
        Self {
            experiment: plan.experiment().name.clone(),
            cells: cells.len(),
            trials,
            time: (
                (!runs_program).then(|| least.min(design.budget)),
                budget.max(granted),
            ),
            block,
            trims: cells
                .iter()
                .any(|cell| cell.spec.trials().into_iter().any(TrialSpec::trims)),
            is_counted: design.is_counted(),
            leaves_writes: plan.leaves_writes(),
            precondition: (design.precondition, region),
            writing: cells
                .iter()
                .filter_map(|cell| {
                    let share = share_of_time(cell, in_flight, cells.len());
                    Writing::of(cell, share, trials_of_each)
                })
                .collect(),
            budget: design.writes.map(|most| {
                let targets = cells.iter().flat_map(|cell| cell.spec.targets());
                most.saturating_mul(targets.collect::<BTreeSet<_>>().len() as u64)
            }),
        }
    }

    /// The forecast if filling the targets writes this many bytes, which a budget of writes pays for first.
    #[must_use]
    pub fn beside_fill(mut self, filled: u64) -> Self {
        self.budget = self.budget.map(|budget| budget.saturating_sub(filled));
        self
    }

    /// The rest of it after this many trials, which took this time of the budget.
    #[must_use]
    pub fn after(mut self, made: u64, spent: Duration) -> Self {
        let (least, most) = self.trials;
        self.trials = (least.saturating_sub(made), most.saturating_sub(made));
        let (least_time, most_time) = self.time;
        // The other work of past counted trials says nothing about the rest.
        let share = self.trials.1 as f64 / most.max(1) as f64;
        let rest = |time: Duration| match self.is_counted {
            true => Duration::try_from_secs_f64(time.as_secs_f64() * share).unwrap_or(time),
            false => time.saturating_sub(spent),
        };
        // A block is granted to every session.
        self.time = (
            least_time.map(rest),
            rest(most_time).max(self.block.unwrap_or_default()),
        );
        for cell in &mut self.writing {
            cell.trials *= share;
        }
        self
    }

    /// Whether its trials change stored data: they write or trim.
    pub fn changes_data(&self) -> bool {
        !self.writing.is_empty() || self.trims
    }

    /// Bytes that its trials write on storage that takes `rate` bytes per second.
    pub fn writes_at(&self, rate: f64) -> Writes {
        let cells = || self.writing.iter();
        let per_second: f64 = cells()
            .map(|cell| cell.per_second(rate) * cell.share_of_time)
            .sum();
        let in_time = per_second * self.time.1.as_secs_f64();
        let in_trials = cells().map(|cell| cell.at_most(rate)).sum::<Option<f64>>();
        let bytes = in_trials.map_or(in_time, |bytes| bytes.min(in_time)) as u64;
        match self.written_at_most() {
            Some(most) if most as f64 <= in_time => Writes::AtMost(most),
            _ if cells().all(|cell| cell.is_paced(rate)) => Writes::Paced(bytes),
            _ => Writes::Within(bytes),
        }
    }

    /// Most bytes that its trials write on any storage; `None` if only time limits them.
    fn written_at_most(&self) -> Option<u64> {
        let bytes: Option<f64> = self.writing.iter().map(Writing::bytes).sum();
        let bytes = bytes? as u64;
        Some(self.budget.map_or(bytes, |budget| budget.min(bytes)))
    }
}

/// Bytes that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// Limited by the trials themselves: at most this many.
    AtMost(u64),
    /// Limited by the rates of the requests: this many in all of the time.
    Paced(u64),
    /// Limited by time: as many as storage of the given rate takes in all of it.
    Within(u64),
}

impl Writes {
    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let bytes = |one| match one {
            Self::AtMost(bytes) | Self::Paced(bytes) | Self::Within(bytes) => bytes,
        };
        let sum = u64::saturating_add(bytes(self), bytes(other));
        match (self, other) {
            (Self::Within(_), _) | (_, Self::Within(_)) => Self::Within(sum),
            (Self::Paced(_), _) | (_, Self::Paced(_)) => Self::Paced(sum),
            (Self::AtMost(_), Self::AtMost(_)) => Self::AtMost(sum),
        }
    }
}

/// The share of the time of a block of this many cells in which a cell has requests in flight (without idle time); equal for all cells
/// if their times are unknown.
fn share_of_time(cell: &PlannedCell, block: Option<Duration>, cells: usize) -> f64 {
    let block = block.filter(|block| !block.is_zero());
    let own = cell.spec.trial.time_foreseen().zip(block);
    own.map_or(1.0 / cells as f64, |(own, block)| {
        own.as_secs_f64() / block.as_secs_f64()
    })
}

impl Plan {
    /// Whether the run adds cells: levels near bends, rates of a search.
    pub fn adds_cells(&self) -> bool {
        let experiment = self.experiment();
        experiment.design.refine > 0 || experiment.seek.is_some()
    }

    /// Whether trials may end with writes that no sync followed: what caches then hold is written out between trials.
    pub fn leaves_writes(&self) -> bool {
        let mut cells = self.cells().iter();
        cells.any(|cell| may_end_unsynced(&cell.spec))
    }

    /// A warning for a budget that is too short for the fewest trials, from their time limits and from `overhead`, the time of a
    /// trial besides its I/O. `None` if the budget suffices.
    pub fn shortfall(&self, overhead: &dyn Fn(&CellSpec) -> Duration) -> Option<String> {
        // An explanation has as many blocks as the times that its trials took leave room for.
        if self.experiment().inquiry.is_some() {
            return None;
        }
        let design = self.experiment().design;
        design.shortfall(self.cells().len(), self.times(overhead))
    }

    /// The budget that suffices for the fewest trials on any storage.
    pub fn enough_budget(&self, overhead: &dyn Fn(&CellSpec) -> Duration) -> Duration {
        self.experiment().design.enough(self.times(overhead))
    }

    /// The time of its blocks and its probes.
    fn times(&self, overhead: &dyn Fn(&CellSpec) -> Duration) -> BlockTimes {
        BlockTimes {
            probes: batch_probes::time(self.cells()),
            least: least_block_time(self.cells(), overhead),
            longest: self.block_at_most(overhead),
        }
    }

    /// The longest time that one trial of each cell takes, from the time limits of trials and from `overhead`, their time
    /// besides I/O. A cell without a limit counts with its shortest time.
    pub fn block_at_most(&self, overhead: &dyn Fn(&CellSpec) -> Duration) -> Duration {
        let times = requesting(self.cells()).map(|cell| match cell.spec.time_foreseen() {
            Some(time) => time.saturating_add(overhead(&cell.spec)),
            None => least_time(cell, overhead),
        });
        times.fold(Duration::ZERO, Duration::saturating_add)
    }
}

/// Cells whose trials are requests. The time of a program is an emergency limit and does not predict its duration.
fn requesting(cells: &[PlannedCell]) -> impl Iterator<Item = &PlannedCell> {
    cells.iter().filter(|cell| !cell.spec.runs_program())
}

/// The shortest time of one trial of each cell.
fn least_block_time(cells: &[PlannedCell], overhead: &dyn Fn(&CellSpec) -> Duration) -> Duration {
    let times = requesting(cells).map(|cell| least_time(cell, overhead));
    times.fold(Duration::ZERO, Duration::saturating_add)
}

/// The shortest time of a trial, on storage of the assumed rate, until its time or its bytes are used up.
fn least_time(cell: &PlannedCell, overhead: &dyn Fn(&CellSpec) -> Duration) -> Duration {
    let trial = &cell.spec.trial;
    // With a rate, storage is not faster than the rate.
    let bytes = trial
        .requests_bound()
        .filter(|_| trial.rate.is_none())
        .map(|count| count as f64 * trial.mean_request());
    let transfer = bytes.map(|bytes| Duration::from_secs_f64(bytes / ASSUMED_RATE));
    let time = [trial.time_foreseen(), transfer]
        .into_iter()
        .flatten()
        .min();
    time.unwrap_or_default()
        .saturating_add(cell.spec.idle)
        .saturating_add(overhead(&cell.spec))
}

/// The longest time of one trial of each cell; `None` if a trial has no time limit.
fn block_time(cells: &[PlannedCell]) -> Option<Duration> {
    let mut times = cells.iter().map(|cell| {
        let time = cell.spec.time_foreseen();
        time.filter(|_| !cell.spec.runs_program())
    });
    times.try_fold(Duration::ZERO, |sum, time| Some(sum.saturating_add(time?)))
}

/// Writes of a cell.
#[derive(Debug, Clone, PartialEq)]
struct Writing {
    /// The share of the time of a run in which the cell has requests in flight.
    share_of_time: f64,
    /// Its groups that write; a trial without groups is one.
    groups: Vec<Writer>,
    /// The longest time of a trial; `None` without a limit.
    time: Option<Duration>,
    /// Most trials, including warm-ups; infinite if the run adds cells, a part if earlier sessions made the others.
    trials: f64,
}

/// Writes of the workers of one trial with the same task.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Writer {
    /// Share of the requests that write data, times the share of time outside pauses of a given length.
    share: f64,
    /// Most bytes per second, of all requests.
    rate: Option<f64>,
    /// Pauses after a number of bytes.
    pauses: Option<Pauses>,
    /// Most bytes of a trial; `None` if only time limits it.
    bytes: Option<u64>,
}

/// Pauses after a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pauses {
    workers: f64,
    /// Bytes of a worker between two pauses.
    bytes: f64,
    /// Length of a pause, seconds.
    seconds: f64,
}

impl Writing {
    /// `None` if the cell writes no data, or a program does.
    fn of(cell: &PlannedCell, share_of_time: f64, trials: f64) -> Option<Self> {
        // Each group ends by its own limits.
        let own = match cell.spec.only_trial() {
            Some(trial) => vec![trial.clone()],
            None => {
                let groups = cell.spec.group_trials().into_iter();
                groups.map(|group| group.trial).collect()
            }
        };
        let writing = own.iter();
        let writing = writing.filter(|trial| trial.writes_data() && !cell.spec.runs_program());
        let groups: Vec<Writer> = writing.map(Writer::of).collect();
        (!groups.is_empty()).then_some(Self {
            share_of_time,
            groups,
            time: cell.spec.trial.time_foreseen(),
            trials,
        })
    }

    /// Most bytes of all trials by their own limits; `None` if only time limits them.
    fn bytes(&self) -> Option<f64> {
        let each = self
            .groups
            .iter()
            .map(|one| one.bytes.map(|bytes| bytes as f64));
        each.sum::<Option<f64>>().map(|bytes| bytes * self.trials)
    }

    /// Most bytes of all trials on storage that takes `storage` bytes per second; `None` if nothing limits a trial.
    fn at_most(&self, storage: f64) -> Option<f64> {
        let time = self.time.map(|time| time.as_secs_f64() * self.trials);
        let in_time = time.map(|seconds| self.per_second(storage) * seconds);
        let bounds = [self.bytes(), in_time].into_iter().flatten();
        bounds.min_by(f64::total_cmp)
    }

    /// Bytes per second of a trial, on storage that takes `storage` bytes per second. Groups write at the same time: groups with a rate keep it, and the fastest of the others is assumed to have the storage to itself.
    fn per_second(&self, storage: f64) -> f64 {
        let of = |paced: bool| {
            let groups = self.groups.iter();
            let groups = groups.filter(move |one| one.rate.is_some() == paced);
            groups.map(|one| one.per_second(storage))
        };
        let all = of(true).sum::<f64>() + of(false).fold(0.0, f64::max);
        all.min(storage)
    }

    /// Whether storage faster than this would not take more.
    fn is_paced(&self, storage: f64) -> bool {
        let rates: Option<Vec<f64>> = self.groups.iter().map(|one| one.rate).collect();
        rates.is_some_and(|rates| rates.iter().sum::<f64>() <= storage)
    }
}

impl Writer {
    fn of(trial: &TrialSpec) -> Self {
        let request = trial.mean_request();
        let pauses = trial.thinktime.map(|pause| Pauses {
            workers: f64::from(trial.threads),
            bytes: request,
            seconds: pause.as_secs_f64(),
        });
        let requests = trial.requests_bound();
        let requested = requests.map(|count| (count as f64 * request) as u64);
        let limit = [trial.limit.bytes, requested].into_iter().flatten().min();
        Self {
            share: trial.data_share(),
            rate: trial.rate.map(|rate| rate.per_second(request) * request),
            pauses,
            bytes: limit.map(|bytes| (bytes as f64 * trial.data_share()) as u64),
        }
    }

    fn per_second(&self, storage: f64) -> f64 {
        let paused = self.pauses.map(|pauses| {
            let period = pauses.seconds + pauses.bytes / storage;
            pauses.workers * pauses.bytes / period
        });
        let most = [self.rate, paused].into_iter().flatten();
        self.share * most.fold(storage, f64::min)
    }
}

#[cfg(test)]
mod tests {

    use iolab_workload::settings::SETTINGS;

    use super::*;
    use crate::cells::OneProcess;
    use crate::experiment::Experiment;

    fn no_overhead(_: &CellSpec) -> Duration {
        Duration::ZERO
    }

    fn forecast(name: &str, sets: &[&str]) -> Forecast {
        let mut experiment = Experiment::find(name).expect("built in");
        for set in sets {
            experiment.apply_set(set).expect("a change");
        }
        Forecast::of(
            &Plan::of_new_run(experiment, &OneProcess).expect("a plan"),
            &no_overhead,
        )
    }

    /// Trials of 300 requests of 1 MiB: a tenth of a second on fast storage, and three seconds at 100 a second, on any.
    #[test]
    fn the_shortest_time_assumes_fast_storage_or_rate() {
        let shortest = |sets: &[&str]| {
            let common = ["bs=1MiB", "bytes=300M", "trials_min=9", "trials_max=9"];
            let forecast = forecast("read-random", &[&common, sets].concat());
            let trials = forecast.trials.0 as f64;
            forecast.time.0.expect("known").as_secs_f64() / trials
        };
        let free = shortest(&["time=10s", "budget=300s"]);
        assert!((free - 0.105).abs() < 0.001, "{free}");
        let paced = shortest(&["time=10s", "budget=300s", "rate=100"]);
        assert!((paced - 3.0).abs() < 0.001, "{paced}");
    }

    /// Earlier work of trials besides the load, such as writing out caches, does not change the time of the others.
    #[test]
    fn counted_trials_take_their_own_time_afterwards() {
        let sets = [
            "bs=4k", "bytes=none", "time=1s", "trials_min=99", "trials_max=99", "budget=30d",
        ];
        let whole = forecast("write-size", &sets);
        assert_eq!(whole.time.1.as_secs(), 110);
        let rest = whole.clone().after(90, Duration::from_secs(86_400));
        assert_eq!(rest.time.0, Some(Duration::from_secs(10)));
        assert_eq!((rest.trials.1, rest.time.1.as_secs()), (10, 11));
        let budget = forecast("write-size", &[&sets[..5], &["budget=300s"]].concat());
        assert_eq!(budget.time.1.as_secs(), 300);
    }

    #[test]
    fn reads_write_nothing_and_bytes_bound_writes() {
        let reads = forecast(
            "read-size",
            &["bs=4k,8k", "time=100ms", "trials_min=6", "trials_max=10"],
        );
        assert_eq!((reads.cells, reads.trials), (2, (16, 22)));
        assert_eq!(reads.written_at_most(), Some(0));
        assert_eq!(reads.time.0, Some(Duration::from_millis(1600)));
        let writes = forecast("write-size", &["bs=4k,8k", "bytes=1M", "trials_max=9"]);
        assert_eq!(writes.written_at_most(), Some(20 << 20));
        let unbounded = forecast("write-size", &["bs=4k", "bytes=none"]);
        assert_eq!(unbounded.written_at_most(), None);
        // The bytes that a group reads are not written.
        for (reader, writer) in [(100, 1), (1, 100)] {
            let bytes = [
                format!("reader.bytes={reader}M"),
                format!("writer.bytes={writer}M"),
            ];
            let [reader, of_writer] = bytes.each_ref().map(String::as_str);
            let rates = ["writer.rate=none", "reader.rate=none", "time=none"];
            let sets = [
                &rates[..],
                &[reader, of_writer, "trials_min=6", "trials_max=9"],
            ]
            .concat();
            let groups = forecast("interference", &sets);
            assert_eq!(groups.written_at_most(), Some(10 * (writer << 20)));
        }
    }

    #[test]
    fn time_and_rate_bound_the_written_bytes() {
        let sets = [
            "bs=4k,8k", "bytes=none", "time=1s", "budget=100s", "trials_max=1000",
        ];
        let writes = forecast("write-size", &sets);
        assert_eq!(writes.writes_at(1e9), Writes::Within(100_000_000_000));
        // 30 trials and a warm-up of two cells.
        let few = forecast("write-size", &sets[..4]);
        assert_eq!(few.writes_at(1e9), Writes::Within(62_000_000_000));
        let half = forecast("write-size", &[&sets[..], &["read_percent=50"]].concat());
        assert_eq!(half.writes_at(1e9), Writes::Within(50_000_000_000));
        let slow = [&sets[..], &["rate=1000"]].concat();
        let slow = forecast("write-size", &slow);
        let bytes = 1000 * (4096 + 8192) / 2 * 100;
        assert_eq!(slow.writes_at(1e9), Writes::Paced(bytes));
        let idle = forecast("write-size", &[&sets[..], &["idle=3s"]].concat());
        assert_eq!(idle.writes_at(1e9), Writes::Within(25_000_000_000));
        let few = forecast("write-size", &["bs=4k,8k", "bytes=1M", "trials_max=9"]);
        assert_eq!(few.writes_at(1e9), Writes::AtMost(20 << 20));
        let reads = forecast("read-size", &["bs=4k", "bytes=none"]);
        assert_eq!(reads.writes_at(1e9), Writes::AtMost(0));
        let both = Writes::AtMost(1).and(Writes::Within(2));
        assert_eq!(both, Writes::Within(3));
        let both = Writes::AtMost(1).and(Writes::Paced(2));
        assert_eq!(
            (both, both.and(Writes::Within(1))),
            (Writes::Paced(3), Writes::Within(4))
        );
    }

    /// On storage of 1 GB/s, for 100 s.
    #[test]
    fn pauses_and_rates_of_groups_count() {
        let sets = [
            "bs=1MiB", "bytes=none", "time=1s", "budget=100s", "trials_max=1000",
        ];
        let written = |sets_of_pauses: &[&str]| {
            let all = [&sets[..], sets_of_pauses].concat();
            match forecast("write-size", &all).writes_at(1e9) {
                Writes::Within(bytes) => bytes as f64 / 100e9,
                other => panic!("{other:?}"),
            }
        };
        // A request of 1 MiB takes 1.05 ms.
        let paused = written(&["thinktime=9437184ns"]);
        assert!((paused - 0.1).abs() < 1e-9, "{paused}");
        let four = written(&["thinktime=9437184ns", "threads=4"]);
        assert!((four - 0.4).abs() < 1e-9, "{four}");
        let groups = |rate: &str| {
            let sets = [
                rate, "reader.read_percent=0", "budget=100s", "trials_max=1000",
            ];
            forecast("interference", &sets).writes_at(1e9)
        };
        let reader = 1000 * 4096 * 100;
        assert_eq!(groups("writer.rate=0"), Writes::Paced(reader));
        assert_eq!(
            groups("writer.rate=50MB/s"),
            Writes::Paced(reader + 5_000_000_000)
        );
        assert_eq!(groups("writer.rate=none"), Writes::Within(100_000_000_000));
    }

    #[test]
    fn forecasts_saturate_at_the_largest_number() {
        let most = i64::MAX;
        let grid = ["bs=4k,8k,16k", "time=none"];
        let bytes = format!("bytes={most}");
        let found = forecast("write-random", &[grid[0], grid[1], &bytes]);
        assert_eq!(found.written_at_most(), Some(u64::MAX));
        let sets = [grid[0], grid[1], "rate=1B/s", &bytes];
        let found = forecast("write-random", &sets);
        assert_eq!(found.time.1, Duration::MAX);
    }

    #[test]
    fn no_value_of_a_setting_breaks_a_plan() {
        let values = [
            "0", "1", "3", "100", "4096", "1G", "8191P", "1ns", "365d", "1B/s",
        ];
        let mut taken = 0;
        for (name, group) in [
            ("read-random", ""),
            ("interference", "reader."),
            ("interference", ""),
        ] {
            for (setting, value) in SETTINGS.iter().flat_map(|s| values.map(|value| (s, value))) {
                let mut experiment = Experiment::find(name).expect("built in");
                let set = format!("{group}{}={value}", setting.name);
                if experiment.apply_set(&set).is_err() {
                    continue;
                }
                if let Ok(plan) = Plan::of_new_run(experiment, &OneProcess) {
                    taken += 1;
                    let _ = Forecast::of(&plan, &no_overhead);
                    let _ = plan.shortfall(&no_overhead);
                }
            }
        }
        assert!(taken > 100, "{taken}");
    }
}
