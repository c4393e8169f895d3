//! Bytes that a cell writes per second: its share of the time, its pauses, its rates.

use iolab_workload::trial::TrialSpec;

use crate::cells::PlannedCell;

/// Writes of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Writing {
    /// The share of the time of a run in which the cell has requests in flight.
    share_of_time: f64,
    /// Its groups that write; a trial without groups is one.
    groups: Vec<Writer>,
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
    pub(super) fn of(cell: &PlannedCell, share_of_time: f64) -> Option<Self> {
        let trials = cell.spec.trials().into_iter();
        let writing = trials.filter(|trial| trial.writes_data() && !cell.spec.runs_program());
        let groups: Vec<Writer> = writing.map(Writer::of).collect();
        (!groups.is_empty()).then_some(Self {
            share_of_time,
            groups,
        })
    }

    /// Bytes per second over the whole run, on storage that takes `storage` bytes per second. Groups write at the same
    /// time: groups with a rate keep it, and the fastest of the others is assumed to have the storage to itself.
    pub(super) fn per_second(&self, storage: f64) -> f64 {
        let of = |paced: bool| {
            let groups = self.groups.iter();
            let groups = groups.filter(move |one| one.rate.is_some() == paced);
            groups.map(|one| one.per_second(storage))
        };
        let all = of(true).sum::<f64>() + of(false).fold(0.0, f64::max);
        all.min(storage) * self.share_of_time
    }

    /// Whether storage faster than this would not take more.
    pub(super) fn is_paced(&self, storage: f64) -> bool {
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
        Self {
            share: trial.data_share(),
            rate: trial.rate.map(|rate| rate.per_second(request) * request),
            pauses,
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
