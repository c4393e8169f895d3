//! Results of interventions, in full and in short, and why suspects were not tried, in words.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::{List, NAMED_MAX, doubts, finding, labelled, sentence};
use crate::doubt::between_items;
use crate::ratio::RatioShown;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{
    Again, CauseVerdict, Claim, MARGIN, Reproduction, Share, Suspected, Suspects, WhyUntried,
    claims as claims_of, is_answered, ordered,
};
use iolab_analysis::doubt::Doubt;
use iolab_plan::experiment::BLOCKS_MAX;
use iolab_plan::suspect::{Check, Obstacle, Suspect};
use iolab_workload::response::Response;
use iolab_workload::units::{
    counted, exact_duration, format_bytes, format_duration, format_ns, format_percent, significant,
};

/// Most characters of a difference in words.
const PHENOMENON_MAX: usize = 160;

/// A name in the sentence on whether a phenomenon is reproduced.
pub(super) fn named(name: &str, found: &Reproduction) -> String {
    match name {
        "phenomenon" => shortened(&found.phenomenon, PHENOMENON_MAX),
        "here" => here(found),
        "it" if is_in_part(found) => "all of it".to_owned(),
        "it" => "it".to_owned(),
        "part" => {
            let part = found.part().filter(|part| part.share > 0.0);
            let part = part.filter(|_| is_in_part(found));
            part.map_or_else(String::new, |part| {
                format!(", {} of the difference on a log scale", of_share(&part))
            })
        }
        "rest" => {
            let rest = found.unexplained.as_ref();
            let rest = rest.map_or_else(|| "unknown".to_owned(), of_share);
            match found.doubts.as_slice() {
                [] => rest,
                all => format!("{rest}; it could also come from {}", doubts(all)),
            }
        }
        "idle" => found
            .idle_ns
            .map_or_else(String::new, |ns| exact_duration(Duration::from_nanos(ns))),
        "doubts" => doubts(&found.doubts),
        "most_blocks" => BLOCKS_MAX.to_string(),
        _ => String::new(),
    }
}

