//! Names and suspects in claims about causes, the result of an inquiry in short, and why suspects were not tried.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::{NAMED_MAX, doubts, held, item, labelled, of_points};
use crate::ratio::RatioShown;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{
    Claim, Payload, Point, Role, Standing, WhyUntried, claims as claims_of, is_answered, ordered,
};
use iolab_plan::experiment::BLOCKS_MAX;
use iolab_plan::suspect::{Check, Obstacle, Suspect};
use iolab_workload::units::{
    exact_duration, format_bytes, format_duration, format_percent, significant,
};

/// Most characters of a difference in words.
const PHENOMENON_MAX: usize = 160;

/// A name in the sentence on a difference, or on suspects of it.
pub(super) fn named(name: &str, claim: &Claim, runs: &[&Analysis]) -> String {
    let phenomenon = held("phenomenon", claim);
    let of = |standing| claim.of(standing).next();
    let in_words = |point: &Point| item(point, claim, runs);
    let against = claim.points.first().map_or(&[][..], |point| &point.doubts);
    match name {
        "phenomenon" => shortened(&phenomenon, PHENOMENON_MAX),
        "here" => here(claim, runs),
        "it" if of(Standing::Remains).is_some() => "all of it".to_owned(),
        "it" => "it".to_owned(),
        "part" => {
            let part = of(Standing::Remains).filter(|part| part.value > 0.0);
            part.map_or_else(String::new, |part| {
                format!(", {} of the difference on a log scale", share(part))
            })
        }
        "rest" => {
            let rest = of(Standing::Unexplained).map_or_else(|| "unknown".to_owned(), share);
            match against {
                [] => rest,
                all => format!("{rest}; it could also come from {}", doubts(all)),
            }
        }
        "idle" => of(Standing::Idle).map_or_else(String::new, in_words),
        "doubts" => doubts(against),
        "most_blocks" => BLOCKS_MAX.to_string(),
        "needed" => {
            let needed = claim.points.iter().filter_map(|point| point.of);
            let needed = needed.fold(0.0, f64::max);
            match needed <= f64::from(BLOCKS_MAX) {
                true => format!("{needed} blocks needed: increase --budget"),
                false => format!("{needed} blocks needed, and a run has at most {BLOCKS_MAX}"),
            }
        }
        "ratio" => claim.ratio.map_or_else(String::new, |ratio| {
            RatioShown::from((ratio.ratio, None)).factor()
        }),
        "suspect" => {
            let mut suspects = claim.points.iter().flat_map(|point| &point.suspects);
            suspects.next().map_or_else(String::new, |one| short(one))
        }
        "together" | "alone" => {
            let joint = claim.of(Standing::Joint).flat_map(|point| &point.suspects);
            let joint: Vec<&str> = joint.map(String::as_str).collect();
            let has_others = claim
                .points
                .iter()
                .any(|one| one.suspects.len() > joint.len());
            match (name, has_others) {
                ("together", true) => "all suspects".to_owned(),
                ("together", false) => "all of them".to_owned(),
                (_, true) => format!(
                    "To measure without these alone: iolab why FILE --suspects {}. ",
                    joint.join(",")
                ),
                (_, false) => String::new(),
            }
        }
        "why" => match &claim.payload {
            Some(Payload::NotTried(why)) => why_untried(why),
            _ => held(name, claim),
        },
        "difference" => {
            let mut explained = runs.iter().filter_map(|run| run.inquiry.as_ref());
            match explained.any(|other| other.phenomenon != phenomenon) {
                true => format!("The difference: {phenomenon}."),
                false => String::new(),
            }
        }
        _ => held(name, claim),
    }
}

/// The words of a text in at most `most` characters, with dots for the rest.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => {
            let start = &text[..end];
            let words = start.rsplit_once(' ').map_or(start, |(words, _)| words);
            format!("{words} ...")
        }
        None => text.to_owned(),
    }
}

