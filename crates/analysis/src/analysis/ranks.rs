//! The results of the processes (ranks) of a run across hosts, separately and together.

use std::collections::{BTreeMap, BTreeSet};

use super::{CellAnalysis, Context};

use iolab_record::{Cell, LatencySummary, Part, Rank, RunRecord, Sample};
use iolab_stats::{Summary, median, summary};
use iolab_workload::trial::TrialSpec;

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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
                let value = rate(bytes, part.elapsed_ns);
                by_number
                    .entry(part.id.rank)
                    .or_default()
                    .push((sample.block, value));
            }
        }
        let by_rank: Vec<RankThroughput> = by_number
            .into_iter()
            .map(|(rank, trials)| {
                let place = self.ranks.iter().find(|row| row.id == rank);
                RankThroughput {
                    rank,
                    host: place.map_or(0, |row| row.host),
                    host_name: place.map_or_else(String::new, |row| row.name.clone()),
                    trials,
                }
            })
            .collect();
        let mut hosts: Vec<u32> = by_rank.iter().map(|series| series.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let together = || ok().filter_map(|sample| Some((sample, sample.together?)));
        let active = together().filter(|(sample, _)| sample.all_active_ns > 0);
        let active: Vec<(f64, f64)> = active
            .map(|(sample, all)| {
                let [least, most] = [all.all_active_least_bytes, all.all_active_most_bytes]
                    .map(|bytes| rate(bytes, sample.all_active_ns));
                (f64::midpoint(least, most), (most - least) / 2.0)
            })
            .collect();
        let values: Vec<f64> = active.iter().map(|(value, _)| *value).collect();
        let bounds = active.iter().filter(|(value, _)| *value > 0.0);
        let greatest = |shares: &mut dyn Iterator<Item = f64>| shares.fold(0.0, f64::max);
        (!by_rank.is_empty()).then(|| CellRanks {
            ranks: by_rank.len(),
            hosts: hosts.len(),
            all_active: summary(&values),
            clock_bound: greatest(&mut together().map(|(sample, all)| {
                all.elapsed_error_ns as f64 / sample.elapsed_ns.max(1) as f64
            })),
            all_active_bound: greatest(&mut bounds.map(|(value, error)| error / value)),
            start_skew_ns: together()
                .map(|(_, all)| all.start_skew_ns.saturating_add(all.start_skew_error_ns))
                .max()
                .unwrap_or(0),
            clients: self.clients_of(context, cell, trials, &by_rank),
            by_rank,
        })
    }

    fn clients_of(
        &self,
        context: &Context<'_>,
        cell: &Cell,
        trials: &[&Sample],
        by_rank: &[RankThroughput],
    ) -> Vec<ClientAnalysis> {
        let mut clients: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
        for own in trials
            .iter()
            .filter_map(|sample| self.clients.get(&sample.id))
        {
            for sample in own {
                clients.entry(sample.client).or_default().push(sample);
            }
        }
        let place = |rank: u32| by_rank.iter().find(|series| series.rank == rank);
        let host = |rank: u32| place(rank).map_or(0, |series| series.host);
        let all: Vec<u32> = clients.keys().copied().collect();
        let is_alone = |rank: u32| {
            all.iter()
                .filter(|other| host(**other) == host(rank))
                .count()
                == 1
        };
        let analyse = |(rank, samples): (u32, Vec<&Sample>)| {
            let host_name = place(rank).map_or("", |series| &*series.host_name);
            let (only, ranks) = match is_alone(rank) {
                true => {
                    let own = by_rank.iter().filter(|series| series.host == host(rank));
                    (None, own.count())
                }
                false => (Some(rank), 1),
            };
            let name = ClientName {
                host: host_name.to_owned(),
                rank: only,
            };
            let region = cell.trial().region as f64;
            let bytes = match cell.spec.shared(TrialSpec::has_own_range) == Some(true) {
                true => region * ranks as f64 / by_rank.len() as f64,
                false => region,
            };
            ClientAnalysis {
                rank,
                ranks,
                name,
                cell: context.cell(&of_ranks(cell, ranks), &samples, None, context.timed),
                latencies: samples
                    .iter()
                    .filter_map(|sample| {
                        Some((sample.block, context.timed.requests(sample).waited()?))
                    })
                    .collect(),
                cached: samples
                    .iter()
                    .filter_map(|sample| cached(sample, bytes))
                    .collect(),
            }
        };
        clients.into_iter().map(analyse).collect()
    }
}

/// The cell as `ranks` of its ranks would run it.
fn of_ranks(cell: &Cell, ranks: usize) -> Cell {
    let mut cell = cell.clone();
    cell.spec.span(ranks as u32);
    cell
}

/// Number of hosts on which the processes of a run were.
pub(super) fn hosts(record: &RunRecord) -> u32 {
    let numbers: BTreeSet<u32> = record.ranks.iter().map(|rank| rank.host).collect();
    u32::try_from(numbers.len()).unwrap_or(u32::MAX).max(1)
}

/// Share of these bytes that the page cache held before the trial.
fn cached(sample: &Sample, bytes: f64) -> Option<f64> {
    let before = sample.region.before?;
    (bytes > 0.0).then(|| (before.resident_bytes as f64 / bytes).min(1.0))
}

/// MB/s.
fn rate(bytes: u64, ns: u64) -> f64 {
    bytes as f64 * 1e3 / ns.max(1) as f64
}
