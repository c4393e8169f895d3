//! Claims in words.

use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_analysis::claim::{
    Best, Candidate, CellId, Choice, Claim, Comparison, Contrast, Difference, Doubt, Effect,
    Estimate, LongTail, MARGIN, Standing,
};
use iolab_record::ServedBy;
use iolab_workload::access;
use iolab_workload::quantity::{counted, format_ns, significant};
use iolab_workload::trial::Pattern;
use iolab_workload::units::format_size;

use crate::findings::{Finding, FindingKind, Rule, capitalised, origin};

const COMPARISON: &str = "ratios within the blocks that both cells share (of medians where they share none), with intervals that hold for all comparisons of this kind in the run together in 95 %";
const BEST: &str = "ratios within the blocks that both cells share, with intervals that hold for all pairs together in 95 %";
const TAIL: &str = "the 99th percentile over the median of each trial, with intervals that hold for all cells together in 95 %";

/// A claim as a sentence, or two. `runs` are those that the claims were made of.
pub fn finding(claim: &Claim, runs: &[&Analysis]) -> Finding {
    let (text, basis) = match claim {
        Claim::Comparison(comparison) => (of_comparison(comparison, runs), COMPARISON),
        Claim::Best(curves) => (of_curves(curves, runs), BEST),
        Claim::LongTail(tail) => (of_tail(tail), TAIL),
    };
    Finding {
        rule: Rule {
            name: claim.kind().0,
            kind: FindingKind::Result,
            basis,
        },
        text,
    }
}

/// Claims that show nothing, one sentence for all levels of a factor.
pub(crate) fn nothings(claims: &[&Claim], runs: &[&Analysis]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for claim in claims {
        let Claim::Comparison(Comparison {
            contrast: Contrast::Levels { factor, base, .. },
            response,
            ..
        }) = claim
        else {
            found.push(finding(claim, runs));
            continue;
        };
        let alike: Vec<&Comparison> = claims
            .iter()
            .filter_map(|other| match other {
                Claim::Comparison(other) => Some(other),
                _ => None,
            })
            .filter(|other| matches!(&other.contrast, Contrast::Levels { factor: its, .. } if its == factor))
            .collect();
        if alike.len() == 1 {
            found.push(finding(claim, runs));
        } else if !told.contains(&factor.as_str()) {
            told.push(factor);
            found.push(Finding {
                text: levels_alike(factor, base, *response, &alike),
                ..finding(claim, runs)
            });
        }
    }
    found
}

/// `No difference in throughput was found between buffer_init=untouched and 5 other levels ...`
fn levels_alike(factor: &str, base: &str, response: Response, all: &[&Comparison]) -> String {
    let levels: Vec<&str> = all
        .iter()
        .filter_map(|one| match &one.contrast {
            Contrast::Levels { other, .. } => Some(other.as_str()),
            _ => None,
        })
        .collect();
    let effects = || all.iter().flat_map(|one| &one.effects);
    let widest = effects()
        .filter(|one| one.difference == Difference::NotFound)
        .max_by(|a, b| width(a).total_cmp(&width(b)));
    let detectable = widest.map_or_else(String::new, |effect| {
        let (low, high) = effect.estimate.interval.unwrap_or_default();
        format!(
            " A ratio outside {} to {} would have been found in all of them.",
            significant(low),
            significant(high)
        )
    });
    let open = effects()
        .filter(|one| one.difference == Difference::CannotTell)
        .count();
    let open = match open {
        0 => String::new(),
        n => format!(" Cannot tell in {}.", counted(n, "comparison")),
    };
    format!(
        "No difference in {response} was found between {factor}={base} and {} in {}.{detectable}{open}",
        levels.join(", "),
        counted(effects().count(), "comparison"),
    )
}

fn cell<'a>(runs: &[&'a Analysis], id: CellId) -> Option<&'a CellAnalysis> {
    let run = runs.get(id.run)?;
    run.cells.iter().find(|cell| cell.cell.id == id.cell)
}

/// ` at bs=4KiB, threads=2`; nothing where nothing varies.
fn at(held: &[(String, String)]) -> String {
    if held.is_empty() {
        return String::new();
    }
    let levels: Vec<String> = held
        .iter()
        .map(|(f, level)| format!("{f}={level}"))
        .collect();
    format!(" at {}", levels.join(", "))
}

