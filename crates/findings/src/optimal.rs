//! The optimal pattern: over all runs, the best setting for throughput and for latency, and what the simpler one costs.

use iolab_stats::{CONFIDENCE, Ratio, Summary, ratio_of_medians};
use iolab_workload::target::TargetName;
use iolab_workload::trial::{CacheState, Pattern, SyncPolicy};

use super::format_ratio;
use super::{Finding, Rule};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_workload::quantity::format_percent;
use iolab_workload::units::format_size;

pub(crate) const OPTIMAL_PATTERN: Rule = Rule::result(
    "optimal-pattern",
    "medians of all cells served by the device, and the ratio of two of them",
);

/// How much of the best a simpler setting must reach to be offered in its place.
const NEAR: f64 = 0.95;

/// The best setting of each kind of access: for throughput with the simplest setting that comes near it, and for
/// latency with what is left of the throughput there. Cells not served by the device, with a rate, or of programs are
/// left out, and so is a kind of access of which only one cell was measured.
pub fn optimal_pattern(analyses: &[&Analysis]) -> Vec<Finding> {
    let candidates: Vec<Candidate<'_>> = analyses.iter().copied().flat_map(candidates).collect();
    let mut accesses: Vec<Access<'_>> = Vec::new();
    for candidate in &candidates {
        if !accesses.contains(&candidate.access) {
            accesses.push(candidate.access);
        }
    }
    let of = |access: Access<'_>| {
        let same = candidates.iter().filter(|c| c.access == access);
        let same: Vec<&Candidate<'_>> = same.collect();
        let texts = match same.len() {
            0 | 1 => [None, None],
            _ => [throughput(&same), latency(&same)],
        };
        texts.into_iter().flatten().map(|text| Finding {
            rule: OPTIMAL_PATTERN,
            text,
        })
    };
    accesses.iter().copied().flat_map(of).collect()
}

/// What a user asks of storage, and does not choose for speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Access<'a> {
    target: &'a str,
    read_percent: u8,
    sync: SyncPolicy,
    cache: CacheState,
}

/// A setting that could be chosen.
struct Candidate<'a> {
    access: Access<'a>,
    run: &'a Analysis,
    cell: &'a CellAnalysis,
    throughput: Summary,
}

fn candidates(run: &Analysis) -> impl Iterator<Item = Candidate<'_>> {
    let fits = |c: &&CellAnalysis| {
        let own = &c.cell;
        c.is_target() && !own.spec.runs_program() && own.trial().rate.is_none()
    };
    let cells = run.cells.iter().filter(fits);
    cells.filter_map(move |cell| {
        let own = &cell.cell;
        Some(Candidate {
            access: Access {
                target: own
                    .spec
                    .target
                    .as_ref()
                    .map_or(&run.target, TargetName::as_str),
                read_percent: own.trial().read_percent,
                sync: own.trial().sync,
                cache: own.trial().cache,
            },
            run,
            cell,
            throughput: cell.throughput?,
        })
    })
}

fn throughput(candidates: &[&Candidate<'_>]) -> Option<String> {
    // Ratios need the trials' own values, which an analysis has of its response alone.
    let values = candidates
        .iter()
        .filter(|c| c.run.response == Response::Throughput);
    let candidates: Vec<&Candidate<'_>> = values.copied().collect();
    let median = |c: &&&Candidate<'_>| c.throughput.median;
    let best = candidates
        .iter()
        .max_by(|a, b| median(a).total_cmp(&median(b)))?;
    let mut text = format!(
        "Best for the throughput of {}: {}, {}.",
        best.access.in_words(),
        best.setting(),
        in_words(Response::Throughput, &best.throughput)
    );
    let near = |c: &&&Candidate<'_>| {
        let overlap = best
            .throughput
            .median_interval
            .zip(c.throughput.median_interval);
        c.throughput.median >= NEAR * best.throughput.median
            || overlap.is_some_and(|(a, b)| a.overlaps(&b))
    };
    let simplest = candidates.iter().filter(near).min_by_key(|c| c.effort())?;
    if simplest.effort() == best.effort() {
        text.push_str(" No simpler setting is close to it.");
        return Some(text);
    }
    let ratio = ratio_of_medians(&best.cell.values, &simplest.cell.values, CONFIDENCE)?;
    text.push_str(&format!(
        " The simplest setting close to it: {}, with {}{}",
        simplest.setting(),
        format_ratio(&ratio, " of that throughput"),
        verdict(&ratio)
    ));
    if !std::ptr::eq(best.run, simplest.run) {
        text.push_str(" The two were measured one after the other, in different runs.");
    }
    Some(text)
}

fn verdict(ratio: &Ratio) -> &'static str {
    match ratio.interval {
        Some(i) if i.high < 1.0 => ".",
        Some(_) => ": no cost is shown.",
        None => ".",
    }
}

fn latency(candidates: &[&Candidate<'_>]) -> Option<String> {
    let with = candidates
        .iter()
        .filter_map(|c| Some((*c, c.cell.latency_p50?)));
    let (best, latency) = with.min_by(|a, b| a.1.median.total_cmp(&b.1.median))?;
    let most = candidates
        .iter()
        .map(|c| c.throughput.median)
        .fold(0.0, f64::max);
    Some(format!(
        "Best for the latency of {}: {}, median {}. Throughput there is {} of the best.",
        best.access.in_words(),
        best.setting(),
        in_words(Response::Latency, &latency),
        format_percent(best.throughput.median / most)
    ))
}

impl Access<'_> {
    /// `reads (cache=direct) on /data`.
    fn in_words(&self) -> String {
        let (what, sync) = match self.read_percent {
            100 => ("reads".to_owned(), String::new()),
            0 => ("writes".to_owned(), format!("sync={}, ", self.sync)),
            share => (format!("{share} % reads"), format!("sync={}, ", self.sync)),
        };
        format!("{what} ({sync}cache={}) on {}", self.cache, self.target)
    }
}

impl Candidate<'_> {
    /// How much a setting asks of the program that uses it: requests in flight, then the size of its buffers, then whether
    /// it must be sequential.
    fn effort(&self) -> (u64, u64, bool, u64) {
        let own = &self.cell.cell;
        let flight = own.trial().in_flight();
        (
            flight,
            own.trial().bs,
            own.trial().pattern != Pattern::Rand,
            own.trial().skip,
        )
    }

    fn setting(&self) -> String {
        let own = &self.cell.cell;
        let mut text = format!(
            "{}, bs={}",
            own.trial().pattern,
            format_size(own.trial().bs)
        );
        for (name, value) in [
            ("threads", own.trial().threads),
            ("depth", own.trial().depth),
        ] {
            if value > 1 {
                text.push_str(&format!(", {name}={value}"));
            }
        }
        if own.trial().skip > 0 {
            text.push_str(&format!(", skip={}", format_size(own.trial().skip)));
        }
        text
    }
}

fn in_words(response: Response, summary: &Summary) -> String {
    let median = response.format(summary.median);
    match summary.median_interval {
        Some(i) => format!(
            "{median} (95 % interval {} to {})",
            response.format(i.low),
            response.format(i.high)
        ),
        None => format!("{median} ({} trials, no interval)", summary.n),
    }
}
