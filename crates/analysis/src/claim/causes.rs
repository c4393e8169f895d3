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

use super::effect::{Estimate, MARGIN, log_means, log_ratios};
use super::kind::{self, Kind};
use super::series::fell;
use super::{Claim, Payload, Point, Quantity, Role, Standing};
use crate::analysis::{Analysis, CellAnalysis, CellServed, Response};
use crate::doubt::Doubt;
use variants::differences;
pub use variants::remainders;
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
/// Share of a difference below which nothing is left to be explained.
const REST: f64 = 0.1;

/// Reason why nothing is known about a suspect.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyUntried {
    /// The plan of the run did not remove the suspect, for this reason.
    Planned(Obstacle),
    /// No trial without it succeeded.
    NoTrial,
    /// The level of throughput changed during the run, despite this idle time before each trial, ns, that was to restore what
    /// trials drain.
    LevelChanged(u64),
    /// Its check does not show that it was removed: the count with the suspect, or the value asked for, and the count without
    /// it. The mean of both sides, or of the side that differs; `null` if unknown, or from elsewhere.
    Unchecked(Check, Option<(f64, f64)>),
}

/// Whether a phenomenon is there again, and the verdicts on its suspects.
pub(super) struct Found<'a> {
    inquiry: &'a Inquiry,
    /// `Reproduced`, `NotReproduced` or `Undecided`.
    again: Standing,
    /// Ratio of the other side to the base in this run; `None` without trials.
    ratio: Option<Estimate>,
    /// Blocks in which both sides were measured.
    blocks: usize,
    /// Whether the level of a side, or of the run, changed despite the idle time. A phenomenon that is not seen
    /// may then be hidden.
    level_changed: bool,
    /// Share that remains without all tried suspects, or without one if more remains without all of them: the others then
    /// change something else. `None` if the phenomenon is not reproduced, or no suspect was tried.
    rest: Option<Point>,
    /// Doubts about the unchanged cells that could make the difference by themselves. Disturbances could make
    /// the unexplained share; with bytes of different origins nothing can be concluded.
    doubts: Vec<Doubt>,
    /// Whether one suspect explains nearly all of it by itself, whatever remains without all of them. The other
    /// suspects may then change something else.
    is_explained: bool,
    /// A point for each suspect with a verdict, the greatest share first, and one for joint causes together.
    suspects: Vec<Point>,
    /// Points and ratio of the mechanism that a model of cells between both sides shows.
    explains: Option<(Vec<Point>, Estimate)>,
    /// Suspects that were not tried.
    untried: Vec<(String, WhyUntried)>,
}

