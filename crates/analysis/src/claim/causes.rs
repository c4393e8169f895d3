//! Results of interventions: whether a difference between two cells is reproduced, and which share of it
//! disappears with each suspect.
//!
//! Everything is computed on the logarithm of the ratio of both sides, within the blocks that variants share.
//! METHODS.md has the rules, and their error rates on modelled disks with planted causes.

mod doubts;
mod request_time;
mod variants;
mod verdict;

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

use iolab_plan::experiment::{BLOCKS_MAX, Inquiry, Variant};
use iolab_plan::suspect::{Check, Obstacle, Suspect};
use iolab_record::ServedBy;
use iolab_workload::settings::cell_label;

use super::effect::{CellId, log_means, log_ratios};
use super::kind::{self, Kind};
use super::signs::fell;
use super::{Claim, Payload};
use crate::analysis::{Analysis, CellAnalysis, CellServed, Response};
use crate::doubt::Doubt;
use variants::differences;
pub use variants::{Remainder, remainders};
use verdict::judge;

/// Probability of any false accusation in a run.
const ALPHA: f64 = 0.05;
/// Share of page faults that may remain if they are removed.
const FAULTS_KEPT: f64 = 0.1;
/// Share of the device's I/Os that may remain if a limit of requests is removed.
const DEVICE_IOS_KEPT: f64 = 0.9;
/// Share of the waiting for a CPU that others use which may remain if that waiting is removed.
const CPU_WAIT_KEPT: f64 = 0.5;
/// Tolerance in the bytes of two loads: the longer one moves at least this share of its bytes, and the shorter
/// one at most its bytes divided by it.
const VOLUME_KEPT: f64 = 0.95;

/// Whether a phenomenon is reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Again {
    /// The difference is reproduced.
    Reproduced,
    /// The difference is absent, reversed, or less than half of the original.
    NotReproduced,
    /// Nothing can be concluded from too few blocks, or from too much noise.
    #[default]
    CannotTell,
}

/// A share of the phenomenon, by the logarithm of its ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Share {
    /// The estimate.
    pub share: f64,
    /// 95 % interval of the share; `None` with too few blocks.
    pub interval: Option<(f64, f64)>,
}

/// A phenomenon in the run that was made to explain it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Reproduction {
    /// The difference that another run showed, in words.
    pub phenomenon: String,
    /// Ratio of the other side to the base in the other run.
    pub seen: f64,
    /// Ratio that would be expected without the phenomenon.
    pub expected: f64,
    /// Ratio in this run; `None` without trials.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio in this run.
    pub interval: Option<(f64, f64)>,
    /// Blocks in which both sides were measured.
    pub blocks: usize,
    /// Time of a trial if it is shorter than in the other run, ns.
    pub shorter_ns: Option<u64>,
    /// Idle time before each trial, ns; `None` if none was needed.
    pub idle_ns: Option<u64>,
    /// Whether the level of a side, or of the run, changed despite the idle time. A phenomenon that is not seen
    /// may then be hidden.
    pub level_changed: bool,
    /// Whether the phenomenon is reproduced.
    #[serde(rename = "state")]
    pub again: Again,
    /// Share that remains without all tried suspects, or without one. `None` if the phenomenon is not
    /// reproduced, or no suspect was tried.
    pub unexplained: Option<Share>,
    /// The suspect without which alone that share remains, if more remains without all suspects: the others then
    /// change something else.
    pub unexplained_without: Option<String>,
    /// Doubts about the unchanged cells that could make the difference by themselves. Disturbances could make
    /// the unexplained share; with bytes of different origins nothing can be concluded.
    pub doubts: Vec<Doubt>,
    /// Whether one suspect explains nearly all of it by itself, whatever remains without all of them. The other
    /// suspects may then change something else.
    pub is_explained: bool,
}

/// Share of a difference below which nothing is left to be explained.
const REST: f64 = 0.1;

