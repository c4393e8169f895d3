//! What the processes (ranks) of a run across hosts did, each and together.

use std::collections::BTreeMap;

use super::{CellAnalysis, Context};

use iolab_record::{Cell, LatencySummary, Part, Rank, RunRecord, Sample};
use iolab_stats::{Summary, median, summary};

/// The trials of a cell that several processes carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct CellRanks {
    /// Ranks that took part.
    pub ranks: usize,
    /// Hosts that they ran on.
    pub hosts: usize,
    /// Throughput while all of them were active, MB/s; `None` where there was no such time.
    pub all_active: Option<Summary>,
    /// The greatest bound that the clocks leave on the throughput from the first start to the last end, as a share of it.
    pub clock_bound: f64,
    /// The greatest bound that they leave on the throughput while all were active, as a share of it.
    pub all_active_bound: f64,
    /// The longest time from the first start of a rank to the last one, ns.
    pub start_skew_ns: u64,
    /// What each rank did, in the order of ranks.
    pub by_rank: Vec<RankThroughput>,
    /// What each client did, in the order of their first ranks; none in files from before this was kept.
    pub clients: Vec<ClientAnalysis>,
}

/// What one client did in the trials of a cell: the ranks of a host, or a rank with a target of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientAnalysis {
    /// The first of its ranks.
    pub rank: u32,
    /// Its ranks.
    pub ranks: usize,
    /// The name of its host, with the rank where a host has several clients.
    pub name: String,
    /// The same numbers as of the cell, without flags.
    pub cell: CellAnalysis,
    /// Share of what its ranks go over that its page cache held before each trial, as far as that is known.
    pub cached: Vec<f64>,
    /// The block of each trial, and what its requests waited for, of the direction with more of them.
    pub latencies: Vec<(u32, LatencySummary)>,
}

/// What one rank did in the trials of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct RankThroughput {
    /// The rank.
    pub rank: u32,
    /// Its host, as the run file numbers them.
    pub host: u32,
    /// The name of that host.
    pub host_name: String,
    /// The block of each trial, and the throughput of the rank in it from its own start to its own end, MB/s.
    pub trials: Vec<(u32, f64)>,
}

impl RankThroughput {
    /// The median of its throughput, MB/s.
    pub fn median(&self) -> Option<f64> {
        let values: Vec<f64> = self.trials.iter().map(|(_, value)| *value).collect();
        median(&values)
    }
}

/// The parts of a run's samples that are of ranks.
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

    /// What the ranks did in the trials of a cell; `None` where one process carried them out.
    pub(super) fn of_cell(
        &self,
        context: &Context,
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
        context: &Context,
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
            let name = place(rank).map_or("", |series| &*series.host_name);
            let (name, ranks) = match is_alone(rank) {
                true => {
                    let own = by_rank.iter().filter(|series| series.host == host(rank));
                    (name.to_owned(), own.count())
                }
                false => (format!("rank {rank} on {name}"), 1),
            };
            let region = cell.trial().region as f64;
            let bytes = match cell.trial().has_own_range() {
                true => region * ranks as f64 / by_rank.len() as f64,
                false => region,
            };
            ClientAnalysis {
                rank,
                ranks,
                name,
                cell: context.cell(cell, &samples, None),
                latencies: samples
                    .iter()
                    .filter_map(|sample| Some((sample.block, sample.main_operation().waited()?)))
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

/// Share of so many bytes that the page cache held before the trial.
fn cached(sample: &Sample, bytes: f64) -> Option<f64> {
    let before = sample.region.before?;
    (bytes > 0.0).then(|| (before.resident_bytes as f64 / bytes).min(1.0))
}

/// MB/s.
fn rate(bytes: u64, ns: u64) -> f64 {
    bytes as f64 * 1e3 / ns.max(1) as f64
}