/// A suspect, and what is gone without it: `read-ahead: 84 % (80 to 88 %) of the difference is gone with sequential reads in
/// reverse order (1.1× lower)`; `None` for other points.
pub(super) fn of_suspect(point: &Point) -> Option<String> {
    let name = point.suspects.first()?;
    let left = point.ratio.map_or_else(String::new, |ratio| {
        let factor = RatioShown::from((ratio.ratio, None)).factor();
        format!(" ({factor})")
    });
    let gone = match point.standing {
        Standing::Reverses | Standing::TogetherReverse => "the difference is reversed".to_owned(),
        _ if point.value > -0.005 => format!("{} of the difference is gone", share(point)),
        _ => {
            let more = Point {
                value: -point.value,
                interval: point.interval.map(|(low, high)| (-high, -low)),
                ..point.clone()
            };
            format!("the difference is {} greater", share(&more))
        }
    };
    match point.standing {
        Standing::Main => None,
        Standing::Together | Standing::TogetherReverse => Some(gone + &left),
        Standing::Cause
        | Standing::Reverses
        | Standing::Contributes
        | Standing::ByItself
        | Standing::Minor => {
            let change = Suspect::find(name).map_or("", |suspect| suspect.change);
            Some(format!("{}: {gone} with {change}{left}", short(name)))
        }
        _ => Some(short(name)),
    }
}