/// `4.23 times (4.22 to 4.24)`.
fn times(estimate: &Estimate) -> String {
    let interval = estimate.interval.map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", significant(low), significant(high))
    });
    format!("{} times{interval}", significant(estimate.ratio))
}

/// The two sides of an effect, as nouns.
fn sides(contrast: &Contrast, effect: &Effect) -> (String, String) {
    let noun = |read_percent: u8| match read_percent {
        100 => "reads".to_owned(),
        0 => "writes".to_owned(),
        reads => format!("accesses ({reads} % reads)"),
    };
    match contrast {
        Contrast::Pattern { read_percent } => {
            let noun = noun(*read_percent);
            (format!("sequential {noun}"), format!("random {noun}"))
        }
        Contrast::Direction { pattern } => {
            let order = match pattern {
                Pattern::Seq => "sequential",
                _ => "random",
            };
            (format!("{order} reads"), format!("{order} writes"))
        }
        Contrast::Ordered { factor } | Contrast::Levels { factor, .. } => (
            format!("{factor}={}", effect.levels.0),
            format!("{factor}={}", effect.levels.1),
        ),
    }
}

/// `Random writes give 4.29 times (4.29 to 4.30) the throughput of random reads at bs=4KiB (346 MB/s against 80.7 MB/s)`.
fn ratio(comparison: &Comparison, effect: &Effect, runs: &[&Analysis]) -> String {
    let (base, other) = sides(&comparison.contrast, effect);
    let response = comparison.response;
    let (verb, one_level) = match (&comparison.contrast, response.is_time()) {
        (Contrast::Ordered { .. } | Contrast::Levels { .. }, false) => ("gives", true),
        (Contrast::Ordered { .. } | Contrast::Levels { .. }, true) => ("has", true),
        (_, false) => ("give", false),
        (_, true) => ("have", false),
    };
    let (of_base, of_other) = effect.medians;
    let origins = origins(runs, effect);
    let other = if one_level {
        other
    } else {
        capitalised(&other)
    };
    format!(
        "{other} {verb} {} the {response} of {base}{} ({} against {}{origins})",
        times(&effect.estimate),
        at(&effect.held),
        response.format(of_other),
        response.format(of_base),
    )
}

/// Where the bytes came from, unless it was the target for both.
fn origins(runs: &[&Analysis], effect: &Effect) -> String {
    let of = |id| cell(runs, id).map(origin).unwrap_or_default();
    match (of(effect.base), of(effect.other)) {
        (base, other) if base == other => other,
        (base, other) => {
            let named = |text: String| match text.is_empty() {
                true => " [device]".to_owned(),
                false => text,
            };
            format!(";{} against{}", named(other), named(base))
        }
    }
}

fn of_comparison(comparison: &Comparison, runs: &[&Analysis]) -> String {
    let mut text = extremes(comparison, runs);
    if text.is_empty() {
        return nothing(comparison, runs);
    }
    if comparison.effects.len() > 1 {
        text.push_str(&tally(comparison));
    }
    text.push_str(&doubted(comparison));
    text
}

/// The greatest effect of either direction, a sentence each; of ordered levels the greatest of all settings.
fn extremes(comparison: &Comparison, runs: &[&Analysis]) -> String {
    let greatest = |difference| {
        let of = comparison.of(difference);
        // Of equals the first.
        of.rev().max_by(|a, b| a.size().total_cmp(&b.size()))
    };
    let mut both: Vec<&Effect> = [Difference::Higher, Difference::Lower]
        .into_iter()
        .filter_map(greatest)
        .collect();
    both.sort_by(|a, b| b.size().total_cmp(&a.size()));
    // Beside a large effect a small one of the other sign is no news; the tally has it.
    let matters = |effect: &Effect| effect.estimate.ratio.ln().abs() > MARGIN.ln_1p();
    if both.len() > 1 && !matters(both[1]) {
        both.truncate(1);
    }
    let sentences: Vec<String> = both
        .iter()
        .map(|effect| ratio(comparison, effect, runs) + ".")
        .collect();
    sentences.join(" ")
}

