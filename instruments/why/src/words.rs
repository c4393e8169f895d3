//! Text of `iolab why`: the difference to explain, what is tried, the result, and effects without two sides.

use std::path::Path;
use std::time::Duration;

use crate::phenomena::Unpaired;
use crate::phenomenon::{Fall, Phenomenon, PhenomenonKind, Tail, WhyUnpaired};
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{Claim, Groups};
use iolab_plan::experiment::{Inquiry, Untried};
use iolab_plan::suspect::{Obstacle, Suspect};
use iolab_report::findings::levels_of;
use iolab_report::findings::sentences::{self, finding, with_cell};
use iolab_report::layout::paragraph;
use iolab_report::overview::Input;
use iolab_report::ratio::RatioShown;
use iolab_workload::escape_control::{escape_control, shell_word};
use iolab_workload::response::Response;
use iolab_workload::trial::CacheState;
use iolab_workload::trial_description::levels_in_words;
use iolab_workload::units::{
    counted, exact_duration, format_bytes, format_ns, format_percent, significant,
};

/// A difference in words: `throughput with random access is 81× lower than with sequential access (4 KiB)`.
pub fn phenomenon(run: &Analysis, phenomenon: &Phenomenon) -> String {
    match &phenomenon.kind {
        PhenomenonKind::Cells => {}
        PhenomenonKind::Loads(fall) => return of_fall(run, phenomenon, fall),
        PhenomenonKind::Quantiles(tail) => return of_tail(run, phenomenon, tail),
    }
    let [base, other] = [phenomenon.base, phenomenon.other].map(|side| side.cell);
    let medians = [base, other].map(|cell| run.cell(cell)?.response);
    let [of_base, of_other] = medians.map(|found| found.map_or(0.0, |found| found.median));
    let in_words = |cell: i64, is_shared: bool| {
        let levels = run.factors.iter().zip(run.levels_of(cell));
        let others = run.levels_of(base).iter().zip(run.levels_of(other));
        let own = levels.zip(others.map(|(base, other)| base == other));
        let own = own.filter(|(_, same)| *same == is_shared);
        let spec = run.cell(cell).map(|cell| &cell.cell.spec);
        spec.map_or_else(String::new, |spec| {
            levels_in_words(spec, own.map(|(level, _)| level))
        })
    };
    let shared = match in_words(base, true) {
        none if none.is_empty() => none,
        shared => format!(" ({shared})"),
    };
    let expected = match phenomenon.expected {
        1.0 => String::new(),
        more => format!(", not {}", RatioShown::from((more, None)).factor()),
    };
    format!(
        "{} with {} is {} with {}{expected}{shared}",
        run.response,
        in_words(other, false),
        RatioShown::beside(&phenomenon.seen, (of_base, of_other)).than(),
        in_words(base, false),
    )
}

/// A fall in words, with its two loads: `throughput falls to 10 % after 23.4 MiB (12.3 MB/s to 1.23 MB/s,
/// 4 KiB); compared: 4.00 s with the first 11.8 MiB`.
fn of_fall(run: &Analysis, phenomenon: &Phenomenon, fall: &Fall) -> String {
    let cell = run.cell(phenomenon.base.cell);
    let cell = cell.and_then(|cell| levels_of(run, cell));
    let cell = cell.map_or_else(String::new, |levels| format!(", {levels}"));
    let [before, after] = fall
        .levels_mb_s
        .map(|level| Response::Throughput.format(level));
    format!(
        "{} falls to {} after {} ({before} to {after}{cell}); compared: {} with the first {}",
        Response::Throughput,
        format_percent(fall.factor),
        format_bytes(fall.after_bytes),
        format_ns(fall.whole.as_nanos() as f64),
        format_bytes(fall.first_bytes as f64),
    )
}

/// Slow requests in words: `p99 of latency with 4 KiB is 8.30× the median (2.13 ms against 257 us)`.
fn of_tail(run: &Analysis, phenomenon: &Phenomenon, tail: &Tail) -> String {
    let (p50, p99) = tail.quantiles;
    format!(
        "p99 of latency{} is {}× the median ({} against {})",
        with_cell(run, phenomenon.base),
        significant(p99 / p50),
        format_ns(p99),
        format_ns(p50),
    )
}

/// States that the two cells differ in one suspect and in nothing else, so that the run itself shows the cause.
pub fn by_construction(run: &Analysis, found: &Phenomenon, suspect: &Suspect) -> String {
    format!(
        "{}. The two cells differ in {} and in nothing else: the run itself shows the cause.",
        phenomenon(run, found),
        suspect.what
    )
}

/// Reason why no suspect is tried, for the middle of a sentence. Suspects that only lack time count as
/// removable.
pub fn none_tried(inquiry: &Inquiry) -> &'static str {
    let lacks_time = |one: &Untried| matches!(one.why, Obstacle::NoTime { .. });
    let count =
        |is: &dyn Fn(&Untried) -> bool| inquiry.untried.iter().filter(|one| is(one)).count();
    let is_left_out = |one: &Untried| one.why == Obstacle::NotAskedFor;
    if count(&is_left_out) == inquiry.untried.len().max(1) {
        return "none of --suspects has a part in this difference";
    }
    match count(&lacks_time) {
        0 => "no suspect can be removed",
        n if n == inquiry.untried.len() => "no suspect fits the budget",
        _ => "no suspect can be removed within the budget",
    }
}