impl Reproduction {
    /// The kind of claims with this result.
    fn kind(&self) -> &'static Kind {
        let is_small = self.unexplained.is_some_and(|rest| rest.share < REST);
        match self.again {
            Again::Reproduced => &kind::REPRODUCED[usize::from(!self.is_explained && !is_small)],
            Again::NotReproduced => &kind::NOT_REPRODUCED[usize::from(self.idle_ns.is_some())],
            Again::CannotTell if !self.doubts.is_empty() => &kind::PERHAPS_AGAIN[0],
            Again::CannotTell if self.level_changed && self.idle_ns.is_some() => {
                &kind::PERHAPS_AGAIN[1]
            }
            Again::CannotTell => {
                &kind::PERHAPS_AGAIN[2 + usize::from(self.blocks >= BLOCKS_MAX as usize)]
            }
        }
    }

    /// The share of the original phenomenon that is reproduced; `None` without trials.
    pub fn part(&self) -> Option<Share> {
        let seen = (self.seen / self.expected).ln();
        let part = |ratio: f64| (ratio / self.expected).ln() / seen;
        let ends = |(low, high): (f64, f64)| {
            let (one, other) = (part(low), part(high));
            (one.min(other), one.max(other))
        };
        Some(Share {
            share: self.ratio.map(part).filter(|part| part.is_finite())?,
            interval: self.interval.map(ends),
        })
    }
}

/// Verdict on a suspect, from interventions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseVerdict {
    /// Without it, half of the phenomenon or more disappears.
    Cause,
    /// Several suspects, each of which suffices: the phenomenon disappears without all of them, and not without
    /// one alone.
    Joint,
    /// A model of it predicts both sides from cells between them.
    Explains,
    /// Without it, a part of the phenomenon disappears.
    Contributes,
    /// The phenomenon is the same with and without it, within a quarter of it, or within the margin.
    Cleared,
    /// Too few blocks, or too much noise, for a verdict.
    CannotTell,
    /// The suspect was not removed.
    NotTried,
}

/// Reason why nothing is known about a suspect.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyUntried {
    /// The plan of the run did not remove the suspect, for this reason.
    Planned(Obstacle),
    /// No trial without it succeeded.
    NoTrial,
    /// The level of throughput changed during the run, despite idle time that was to restore what each trial
    /// drains.
    LevelChanged {
        /// The idle time before each trial, ns.
        idle_ns: u64,
    },
    /// Count of its check is unknown, or came from elsewhere.
    Unchecked(Check),
    /// By its check it was not removed.
    NotRemoved {
        /// The check.
        check: Check,
        /// Count with the suspect, or the value asked for: the mean of both sides, or of the side that differs.
        before: f64,
        /// Count without the suspect.
        left: f64,
    },
}

/// The time of a request as a fixed time and a rate for its bytes, fitted to sizes between both sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RequestTime {
    /// Fixed time of each request, ns.
    pub fixed_ns: f64,
    /// Rate for its bytes, MB/s.
    pub mb_s: f64,
    /// Ratio of the other side to the base that they predict.
    pub ratio: f64,
    /// Number of sizes.
    pub sizes: usize,
}

/// Result for a suspect.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Suspected {
    /// Name of the suspect.
    #[serde(rename = "name")]
    pub suspect: String,
    /// Share of the phenomenon that disappears with the suspect; for joint causes, with all of them.
    pub share: Option<Share>,
    /// Whether joint causes were removed only together with all other suspects, and never by themselves.
    pub with_others: bool,
    /// Whether the share was measured with all other suspects removed: with these present, less disappears.
    pub by_itself: bool,
    /// Ratio of the other side to the base without the suspect.
    pub ratio_without: Option<f64>,
    /// Estimated number of blocks that would settle an open verdict.
    pub blocks_needed: Option<usize>,
    /// Time of a request that predicts both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_time: Option<RequestTime>,
    /// Whether the phenomenon is reversed without the suspect, or without all joint causes. The interval of the
    /// measured remainder then lies below zero by more than the margin and a tenth of the phenomenon.
    pub is_reversed: bool,
    /// Reason why it was not tried.
    pub untried: Option<WhyUntried>,
    /// Doubts about its cells, with and without it, that could make the same change: the verdict is then open.
    pub doubts: Vec<Doubt>,
}

/// Suspects of one verdict: one cause, one that contributes, or all of any other.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Suspects {
    /// The verdict.
    pub verdict: CauseVerdict,
    /// Suspects in the order in which they were tried.
    pub suspects: Vec<Suspected>,
    /// Blocks of the run.
    pub blocks: usize,
}

