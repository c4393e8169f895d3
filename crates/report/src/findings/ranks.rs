//! Differences between the processes (ranks) of a run across hosts: one that holds the others up, and time in
//! which not all worked.

use std::collections::BTreeMap;

use iolab_analysis::analysis::{
    Analysis, CellAnalysis, CellRanks, ClientName, RankThroughput, Response,
};
use iolab_figure::labels;
use iolab_record::ServedBy;
use iolab_stats::{median, median_interval};
use iolab_workload::trial::CacheState;
use iolab_workload::units::{format_percent, significant};

use super::with_levels;
use crate::ratio::RatioShown;

/// Share of what a client reads that its page cache may hold before a cold trial.
const KEPT: f64 = 0.05;

/// Share of the others' speed below which a rank or host is named as slower.
const SLOWER: f64 = 0.95;
/// Share of throughput that is worth a sentence.
const WORTH: f64 = 0.05;

/// A host, or a rank where there is one host: its name, and its throughput in each trial.
type Unit = (String, Vec<f64>);

/// Whether no trial of a rank reached storage: its target is memory.
fn is_in_memory(ranks: &CellRanks, series: &RankThroughput) -> bool {
    let own = ranks.clients.iter().find(|client| match client.name.rank {
        Some(rank) => rank == series.rank,
        None => client.name.host == series.host_name,
    });
    let served = own.and_then(|client| client.cell.served.as_ref());
    served.is_some_and(|served| served.unanimous() == Some(ServedBy::NotStorage))
}

/// The hosts of a cell by number, or its ranks where there is one host: those with storage, and those with memory, which cannot be
/// compared with each other.
fn units_by_medium(ranks: &CellRanks) -> [BTreeMap<u32, Unit>; 2] {
    let all = ranks.by_rank.iter();
    let (memory, storage): (Vec<_>, Vec<_>) = all.partition(|own| is_in_memory(ranks, own));
    [storage, memory].map(|own| units(&own, ranks.hosts))
}

/// The hosts of these ranks by number, or the ranks where there is one host.
fn units(by_rank: &[&RankThroughput], hosts: usize) -> BTreeMap<u32, Unit> {
    let mut units: BTreeMap<u32, Unit> = BTreeMap::new();
    for series in by_rank {
        let values = series.trials.iter().map(|(_, value)| *value);
        if hosts == 1 {
            let name = format!("Rank {} on {}", series.rank, series.host_name);
            units.insert(series.rank, (name, values.collect()));
            continue;
        }
        let own = units.entry(series.host);
        let (_, sums) = own.or_insert_with(|| (format!("Host {}", series.host_name), Vec::new()));
        for (place, value) in values.enumerate() {
            match sums.get_mut(place) {
                Some(sum) => *sum += value,
                None => sums.push(value),
            }
        }
    }
    if hosts > 1 {
        // Of each of its ranks: hosts may have different numbers of them.
        for (host, (_, values)) in &mut units {
            let own = by_rank.iter().filter(|series| series.host == *host);
            let count = own.count() as f64;
            values.iter_mut().for_each(|value| *value /= count);
        }
    }
    units
}