/// ` Of 8 comparisons: 6 higher, 1 lower, 1 equivalent within 5 %.`
fn tally(comparison: &Comparison) -> String {
    let (higher, lower) = words(comparison.response);
    let parts: Vec<String> = [
        (Difference::Higher, higher.to_owned()),
        (Difference::Lower, lower.to_owned()),
        (
            Difference::Equivalent,
            format!("equivalent within {}", margin()),
        ),
        (
            Difference::NotFound,
            "without a difference found".to_owned(),
        ),
        (Difference::CannotTell, "cannot tell".to_owned()),
    ]
    .into_iter()
    .map(|(difference, words)| (comparison.of(difference).count(), words))
    .filter(|(n, _)| *n > 0)
    .map(|(n, words)| format!("{n} {words}"))
    .collect();
    let n = comparison.effects.len();
    format!(" Of {}: {}.", counted(n, "comparison"), parts.join(", "))
}

fn words(response: Response) -> (&'static str, &'static str) {
    match response.is_time() {
        true => ("longer", "shorter"),
        false => ("higher", "lower"),
    }
}

/// What the evidence holds against comparisons that would have been shown.
fn doubted(comparison: &Comparison) -> String {
    let with = comparison.of(Difference::CannotTell);
    let with: Vec<&Effect> = with.filter(|effect| !effect.doubts.is_empty()).collect();
    let Some(first) = with.first() else {
        return String::new();
    };
    let reasons: Vec<String> = first.doubts.iter().map(doubt).collect();
    let more = match with.len() {
        1 => String::new(),
        n => format!(" (and in {} more)", n - 1),
    };
    format!(
        " Cannot tell{}{more}: {}.",
        at_level(comparison, first),
        reasons.join("; ")
    )
}

/// Where an effect was measured, with the level of the ordered factor.
fn at_level(comparison: &Comparison, effect: &Effect) -> String {
    match &comparison.contrast {
        Contrast::Ordered { factor } => {
            let mut all = effect.held.clone();
            all.push((factor.clone(), effect.levels.1.clone()));
            at(&all)
        }
        _ => at(&effect.held),
    }
}

/// Levels above the least one.
fn more(factor: &str) -> String {
    match factor {
        "threads" | "ranks" | "hosts" => format!("more {factor}"),
        _ => format!("a larger {factor}"),
    }
}

/// `5 %`.
pub(crate) fn margin() -> String {
    format!("{} %", 100.0 * MARGIN)
}

/// A reason for doubt, in words.
fn doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::Disturbed { by, value } => format!("{} ({})", by.words(), by.format(*value)),
        Doubt::Preempted { per_second } => format!(
            "each worker was preempted {} times per second",
            significant(*per_second)
        ),
        Doubt::Suspended => "the machine was suspended during a trial".to_owned(),
        Doubt::ServedBy(ServedBy::Unknown) => {
            "the source of the bytes of one side is unknown".to_owned()
        }
        Doubt::ServedBy(other) => format!("one side was served by: {other}"),
        Doubt::TwoGroups { ratio } => format!(
            "the trials of one side form two groups, {} times apart",
            significant(*ratio)
        ),
    }
}

/// A comparison in which neither side is higher anywhere.
fn nothing(comparison: &Comparison, runs: &[&Analysis]) -> String {
    let Some(first) = comparison.effects.first() else {
        return String::new();
    };
    let (base, other) = sides(&comparison.contrast, first);
    let (base, other) = match &comparison.contrast {
        Contrast::Ordered { factor } => (base, more(factor)),
        _ => (base, other),
    };
    let response = comparison.response;
    let n = comparison.effects.len();
    let equivalent = comparison.of(Difference::Equivalent).count();
    let all = match n {
        1 => at(&first.held),
        n => format!(" in {}", counted(n, "comparison")),
    };
    if equivalent == n {
        return format!(
            "{} and {base} are equivalent in {response} within {}{all}.",
            capitalised(&other),
            margin()
        );
    }
    let found = comparison.of(Difference::NotFound).count();
    if found + equivalent == 0 {
        let doubted = doubted(comparison);
        let why = match doubted.is_empty() {
            true => format!(
                "Too few trials to compare the {response} of {other} with that of {base}{all}."
            ),
            false => {
                format!("Cannot compare the {response} of {other} with that of {base}.{doubted}")
            }
        };
        return why;
    }
    let widest = comparison
        .of(Difference::NotFound)
        .max_by(|a, b| width(a).total_cmp(&width(b)));
    let detectable = widest.map_or_else(String::new, |effect| {
        let (low, high) = effect.estimate.interval.unwrap_or_default();
        format!(
            " A ratio outside {} to {} would have been found{}.",
            significant(low),
            significant(high),
            match n {
                1 => String::new(),
                _ => format!("{} (the widest interval)", at_level(comparison, effect)),
            }
        )
    });
    let tally = if n > 1 {
        tally(comparison)
    } else {
        String::new()
    };
    let origin = origins(runs, first);
    format!(
        "No difference was found between the {response} of {other} and of {base}{all}{origin}.{detectable}{tally}{}",
        doubted(comparison)
    )
}