impl CauseVerdict {
    /// The kind of claims with this verdict.
    fn kind(self) -> &'static Kind {
        match self {
            Self::Cause => &kind::CAUSE,
            Self::Joint => &kind::JOINT_CAUSE,
            Self::Explains => &kind::EXPLAINS,
            Self::Contributes => &kind::CONTRIBUTES,
            Self::Cleared => &kind::CLEARED,
            Self::CannotTell => &kind::SUSPECTS_OPEN,
            Self::NotTried => &kind::SUSPECTS_NOT_TRIED,
        }
    }
}

impl Suspects {
    /// The name of the first suspect.
    pub(super) fn first(&self) -> &str {
        self.suspects.first().map_or("", |one| &one.suspect)
    }
}

/// The claims of a run that was made to explain a difference, based on these cells.
pub fn of_causes(again: Reproduction, suspects: Vec<Suspects>, cells: &[CellId]) -> Vec<Claim> {
    let claim = |kind, payload| Claim {
        is_of_run: true,
        payload: Some(payload),
        ..Claim::new(kind, cells.to_vec())
    };
    let again = claim(again.kind(), Payload::Reproduced(again));
    let suspects = suspects.into_iter().map(|found| {
        let kind = found.verdict.kind();
        claim(kind, Payload::Suspects(found))
    });
    std::iter::once(again).chain(suspects).collect()
}

/// Whether claims answer the question of a run that was made to explain a difference. They do if the difference
/// is not reproduced, a suspect has a part in it, or each suspect is cleared. Cleared suspects answer nothing
/// while another one is untried or open.
pub fn is_answered(claims: &[Claim]) -> bool {
    let again = claims.iter().find_map(Claim::reproduction);
    let found = claims.iter().filter_map(Claim::suspects);
    let verdicts = || found.clone().map(|found| found.verdict);
    let has_part = |verdict: CauseVerdict| {
        let parts = [
            CauseVerdict::Cause,
            CauseVerdict::Joint,
            CauseVerdict::Explains,
            CauseVerdict::Contributes,
        ];
        parts.contains(&verdict)
    };
    match again.map(|found| found.again) {
        None | Some(Again::CannotTell) => false,
        Some(Again::NotReproduced) => true,
        Some(Again::Reproduced) => {
            let are_cleared = verdicts().all(|verdict| verdict == CauseVerdict::Cleared);
            verdicts().any(has_part) || (are_cleared && verdicts().next().is_some())
        }
    }
}

/// The logarithm of the ratio of both sides in each block, less the expected one. Positive values have the
/// direction of the original phenomenon.
type Deviations = BTreeMap<u32, f64>;

/// The result of a run that was made to explain a phenomenon; uses no other run.
pub(super) fn causes(analysis: &Analysis) -> Option<(Reproduction, Vec<Suspects>)> {
    let (inquiry, deviations) = measured(analysis)?;
    let unchecked = inquiry.tried.iter().filter_map(|suspect| {
        let why = failed_check(analysis, inquiry, suspect)?;
        Some((suspect.clone(), why))
    });
    let unchecked: BTreeMap<String, WhyUntried> = unchecked.collect();
    let between = request_time::of_sizes_between(analysis, inquiry);
    let (mut again, mut found) = judge(inquiry, &deviations, &unchecked, between);
    let own = sides(analysis, inquiry, &[]);
    again.level_changed = own.is_some_and(|own| level_changed(analysis, inquiry, &own).is_some());
    if again.level_changed && again.again == Again::NotReproduced {
        again.again = Again::CannotTell;
    }
    doubts::weigh(analysis, inquiry, (&mut again, &mut found));
    Some((again, found))
}

