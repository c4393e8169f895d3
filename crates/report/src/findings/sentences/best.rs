//! Best sizes, and settings to choose, in words.

use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::claim::{Best, Candidate, Choice, Estimate, MARGIN, Standing};
use iolab_workload::trial::TrialSpec;
use iolab_workload::trial_description;
use iolab_workload::units::format_size;

use super::{and_more, at, cell, has_several_targets, in_cell, margin, quantity, times_of, untold};
use crate::findings::{Finding, FindingKind, Rule, capitalised, origin};
use crate::ratio;

/// What a choice rests on.
const CHOICE: &str = "ratios within the blocks that both cells share (of medians across runs), with intervals that hold for all cells of the access together in 95 %";

/// The best size of the best curve, and how the others compare with it.
pub(super) fn of_curves(curves: &[Best], runs: &[&Analysis]) -> String {
    let worth = |best: &&Best| {
        let top = best.candidates.get(best.best);
        top.map_or(f64::NEG_INFINITY, |top| best.response.worth(top.median))
    };
    let shown: Vec<&Best> = curves.iter().filter(|best| best.shows()).collect();
    let told = match shown.is_empty() {
        true => curves.iter().max_by(|a, b| worth(a).total_cmp(&worth(b))),
        false => shown
            .iter()
            .copied()
            .max_by(|a, b| worth(a).total_cmp(&worth(b))),
    };
    let Some(told) = told else {
        return String::new();
    };
    let run = |best: &Best| best.candidates.first().map(|one| one.cell.run);
    if curves.iter().any(|best| run(best) != run(told)) {
        return of_runs(curves, runs);
    }
    of_best(told, runs)
}

