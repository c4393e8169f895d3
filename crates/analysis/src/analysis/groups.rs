//! The results of each group, of each operation and of each rank of a cell.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Analysis, CellAnalysis, Context, DoubtKind, PerResponse, Response, TAIL_REQUESTS_MIN,
    doubt_kind, over_trials,
};
use crate::trial_values::{median_of, values};
use iolab_record::{
    Cell, LatencySummary, Operation, OperationSummary, Part, PerOperation, Rank, RunRecord, Sample,
    ServedBy, ShownLatency,
};
use iolab_stats::{Summary, median, summary};
use iolab_workload::group::{ALL, GroupSpec};
use iolab_workload::response::{iops, mb_s};
use iolab_workload::trial::TrialSpec;
use schemars::JsonSchema;
use serde::Serialize;

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
        match self.response.is_latency() {
            true => self.timed.subject(&self.response.to_string()),
            false => self.response.to_string(),
        }
    }

    /// The operation of whose requests it shows latencies, where cells mix several; `None` for other quantities too.
    pub fn operation(&self) -> Option<Operation> {
        match self.timed {
            ShownLatency::Of(operation) if self.response.is_latency() => Some(operation),
            ShownLatency::Of(_) | ShownLatency::Own => None,
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
        let whole = merge_groups(whole, self.record.experiment.response);
        let numbered = (1..).zip(&cell.spec.groups);
        let numbered = numbered.filter(|(_, group)| !group.is_idle());
        let run_together = numbered.clone().count() > 1;
        let of_group = |(number, group): (u32, &GroupSpec)| {
            let own = Cell {
                spec: group.spec.clone(),
                ..cell.clone()
            };
            let mut own = self.cell(&own, samples(number), None, timed(number));
            if let Some(served) = own.served.as_mut().filter(|_| run_together) {
                // The origin of the bytes is known only for all groups together.
                served.is_shared = !served.unanimous().is_some_and(ServedBy::holds_for_parts);
            }
            GroupAnalysis {
                name: group.name.clone(),
                cell: own,
            }
        };
        let mut groups: Vec<GroupAnalysis> = numbered.map(of_group).collect();
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
    /// Medians of its throughput, requests per second, and response or service times, with the greatest of these.
    pub medians: PerResponse<Option<f64>>,
    /// Whether each trial has enough of its requests for a 99th percentile that differs from the maximum.
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
        let median = |amount: fn(&OperationSummary) -> u64, rate: fn(u64, u64) -> f64| {
            let some = |s: &Sample| Some(amount(summary(s))).filter(|amount| *amount > 0);
            median_of(trials, |s| Some(rate(some(s)?, s.elapsed_ns)))
        };
        let requests = trials.iter().map(|s| summary(s).requests);
        let mut medians = over_trials(trials, |s| summary(s).waited()).unwrap_or_default();
        medians[Response::Throughput] = median(|of| of.bytes, mb_s);
        medians[Response::Iops] = median(|of| of.requests, iops);
        Self {
            medians,
            has_tail: requests
                .min()
                .is_some_and(|least| least >= TAIL_REQUESTS_MIN),
        }
    }
}

/// The trials of a cell that several processes carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct CellRanks {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of hosts.
    pub hosts: usize,
    /// Throughput while all of them were active, MB/s; `None` where there was no such time.
    pub all_active: Option<Summary>,
    /// Highest bound on the error of the throughput from the first start to the last end, due to the clocks, as a share.
    pub clock_bound: f64,
    /// Highest bound on the error of the throughput while all were active, as a share.
    pub all_active_bound: f64,
    /// Longest time from the first to the last start of a rank, ns.
    pub start_skew_ns: u64,
    /// Each rank, in order.
    pub by_rank: Vec<RankThroughput>,
    /// Each client, in the order of their first ranks; empty for files that do not store clients.
    pub clients: Vec<ClientAnalysis>,
}

/// The results of one client in the trials of a cell: the ranks of a host, or a rank with its own target.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientAnalysis {
    /// First rank of the client.
    pub rank: u32,
    /// Number of its ranks.
    pub ranks: usize,
    /// Name of the client.
    pub name: ClientName,
    /// Numbers of the client alone, as for the cell; without flags.
    pub cell: CellAnalysis,
    /// Share of its ranks' range that its page cache held before each trial, as far as known.
    pub cached: Vec<f64>,
    /// The block of each trial, with the waiting times of the operation with more requests.
    pub latencies: Vec<(u32, LatencySummary)>,
}

/// The name of a client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct ClientName {
    /// The name of its host.
    pub host: String,
    /// Rank of the client; `None` if its host has no other client.
    pub rank: Option<u32>,
}

/// The throughput of one rank in the trials of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct RankThroughput {
    /// The rank.
    pub rank: u32,
    /// Number of its host in the run file.
    pub host: u32,
    /// The name of that host.
    pub host_name: String,
    /// The block of each trial, with the throughput of the rank from its own start to its own end, MB/s.
    pub trials: Vec<(u32, f64)>,
}

impl RankThroughput {
    /// The median throughput, MB/s.
    pub fn median(&self) -> Option<f64> {
        let values: Vec<f64> = self.trials.iter().map(|(_, value)| *value).collect();
        median(&values)
    }
}

/// The parts of a run's samples by rank.
pub(super) struct PartsByRank<'a> {
    ranks: &'a [Rank],
    parts: BTreeMap<i64, Vec<&'a Part>>,
    clients: BTreeMap<i64, Vec<&'a Sample>>,
}

