//! Rounds until a steady state in words.

use iolab_analysis::analysis::{Analysis, SteadyAnalysis};
use iolab_analysis::claim::{Outside, Rounds, RoundsDoubts, RoundsState, TrackedState};
use iolab_plan::precondition::Round;
use iolab_record::EndedBy;
use iolab_stats::Steadiness;
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::{counted, format_percent_of_whole, significant};

use super::sentence::beside_limit;
use super::with_cell;

/// Whether rounds came to a steady state.
pub(super) fn of_rounds(found: &Rounds, run: &Analysis) -> String {
    let outside = found.outside.as_ref();
    let outside = outside.map_or_else(String::new, |found| outside_in_words(found, run));
    state(found, run) + &outside
}

fn state(found: &Rounds, run: &Analysis) -> String {
    let made = counted(found.rounds as u64, "round");
    let what = match found.asked.round {
        Round::Cells => "",
        Round::Writes(_) => " of random writes before the first trial",
    };
    let asked = &found.asked;
    let worst = found.worst.and_then(|place| found.tracked.get(place));
    let window = worst
        .and_then(|worst| Some(window(found, worst, worst.steadiness?, run)))
        .unwrap_or_default();
    let more = match (found.ended_by, asked.round) {
        (Some(EndedBy::Budget), Round::Cells) => "A larger --budget",
        (Some(EndedBy::Fills), Round::Cells) => "More fills=N in --precondition",
        _ => "More rounds=N in --precondition",
    };
    match &found.state {
        RoundsState::Steady => format!("{} after {made}{what}: {window}.", steady(found)),
        RoundsState::Alike(doubts) => format!(
            "After {made}{what} the last {} are alike; not shown to be a steady state: {}. Here {window}.",
            asked.window,
            doubts_in_words(doubts)
        ),
        RoundsState::NotSteady => {
            format!("NOT steady after {made}{what}: {window}. {more} may reach it.")
        }
        RoundsState::TooFew => format!(
            "Cannot tell whether it is steady: {} of {} of a window{what}. {more} helps.",
            found.judged,
            counted(u64::from(asked.window), "round")
        ),
        RoundsState::LacksValues => format!(
            "Cannot tell whether it is steady after {made}{what}: a tracked cell lacks values of {}.",
            run.quantity()
        ),
        RoundsState::Unended => format!(
            "The run did not end by its rounds: {made} complete, no window was chosen, and the numbers are from all trials."
        ),
    }
}

/// ` The trials of such writes lie outside of that range: 17406 IOPS with 4 KiB, against 174 in the rounds.`
fn outside_in_words(found: &Outside, run: &Analysis) -> String {
    format!(
        " The trials of such writes lie outside of that range: {} IOPS{}, against {} in the rounds. They did not measure the state that was prepared.",
        significant(found.iops),
        with_cell(run, found.cell),
        significant(found.rounds_iops)
    )
}

/// Name of steady rounds: only a standard's test, with its limits and cells, has a steady state.
fn steady(found: &Rounds) -> &'static str {
    match found.is_by_standard {
        true => "Steady state",
        false => "Steady by the limits asked",
    }
}

/// Doubts about rounds in words: `1.5 % of the region was written before them; 2 tracked cells were disturbed`.
fn doubts_in_words(doubts: &RoundsDoubts) -> String {
    let written = doubts.written.map(|share| {
        format!(
            "{} of the region was written before them",
            format_percent_of_whole(share)
        )
    });
    let cells = [
        (doubts.changing, "with changing throughput within trials"),
        (doubts.cached, "with writes left in a cache of the storage"),
        (doubts.disturbed, "disturbed"),
        (doubts.suspended, "suspended during a trial"),
    ];
    let cells = cells.into_iter().filter(|(n, _)| *n > 0);
    let cells = cells.map(|(n, what)| format!("{} {what}", counted(n as u64, "tracked cell")));
    let all: Vec<String> = written.into_iter().chain(cells).collect();
    all.join("; ")
}

/// `steady after 8 rounds`: what rounds came to, in a few words.
pub(crate) fn state_in_short(analysis: &Analysis, steady: &SteadyAnalysis) -> String {
    let rounds = counted(steady.rounds as u64, "round");
    match RoundsState::of(analysis, steady) {
        RoundsState::Steady => format!("steady after {rounds}"),
        RoundsState::Alike(_) => {
            format!(
                "not shown to be in a steady state after {rounds}, although the last ones are alike"
            )
        }
        RoundsState::NotSteady => format!("not steady after {rounds}"),
        RoundsState::TooFew | RoundsState::LacksValues | RoundsState::Unended => {
            format!("not judged after {rounds}")
        }
    }
}

/// `over the last 5, IOPS with 4 KiB ranges over 3.1 % of its mean (20 % allowed) with a slope of 1.0 % (10 % allowed)`.
fn window(found: &Rounds, worst: &TrackedState, steady: Steadiness, run: &Analysis) -> String {
    let subject = match (worst.cell, &worst.target) {
        (Some(cell), _) => format!("{}{}", run.quantity(), with_cell(run, cell)),
        (None, Some(target)) => format!("IOPS on {}", escape_control(target)),
        (None, None) => "IOPS".to_owned(),
    };
    let of_several = match found.tracked.len() {
        0 | 1 => String::new(),
        n if worst.cell.is_some() => format!(", the least steady of {n} tracked cells,"),
        n => format!(", the least steady of {n} targets,"),
    };
    let (range, most) = beside_limit(steady.range, found.asked.range);
    let (slope, steepest) = beside_limit(steady.slope, found.asked.slope);
    format!(
        "over the last {}, {subject}{of_several} ranges over {range} of its mean ({most} allowed) with a slope of {slope} ({steepest} allowed)",
        found.asked.window,
    )
}
