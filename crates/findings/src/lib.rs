//! iolab-findings: what was found, in plain sentences: one rule, one function, from the analysis alone.

mod agreement;
mod basis;
mod circumstances;
mod concurrency;
mod course;
pub mod digest;
mod direction;
pub mod interpretation;
mod limits;
mod optimal;
mod pace;
mod peers;
mod preparation;
mod programs;
mod random;
mod scaling;
mod shape;
mod sync;
mod tail;
mod timeline;
pub mod trust;
mod verified;

pub use agreement::{agreement, overall, tally};
pub use basis::Kind;
pub use circumstances::{
    cpu_contended, not_durable, other_traffic, read_ahead, requests_in_pieces, requests_split,
    suspended, write_back_owed,
};
pub use concurrency::{exceeds_ceiling, serialised};
pub use course::{dependence, drift, steady, two_groups};
pub(crate) use course::{dependent_cells, drifting_cells};
pub use direction::writes_against_reads;
use iolab_spec::quantity::significant;
use iolab_stats::Ratio;
pub use limits::{limits, no_given_load, one_cache_state, one_place, untouched};
pub use optimal::optimal_pattern;
pub use pace::{load, rate_not_held};
pub use peers::{gaps, peers};
pub use preparation::untouched_buffers;
pub use programs::programs;
pub use random::random_against_sequential;
pub(crate) use random::{Pair, pairs};
pub use scaling::scaling;
pub use shape::{bends, best_sizes, fixed_costs};
pub use sync::cost_of_sync;
pub(crate) use sync::{Pair as SyncPair, sync_pairs};
pub use tail::{tail, tail_unknown};
pub use timeline::{level_over_run, level_within_trials};
pub use verified::verified;

use iolab_analysis::analysis::{Analysis, CellAnalysis, Flag, Response};
use iolab_analysis::curve::{Curve, Point, by_size};
use iolab_analysis::knots::Bends;
use iolab_plan::cells::label;
use iolab_record::{EndedBy, RunStatus, ServedBy};
use iolab_spec::quantity::format_percent;
use iolab_spec::units::format_size;

/// How much of the best a size must reach to lie on the plateau.
const PLATEAU: f64 = 0.95;

/// One sentence or two, and the rule that wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// What was found.
    pub text: String,
}

/// What says something of one kind of a run, or nothing.
type Rule<'a> = &'a dyn Fn(&Analysis) -> Vec<Finding>;

/// All that can be said of one run whose curves have these bends.
pub fn findings(analysis: &Analysis, found: &Bends) -> Vec<Finding> {
    let bends = |analysis: &Analysis| bends(analysis, found);
    let rules: &[Rule<'_>] = &[
        &unfinished,
        &verified,
        &gaps,
        &peers,
        &a_model,
        &not_the_device,
        &suspended,
        &other_traffic,
        &cpu_contended,
        &requests_split,
        &requests_in_pieces,
        &read_ahead,
        &write_back_owed,
        &not_durable,
        &rate_not_held,
        &serialised,
        &exceeds_ceiling,
        &load,
        &best_size,
        &best_sizes,
        &plateau,
        &bends,
        &fixed_costs,
        &cost_of_skipping,
        &cost_of_sync,
        &writes_against_reads,
        &untouched_buffers,
        &scaling,
        &tail,
        &programs,
        &level_over_run,
        &level_within_trials,
        &steady,
        &drift,
        &dependence,
        &two_groups,
        &below_precision,
        &tail_unknown,
        &failed_trials,
    ];
    rules.iter().flat_map(|rule| rule(analysis)).collect()
}

/// What several runs tell together: the costs of random, and the optimal pattern.
pub fn cross_findings<'a>(analyses: impl IntoIterator<Item = &'a Analysis>) -> Vec<Finding> {
    let analyses: Vec<&Analysis> = analyses.into_iter().collect();
    let mut findings = costs_of_random(&analyses);
    if analyses.len() > 1 {
        findings.extend(optimal_pattern(&analyses));
    }
    findings
}

/// What random costs against sequential, for each pair of runs that differ in the pattern only.
pub fn costs_of_random(analyses: &[&Analysis]) -> Vec<Finding> {
    let against = |sequential| {
        let cost = move |random| random_against_sequential(sequential, random);
        analyses.iter().copied().filter_map(cost)
    };
    analyses.iter().copied().flat_map(against).collect()
}