impl<'a> PartsByRank<'a> {
    pub(super) fn of(record: &'a RunRecord) -> Self {
        let mut parts: BTreeMap<i64, Vec<&Part>> = BTreeMap::new();
        for part in record.parts.iter().filter(|_| !record.ranks.is_empty()) {
            parts.entry(part.sample).or_default().push(part);
        }
        let mut clients: BTreeMap<i64, Vec<&Sample>> = BTreeMap::new();
        for own in &record.client_samples {
            clients.entry(own.id).or_default().push(own);
        }
        Self {
            ranks: &record.ranks,
            parts,
            clients,
        }
    }

    /// The results of the ranks in the trials of a cell; `None` for a single process.
    pub(super) fn of_cell(
        &self,
        context: &Context<'_>,
        cell: &Cell,
        trials: &[&Sample],
    ) -> Option<CellRanks> {
        let ok = || trials.iter().filter(|sample| sample.ok);
        let mut by_number: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
        for sample in ok() {
            for part in self.parts.get(&sample.id).into_iter().flatten() {
                let bytes = part.done.bytes();
                let value = mb_s(bytes, part.elapsed_ns);
                let own = by_number.entry(part.id.rank).or_default();
                own.push((sample.block, value));
            }
        }
        let of_rank = |(rank, trials)| {
            let place = self.ranks.iter().find(|row| row.id == rank);
            RankThroughput {
                rank,
                host: place.map_or(0, |row| row.host),
                host_name: place.map_or_else(String::new, |row| row.name.clone()),
                trials,
            }
        };
        let by_rank: Vec<RankThroughput> = by_number.into_iter().map(of_rank).collect();
        if by_rank.is_empty() {
            return None;
        }
        let hosts: BTreeSet<u32> = by_rank.iter().map(|series| series.host).collect();
        let mut ranks = CellRanks {
            ranks: by_rank.len(),
            hosts: hosts.len(),
            all_active: None,
            clock_bound: 0.0,
            all_active_bound: 0.0,
            start_skew_ns: 0,
            clients: self.clients_of(context, cell, trials, &by_rank),
            by_rank,
        };
        let mut active = Vec::new();
        for (sample, all) in ok().filter_map(|sample| Some((sample, sample.together?))) {
            let error = all.elapsed_error_ns as f64 / sample.elapsed_ns.max(1) as f64;
            ranks.clock_bound = ranks.clock_bound.max(error);
            let skew_ns = all.start_skew_ns.saturating_add(all.start_skew_error_ns);
            ranks.start_skew_ns = ranks.start_skew_ns.max(skew_ns);
            let bytes = [all.all_active_least_bytes, all.all_active_most_bytes];
            let [least, most] = bytes.map(|bytes| mb_s(bytes, sample.all_active_ns));
            let value = f64::midpoint(least, most);
            if sample.all_active_ns > 0 {
                active.push(value);
                let error = (most - least) / 2.0 / value;
                ranks.all_active_bound = ranks.all_active_bound.max(error);
            }
        }
        ranks.all_active = summary(&active);
        Some(ranks)
    }

    fn clients_of(
        &self,
        context: &Context<'_>,
        cell: &Cell,
        trials: &[&Sample],
        by_rank: &[RankThroughput],
    ) -> Vec<ClientAnalysis> {
        let mut clients: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
        let own = trials.iter();
        let own = own.filter_map(|sample| self.clients.get(&sample.id));
        for sample in own.flatten() {
            clients.entry(sample.client).or_default().push(sample);
        }
        let place = |rank: u32| by_rank.iter().find(|series| series.rank == rank);
        let host = |rank: u32| place(rank).map_or(0, |series| series.host);
        let all: Vec<u32> = clients.keys().copied().collect();
        let is_alone = |rank: u32| all.iter().filter(|one| host(**one) == host(rank)).count() == 1;
        let analyse = |(rank, samples): (u32, Vec<&Sample>)| {
            let own = by_rank.iter().filter(|series| series.host == host(rank));
            let (only, ranks) = match is_alone(rank) {
                true => (None, own.count()),
                false => (Some(rank), 1),
            };
            let name = ClientName {
                host: place(rank).map_or_else(String::new, |series| series.host_name.clone()),
                rank: only,
            };
            let region = cell.trial().region as f64;
            let bytes = match cell.spec.shared(TrialSpec::has_own_range) == Some(true) {
                true => region * ranks as f64 / by_rank.len() as f64,
                false => region,
            };
            let latency =
                |sample: &&Sample| Some((sample.block, *context.timed.requests(sample).waited()?));
            // The cell as its ranks would run it.
            let mut own = cell.clone();
            own.spec.span(ranks as u32);
            ClientAnalysis {
                rank,
                ranks,
                name,
                cell: context.cell(&own, &samples, None, context.timed),
                latencies: samples.iter().filter_map(latency).collect(),
                cached: values(&samples, |sample| cached(sample, bytes)),
            }
        };
        clients.into_iter().map(analyse).collect()
    }
}

/// Share of these bytes that the page cache held before the trial.
fn cached(sample: &Sample, bytes: f64) -> Option<f64> {
    let before = sample.region.before?;
    (bytes > 0.0).then(|| (before.resident_bytes as f64 / bytes).min(1.0))
}
