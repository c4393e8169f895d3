//! Best sizes and ways, and settings to choose, in words.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{Best, Candidate, Standing};
use iolab_workload::quantity::exact_size;
use iolab_workload::trial_description;

use super::sentence::{List, sentence};
use super::{cell, doubts, has_several_targets, margin, quantity, with_held};
use crate::findings::{capitalised, levels_of, origin};
use crate::ratio::RatioShown;

/// Most sizes, or ranges of them, that are named for each standing.
const NAMED_MAX: usize = 3;
/// The best of the curves of a run, and the comparison of the others with its best size; for several runs, each
/// of them.
pub(super) fn of_curves(curves: &[Best], runs: &[&Analysis]) -> String {
    let run = |best: &Best| best.candidates.first().map(|one| one.cell.run);
    if curves
        .iter()
        .any(|best| run(best) != curves.first().and_then(run))
    {
        let each = curves.iter().filter_map(|best| {
            let subject = access(best, curves, runs)?;
            Some(of_best(best, &subject, runs, 1))
        });
        return each.collect::<Vec<String>>().join(" ");
    }
    let worth = |best: &&Best| {
        let top = best.candidates.get(best.best);
        top.map_or(f64::NEG_INFINITY, |top| best.response.worth(top.median))
    };
    let told = curves.iter().max_by(|a, b| {
        let order = a.shows().cmp(&b.shows());
        order.then(worth(a).total_cmp(&worth(b)))
    });
    told.map_or_else(String::new, |best| {
        let top = best.candidates.get(best.best);
        let held = with_held(&best.held, top.and_then(|top| cell(runs, top.cell)));
        of_best(best, &held, runs, NAMED_MAX)
    })
}

/// Words that distinguish a curve from the curves of other runs: ` of random reads on model:sata-ssd`.
fn access(best: &Best, curves: &[Best], runs: &[&Analysis]) -> Option<String> {
    let of = |best: &Best| {
        let id = best.candidates.get(best.best)?.cell;
        let words = trial_description::accesses_of_cell(&cell(runs, id)?.cell.spec);
        let target = match has_several_targets(runs) {
            true => format!(" on {}", runs.get(id.run)?.target),
            false => String::new(),
        };
        Some(format!(" of {words}{target}"))
    };
    let own = of(best)?;
    let alike = curves
        .iter()
        .filter(|other| of(other).as_ref() == Some(&own));
    let run = runs.get(best.candidates.first()?.cell.run)?;
    Some(match alike.count() {
        0 | 1 => own,
        _ => format!("{own} ({})", run.experiment),
    })
}

/// `Highest throughput: 500 MB/s at 64 MiB. Within 5 %: 1 MiB. Worse: 1.67× lower at 64 KiB.`
fn of_best(best: &Best, subject: &str, runs: &[&Analysis], named: usize) -> String {
    let Some(top) = best.candidates.get(best.best) else {
        return String::new();
    };
    let quantity = quantity(runs, top.cell);
    let (word, worse) = match best.response.more_is_better() {
        true => ("highest", "lower"),
        false => ("lowest", "higher"),
    };
    let (what, with) = match best.is_of_ways {
        true => ("way", "with"),
        false => ("I/O size", "at"),
    };
    let way = |one: &Candidate| levels_of(runs.get(one.cell.run)?, cell(runs, one.cell)?);
    let name = |one: &Candidate| match way(one).filter(|_| best.is_of_ways) {
        Some(way) => way,
        None => exact_size(one.bs),
    };
    let names = |all: &[&Candidate]| match best.is_of_ways {
        true => all.iter().map(|one| name(one)).collect(),
        false => ranges(best, all),
    };
    let origin = cell(runs, top.cell).map(origin).unwrap_or_default();
    let is_unknown = |one: &Candidate| one.standing == Standing::Unknown;
    let head = if best.candidates.iter().all(is_unknown) {
        format!(
            "Too few trials to tell which {what} gives the {word} {quantity}{subject} (median {with} {}: {})",
            name(top),
            best.response.format(top.median)
        )
    } else if !best.shows() {
        format!("No {what} is shown to give a {worse} {quantity} than another{subject}")
    } else {
        format!(
            "{} {quantity}{subject}: {} {with} {}{origin}",
            capitalised(word),
            value(best, top),
            name(top),
        )
    };
    let list = |label: String, all: &[&Candidate]| List {
        label,
        items: names(all),
    };
    let mut open = with_standing(best, Standing::Open);
    let in_each: Vec<&Candidate> = open
        .extract_if(.., |one| one.is_worse_in_each_block)
        .collect();
    if !best.shows() {
        open.clear();
    }
    let blocks = in_each.iter().filter_map(|one| one.of_best?.blocks).min();
    let in_each_block = format!(
        "{} in each of {} blocks ({} would show it)",
        capitalised(worse),
        blocks.unwrap_or(0),
        best.blocks_needed
    );
    // The neighbours of the best size come first.
    let distance = |one: &Candidate| {
        let own = best
            .candidates
            .iter()
            .position(|other| other.cell == one.cell);
        own.map_or(0, |own| own.abs_diff(best.best))
    };
    let mut nearest = with_standing(best, Standing::Worse);
    nearest.sort_by_key(|one| distance(one));
    let ratios = nearest.iter().filter_map(|one| {
        let shown = RatioShown::beside(&one.of_best?, (top.median, one.median));
        Some(format!("{} {with} {}", shown.factor(), name(one)))
    });
    let mut lists = vec![
        list(
            format!("Within {} of it", margin()),
            &with_standing(best, Standing::Near),
        ),
        list("Not shown to differ".to_owned(), &open),
        list(in_each_block, &in_each),
        List {
            label: "Worse".to_owned(),
            items: ratios.collect(),
        },
    ];
    let doubtful = with_standing(best, Standing::Doubtful);
    for same in doubtful.chunk_by(|a, b| doubts(&a.doubts) == doubts(&b.doubts)) {
        let why = same
            .first()
            .map_or_else(String::new, |one| doubts(&one.doubts));
        lists.push(list(format!("Cannot tell ({why})"), same));
    }
    sentence(&head, lists, named)
}

/// The other candidates with this standing.
fn with_standing(best: &Best, standing: Standing) -> Vec<&Candidate> {
    let all = best.candidates.iter().enumerate();
    let own = all.filter(|(i, one)| *i != best.best && one.standing == standing);
    own.map(|(_, one)| one).collect()
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

/// Sizes as ranges of neighbours: `64 KiB to 1 MiB`, `16 MiB`. The best size may lie within a range without being
/// one of the sizes.
fn ranges(best: &Best, sizes: &[&Candidate]) -> Vec<String> {
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
        true => exact_size(*from),
        false => format!("{} to {}", exact_size(*from), exact_size(*to)),
    });
    words.collect()
}
