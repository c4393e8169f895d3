//! Choice of the shown latency: the same operation in all trials that are compared, chosen by their settings.

use iolab_workload::operation::Operation;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::TrialSpec;

use crate::RunRecord;

/// The requests whose latency the trials of a run show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ShownLatency {
    /// The latency of each trial's own requests: no trial mixes several operations.
    #[default]
    Own,
    /// The latency of requests with this operation, which some trials may lack: some mix several operations.
    Of(Operation),
}

impl ShownLatency {
    /// The shown latency of the cells of a run: of their whole trials (0), or of a group with this number. If the settings
    /// of any cell mix several operations, all cells show the first of these, so that no two are compared by different
    /// ones. Counts, which chance decides, do not matter.
    pub fn of<'a>(cells: impl Iterator<Item = &'a CellSpec>, group: u32) -> Self {
        let trials = cells.filter_map(|spec| {
            let own = match group {
                // All groups together have no latency.
                0 => (!spec.has_groups()).then_some(spec),
                group => spec.groups.get(group as usize - 1).map(|group| &group.spec),
            };
            Some(&own.filter(|own| !own.runs_program())?.trial)
        });
        let several = trials.filter_map(|trial| {
            let all = Operation::ALL.iter().copied();
            let mut asked = all.filter(|operation| trial.requests(*operation));
            let first = asked.next()?;
            asked.next().map(|_| first)
        });
        several.min().map_or(Self::Own, Self::Of)
    }

    /// Whether the settings of a trial ask for requests of this operation.
    pub fn is_asked(self, trial: &TrialSpec) -> bool {
        match self {
            Self::Own => true,
            Self::Of(operation) => trial.requests(operation),
        }
    }

    /// The name of the shown quantity, such as `latency`, with the operation if there is a choice: `latency of reads`.
    pub fn subject(self, what: &str) -> String {
        match self {
            Self::Own => what.to_owned(),
            Self::Of(operation) => format!("{what} of {operation}s"),
        }
    }
}

impl RunRecord {
    /// The requests whose latency the whole trials show (0), or a group of this number.
    pub fn timed(&self, group: u32) -> ShownLatency {
        ShownLatency::of(self.cells.iter().map(|cell| &cell.spec), group)
    }

    /// The requests whose latency is shown for the group that the experiment asks about, or for whole trials.
    pub fn asked_timed(&self) -> ShownLatency {
        self.timed(self.asked_group().unwrap_or(0))
    }
}