/// `Highest throughput: random reads 1010 MB/s at bs=1MiB (not shown to differ: 16MiB); ...`, of several targets a sentence for each:
/// `Highest throughput on model:sata-ssd: ...`.
fn of_runs(curves: &[Best], runs: &[&Analysis]) -> String {
    let access = |best: &Best| {
        let id = best.candidates.get(best.best)?.cell;
        let cell = cell(runs, id)?;
        Some((
            trial_description::accesses_of_cell(&cell.cell.spec),
            *runs.get(id.run)?,
        ))
    };
    let all: Vec<(String, &Analysis)> = curves.iter().filter_map(access).collect();
    let part = |best: &Best| {
        let (words, run) = access(best)?;
        let top = best.candidates.get(best.best)?;
        // The experiment, where the access itself does not tell two curves of a target apart.
        let is_alike =
            |(other, of): &&(String, &Analysis)| *other == words && of.target == run.target;
        let apart = match all.iter().filter(is_alike).count() {
            0 | 1 => String::new(),
            _ => format!(" ({})", run.experiment),
        };
        let place = match has_several_targets(runs) {
            true => format!(" on {}", run.target),
            false => String::new(),
        };
        let (word, _) = superlative(best);
        let subject = format!("{} {}{place}", capitalised(word), quantity(runs, top.cell));
        let text = format!(
            "{words}{apart} {} at bs={}{}{}",
            value(best, top),
            format_size(top.bs),
            origin(cell(runs, top.cell)?),
            beside(best),
        );
        Some((subject, text))
    };
    let parts: Vec<(String, String)> = curves.iter().filter_map(part).collect();
    let mut subjects: Vec<&String> = Vec::new();
    for (subject, _) in &parts {
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    let sentences = subjects.into_iter().map(|subject| {
        let own = parts.iter().filter(|(other, _)| other == subject);
        let own: Vec<&str> = own.map(|(_, part)| part.as_str()).collect();
        format!("{subject}: {}.", own.join("; "))
    });
    sentences.collect::<Vec<_>>().join(" ")
}

/// ` (within 5 %: 4MiB; not shown to differ: 16MiB)`: how the other sizes of a curve compare with its best one, in short.
fn beside(best: &Best) -> String {
    if !best.shows() {
        return " (no size is shown to be best)".to_owned();
    }
    let (_, worse) = superlative(best);
    let (lower, blocks) = worse_in_each_block(best);
    let others = [
        (
            format!("within {}", margin()),
            with_standing(best, Standing::Near),
        ),
        ("not shown to differ".to_owned(), not_shown(best)),
        (
            format!("{worse} in each of {blocks} blocks, too few to show it"),
            lower,
        ),
    ];
    let others = others.iter().filter(|(_, sizes)| !sizes.is_empty());
    let others = others.map(|(how, sizes)| format!("{how}: {}", ranges(best, sizes)));
    let others: Vec<String> = others.collect();
    match others.is_empty() {
        true => String::new(),
        false => format!(" ({})", others.join("; ")),
    }
}

/// What the best one is, and what others are: `highest`, `lower`.
fn superlative(best: &Best) -> (&'static str, &'static str) {
    match best.response.more_is_better() {
        true => ("highest", "lower"),
        false => ("lowest", "higher"),
    }
}

fn of_best(best: &Best, runs: &[&Analysis]) -> String {
    let Some(top) = best.candidates.get(best.best) else {
        return String::new();
    };
    let quantity = quantity(runs, top.cell);
    let place = at(&best.held);
    let (word, worse) = superlative(best);
    if best
        .candidates
        .iter()
        .all(|one| one.standing == Standing::Unknown)
    {
        return format!(
            "Too few trials to tell which I/O size gives the {word} {quantity}{place} (median at {}: {}).",
            format_size(top.bs),
            best.response.format(top.median)
        );
    }
    if !best.shows() {
        return format!(
            "No I/O size is shown to give a {worse} {quantity} than another{place}.{}{}",
            few_blocks(best, worse, runs),
            doubtful(best)
        );
    }
    let origin = cell(runs, top.cell).map(origin).unwrap_or_default();
    let (value, size) = (value(best, top), format_size(top.bs));
    let mut text = match best.held.is_empty() {
        true => format!(
            "{} {quantity}: {value} at bs={size}{origin}.",
            capitalised(word)
        ),
        // Of this setting: that it is higher than in others was not tested.
        false => format!(
            "{}, {quantity} is {word} at bs={size}: {value}{origin}.",
            capitalised(place.trim_start())
        ),
    };
    let near = with_standing(best, Standing::Near);
    if !near.is_empty() {
        text.push_str(&format!(
            " Within {} of it: {}.",
            margin(),
            ranges(best, &near)
        ));
    }
    let open = not_shown(best);
    if !open.is_empty() {
        text.push_str(&format!(
            " Not shown to be {worse}: {}.",
            ranges(best, &open)
        ));
    }
    text.push_str(&few_blocks(best, worse, runs));
    text.push_str(&falls(best, worse));
    text.push_str(&doubtful(best));
    text
}

/// ` Lower than at 1MiB in each of 9 blocks, too few to show it for all pairs of sizes (13 are needed: --set trials_min=13): 64KiB to 256KiB.`
fn few_blocks(best: &Best, worse: &str, runs: &[&Analysis]) -> String {
    let (sizes, blocks) = worse_in_each_block(best);
    let (false, Some(top)) = (sizes.is_empty(), best.candidates.get(best.best)) else {
        return String::new();
    };
    let needed = best.blocks_needed;
    // Rounds end by their own rule.
    let steady = runs.get(top.cell.run).and_then(|run| run.steady.as_ref());
    let how = match steady.is_some_and(|steady| steady.is_of_cells()) {
        true => String::new(),
        false => format!(": --set trials_min={needed}"),
    };
    format!(
        " {} than at {} in each of {blocks} blocks, too few to show it for all pairs of sizes ({needed} are needed{how}): {}.",
        capitalised(worse),
        format_size(top.bs),
        ranges(best, &sizes)
    )
}

/// The candidates that are worse than the best one in each block, without enough of these to show it, and the fewest blocks that one of
/// them shares with it.
fn worse_in_each_block(best: &Best) -> (Vec<&Candidate>, usize) {
    let all = best.candidates.iter();
    let sizes: Vec<&Candidate> = all.filter(|one| one.is_worse_in_each_block).collect();
    let blocks = sizes.iter().filter_map(|one| one.of_best?.blocks).min();
    (sizes, blocks.unwrap_or(0))
}

/// The candidates that may be as good as the best one.
fn not_shown(best: &Best) -> Vec<&Candidate> {
    let mut open = with_standing(best, Standing::Open);
    open.retain(|one| !one.is_worse_in_each_block);
    open
}

/// The candidates that compare so with the best one, without that.
fn with_standing(best: &Best, standing: Standing) -> Vec<&Candidate> {
    let all = best.candidates.iter().enumerate();
    let own = all.filter(|(i, one)| *i != best.best && one.standing == standing);
    own.map(|(_, one)| one).collect()
}

/// Which of the ways that an experiment names is fastest: `Highest IOPS of 5 ways: ...`.
pub(super) fn of_ways(ways: &Best, run: &Analysis, runs: &[&Analysis]) -> String {
    let (word, worse) = superlative(ways);
    let n = ways.candidates.len();
    let Some(top) = ways.candidates.get(ways.best) else {
        return String::new();
    };
    let quantity = quantity(runs, top.cell);
    if !ways.shows() {
        return format!(
            "None of the {n} ways is shown to give a {worse} {quantity} than the best one.{}",
            doubtful_ways(ways, run)
        );
    }
    let list = |all: &[&Candidate]| {
        let each: Vec<String> = all.iter().map(|one| in_cell(run, one.cell)).collect();
        each.join("; ")
    };
    let origin = cell(runs, top.cell).map(origin).unwrap_or_default();
    let mut text = format!(
        "{} {quantity} of {n} ways: {} with {}{origin}.",
        capitalised(word),
        value(ways, top),
        in_cell(run, top.cell)
    );
    let (in_each_block, blocks) = worse_in_each_block(ways);
    for (own, how) in [
        (
            with_standing(ways, Standing::Near),
            format!("Within {} of it", margin()),
        ),
        (not_shown(ways), format!("Not shown to be {worse}")),
        (
            in_each_block,
            format!(
                "{} in each of {blocks} blocks, too few to show it for all pairs ({} are needed)",
                capitalised(worse),
                ways.blocks_needed
            ),
        ),
    ] {
        if !own.is_empty() {
            text.push_str(&format!(" {how}: {}.", list(&own)));
        }
    }
    let lower = with_standing(ways, Standing::Worse);
    let parts = lower.iter().filter_map(|one| {
        Some(format!(
            "{} with {}",
            times_worse(&one.of_best?),
            in_cell(run, one.cell)
        ))
    });
    let parts: Vec<String> = parts.collect();
    if !parts.is_empty() {
        text.push_str(&format!(" {}: {}.", capitalised(worse), parts.join("; ")));
    }
    text + &doubtful_ways(ways, run)
}

/// What keeps ways from being called worse.
fn doubtful_ways(ways: &Best, run: &Analysis) -> String {
    let place =
        |first: &Candidate, alike: &[&Candidate]| in_cell(run, first.cell) + &and_more(alike);
    why_doubtful(ways, place).map_or_else(String::new, |why| format!(" Cannot tell with {why}"))
}

/// `822 MB/s`, or `99.1 MB/s in some trials and 1545 MB/s in the others`.
fn value(best: &Best, one: &Candidate) -> String {
    let format = |value| best.response.format(value);
    match one.groups {
        None => format(one.median),
        Some((low, high)) => format!(
            "{} in some trials and {} in the others",
            format(low),
            format(high)
        ),
    }
}

/// `0.3 times (0.28 to 0.31)`, `1/34.5 (1/35.9 to 1/32.1) of it`; where the ratio itself lies within the margin, that the interval does not: such a size is not among those
/// within it.
fn times_worse(estimate: &Estimate) -> String {
    let note = match (1.0 - MARGIN..=1.0 + MARGIN).contains(&estimate.ratio) {
        true => format!("; not shown to be within {}", margin()),
        false => String::new(),
    };
    ratio::times_of_that(ratio::of(estimate), &note, "it")
}

/// The sizes on either side of the best ones that are shown to be worse.
fn falls(best: &Best, worse: &str) -> String {
    let is_worse = |one: &&Candidate| one.standing == Standing::Worse && one.of_best.is_some();
    let all: Vec<&Candidate> = best.candidates.iter().filter(is_worse).collect();
    let below = best.candidates[..best.best].iter().rev().find(is_worse);
    let above = best.candidates[best.best..].iter().find(is_worse);
    let told: Vec<&Candidate> = [below, above].into_iter().flatten().collect();
    let parts: Vec<String> = told
        .iter()
        .filter_map(|one| {
            Some(format!(
                "{} at {}",
                times_worse(&one.of_best?),
                format_size(one.bs)
            ))
        })
        .collect();
    let more = match all.len() - told.len() {
        0 => String::new(),
        n => format!(", and at {n} more"),
    };
    match parts.is_empty() {
        true => String::new(),
        false => format!(" {}: {}{more}.", capitalised(worse), parts.join(", ")),
    }
}

/// What keeps sizes from being called worse.
fn doubtful(best: &Best) -> String {
    let place = |_: &Candidate, alike: &[&Candidate]| ranges(best, alike);
    why_doubtful(best, place).map_or_else(String::new, |why| format!(" Cannot tell at {why}"))
}

/// See [`untold`].
fn why_doubtful<'a>(
    best: &'a Best,
    place: impl FnOnce(&'a Candidate, &[&'a Candidate]) -> String,
) -> Option<String> {
    let all = best.candidates.iter();
    let all: Vec<&Candidate> = all
        .filter(|one| one.standing == Standing::Doubtful)
        .collect();
    untold(&all, |one| &one.doubts, place)
}

