//! The results of each group and of each operation of a cell.

use super::{
    Analysis, CellAnalysis, Context, DoubtKind, Latency, Response, TAIL_REQUESTS_MIN, doubt_kind,
    quantiles,
};
use crate::trial_values::summarise;
use iolab_record::{Cell, Operation, OperationSummary, PerOperation, Sample, ShownLatency};
use iolab_stats::Summary;
use iolab_workload::group::{ALL, GroupSpec};

/// The results of one group, or of all together.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupAnalysis {
    /// Name of the group; [`ALL`] for all groups.
    pub name: String,
    /// Results of the group alone, with the experiment's response computed for it.
    pub cell: CellAnalysis,
}

impl Analysis {
    /// Name of the response, with its operation if latencies are of one of several, and its group if it covers
    /// one.
    pub fn response_name(&self) -> String {
        match &self.response_group {
            Some(group) => [&self.quantity(), " of ", group].concat(),
            None => self.quantity(),
        }
    }

    /// The response, with the operation where latencies are of one of several: `median latency of reads`.
    pub fn quantity(&self) -> String {
        self.quantity_of(self.response)
    }

    /// Any response, with the operation where latencies are of one of several.
    pub fn quantity_of(&self, response: Response) -> String {
        match response.is_latency() {
            true => self.timed.subject(&response.to_string()),
            false => response.to_string(),
        }
    }

    /// Whether the group of the response has requests in a cell, of the operation whose latency is shown.
    pub fn has_response(&self, cell: &CellAnalysis) -> bool {
        let spec = &cell.cell.spec;
        let is_asked = || {
            let only = spec.only_trial();
            !self.response.is_latency() || only.is_none_or(|trial| self.timed.is_asked(trial))
        };
        spec.runs_group(self.response_group.as_deref()) && is_asked()
    }

    /// Whether the requests of a cell that the response covers have this operation.
    pub(crate) fn asks(&self, cell: &CellAnalysis, operation: Operation) -> bool {
        let spec = &cell.cell.spec;
        let asks = match &self.response_group {
            Some(name) => {
                let mut groups = spec.groups.iter();
                groups.any(|group| group.name == *name && group.trial().requests(operation))
            }
            None => cell.cell.trial().requests(operation),
        };
        asks && !spec.runs_program()
    }

    /// Whether any cell has groups.
    pub fn has_groups(&self) -> bool {
        self.cells.iter().any(|cell| !cell.groups.is_empty())
    }
}

impl Context<'_> {
    /// Adds the results of its groups to a cell. If the response covers one group, the cell's numbers are that
    /// group's. The origin of the bytes and the disturbances are known only for all groups together.
    pub(super) fn with_groups<'a>(
        &self,
        whole: CellAnalysis,
        asked: Option<&str>,
        timed: impl Fn(u32) -> ShownLatency,
        samples: impl Fn(u32) -> &'a [&'a Sample],
    ) -> CellAnalysis {
        let cell = whole.cell.clone();
        if !cell.spec.has_groups() {
            return whole;
        }
        let whole = merge_groups(whole, self.response);
        let running = cell.spec.groups.iter().filter(|group| !group.is_idle());
        let run_together = running.count() > 1;
        let of_group = |number: u32, group: &GroupSpec| {
            let own = Cell {
                spec: group.spec.clone(),
                ..cell.clone()
            };
            let own = self.cell(&own, samples(number), None, timed(number));
            let served = own.served.map(|served| match run_together {
                true => served.of_one_group(),
                false => served,
            });
            GroupAnalysis {
                name: group.name.clone(),
                cell: CellAnalysis { served, ..own },
            }
        };
        let numbered = (1..).zip(&cell.spec.groups);
        let mut groups: Vec<GroupAnalysis> = numbered
            .filter(|(_, group)| !group.is_idle())
            .map(|(number, group)| of_group(number, group))
            .collect();
        let is_asked = |group: &&GroupAnalysis| Some(group.name.as_str()) == asked;
        let mut told: CellAnalysis = match groups.iter().find(is_asked) {
            Some(GroupAnalysis { cell: own, .. }) => CellAnalysis {
                cell,
                n: whole.n,
                failed: whole.failed,
                served: whole.served.clone(),
                verified: whole.verified,
                disturbance: whole.disturbance,
                concurrency: None,
                gap: whole.gap.clone(),
                ..own.clone()
            },
            // The group is idle in this cell.
            None if asked.is_some() => CellAnalysis {
                response: None,
                values: Vec::new(),
                blocks: Vec::new(),
                precision: None,
                ..whole.clone()
            },
            None => whole.clone(),
        };
        groups.push(GroupAnalysis {
            name: ALL.to_owned(),
            cell: whole,
        });
        told.groups = groups;
        told
    }
}