/// The plan was not carried out.
pub fn unfinished(analysis: &Analysis) -> Vec<Finding> {
    let without = analysis.cells.iter().filter(|c| c.n == 0).count();
    let text = match analysis.status {
        RunStatus::Done => return Vec::new(),
        RunStatus::Running => "The run was cut off or is still going",
        RunStatus::Interrupted => "The run was interrupted",
        RunStatus::Failed => "The run ended by a failure",
    };
    let rest = if without == analysis.cells.len() {
        "Nothing can be said of any cell."
    } else {
        "What follows rests on the trials made so far."
    };
    let text = format!(
        "{text}: {} {} no measured trial. {rest}",
        within(without, analysis),
        has(without),
    );
    one("unfinished", text)
}

/// A disk that is computed was measured, and no device.
pub fn a_model(analysis: &Analysis) -> Vec<Finding> {
    let Some(title) = &analysis.model else {
        return Vec::new();
    };
    let title = match title.as_str() {
        "" => String::new(),
        title => format!(" ({title})"),
    };
    one(
        "model",
        format!(
            "All numbers are of {}{title}, computed in virtual time. No device was measured.",
            analysis.target
        ),
    )
}

/// Cells whose bytes were not all carried by the device, where they ask for it: their numbers are not the device's.
pub fn not_the_device(analysis: &Analysis) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (verdict, what) in [
        (
            ServedBy::NotStorage,
            "not from storage: no number of theirs tells anything of a disk",
        ),
        (
            ServedBy::Hole,
            "from nowhere, since nothing was ever written there: their numbers are memory's",
        ),
        (ServedBy::PageCache, "from the page cache, not the device"),
        (
            ServedBy::Mixed,
            "in part from the page cache: their numbers mix memory and device",
        ),
        (
            ServedBy::Unknown,
            "from a source that the evidence does not tell, which may not be the device",
        ),
    ] {
        let has = |c: &&CellAnalysis| {
            !c.is_as_asked() && c.served.as_ref().is_some_and(|s| s.any(verdict))
        };
        let cells: Vec<&CellAnalysis> = analysis.cells.iter().filter(has).collect();
        let Some(first) = cells.first().and_then(|c| c.served.as_ref()) else {
            continue;
        };
        let reason = if first.unanimous() == Some(verdict) && !first.reason.is_empty() {
            format!(" ({})", first.reason)
        } else {
            String::new()
        };
        let which = cells_of(cells.len(), analysis);
        findings.push(Finding {
            rule: "not-the-device",
            text: format!("{which} came {what}{reason}."),
        });
    }
    findings
}

/// The best size of the best curve, and the sizes whose intervals overlap its interval.
pub fn best_size(analysis: &Analysis) -> Vec<Finding> {
    let sentence = |curve: Curve| {
        let response = analysis.response;
        let best = curve.best(response)?;
        let interval = best.summary.median_interval;
        let undecided: Vec<String> = curve
            .points
            .iter()
            .filter(|p| p.size != best.size)
            .filter(|p| overlap(p, best))
            .map(|p| format_size(p.size))
            .collect();
        let word = if response.more_is_better() {
            "Highest"
        } else {
            "Lowest"
        };
        let tail = if interval.is_none() {
            " Too few trials to say which sizes differ from it.".to_owned()
        } else if undecided.is_empty() {
            " No other size's interval overlaps it.".to_owned()
        } else {
            format!(
                " Not distinguishable from it (overlapping median intervals): {}.",
                undecided.join(", ")
            )
        };
        let text = format!(
            "{word} {response}{}: {} at {}={}{}.{tail}",
            curve.place(),
            best.with_interval(response),
            curve.factor,
            format_size(best.size),
            origin(best.cell),
        );
        Some(Finding {
            rule: "best-size",
            text,
        })
    };
    best_curve(analysis)
        .and_then(sentence)
        .into_iter()
        .collect()
}

/// Where the curve bends: the sizes around the best that stay within 5 % of it or whose intervals overlap its
/// interval, and the fall below them.
pub fn plateau(analysis: &Analysis) -> Vec<Finding> {
    if analysis.response != Response::Throughput {
        return Vec::new();
    }
    best_curve(analysis)
        .filter(|curve| curve.factor == "bs" && curve.points.len() >= 3)
        .and_then(|curve| bend(&curve))
        .map_or_else(Vec::new, |text| one("plateau", text))
}