/// Whether a part of a phenomenon may be within the interval.
fn is_in_part(found: &Reproduction) -> bool {
    found
        .interval
        .is_some_and(|(low, high)| match found.seen >= found.expected {
            true => high / found.expected > 1.0 + MARGIN,
            false => found.expected / low > 1.0 + MARGIN,
        })
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

/// The part that disappears without joint causes: `without all of them 80 % of the difference is gone`; `None`
/// if that is not known.
fn without_joint(one: &Suspected) -> Option<String> {
    let what = match one.with_others {
        true => "without all suspects",
        false => "without all of them",
    };
    match (&one.share, one.is_reversed) {
        (_, true) => Some(format!("{what} the difference is reversed")),
        (Some(share), false) => Some(format!(
            "{what} {} of the difference is gone",
            of_share(share)
        )),
        (None, false) => None,
    }
}

/// The command that removes these suspects only: `iolab why FILE --suspects reach,waiting`.
fn inquiry_into(suspects: &[Suspected]) -> String {
    let names: Vec<&str> = suspects.iter().map(|one| one.suspect.as_str()).collect();
    format!("iolab why FILE --suspects {}", names.join(","))
}

/// Results of interventions on suspects, with at most `named` suspects of each verdict.
pub(super) fn of_suspects(found: &Suspects, named: usize) -> String {
    let all = || found.suspects.iter();
    let names = || all().map(|one| short(&one.suspect)).collect();
    let list = |label: &str, items: Vec<String>| -> List { (label.to_owned(), items) };
    let lists = match found.verdict {
        CauseVerdict::Cause => vec![list("Cause", all().map(accused).collect())],
        CauseVerdict::Explains => vec![list("Explains", all().map(accused).collect())],
        CauseVerdict::Contributes => vec![list("Contributes", all().map(accused).collect())],
        CauseVerdict::Joint => {
            let without = all().find_map(without_joint);
            let without = without.map_or_else(String::new, |without| format!(": {without}"));
            let alone = match all().any(|one| one.with_others) {
                true => format!(
                    ". To measure without these alone: {}",
                    inquiry_into(&found.suspects)
                ),
                false => String::new(),
            };
            let note = format!("The difference remains without one of them{without}{alone}");
            vec![
                list("Joint cause", names()),
                list(&note, vec![String::new()]),
            ]
        }
        CauseVerdict::Cleared => {
            // A share above the margin is reported, although it is not the main cause.
            let has_none = |one: &&Suspected| one.share.is_none_or(|s| s.share.abs() <= MARGIN);
            let (none, some): (Vec<&Suspected>, Vec<_>) = all().partition(has_none);
            vec![
                list(
                    "Cleared",
                    none.into_iter().map(|one| short(&one.suspect)).collect(),
                ),
                list(
                    "Not the main cause",
                    some.into_iter().map(cleared).collect(),
                ),
            ]
        }
        CauseVerdict::CannotTell => {
            let needed = all().filter_map(|one| one.blocks_needed).max();
            let needed = needed.map_or_else(String::new, |needed| {
                blocks_for_verdict(needed, found.blocks)
            });
            let each = |one: &Suspected| match one.doubts.is_empty() {
                true => short(&one.suspect),
                false => format!("{} (but {})", short(&one.suspect), against(&one.doubts)),
            };
            // More blocks settle some of them only.
            let (open, rest): (Vec<_>, Vec<_>) = all().partition(|one| one.blocks_needed.is_some());
            vec![
                list(
                    &format!("Cannot tell{needed}"),
                    open.into_iter().map(each).collect(),
                ),
                list("Cannot tell", rest.into_iter().map(each).collect()),
            ]
        }
        CauseVerdict::NotTried => {
            let reasons = all().map(|one| {
                let why = one.untried.as_ref();
                let why = why.map(why_untried).unwrap_or_default();
                (why, short(&one.suspect))
            });
            let reasons = grouped(reasons).into_iter();
            reasons
                .map(|(why, names)| list(&format!("Not tried ({why})"), names))
                .collect()
        }
    };
    sentence("", lists, named)
}

/// Doubts that could make the same change as an intervention. Their sides are the cells with and without the
/// suspect, not the sides of the difference.
fn against(all: &[Doubt]) -> String {
    let of_one =
        |one: &Doubt| between_items(&[std::slice::from_ref(one)], ["with it", "without it"]);
    let each: Vec<String> = all.iter().map(of_one).collect();
    match each.as_slice() {
        [first, _, rest @ ..] => format!("{first}; and {} more", rest.len() + 1),
        one => one.concat(),
    }
}

/// The difference that suspects belong to, if the runs explain several: ` The difference: throughput at bs=64KiB
/// is 0.5 times that at bs=4KiB.`
pub(super) fn difference(first: &Analysis, runs: &[&Analysis]) -> String {
    let explained = |run: &&Analysis| run.inquiry.as_ref().map(|own| own.phenomenon.clone());
    let own = explained(&first);
    let is_other =
        |run: &&Analysis| explained(run).is_some_and(|other| Some(&other) != own.as_ref());
    match &own {
        Some(own) if runs.iter().any(is_other) => format!(" The difference: {own}."),
        _ => String::new(),
    }
}

/// The values of each key, in the order in which the keys occur first.
pub(crate) fn grouped<K: PartialEq, V>(all: impl Iterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// A cause with its share: `read-ahead: 84 % (80 to 88 %) of the difference is gone with sequential reads in
/// reverse order (1.1× lower)`.
fn accused(one: &Suspected) -> String {
    let what = short(&one.suspect);
    let change = Suspect::find(&one.suspect).map_or("", |suspect| suspect.change);
    let share = one.share.as_ref().map_or_else(String::new, of_share);
    if let Some(time) = one.request_time {
        let predicted = RatioShown::from((time.ratio, None)).factor();
        return format!(
            "{what}: {} + size / {}, fitted to {} sizes between, predicts {predicted}",
            format_ns(time.fixed_ns),
            Response::Throughput.format(time.mb_s),
            time.sizes
        );
    }
    if one.by_itself {
        return format!("{what}: without the other suspects it makes {share} of the difference");
    }
    let without = one.ratio_without.map_or_else(String::new, |ratio| {
        format!(" ({})", RatioShown::from((ratio, None)).factor())
    });
    match one.is_reversed {
        true => format!("{what}: with {change} the difference is reversed{without}"),
        false => format!("{what}: {share} of the difference is gone with {change}{without}"),
    }
}

/// A cleared suspect with its share: `few requests in flight (12 % (8 to 16 %) of the difference is gone)`.
fn cleared(one: &Suspected) -> String {
    let what = short(&one.suspect);
    match &one.share {
        None => what,
        // The difference is greater without the suspect.
        Some(share) if share.share <= -0.005 => {
            let more = Share {
                share: -share.share,
                interval: share.interval.map(|(low, high)| (-high, -low)),
            };
            format!(
                "{what} (without it the difference is {} greater)",
                of_share(&more)
            )
        }
        Some(share) => format!("{what} ({} of the difference is gone)", of_share(share)),
    }
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
fn of_share(share: &Share) -> String {
    let percent = |share: f64| format!("{:.0}", (100.0 * share).clamp(0.0, 100.0));
    let interval = share
        .interval
        .map(|(low, high)| (percent(low), percent(high)));
    let interval = interval.filter(|(low, high)| low != high);
    let interval = interval.map_or_else(String::new, |(low, high)| format!(" ({low} to {high} %)"));
    format!("{} %{interval}", percent(share.share))
}

/// The difference in the run that explains it: `1.02× higher (1.02× lower to 1.06× higher) in 12 blocks`.
fn here(found: &Reproduction) -> String {
    let blocks = counted(found.blocks, "block");
    let here = match (found.ratio, found.interval) {
        (Some(ratio), interval) => {
            let shown = RatioShown::from((ratio, interval));
            format!("{} in {blocks}", shown.in_words())
        }
        (None, _) => "no block with both sides".to_owned(),
    };
    match found.shorter_ns {
        None => here,
        Some(ns) => format!(
            "{here} of shorter trials ({})",
            exact_duration(Duration::from_nanos(ns))
        ),
    }
}

/// ` (about 25 blocks, here 20: increase --budget)`, if a verdict needs that many.
fn blocks_for_verdict(needed: usize, blocks: usize) -> String {
    match needed <= BLOCKS_MAX as usize {
        true => format!(" (about {needed} blocks, here {blocks}: increase --budget)"),
        false => format!(" (about {needed} blocks, and a run has at most {BLOCKS_MAX})"),
    }
}

/// `3.0 of 16 requests were in flight`.
fn why_untried(why: &WhyUntried) -> String {
    match why {
        WhyUntried::Planned(why) => obstacle(why),
        WhyUntried::NoTrial => "no trial without it succeeded".to_owned(),
        WhyUntried::LevelChanged { idle_ns } => format!(
            "the level of throughput still changed, with {} of idle time before each trial",
            exact_duration(Duration::from_nanos(*idle_ns))
        ),
        WhyUntried::Unchecked(check) => unchecked(*check).to_owned(),
        WhyUntried::NotRemoved {
            check,
            before,
            left,
        } => not_removed(*check, *before, *left),
    }
}

/// Unknown effect of an intervention, in words.
fn unchecked(check: Check) -> &'static str {
    match check {
        Check::InFlight => "how many requests were in flight is not known",
        Check::FewerFaults => "how many page faults there were is not known",
        Check::FewerDeviceIos => "how many I/Os of the device a request takes is not known",
        Check::LessCpuWait => "how long threads waited for a CPU that others used is not known",
        Check::FromStorage => "without it the bytes of a side still did not come from storage",
        Check::Settings | Check::SameVolume => "no trial without it succeeded",
    }
}

/// Remainder after an intervention, against the amount before it, in words.
fn not_removed(check: Check, before: f64, left: f64) -> String {
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
        Check::Settings | Check::FromStorage => unchecked(check).to_owned(),
    }
}

/// `no time within the budget: it takes 12min`.
pub(crate) fn obstacle(why: &Obstacle) -> String {
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

/// Verdicts that give a suspect a part in a difference, in the order of an answer.
const PARTS: [(CauseVerdict, &str); 4] = [
    (CauseVerdict::Cause, "cause"),
    (CauseVerdict::Joint, "joint cause (each is enough)"),
    (CauseVerdict::Explains, "explained"),
    (CauseVerdict::Contributes, "contributes"),
];

/// The result of an inquiry in a clause; `None` for other runs.
pub(crate) fn cause_in_short(analysis: &Analysis) -> Option<String> {
    of_claims(&claims_of(&[analysis]), NAMED_MAX)
}

fn of_claims(claims: &[Claim], named: usize) -> Option<String> {
    let found = claims.iter().find_map(Claim::reproduction)?;
    let unknown = || "cannot tell".to_owned();
    Some(match found.again {
        Again::NotReproduced => "not reproduced".to_owned(),
        Again::CannotTell => unknown(),
        Again::Reproduced => {
            let suspects = || claims.iter().filter_map(Claim::suspects);
            let parts = PARTS.iter().filter_map(|(verdict, label)| {
                let own = suspects().filter(|one: &&Suspects| one.verdict == *verdict);
                let names = own.flat_map(|one| &one.suspects);
                let names: Vec<String> = names.map(|one| short(&one.suspect)).collect();
                (!names.is_empty()).then(|| labelled(((*label).to_owned(), names), named))
            });
            match parts.collect::<Vec<_>>().join("; ") {
                found if !found.is_empty() => found,
                _ if is_answered(claims) => "none of the suspects is the cause".to_owned(),
                _ => unknown(),
            }
        }
    })
}

/// The result of an inquiry as lines: the answer, then a sentence for each claim that names this many suspects.
pub(crate) fn causes_in_lines(claims: &[Claim], run: &Analysis, named: usize) -> Vec<String> {
    let target = shortened(&run.target, TARGET_MAX);
    let answer = of_claims(claims, named);
    let answer = answer.map(|answer| format!("{} on {target}: {answer}", run.experiment));
    let (shown, _) = ordered(claims);
    let sentences = shown.into_iter().map(|claim| match claim.suspects() {
        Some(found) => of_suspects(found, named),
        None => finding(claim, &[run]).text,
    });
    answer.into_iter().chain(sentences).collect()
}