/// Sets the flags of the groups of a cell, whose own come from `whole`, the samples of all groups together. A cell in which one
/// group misses its rate is flagged too.
pub(super) fn flag<'a>(
    context: &Context<'_>,
    cell: &mut CellAnalysis,
    asked: Option<&str>,
    whole: &'a [&'a Sample],
    samples: impl Fn(u32) -> &'a [&'a Sample],
) {
    let spec = &cell.cell.spec;
    let has_too_few =
        |flag: &DoubtKind| matches!(flag, DoubtKind::FewTrials | DoubtKind::FewRequests);
    if !spec.runs_group(asked) {
        cell.flags.retain(|flag| !has_too_few(flag));
    }
    for group in &mut cell.groups {
        let number = spec.number_of(Some(&group.name));
        let own = number.map_or(whole, &samples);
        group.cell.flags = doubt_kind::flags(context, &group.cell, own);
        if number.is_none() {
            // All groups together have no latency.
            group.cell.flags.retain(|flag| !has_too_few(flag));
        }
        if group.cell.flags.contains(&DoubtKind::RateNotHeld) {
            cell.flags.push(DoubtKind::RateNotHeld);
        }
    }
    cell.flags.sort_unstable();
    cell.flags.dedup();
}

/// All groups together, without quantities that only make sense for one kind of request.
fn merge_groups(whole: CellAnalysis, response: Response) -> CellAnalysis {
    let mut whole = CellAnalysis {
        latency: None,
        sync: None,
        rate_report: None,
        mix: None,
        tail: None,
        tail_ratios: Vec::new(),
        tail_blocks: Vec::new(),
        ..whole
    };
    for latency in Response::ALL.into_iter().filter(|one| one.is_latency()) {
        whole.of[latency] = None;
    }
    if response.is_latency() {
        whole.response = None;
        whole.values = Vec::new();
        whole.blocks = Vec::new();
        whole.precision = None;
    }
    whole
}

/// The operations of a mix; `None` for those without requests.
pub type Mix = PerOperation<Option<OperationNumbers>>;

/// Results for one operation over the measured trials; `None` without requests.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationNumbers {
    /// MB/s.
    pub throughput: Option<Summary>,
    /// Requests per second.
    pub iops: Option<Summary>,
    /// Quantiles of its response or service times, ns.
    pub latency: Option<Latency>,
    /// Whether some trial has enough of its requests for a 99th percentile that differs from the maximum.
    pub has_tail: bool,
}

/// The mix in the measured trials of a cell; `None` for a single operation, unless other cells of the run have several.
pub(super) fn mix(cell: &Cell, trials: &[&Sample], timed: ShownLatency) -> Option<Mix> {
    let trial = cell.trial();
    let asked = |operation: &&Operation| trial.requests(**operation);
    let several = timed != ShownLatency::Own || Operation::ALL.iter().filter(asked).count() > 1;
    let several = several && !cell.spec.runs_program();
    let of = |operation| {
        let numbers = || OperationNumbers::of(trials, |sample| &sample.operations[operation]);
        trial.requests(operation).then(numbers)
    };
    several.then(|| Mix::from_fn(of))
}

impl OperationNumbers {
    fn of(trials: &[&Sample], summary: impl Fn(&Sample) -> &OperationSummary) -> Self {
        let per_ns = |amount: u64, sample: &Sample| {
            (amount > 0 && sample.elapsed_ns > 0).then(|| amount as f64 / sample.elapsed_ns as f64)
        };
        Self {
            throughput: summarise(trials, |s| Some(per_ns(summary(s).bytes, s)? * 1e3)),
            iops: summarise(trials, |s| Some(per_ns(summary(s).requests, s)? * 1e9)),
            latency: quantiles(trials, |s| summary(s).waited()),
            has_tail: trials
                .iter()
                .any(|s| summary(s).requests >= TAIL_REQUESTS_MIN),
        }
    }
}