fn width(effect: &Effect) -> f64 {
    let (low, high) = effect.estimate.interval.unwrap_or((1.0, 1.0));
    high / low
}

/// The best size of the best curve, and how the others compare with it.
fn of_curves(curves: &[Best], runs: &[&Analysis]) -> String {
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
    let mut text = of_best(told, runs);
    if curves.len() > 1 {
        text.push_str(&others(curves, told));
    }
    text
}

/// `Highest throughput: random reads 1010 MB/s at bs=1MiB (not distinguishable: 16MiB); ...`
fn of_runs(curves: &[Best], runs: &[&Analysis]) -> String {
    // What the accesses themselves do not tell apart.
    let first = |best: &Best| {
        let id = best.candidates.first()?.cell;
        Some((
            access::in_words(cell(runs, id)?.cell.trial()),
            *runs.get(id.run)?,
        ))
    };
    let all: Vec<(String, &Analysis)> = curves.iter().filter_map(first).collect();
    let apart = |words: &str, run: &Analysis| {
        let alike: Vec<&Analysis> = all
            .iter()
            .filter(|(other, _)| other == words)
            .map(|(_, run)| *run)
            .collect();
        if alike.len() < 2 {
            String::new()
        } else if alike.iter().any(|other| other.target != run.target) {
            format!(" on {}", run.target)
        } else {
            format!(" ({})", run.experiment)
        }
    };
    let part = |best: &Best| {
        let top = best.candidates.get(best.best)?;
        let run = runs.get(top.cell.run)?;
        let others: Vec<&Candidate> = best.open().filter(|one| one.bs != top.bs).collect();
        let how = match others.iter().all(|one| one.standing == Standing::Near) {
            true => format!("within {}", margin()),
            false => "not distinguishable".to_owned(),
        };
        let others = match (best.shows(), others.is_empty()) {
            (false, _) => " (no size is shown to be best)".to_owned(),
            (true, true) => String::new(),
            (true, false) => format!(" ({how}: {})", ranges(best, &others)),
        };
        let cell = cell(runs, top.cell)?;
        Some((
            best.response,
            format!(
                "{}{} {} at bs={}{}{others}",
                access::in_words(cell.cell.trial()),
                apart(&access::in_words(cell.cell.trial()), run),
                best.response.format(top.median),
                format_size(top.bs),
                origin(cell)
            ),
        ))
    };
    let parts: Vec<(Response, String)> = curves.iter().filter_map(part).collect();
    let mut responses: Vec<Response> = Vec::new();
    for (response, _) in &parts {
        if !responses.contains(response) {
            responses.push(*response);
        }
    }
    let sentences = responses.into_iter().map(|response| {
        let word = if response.more_is_better() {
            "Highest"
        } else {
            "Lowest"
        };
        let own = parts.iter().filter(|(other, _)| *other == response);
        let own: Vec<&str> = own.map(|(_, part)| part.as_str()).collect();
        format!("{word} {response}: {}.", own.join("; "))
    });
    sentences.collect::<Vec<_>>().join(" ")
}