/// The throughput of each unit over the median of the others, in every trial of every cell.
fn ratios(analysis: &Analysis) -> BTreeMap<u32, Unit> {
    let mut all: BTreeMap<u32, Unit> = BTreeMap::new();
    let cells = analysis.cells.iter();
    let cells = cells.filter_map(|cell| cell.ranks.as_ref());
    for units in cells.flat_map(units_by_medium) {
        let trials = units.values().map(|(_, values)| values.len()).max();
        let at = |place: usize| -> Vec<f64> {
            let mut all: Vec<f64> = units
                .values()
                .filter_map(|(_, values)| values.get(place).copied())
                .collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let sorted: Vec<Vec<f64>> = (0..trials.unwrap_or(0)).map(at).collect();
        for (number, (name, values)) in &units {
            let (_, own) = all
                .entry(*number)
                .or_insert_with(|| (name.clone(), Vec::new()));
            for (place, value) in values.iter().enumerate() {
                let others = median_without(&sorted[place], *value);
                own.extend(others.filter(|m| *m > 0.0).map(|m| value / m));
            }
        }
    }
    all.retain(|_, (_, ratios)| !ratios.is_empty());
    all
}

/// The median of values in ascending order but for one of them.
fn median_without(sorted: &[f64], one: f64) -> Option<f64> {
    let out = sorted.partition_point(|value| value.total_cmp(&one).is_lt());
    let at = |place: usize| {
        sorted
            .get(if place < out { place } else { place + 1 })
            .copied()
    };
    let left = sorted.len().checked_sub(1).filter(|left| *left > 0)?;
    match left % 2 {
        1 => at(left / 2),
        _ => Some(f64::midpoint(at(left / 2 - 1)?, at(left / 2)?)),
    }
}

/// Hosts, or ranks of one host, that were slower than the others in every trial.
pub(crate) fn stragglers(analysis: &Analysis) -> Vec<String> {
    let units = ratios(analysis);
    // Bonferroni: as many questions as units.
    let confidence = 1.0 - 0.05 / units.len().max(1) as f64;
    let slower = |(name, ratios): &Unit| {
        let interval = median_interval(ratios, confidence)?;
        let is_slower = ratios.iter().all(|ratio| *ratio < 1.0) && interval.high < SLOWER;
        is_slower.then(|| {
            format!(
                "{name} was slower than the others in all {} trials: its throughput was {} than theirs. Check its load, its connection to the storage and its mount options.",
                ratios.len(),
                RatioShown::from((
                    median(ratios).unwrap_or(interval.low),
                    Some((interval.low, interval.high))
                ))
                .in_words(),
            )
        })
    };
    units.values().filter_map(slower).collect()
}

/// Throughput while all ranks were active, over that from the first start to the last end.
fn gain(cell: &CellAnalysis) -> Option<f64> {
    let ranks = cell.ranks.as_ref().filter(|ranks| ranks.ranks > 1)?;
    let whole = cell.median(Response::Throughput)?;
    (whole > 0.0).then_some(ranks.all_active?.median / whole)
}

/// Ranks that end long after the first one, which a stonewall would hide.
pub(super) fn imbalance(analysis: &Analysis) -> Vec<String> {
    let gains = || {
        analysis
            .cells
            .iter()
            .filter_map(|cell| Some((cell, gain(cell)?)))
    };
    let most = gains().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((cell, ratio)) = most.filter(|(_, ratio)| *ratio > 1.0 + WORTH) else {
        return Vec::new();
    };
    let place = with_levels(analysis, cell);
    let throughput = |value: Option<f64>| value.map_or_else(String::new, significant);
    let active = cell.ranks.as_ref().and_then(|ranks| ranks.all_active);
    vec![format!(
        "Not all ranks worked until the end{place}: throughput was {} MB/s while all were active, {} more than from the first start to the last end ({} MB/s). A stonewall would report the former.",
        throughput(active.map(|s| s.median)),
        format_percent(ratio - 1.0),
        throughput(cell.median(Response::Throughput)),
    )]
}

/// Clients whose page cache was not dropped before trials that were to read with a cold one.
pub(super) fn caches_kept(analysis: &Analysis) -> Vec<String> {
    let cold = analysis.cells.iter().filter(|cell| {
        let mut reading = cell.cell.spec.reading_trials().into_iter();
        reading.any(|trial| trial.cache == CacheState::Cold)
    });
    let mut most: BTreeMap<&ClientName, f64> = BTreeMap::new();
    for client in cold
        .filter_map(|cell| cell.ranks.as_ref())
        .flat_map(|ranks| &ranks.clients)
    {
        let held = median(&client.cached).unwrap_or(0.0);
        let seen = most.entry(&client.name).or_default();
        *seen = seen.max(held);
    }
    most.retain(|_, held| *held > KEPT);
    if most.is_empty() {
        return Vec::new();
    }
    let named = most
        .iter()
        .map(|(name, held)| format!("{} ({})", labels::client(name), format_percent(*held)));
    vec![format!(
        "The page cache was not dropped before cold trials on: {}. The share of what its ranks read is in brackets; these reads are not cold. Set cache=direct, or shift=host so that ranks read what another host wrote.",
        named.collect::<Vec<String>>().join(", ")
    )]
}