impl Found<'_> {
    /// The kind of the claim on the phenomenon.
    fn kind(&self) -> &'static Kind {
        let is_small = self.rest.as_ref().is_some_and(|rest| rest.value < REST);
        let has_idle = self.inquiry.idle_ns.is_some();
        match self.again {
            Standing::Reproduced => &kind::REPRODUCED[usize::from(!self.is_explained && !is_small)],
            Standing::NotReproduced => &kind::NOT_REPRODUCED[usize::from(has_idle)],
            _ if !self.doubts.is_empty() => &kind::PERHAPS_AGAIN[0],
            _ if self.level_changed && has_idle => &kind::PERHAPS_AGAIN[1],
            _ => &kind::PERHAPS_AGAIN[2 + usize::from(self.blocks >= BLOCKS_MAX as usize)],
        }
    }

    /// The share of the original phenomenon that is there again; `None` without trials.
    fn part(&self) -> Option<Point> {
        let Inquiry { seen, expected, .. } = *self.inquiry;
        let part = |ratio: f64| (ratio / expected).ln() / (seen / expected).ln();
        let ends = |(low, high): (f64, f64)| {
            let (one, other) = (part(low), part(high));
            (one.min(other), one.max(other))
        };
        let here = self.ratio?;
        Some(Point {
            interval: here.interval.map(ends),
            ..Point::new(Standing::Remains, Quantity::Share, part(here.ratio))
        })
    }

    /// The claims on a run, with its place among others.
    pub(super) fn claims(self, run: (&Analysis, usize)) -> Vec<Claim> {
        let inquiry = self.inquiry;
        let claim = |kind, points: Vec<Point>| Claim {
            held: vec![("phenomenon".to_owned(), inquiry.phenomenon.clone())],
            ..Claim::of_run(kind, run, |_| true).with_points(points)
        };
        let size = (inquiry.seen / inquiry.expected).ln().abs();
        let may_remain = |part: &Point| {
            let is_more = |(_, most)| most * size > MARGIN.ln_1p();
            self.again == Standing::NotReproduced && part.interval.is_some_and(is_more)
        };
        let time = |standing, ns: Option<u64>| {
            let quantity = Quantity::Of(Response::Elapsed);
            ns.map(|ns| Point::new(standing, quantity, ns as f64))
        };
        let again = Point {
            doubts: self.doubts.clone(),
            ..Point::count(self.again, "block", self.blocks)
        };
        let points = [
            Some(again),
            self.part().filter(may_remain),
            self.rest.clone(),
            time(Standing::Shorter, inquiry.shorter_ns),
            time(Standing::Idle, inquiry.idle_ns),
        ];
        let mut all = vec![Claim {
            ratio: self.ratio,
            ..claim(self.kind(), points.into_iter().flatten().collect())
        }];
        let of_kind = |kind: &'static Kind| {
            let is_own = |point: &&Point| {
                let mut labels = kind.labels.iter();
                labels.any(|(standing, _)| *standing == point.standing)
            };
            let own: Vec<Point> = self.suspects.iter().filter(is_own).cloned().collect();
            (!own.is_empty()).then(|| claim(kind, own))
        };
        all.extend(of_kind(&kind::CAUSE));
        all.extend(of_kind(&kind::JOINT_CAUSE));
        all.extend(self.explains.map(|(points, ratio)| Claim {
            ratio: Some(ratio),
            ..claim(&kind::EXPLAINS, points)
        }));
        let others = [&kind::CONTRIBUTES, &kind::CLEARED, &kind::SUSPECTS_OPEN];
        all.extend(others.into_iter().filter_map(of_kind));
        for (suspect, why) in self.untried {
            let point = Point {
                suspects: vec![suspect],
                ..Point::count(Standing::NotTried, "trial", 0)
            };
            let payload = Some(Payload::NotTried(why));
            match all.iter_mut().find(|claim| claim.payload == payload) {
                Some(claim) => claim.points.push(point),
                None => all.push(Claim {
                    payload,
                    ..claim(&kind::SUSPECTS_NOT_TRIED, vec![point])
                }),
            }
        }
        all
    }
}

/// Whether claims answer the question of a run that was made to explain a difference. They do if the difference
/// is not reproduced, a suspect has a part in it, or each suspect is cleared. Cleared suspects answer nothing
/// while another one is untried or open.
pub fn is_answered(claims: &[Claim]) -> bool {
    let is_there = |standing| {
        claims
            .iter()
            .any(|claim| claim.of(standing).next().is_some())
    };
    let names_suspects = |claim: &&Claim| claim.points.iter().any(|one| !one.suspects.is_empty());
    let beside_the_answer = claims.iter().filter(|claim| claim.role() > Role::Answer);
    let suspects = || beside_the_answer.clone().filter(names_suspects);
    let has_part = suspects().any(|claim| claim.role() == Role::Explanation);
    let are_cleared = suspects().all(|claim| claim.kind == &kind::CLEARED);
    let is_known = has_part || (are_cleared && suspects().next().is_some());
    is_there(Standing::NotReproduced) || is_there(Standing::Reproduced) && is_known
}

/// The logarithm of the ratio of both sides in each block, less the expected one. Positive values have the
/// direction of the original phenomenon.
type Deviations = BTreeMap<u32, f64>;