/// Reason why the removal of a suspect is not shown; `None` if it is.
fn failed_check(analysis: &Analysis, inquiry: &Inquiry, suspect: &str) -> Option<WhyUntried> {
    let sides = |without: &[&str]| sides(analysis, inquiry, without);
    let (with, without) = sides(&[]).zip(sides(&[suspect]))?;
    if without.iter().any(|cell| cell.values.is_empty()) {
        return Some(WhyUntried::NoTrial);
    }
    if let Some(idle_ns) = level_changed(analysis, inquiry, &[with, without].concat()) {
        return Some(WhyUntried::LevelChanged { idle_ns });
    }
    let check = Suspect::find(suspect)?.check;
    let counted = |of: fn(&CellAnalysis) -> Option<f64>| {
        let mean = |[base, other]: [&CellAnalysis; 2]| Some(f64::midpoint(of(base)?, of(other)?));
        mean(with).zip(mean(without))
    };
    // What the check counts with and without the suspect, and the largest share that may be left.
    let (counts, most) = match check {
        Check::Settings => return None,
        Check::InFlight => return without.into_iter().find_map(few_in_flight),
        Check::FromStorage => {
            let is_from_storage = without.into_iter().all(is_from_storage);
            return (!is_from_storage).then_some(WhyUntried::Unchecked(check));
        }
        Check::SameVolume => return other_volume(with, without),
        Check::FewerFaults => (counted(|cell| cell.minor_faults), FAULTS_KEPT),
        Check::FewerDeviceIos => {
            let ios = counted(|cell| cell.disturbance.ios_per_request);
            (ios, DEVICE_IOS_KEPT)
        }
        // Threads' waiting for each other stays or grows: the more CPUs they get, the more of them run at a time.
        Check::LessCpuWait => {
            let waits = counted(|cell| cell.disturbance.wait_for_others);
            (waits, CPU_WAIT_KEPT)
        }
    };
    let Some((before, left)) = counts else {
        return Some(WhyUntried::Unchecked(check));
    };
    (left > most * before).then(|| not_removed(check, before, left))
}

/// The reason that a suspect was not removed by its check.
fn not_removed(check: Check, before: f64, left: f64) -> WhyUntried {
    WhyUntried::NotRemoved {
        check,
        before,
        left,
    }
}

/// The idle time despite which the level of the run, or of one of these cells, changed; `None` if no level
/// changed, and without idle time.
fn level_changed(analysis: &Analysis, inquiry: &Inquiry, own: &[&CellAnalysis]) -> Option<u64> {
    let own: Vec<i64> = own.iter().map(|cell| cell.cell.id).collect();
    let changed = || !analysis.timeline.over_run.is_empty() || fell(analysis, &own).is_some();
    inquiry.idle_ns.filter(|_| changed())
}

/// Whether a side counts as served by storage.
fn is_from_storage(cell: &CellAnalysis) -> bool {
    let verdict = cell.served.as_ref().and_then(CellServed::unanimous);
    let storage = [ServedBy::Device, ServedBy::Network, ServedBy::Model];
    verdict.is_some_and(|verdict| storage.contains(&verdict))
}

/// Reason why two loads do not count without a suspect. The longer one moves less than with the suspect and may
/// end before the fall, or the shorter one moves more and may reach beyond it.
fn other_volume(with: [&CellAnalysis; 2], without: [&CellAnalysis; 2]) -> Option<WhyUntried> {
    let moved = |cell: &CellAnalysis| {
        // MB/s times ns.
        let bytes = cell.median(Response::Throughput)? * cell.median(Response::Elapsed)? * 1e-3;
        Some(bytes).filter(|bytes| *bytes > 0.0)
    };
    let of = |cells: [&CellAnalysis; 2]| moved(cells[0]).zip(moved(cells[1]));
    let Some(((base, other), (base_left, other_left))) = of(with).zip(of(without)) else {
        return Some(WhyUntried::NoTrial);
    };
    let (short, long) = match base <= other {
        true => ((base, base_left), (other, other_left)),
        false => ((other, other_left), (base, base_left)),
    };
    let others = [
        (short.1 > short.0 / VOLUME_KEPT, short),
        (long.1 < VOLUME_KEPT * long.0, long),
    ];
    let found = others.into_iter().find(|(is_other, _)| *is_other);
    found.map(|(_, (before, left))| not_removed(Check::SameVolume, before, left))
}

/// Number of requests in flight, if it is less than half of the requested one.
fn few_in_flight(cell: &CellAnalysis) -> Option<WhyUntried> {
    let check = Check::InFlight;
    let counts = cell.concurrency;
    let counts = counts.and_then(|seen| Some((seen.in_flight?, seen.asked as f64)));
    let Some((left, before)) = counts else {
        return Some(WhyUntried::Unchecked(check));
    };
    (left < before / 2.0).then(|| not_removed(check, before, left))
}

