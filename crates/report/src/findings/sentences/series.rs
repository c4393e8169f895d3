//! The order and the shape of trials, in words.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{Course, Shape, State, Steady};
use iolab_stats::SteadyLimits;
use iolab_workload::quantity::{counted, digits, format_percent};

use super::limit::beside_limit;
use super::{at_cell, in_cell};
use crate::findings::{cells_of, within};

/// Drift, dependence, two groups.
pub(super) fn of_course(course: &Course, run: &Analysis) -> String {
    // One cell is told by its levels; of several the one that shows it most.
    let (one, most) = match (run.cells.len(), course.cells.len()) {
        (1, _) => (String::new(), String::new()),
        (_, 1) => (format!(" ({})", in_cell(run, course.most)), String::new()),
        _ => (String::new(), format!(" in {}", in_cell(run, course.most))),
    };
    let cells = within(course.cells.len(), run) + &one;
    let mostly = |word: &str| match most.as_str() {
        "" => String::new(),
        most => format!(", {word}{most}"),
    };
    match course.shape {
        Shape::Drifting { slope } => format!(
            "In {cells} the trials drift with time (Mann-Kendall, Holm){} by {} per trial. For a later repeat, intervals there are too narrow{}.",
            mostly("most"),
            signed_percent(slope),
            by_factor(course),
        ),
        Shape::Dependent => format!(
            "In {cells} trials depend on earlier ones (Ljung-Box, Holm). Intervals there are too narrow{}.",
            by_factor(course)
        ),
        Shape::TwoGroups(modes) => format!(
            "In {cells} the trials form two groups{}: {} of them around {}, the others around {}. The median {}.",
            mostly("most clearly"),
            format_percent(modes.low_share),
            run.response.format(modes.low_median),
            run.response.format(modes.high_median),
            median_of_groups(modes.low_share),
        ),
    }
}

/// What the median of two groups is, of which the lower one has this share of the values.
pub(crate) fn median_of_groups(low_share: f64) -> &'static str {
    match (0.4..=0.6).contains(&low_share) {
        true => "describes neither group",
        false => "is that of the larger group",
    }
}

/// `, by a factor of about 1.7`.
fn by_factor(course: &Course) -> String {
    let known = course.widening.filter(|factor| *factor > 1.05);
    known.map_or_else(String::new, |factor| {
        format!(", by a factor of about {}", digits(factor, 2))
    })
}

/// `+1.2 %`, `-0.030 %`: with digits enough not to read as nothing.
fn signed_percent(share: f64) -> String {
    let percent = share * 100.0;
    let sign = if percent > 0.0 { "+" } else { "" };
    match percent.abs() < 0.1 {
        true => format!("{sign}{} %", digits(percent, 2)),
        false => format!("{sign}{}", format_percent(share)),
    }
}

/// Whether the last trials of cells that write are alike.
pub(super) fn of_steady(steady: &Steady, run: &Analysis) -> String {
    let n = steady.cells.len();
    let cells = match (n == steady.judged, steady.judged == run.cells.len()) {
        (true, true) => cells_of(n, run),
        (true, false) => match n {
            1 => "The only cell that writes".to_owned(),
            2 => "Both cells that write".to_owned(),
            n => format!("All {n} cells that write"),
        },
        (false, _) => format!("{n} of {} that write", counted(steady.judged, "cell")),
    };
    match &steady.state {
        State::Reached => format!(
            "{cells} settled: the last 5 trials lie within 20 % with a slope within 10 %, after the region was written over."
        ),
        State::NotWrittenOver { least } => format!(
            "{cells}: not shown to have settled. The last 5 trials are alike, but the trials before them had overwritten only {} of the region{}; --precondition overwrites it first.",
            format_percent(*least),
            match n {
                1 => "",
                _ => " in the cell with the least",
            }
        ),
        State::NotReached {
            worst,
            range,
            slope,
            slopes,
        } => {
            let (range, most) = beside_limit(*range, SteadyLimits::SNIA.range);
            let (slope, steepest) = beside_limit(*slope, SteadyLimits::SNIA.slope);
            let remedy = match slopes {
                true => "More trials, --settle or --precondition may reach it.",
                // Neither takes scatter away.
                false => "That is scatter, not a shown slope: longer trials may reach it.",
            };
            format!(
                "{cells}: not settled. The last 5 trials{} spread over {range} ({most} allowed) with a slope of {slope} ({steepest} allowed). {remedy}",
                at_cell(run, *worst),
            )
        }
    }
}

/// What a claim about the order of trials rests on.
pub(super) fn basis(course: &Course) -> &'static str {
    match course.shape {
        Shape::Drifting { .. } => {
            "Mann and Kendall's test in each cell, with Holm's correction over the cells"
        }
        Shape::Dependent => {
            "Ljung and Box's test in each cell, with Holm's correction over the cells"
        }
        Shape::TwoGroups(_) => "the density of each cell's trials, and its valley",
    }
}

/// What a claim about the last trials rests on.
pub(super) fn steady_basis(state: &State) -> &'static str {
    match state {
        State::Reached | State::NotReached { .. } => "the last 5 trials of each cell that writes",
        State::NotWrittenOver { .. } => {
            "the bytes that the run wrote before the last 5 trials of a cell, over its region"
        }
    }
}