/// Sizes as ranges of neighbours: `64KiB to 1MiB, 16MiB`. The best size lies within a range even where it is not one of them.
fn ranges(best: &Best, sizes: &[&Candidate]) -> String {
    let is_in = |one: &Candidate| sizes.iter().any(|other| other.bs == one.bs);
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let mut continues = false;
    for (i, one) in best.candidates.iter().enumerate() {
        let own = is_in(one);
        match (own, continues, ranges.last_mut()) {
            (true, true, Some(last)) => last.1 = one.bs,
            (true, ..) => ranges.push((one.bs, one.bs)),
            (false, ..) => {}
        }
        continues = own || continues && i == best.best;
    }
    // A bare number of bytes is a size in a command only.
    let size = |bytes: u64| match bytes < 1024 {
        true => format!("{bytes} B"),
        false => format_size(bytes),
    };
    let words = ranges.iter().map(|(from, to)| match from == to {
        true => size(*from),
        false => format!("{} to {}", size(*from), size(*to)),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Which setting to choose for a kind of access.
pub fn choice(choice: &Choice, runs: &[&Analysis]) -> Option<Finding> {
    let best = cell(runs, choice.best)?;
    let access = &choice.access;
    let what = match access.read_percent {
        100 => format!("reads (cache={})", access.cache),
        0 => format!("writes (sync={}, cache={})", access.sync, access.cache),
        share => format!(
            "accesses ({share} % reads, sync={}, cache={})",
            access.sync, access.cache
        ),
    };
    // Where either has several requests in flight, both say so.
    let simplest = choice.simplest.as_ref().and_then(|(id, _)| cell(runs, *id));
    let is_parallel = [Some(best), simplest]
        .into_iter()
        .flatten()
        .any(|cell| cell.cell.trial().in_flight_of_all() > 1);
    let of_one_trial = match best.values.len() {
        1 => " in one trial",
        _ => "",
    };
    let mut text = format!(
        "Highest throughput of {what} on {}: {}, {}{of_one_trial}.",
        access.target,
        setting(best.cell.spec.only_trial()?, is_parallel),
        Response::Throughput.format(choice.throughput_mb_s),
    );
    match &choice.simplest {
        Some((id, estimate)) => text.push_str(&format!(
            " Simplest setting within {} of it: {}, {} that throughput.",
            margin(),
            setting(cell(runs, *id)?.cell.spec.only_trial()?, is_parallel),
            times_of(estimate),
        )),
        None => text.push_str(&format!(
            " No simpler setting is shown to be within {} of it.",
            margin()
        )),
    }
    Some(Finding {
        rule: Rule {
            name: "choice",
            kind: FindingKind::Result,
            basis: CHOICE,
        },
        text,
    })
}

/// `random reads, bs=4KiB, threads=2`.
fn setting(trial: &TrialSpec, is_parallel: bool) -> String {
    let size = match &trial.bs_mix {
        None => format!("bs={}", format_size(trial.bs)),
        Some(mix) => format!("bs_mix={mix}"),
    };
    let mut text = format!("{}, {size}", trial_description::in_words(trial));
    let ranks = trial.workers() / trial.threads.max(1);
    let parallel = [
        ("ranks", ranks),
        ("threads", trial.threads),
        ("depth", trial.depth),
    ];
    for (name, value) in parallel {
        if is_parallel && (name != "ranks" || ranks > 1) {
            text.push_str(&format!(", {name}={value}"));
        }
    }
    if trial.skip > 0 {
        text.push_str(&format!(", skip={}", format_size(trial.skip)));
    }
    text
}