/// The cells of both sides without exactly these suspects.
fn sides<'a>(
    analysis: &'a Analysis,
    inquiry: &Inquiry,
    without: &[&str],
) -> Option<[&'a CellAnalysis; 2]> {
    let mut variants = inquiry.variants.iter();
    let variant = variants.find(|one| one.without == without)?;
    let sides = cell(analysis, &variant.base).zip(cell(analysis, &variant.other))?;
    Some(sides.into())
}

/// The cell of these levels.
fn cell<'a>(analysis: &'a Analysis, label: &str) -> Option<&'a CellAnalysis> {
    let mut cells = analysis.cells.iter();
    cells.find(|cell| cell_label(&analysis.factors, &cell.cell.levels) == label)
}

/// The deviations of each variant.
fn measured(analysis: &Analysis) -> Option<(&Inquiry, Vec<Deviations>)> {
    let inquiry = analysis.inquiry.as_ref()?;
    let sign = direction(inquiry);
    let first = inquiry.variants.first();
    let unchanged = first.filter(|_| inquiry.compares_quantiles());
    let unchanged = unchanged.and_then(|variant| cell(analysis, &variant.base));
    let of_variant = |variant: &Variant| {
        if let Some(unchanged) = unchanged {
            let own = cell(analysis, &variant.base);
            return own.map_or_else(Deviations::new, |own| tails(unchanged, own));
        }
        let sides = cell(analysis, &variant.base).zip(cell(analysis, &variant.other));
        sides.map_or_else(Deviations::new, |(base, other)| {
            let mut logs = log_ratios(base.trials(), other.trials());
            logs.values_mut()
                .for_each(|log| *log = sign * (*log - inquiry.expected.ln()));
            logs
        })
    };
    let deviations = inquiry.variants.iter().map(of_variant);
    Some((inquiry, deviations.collect()))
}

/// The logarithm of the ratio of the 99th percentile to the median of latency in each block. Uses the median of
/// the unchanged cell, or of the cell itself if that is lower. A tail has not disappeared because all requests
/// became slower, nor because all became faster.
fn tails(unchanged: &CellAnalysis, own: &CellAnalysis) -> Deviations {
    let ratios = |cell: &CellAnalysis| log_means((&cell.tail_ratios, &cell.tail_blocks));
    let medians = |cell: &CellAnalysis| differences(&log_means(cell.trials()), &ratios(cell));
    let (before, now) = (medians(unchanged), medians(own));
    let of_block = |(block, slow): (u32, f64)| {
        let median = before.get(&block)?.min(*now.get(&block)?);
        Some((block, slow - median))
    };
    let slow = log_means(own.trials()).into_iter();
    slow.filter_map(of_block).collect()
}

/// 1 if the phenomenon makes the other side greater than expected, otherwise -1.
fn direction(inquiry: &Inquiry) -> f64 {
    match inquiry.seen >= inquiry.expected {
        true => 1.0,
        false => -1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleared_suspects_answer_nothing_while_one_is_open() {
        let answered = |again: Again, verdicts: &[CauseVerdict]| {
            let reproduced = Reproduction {
                again,
                ..Reproduction::default()
            };
            let suspects = verdicts.iter().map(|verdict| Suspects {
                verdict: *verdict,
                suspects: Vec::new(),
                blocks: 20,
            });
            is_answered(&of_causes(reproduced, suspects.collect(), &[]))
        };
        let (there, gone, open) = (Again::Reproduced, Again::NotReproduced, Again::CannotTell);
        let cleared = CauseVerdict::Cleared;
        assert!(answered(there, &[cleared]));
        assert!(!answered(there, &[cleared, CauseVerdict::CannotTell]));
        assert!(!answered(there, &[cleared, CauseVerdict::NotTried]));
        assert!(answered(
            there,
            &[CauseVerdict::Cause, CauseVerdict::CannotTell]
        ));
        assert!(!answered(there, &[]));
        assert!(answered(gone, &[]));
        assert!(!answered(open, &[CauseVerdict::CannotTell]));
        assert!(!is_answered(&[]));
    }
}