fn bend(curve: &Curve<'_>) -> Option<String> {
    let response = Response::Throughput;
    let best = curve.best(response)?;
    let floor = PLATEAU * best.summary.median;
    let near = |p: &Point<'_>| p.summary.median >= floor;
    let (first, last) = curve.run_around(best.size, |p| near(p) || overlap(p, best))?;
    let (start, end) = (curve.points.get(first)?, curve.points.get(last)?);
    let (start, end) = (format_size(start.size), format_size(end.size));
    let reaches_end = last + 1 == curve.points.len();
    let range = match (first, reaches_end) {
        (0, true) => format!("At all sizes, {start} to {end}, throughput is"),
        _ if first == last => format!("Only at {start} throughput is"),
        (_, true) => format!("From {start} on throughput stays"),
        (_, false) => format!("From {start} to {end} throughput stays"),
    };
    let undecided = if curve.points[first..=last].iter().all(near) {
        ""
    } else {
        " or indistinguishable from it"
    };
    let mut text = format!(
        "{range} within 5 % of the best{}, {}{}{undecided}.",
        curve.place(),
        response.format(best.summary.median),
        origin(best.cell),
    );
    if let Some(below) = first.checked_sub(1).and_then(|i| curve.points.get(i)) {
        text.push_str(&format!(" Below, it falls: {}", at(below, response)));
        if let Some(least) = curve.points.first().filter(|_| first > 1) {
            text.push_str(&format!(", {}", at(least, response)));
        }
        text.push('.');
    }
    if let Some(above) = curve.points.get(last + 1) {
        text.push_str(&format!(" Above, it falls again: {}.", at(above, response)));
    }
    Some(text)
}

/// Whether the 95 % intervals of two medians have a value in common.
fn overlap(a: &Point<'_>, b: &Point<'_>) -> bool {
    let intervals = a.summary.median_interval.zip(b.summary.median_interval);
    intervals.is_some_and(|(a, b)| a.overlaps(&b))
}

/// What skipping costs: the least skip against the one with the lowest throughput.
pub fn cost_of_skipping(analysis: &Analysis) -> Vec<Finding> {
    if analysis.response != Response::Throughput {
        return Vec::new();
    }
    let sentence = |curve: Curve| {
        let (least, rest) = curve.points.split_first()?;
        let worst = rest
            .iter()
            .min_by(|a, b| a.summary.median.total_cmp(&b.summary.median))?;
        let ratio = least.ratio_of(worst)?;
        let verdict = if ratio.interval.is_some_and(|i| i.high < 1.0) {
            "Skipping costs throughput"
        } else if ratio.interval.is_some_and(|i| i.low > 1.0) {
            "No larger skip is slower than the least"
        } else {
            "No cost of larger skips is shown"
        };
        let text = format!(
            "{verdict}{}: {} with the least skip, {} with the slowest; ratio {}.",
            curve.place(),
            at(least, analysis.response),
            at(worst, analysis.response),
            format_ratio(&ratio, ""),
        );
        Some(Finding {
            rule: "cost-of-skipping",
            text,
        })
    };
    by_size(analysis, "skip")
        .into_iter()
        .filter_map(sentence)
        .collect()
}

/// Cells whose interval is wider than the precision asked for, or that have none.
pub fn below_precision(analysis: &Analysis) -> Vec<Finding> {
    let measured = || analysis.cells.iter().filter(|c| c.n > 0);
    let wide: Vec<&CellAnalysis> = measured()
        .filter(|c| c.precision.is_some_and(|p| p > analysis.precision_goal))
        .collect();
    let without: Vec<&CellAnalysis> = measured().filter(|c| c.precision.is_none()).collect();
    let mut findings = Vec::new();
    let worst = wide.iter().max_by(|a, b| {
        a.precision
            .unwrap_or(0.0)
            .total_cmp(&b.precision.unwrap_or(0.0))
    });
    if let Some(worst) = worst {
        findings.push(Finding {
            rule: "below-precision",
            text: format!(
                "{} missed the {} precision goal (worst: {} with {} after {} trials). {}",
                cells_of(wide.len(), analysis),
                format_percent(analysis.precision_goal),
                label(&analysis.factors, &worst.cell.levels),
                format_percent(worst.precision.unwrap_or(0.0)),
                worst.n,
                more_trials(&wide),
            ),
        });
    }
    if !without.is_empty() {
        findings.push(Finding {
            rule: "below-precision",
            text: format!(
                "{} {} too few trials for a 95 % interval of the median (6 are needed). {}",
                cells_of(without.len(), analysis),
                has(without.len()),
                more_trials(&without),
            ),
        });
    }
    findings
}