/// The values of each key, in the order in which the keys occur first.
pub fn grouped<K: PartialEq, V>(all: impl Iterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// A suspect in words, without what explains them.
pub(super) fn short(name: &str) -> String {
    let words = Suspect::find(name).map_or(name, |suspect| suspect.what);
    let end = [" (", ", which"]
        .into_iter()
        .filter_map(|rest| words.find(rest))
        .min();
    words[..end.unwrap_or(words.len())].to_owned()
}

/// A share in words, between nothing and all: `83 % (75 to 90 %)`.
fn share(point: &Point) -> String {
    let percent = |share: f64| format!("{:.0}", (100.0 * share).clamp(0.0, 100.0));
    let interval = point
        .interval
        .map(|(low, high)| (percent(low), percent(high)));
    let interval = interval.filter(|(low, high)| low != high);
    let interval = interval.map_or_else(String::new, |(low, high)| format!(" ({low} to {high} %)"));
    format!("{} %{interval}", percent(point.value))
}

/// The difference in the run that explains it: `1.02× higher (1.02× lower to 1.06× higher) in 12 blocks`.
fn here(claim: &Claim, runs: &[&Analysis]) -> String {
    let Some((ratio, blocks)) = claim.ratio.zip(claim.points.first()) else {
        return "no block with both sides".to_owned();
    };
    let in_words = |point: &Point| item(point, claim, runs);
    let shorter = claim.of(Standing::Shorter).next().map(in_words);
    let shorter = shorter.map_or_else(String::new, |time| format!(" of shorter trials ({time})"));
    let ratio = RatioShown::from((ratio.ratio, ratio.interval)).in_words();
    format!("{ratio} in {}{shorter}", in_words(blocks))
}

/// `3.0 of 16 requests were in flight`.
fn why_untried(why: &WhyUntried) -> String {
    let (check, counts) = match why {
        WhyUntried::Planned(why) => return obstacle(why),
        WhyUntried::NoTrial => (Check::Settings, None),
        WhyUntried::LevelChanged(idle_ns) => {
            return format!(
                "the level of throughput still changed, with {} of idle time before each trial",
                exact_duration(Duration::from_nanos(*idle_ns))
            );
        }
        WhyUntried::Unchecked(check, counts) => (*check, *counts),
    };
    let unknown = match check {
        Check::InFlight => "how many requests were in flight is not known",
        Check::FewerFaults => "how many page faults there were is not known",
        Check::FewerDeviceIos => "how many I/Os of the device a request takes is not known",
        Check::LessCpuWait => "how long threads waited for a CPU that others used is not known",
        Check::FromStorage => "without it the bytes of a side still did not come from storage",
        Check::Settings | Check::SameVolume => "no trial without it succeeded",
    };
    let Some((before, left)) = counts else {
        return unknown.to_owned();
    };
    match check {
        Check::InFlight => format!("{left:.1} of {before:.0} requests were in flight"),
        Check::FewerFaults => format!("{left:.0} of {before:.0} page faults were left"),
        Check::FewerDeviceIos => format!(
            "a request still takes {} I/Os of the device, before {}",
            significant(left),
            significant(before)
        ),
        Check::LessCpuWait => format!(
            "threads still waited for a CPU that others used in {} of their time, before in {}",
            format_percent(left),
            format_percent(before)
        ),
        Check::SameVolume => format!(
            "without it a trial moved {} instead of {}, so that the fall is elsewhere in it or beyond its end",
            format_bytes(left),
            format_bytes(before)
        ),
        Check::Settings | Check::FromStorage => unknown.to_owned(),
    }
}

/// `no time within the budget: it takes 12min`.
pub fn obstacle(why: &Obstacle) -> String {
    match why {
        Obstacle::IsTheDifference => "the two sides differ in nothing else".to_owned(),
        Obstacle::KeepsState => "the level of throughput of a side changes during a run, and idle time does not restore it: run the experiment with --precondition, then explain that run".to_owned(),
        Obstacle::NeedsChangeSystem => "it needs --change-system, as root".to_owned(),
        Obstacle::NeedsRoot => "raising the priority of threads takes root (CAP_SYS_NICE)".to_owned(),
        Obstacle::NotAskedFor => "not among --suspects".to_owned(),
        Obstacle::NoTime { budget_s, idle_ns } => {
            let idle = match *idle_ns {
                0 => String::new(),
                ns => format!(
                    " for {} of idle time before each trial to restore the level of throughput",
                    exact_duration(Duration::from_nanos(ns))
                ),
            };
            let wanted = format_duration(Duration::from_secs(*budget_s));
            format!("no time within the budget{idle}: it takes {wanted}")
        }
        Obstacle::Conflict { error } => error.clone(),
    }
}

/// Most characters of a target.
const TARGET_MAX: usize = 100;

/// The result of an inquiry in a clause.
pub(crate) fn cause_in_short(analysis: &Analysis) -> String {
    in_short(&claims_of(&[analysis]), NAMED_MAX)
}

fn in_short(claims: &[Claim], named: usize) -> String {
    let is_there = |standing| {
        claims
            .iter()
            .any(|claim| claim.of(standing).next().is_some())
    };
    let parts = claims.iter().filter_map(|claim| {
        let label = claim.kind.labels.first();
        let label = label.map_or("explained", |(_, label)| label);
        let single = claim.points.iter().filter(|one| one.suspects.len() == 1);
        let names = single.map(|one| short(&one.suspects[0])).collect();
        let has_part = claim.role() == Role::Explanation;
        has_part.then(|| labelled((label.to_lowercase(), names), named))
    });
    match parts.collect::<Vec<_>>().join("; ") {
        parts if !parts.is_empty() => parts,
        _ if is_there(Standing::NotReproduced) => "not reproduced".to_owned(),
        _ if is_answered(claims) => "none of the suspects is the cause".to_owned(),
        _ => "cannot tell".to_owned(),
    }
}

/// The result of an inquiry as lines: the answer, then the sentences of each kind of claims with this many suspects.
pub fn causes_in_lines(claims: &[Claim], run: &Analysis, named: usize) -> Vec<String> {
    let target = shortened(&run.target, TARGET_MAX);
    let answer = format!(
        "{} on {target}: {}",
        run.experiment,
        in_short(claims, named)
    );
    let said = ordered(claims).0.into_iter();
    let said =
        grouped(said.map(|claim| (claim.kind.name, of_points(claim, Some(run), &[run], named))));
    let lines = said.into_iter().map(|(_, sentences)| sentences.join(" "));
    std::iter::once(answer).chain(lines).collect()
}
