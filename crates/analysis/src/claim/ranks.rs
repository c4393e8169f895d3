//! Differences between the processes (ranks) of a run across hosts: one that holds the others up, time in
//! which not all worked, and page caches that were kept.

use std::collections::BTreeMap;

use iolab_record::ServedBy;
use iolab_stats::{median, median_interval};
use iolab_workload::trial::CacheState;

use super::weaknesses::{Of, about, worst_first};
use super::{Claim, MARGIN, Point, Quantity, Standing, id, kind};
use crate::analysis::{Analysis, CellAnalysis, CellRanks, ClientName, RankThroughput, Response};

/// Share of what a client reads that its page cache may hold before a cold trial.
const KEPT: f64 = 0.05;

/// The throughput of each host, or of each rank where there is one host, in each trial; with its number, since hosts may share a name.
type Units = BTreeMap<(u32, ClientName), Vec<f64>>;

/// Whether no trial of a rank reached storage: its target is memory.
fn is_in_memory(ranks: &CellRanks, series: &RankThroughput) -> bool {
    let own = ranks.clients.iter().find(|client| match client.name.rank {
        Some(rank) => rank == series.rank,
        None => client.name.host == series.host_name,
    });
    let served = own.and_then(|client| client.cell.served.as_ref());
    served.is_some_and(|served| served.unanimous() == Some(ServedBy::NotStorage))
}

/// The units of a cell: those with storage, and those with memory, which cannot be compared with each other.
fn units_by_medium(ranks: &CellRanks) -> [Units; 2] {
    let all = ranks.by_rank.iter();
    let (memory, storage): (Vec<_>, Vec<_>) = all.partition(|own| is_in_memory(ranks, own));
    [storage, memory].map(|own| units(&own, ranks.hosts))
}

fn units(by_rank: &[&RankThroughput], hosts: usize) -> Units {
    let mut ranks: BTreeMap<_, Vec<&RankThroughput>> = BTreeMap::new();
    for series in by_rank {
        let rank = (hosts == 1).then_some(series.rank);
        let name = ClientName {
            host: series.host_name.clone(),
            rank,
        };
        let unit = (rank.unwrap_or(series.host), name);
        ranks.entry(unit).or_default().push(series);
    }
    let of_ranks = ranks.into_iter().map(|(unit, own)| {
        let trials = own.iter().map(|series| series.trials.len()).max();
        let at = |place: usize| {
            let values = own.iter().filter_map(|series| series.trials.get(place));
            // Of each of its ranks: hosts may have different numbers of them.
            values.map(|(_, value)| value).sum::<f64>() / own.len() as f64
        };
        (unit, (0..trials.unwrap_or(0)).map(at).collect())
    });
    of_ranks.collect()
}

/// The throughput of each unit over the median of the others, in every trial of every cell.
fn ratios(analysis: &Analysis) -> Units {
    let mut all = Units::new();
    let cells = analysis.cells.iter();
    let cells = cells.filter_map(|cell| cell.ranks.as_ref());
    for units in cells.flat_map(units_by_medium) {
        let trials = units.values().map(Vec::len).max();
        let at = |place: usize| -> Vec<f64> {
            let all = units.values();
            let mut all: Vec<f64> = all.filter_map(|own| own.get(place).copied()).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let sorted: Vec<Vec<f64>> = (0..trials.unwrap_or(0)).map(at).collect();
        for (unit, values) in &units {
            let own = all.entry(unit.clone()).or_default();
            for (value, sorted) in values.iter().zip(&sorted) {
                let others = median_without(sorted, *value);
                own.extend(others.filter(|m| *m > 0.0).map(|m| value / m));
            }
        }
    }
    all.retain(|_, ratios| !ratios.is_empty());
    all
}

/// The median of values in ascending order but for one of them.
fn median_without(sorted: &[f64], one: f64) -> Option<f64> {
    let out = sorted.partition_point(|value| value.total_cmp(&one).is_lt());
    median(&[&sorted[..out], &sorted[out + 1..]].concat())
}

/// Hosts, or ranks of one host, that were slower than the others in every trial.
pub(super) fn stragglers(of: Of<'_>) -> Option<Claim> {
    let units = ratios(of.0);
    // Bonferroni: as many questions as units.
    let confidence = 1.0 - 0.05 / units.len().max(1) as f64;
    let slower = units.into_iter().filter_map(|((_, client), ratios)| {
        let interval = median_interval(&ratios, confidence)?;
        let is_slower = ratios.iter().all(|ratio| *ratio < 1.0) && interval.high < 1.0 - MARGIN;
        let ratio = Point {
            client: Some(client),
            interval: Some((interval.low, interval.high)),
            ..Point::new(Standing::Worse, Quantity::Times, median(&ratios)?)
        };
        let trials = Point::count(Standing::MedianOf, "trial", ratios.len());
        is_slower.then_some([ratio, trials])
    });
    let points: Vec<Point> = slower.flatten().collect();
    // All numbers of such a run reflect its slowest part.
    let claim = Claim::of_run(&kind::STRAGGLER, of, |_| true);
    (!points.is_empty()).then(|| claim.with_points(points))
}

/// Throughput while all ranks were active, and from the first start to the last end, MB/s.
fn throughputs(cell: &CellAnalysis) -> Option<(f64, f64)> {
    let ranks = cell.ranks.as_ref().filter(|ranks| ranks.ranks > 1)?;
    let whole = cell.median(Response::Throughput)?;
    (whole > 0.0).then_some((ranks.all_active?.median, whole))
}

/// Ranks that end long after the first one.
pub(super) fn imbalance((analysis, run): Of<'_>) -> Option<Claim> {
    let all = analysis.cells.iter();
    let all = all.filter_map(|cell| Some((cell, throughputs(cell)?)));
    let all = worst_first(all, |(_, (active, whole))| active / whole);
    let (cell, (active, whole)) = *all.first()?;
    let gain = active / whole - 1.0;
    let throughput = |value| Point::main(Quantity::Of(Response::Throughput), value);
    let points = [
        throughput(active),
        throughput(whole),
        Point::main(Quantity::Share, gain),
    ];
    let claim = Claim::new(&kind::RANK_IMBALANCE, vec![id(run, cell)]);
    (gain > MARGIN).then(|| claim.with_points(points))
}

/// Clients whose page cache was not dropped before trials that were to read with a cold one.
pub(super) fn caches_kept(of: Of<'_>) -> Option<Claim> {
    let is_cold = |cell: &CellAnalysis| {
        let mut reading = cell.cell.spec.reading_trials().into_iter();
        reading.any(|trial| trial.cache == CacheState::Cold)
    };
    let cold = of.0.cells.iter().filter(|cell| is_cold(cell));
    let mut most: BTreeMap<&ClientName, f64> = BTreeMap::new();
    for client in cold
        .filter_map(|cell| cell.ranks.as_ref())
        .flat_map(|ranks| &ranks.clients)
    {
        let held = median(&client.cached).unwrap_or(0.0);
        let seen = most.entry(&client.name).or_default();
        *seen = seen.max(held);
    }
    let kept = most.into_iter().filter(|(_, held)| *held > KEPT);
    let points = worst_first(kept, |(_, held)| *held);
    let points = points.into_iter().map(|(client, held)| Point {
        client: Some(client.clone()),
        ..Point::new(Standing::Cached, Quantity::Share, held)
    });
    let claim = about(&kind::CACHE_KEPT, of, is_cold)?.with_points(points);
    (!claim.points.is_empty()).then_some(claim)
}