/// The result of a run that was made to explain a phenomenon; uses no other run.
pub(super) fn causes(analysis: &Analysis) -> Option<Found<'_>> {
    let (inquiry, deviations) = measured(analysis)?;
    let unchecked = inquiry.tried.iter().filter_map(|suspect| {
        let why = failed_check(analysis, inquiry, suspect)?;
        Some((suspect.clone(), why))
    });
    let mut found = judge(inquiry, &deviations, unchecked.collect());
    if found.again == Standing::Reproduced {
        match request_time::of_sizes_between(analysis, inquiry) {
            Some(Ok(explains)) => (found.explains, found.is_explained) = (Some(explains), true),
            Some(Err(open)) => found.suspects.push(open),
            None => {}
        }
    }
    let own = sides(analysis, inquiry, &[]);
    found.level_changed = own.is_some_and(|own| level_changed(analysis, inquiry, &own).is_some());
    if found.level_changed && found.again == Standing::NotReproduced {
        found.again = Standing::Undecided;
    }
    doubts::weigh(analysis, &mut found);
    Some(found)
}

/// Reason why the removal of a suspect is not shown; `None` if it is.
fn failed_check(analysis: &Analysis, inquiry: &Inquiry, suspect: &str) -> Option<WhyUntried> {
    let sides = |without: &[&str]| sides(analysis, inquiry, without);
    let (with, without) = sides(&[]).zip(sides(&[suspect]))?;
    if without.iter().any(|cell| cell.values.is_empty()) {
        return Some(WhyUntried::NoTrial);
    }
    if let Some(idle_ns) = level_changed(analysis, inquiry, &[with, without].concat()) {
        return Some(WhyUntried::LevelChanged(idle_ns));
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
            return (!is_from_storage).then_some(WhyUntried::Unchecked(check, None));
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
    let is_shown = counts.is_some_and(|(before, left)| left <= most * before);
    (!is_shown).then_some(WhyUntried::Unchecked(check, counts))
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
    found.map(|(_, counts)| WhyUntried::Unchecked(Check::SameVolume, Some(counts)))
}

/// Number of requests in flight, if it is less than half of the requested one.
fn few_in_flight(cell: &CellAnalysis) -> Option<WhyUntried> {
    let counts = cell.concurrency;
    let counts = counts.and_then(|seen| Some((seen.asked as f64, seen.in_flight?)));
    let is_shown = counts.is_some_and(|(asked, in_flight)| in_flight >= asked / 2.0);
    (!is_shown).then_some(WhyUntried::Unchecked(Check::InFlight, counts))
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
        let claim = |(kind, standing)| {
            let point = Point {
                suspects: vec!["waiting".to_owned()],
                ..Point::new(standing, Quantity::Share, 0.5)
            };
            Claim::new(kind, Vec::new()).with_points([point])
        };
        let answered = |all: &[(&'static Kind, Standing)]| {
            is_answered(&all.iter().copied().map(claim).collect::<Vec<_>>())
        };
        let there = (&kind::REPRODUCED[0], Standing::Reproduced);
        let gone = (&kind::NOT_REPRODUCED[0], Standing::NotReproduced);
        let unknown = (&kind::PERHAPS_AGAIN[2], Standing::Undecided);
        let cause = (&kind::CAUSE, Standing::Cause);
        let cleared = (&kind::CLEARED, Standing::Cleared);
        let open = (&kind::SUSPECTS_OPEN, Standing::Undecided);
        let untried = (&kind::SUSPECTS_NOT_TRIED, Standing::NotTried);
        assert!(answered(&[there, cleared]));
        assert!(!answered(&[there, cleared, open]));
        assert!(!answered(&[there, cleared, untried]));
        assert!(answered(&[there, cause, open]));
        assert!(!answered(&[there]));
        assert!(answered(&[gone]));
        assert!(!answered(&[unknown, open]));
        assert!(!is_answered(&[]));
    }
}