/// What gives these cells more trials: that which ended their repetition.
fn more_trials(cells: &[&CellAnalysis]) -> &'static str {
    let ended = |by: Option<EndedBy>| cells.iter().any(|c| c.cell.ended_by == by);
    match (
        ended(Some(EndedBy::Budget)),
        ended(Some(EndedBy::TrialsMax)),
    ) {
        (true, false) => "A larger --budget gives more trials.",
        (true, true) => "A larger --budget and --set trials_max=N give more trials.",
        (false, true) => "--set trials_max=N gives more trials.",
        (false, false) => "More trials narrow it.",
    }
}

/// Cells in which a trial failed.
pub fn failed_trials(analysis: &Analysis) -> Vec<Finding> {
    let cells = analysis
        .cells
        .iter()
        .filter(|c| c.flags.contains(&Flag::Errors));
    match cells.count() {
        0 => Vec::new(),
        n => one(
            "failed-trials",
            format!(
                "{} had a trial that failed; failed trials are in the run file and in no number here.",
                cells_of(n, analysis)
            ),
        ),
    }
}

/// The curve over I/O sizes (over skips, when no I/O size varies) that holds the best value. Many
/// curves of one run would make as many sentences; the table has them all.
fn best_curve(analysis: &Analysis) -> Option<Curve<'_>> {
    let mut curves = by_size(analysis, "bs");
    if curves.is_empty() {
        curves = by_size(analysis, "skip");
    }
    let response = analysis.response;
    let worth = |curve: &Curve<'_>| {
        let best = curve.best(response);
        best.map_or(f64::NEG_INFINITY, |p| response.worth(p.summary.median))
    };
    // Of equals the first.
    curves
        .into_iter()
        .rev()
        .max_by(|a, b| worth(a).total_cmp(&worth(b)))
}

/// A point in words: value, interval, size, and where the bytes came from unless it was the device.
fn at(point: &Point<'_>, response: Response) -> String {
    format!(
        "{} at {}{}",
        point.with_interval(response),
        format_size(point.size),
        origin(point.cell)
    )
}

/// Says in brackets where the bytes came from, unless it was the device.
fn origin(cell: &CellAnalysis) -> String {
    let Some(served) = cell.served.as_ref().filter(|s| !s.is_target()) else {
        return String::new();
    };
    let what = match served.unanimous() {
        Some(ServedBy::PageCache) => "page cache",
        Some(ServedBy::NotStorage) => "not storage",
        Some(ServedBy::Unknown) => "of unknown origin",
        Some(other) => return format!(" [{other}]"),
        None => return format!(" [{served}]"),
    };
    format!(" [{what}]")
}

/// `3 of 16 cells`.
fn cells_of(n: usize, analysis: &Analysis) -> String {
    match analysis.cells.len() {
        1 if n == 1 => "The only cell".to_owned(),
        all if n == all => "All cells".to_owned(),
        all => format!("{n} of {all} cells"),
    }
}

/// `3 of 16 cells`, in the middle of a sentence.
fn within(n: usize, analysis: &Analysis) -> String {
    let text = cells_of(n, analysis);
    match text.strip_prefix("The only") {
        Some(rest) => format!("the only{rest}"),
        None => text.replacen("All", "all", 1),
    }
}

fn has(n: usize) -> &'static str {
    if n == 1 { "has" } else { "have" }
}

fn one(rule: &'static str, text: String) -> Vec<Finding> {
    vec![Finding { rule, text }]
}

/// The text with its first letter made a capital.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

/// Writes a ratio with its interval: `1.31 (95 % interval 1.27 to 1.35)`, with words between the two.
fn format_ratio(ratio: &Ratio, words: &str) -> String {
    let interval = match ratio.interval {
        Some(i) => format!(
            "{} interval {} to {}",
            format_percent(i.confidence),
            significant(i.low),
            significant(i.high)
        ),
        None => "too few trials for an interval".to_owned(),
    };
    format!("{}{words} ({interval})", significant(ratio.ratio))
}