/// The difference to explain, and the removed suspects.
pub fn plan(inquiry: &Inquiry) -> String {
    let tried: Vec<String> = inquiry
        .suspects()
        .map(|suspect| format!("{} ({})", suspect.name, suspect.change))
        .collect();
    let all = match tried.is_empty() {
        true => none_tried(inquiry).to_owned(),
        false => format!(
            "{}: {}",
            counted(tried.len() as u64, "suspect"),
            tried.join("; ")
        ),
    };
    let untried = inquiry
        .untried
        .iter()
        .map(|one| (sentences::obstacle(&one.why), one.suspect.as_str()));
    let untried = sentences::grouped(untried)
        .into_iter()
        .map(|(why, names)| format!("; not tried: {} ({why})", names.join(", ")));
    let untried: String = untried.collect();
    let length = |ns: Option<u64>| {
        let ns = ns.filter(|_| !tried.is_empty())?;
        Some(exact_duration(Duration::from_nanos(ns)))
    };
    let idle = length(inquiry.idle_ns).map_or_else(String::new, |idle| {
        format!("; each trial begins after {idle} of idle time, because a side changes its level")
    });
    let shorter = length(inquiry.shorter_ns).map_or_else(String::new, |time| {
        format!(
            "; trials are shortened to {time}, because the budget would allow too few longer ones"
        )
    });
    format!("{}; {all}{shorter}{idle}{untried}", inquiry.phenomenon)
}

/// Most lines of an answer on a screen of 80 columns or more, empty ones aside.
pub const CAUSE_LINES_MAX: usize = 10;

/// Most suspects of a verdict that are named.
const NAMED_MAX: usize = 12;

/// Number of columns from which an answer has at most that many lines.
const COLUMNS: u16 = 80;

/// The result of a run that explains a difference, on [`CAUSE_LINES_MAX`] lines at most: whether the difference
/// is reproduced, the part without explanation, causes with their shares, and cleared and untried suspects.
/// Names as many suspects of each verdict as there is room for.
pub fn answer(input: &Input, claims: &[Claim], width: u16) -> String {
    let of = |named: usize, width: u16| {
        let found = sentences::causes_in_lines(claims, input.run.analysis(), named);
        let mut found = found.iter();
        let first = found.next().map_or_else(String::new, |answer| {
            paragraph(&escape_control(answer), "", width) + "\n"
        });
        let rest = found.map(|line| paragraph(&escape_control(line), "", width));
        first + &rest.collect::<String>()
    };
    let lines = |text: &str| text.lines().filter(|line| !line.is_empty()).count();
    let fits = |named: &usize| lines(&of(*named, width.max(COLUMNS))) <= CAUSE_LINES_MAX;
    let named = (2..NAMED_MAX).rev().find(fits).unwrap_or(1);
    let text = of(named, width);
    // A file can hold texts of any length.
    match lines(&text) {
        all if all > CAUSE_LINES_MAX => {
            let first = text.split_inclusive('\n').take(CAUSE_LINES_MAX - 1);
            let first: String = first.collect();
            let more = counted((all - lines(&first)) as u64, "more line");
            format!("{first}({more})\n")
        }
        _ => text,
    }
}

/// Sentence on an effect of the run in `file` that has no two sides to compare.
pub fn unpaired(run: &Analysis, one: &Unpaired, file: &Path) -> String {
    match one {
        Unpaired::TwoGroups(groups) => of_groups(run, groups, file),
        Unpaired::Claim(claim, why) => {
            let (this, such) = match claim.level_change() {
                Some(_) => ("the change of throughput", "falls"),
                None => ("slow requests", "slow requests"),
            };
            let sentence = finding(claim, &[run]).text;
            format!("Cannot explain {this}. {sentence} {}.", reason(*why, such))
        }
    }
}

/// Reason why falls, or slow requests, are not explained, with advice.
fn reason(why: WhyUnpaired, what: &str) -> String {
    match why {
        WhyUnpaired::Rises => {
            format!("'iolab why' explains {what}. A second run shows whether throughput rises again")
        }
        WhyUnpaired::ReadsAndWrites => {
            format!("'iolab why' explains {what} of reads or of writes alone: measure both, each for as long (--set read_percent=0,100)")
        }
        WhyUnpaired::HasRate => {
            format!("'iolab why' explains {what} of cells without a rate: measure with --set rate=none")
        }
        WhyUnpaired::OwnBounds => {
            format!("'iolab why' explains {what} of trials that end by time or bytes, on space that was written before: measure such ones")
        }
        WhyUnpaired::SeveralCells => {
            "Several cells moved the bytes before it, and 'iolab why' cannot take apart what each has used up: measure one cell alone, and explain that run".to_owned()
        }
        WhyUnpaired::Preconditioned => {
            "--precondition made the state in which the run began, and trials of 'iolab why' do not begin in it: measure without --precondition, and explain that run".to_owned()
        }
    }
}

fn of_groups(run: &Analysis, groups: &Groups, file: &Path) -> String {
    let levels = groups.levels;
    let is_direct = |cell: &CellAnalysis| {
        let mut trials = cell.cell.spec.trials().into_iter();
        trials.any(|trial| trial.cache == CacheState::Direct)
    };
    let has_buffers = run.model.is_none() && run.cell(groups.most.cell).is_some_and(is_direct);
    let buffers = match has_buffers {
        true => {
            "; --set buffer_memory=contiguous,kernel shows whether the memory of buffers makes them"
        }
        false => "",
    };
    let more = match groups.cells.len() {
        0 | 1 => String::new(),
        n => format!(" (and of {})", counted(n as u64 - 1, "more cell")),
    };
    format!(
        "Cannot explain the two groups of trials{}{more}, {} around {} and the others around {}: 'iolab why' compares cells, and not trials of one. 'iolab plot {} --kind order' shows when each group occurs{buffers}.",
        with_cell(run, groups.most),
        format_percent(levels.low_share),
        run.response.format(levels.low_median),
        run.response.format(levels.high_median),
        shell_word(&file.to_string_lossy()),
    )
}