/// ` Best size in the 7 other settings: 64KiB in 5, 64KiB to 1MiB in 1, not shown in 1.`
fn others(curves: &[Best], told: &Best) -> String {
    let mut groups: Vec<(String, usize)> = Vec::new();
    let rest = curves.iter().filter(|best| !std::ptr::eq(*best, told));
    for best in rest {
        let open: Vec<&Candidate> = best.open().collect();
        let words = match best.shows() {
            true => ranges(best, &open),
            false => "not shown".to_owned(),
        };
        match groups.iter_mut().find(|(other, _)| *other == words) {
            Some((_, n)) => *n += 1,
            None => groups.push((words, 1)),
        }
    }
    groups.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let parts: Vec<String> = groups
        .iter()
        .map(|(words, n)| format!("{words} in {n}"))
        .collect();
    let n = curves.len() - 1;
    format!(
        " Best size in the {}: {}.",
        counted(n, "other setting"),
        parts.join(", ")
    )
}

fn of_best(best: &Best, runs: &[&Analysis]) -> String {
    let response = best.response;
    let Some(top) = best.candidates.get(best.best) else {
        return String::new();
    };
    let place = at(&best.held);
    let (word, worse) = match response.more_is_better() {
        true => ("highest", "lower"),
        false => ("lowest", "higher"),
    };
    if best
        .candidates
        .iter()
        .all(|one| one.standing == Standing::Unknown)
    {
        return format!(
            "Too few trials to say at which I/O size {response}{place} is {word} (median at {}: {}).",
            format_size(top.bs),
            response.format(top.median)
        );
    }
    if !best.shows() {
        return format!(
            "No I/O size is shown to give a {worse} {response} than another{place}.{}",
            doubtful(best)
        );
    }
    let origin = cell(runs, top.cell).map(origin).unwrap_or_default();
    let mut text = format!(
        "{} {response}{place}: {} at bs={}{origin}.",
        capitalised(word),
        response.format(top.median),
        format_size(top.bs),
    );
    let others: Vec<&Candidate> = best.open().filter(|one| one.bs != top.bs).collect();
    if !others.is_empty() {
        let how = match others.iter().all(|one| one.standing == Standing::Near) {
            true => format!("within {} of it", margin()),
            false => "not distinguishable from it".to_owned(),
        };
        text.push_str(&format!(
            " {}: {}.",
            capitalised(&how),
            ranges(best, &others)
        ));
    }
    text.push_str(&falls(best, worse));
    text.push_str(&doubtful(best));
    text
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
                times(&one.of_best?),
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
    let all: Vec<&Candidate> = best
        .candidates
        .iter()
        .filter(|one| one.standing == Standing::Doubtful)
        .collect();
    let Some(first) = all.first() else {
        return String::new();
    };
    let reasons: Vec<String> = first.doubts.iter().map(doubt).collect();
    format!(
        " Cannot tell at {}: {}.",
        ranges(best, &all),
        reasons.join("; ")
    )
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
    let words = ranges.iter().map(|(from, to)| match from == to {
        true => format_size(*from),
        false => format!("{} to {}", format_size(*from), format_size(*to)),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn of_tail(tail: &LongTail) -> String {
    let (p50, p99) = tail.quantiles;
    let others = match tail.cells {
        1 => String::new(),
        n => format!(" {n} cells have a p99 above 3 times the median."),
    };
    format!(
        "The 99th percentile of latency is {} times ({} to {}) the median{}: {} against {}.{others}",
        significant(tail.ratio),
        significant(tail.interval.0),
        significant(tail.interval.1),
        at(&tail.at),
        format_ns(p99),
        format_ns(p50),
    )
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
    let mut text = format!(
        "Highest throughput of {what} on {}: {}, {}.",
        access.target,
        setting(best),
        Response::Throughput.format(choice.throughput_mb_s),
    );
    match &choice.simplest {
        Some((id, estimate)) => text.push_str(&format!(
            " Simplest setting within {} of it: {}, {} that throughput.",
            margin(),
            setting(cell(runs, *id)?),
            times(estimate),
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
            basis: BEST,
        },
        text,
    })
}

/// `random reads, bs=4KiB, threads=2`.
fn setting(cell: &CellAnalysis) -> String {
    let trial = cell.cell.trial();
    let mut text = format!("{}, bs={}", access::in_words(trial), format_size(trial.bs));
    for (name, value) in [("threads", trial.threads), ("depth", trial.depth)] {
        if value > 1 {
            text.push_str(&format!(", {name}={value}"));
        }
    }
    if trial.skip > 0 {
        text.push_str(&format!(", skip={}", format_size(trial.skip)));
    }
    text
}
