//! What groups reach at once, against each alone: where they share a limit.

use iolab_stats::Interval;

use super::{Finding, Rule, Says};
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_workload::group::ALL;
use iolab_workload::quantity::significant;

pub(crate) const SHARED_LIMIT: Rule = Rule::result(
    "shared-limit",
    "medians over the trials, and whether their exact 95 % intervals overlap",
);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[shared_limit];

/// The factor that says which groups run.
const ACTIVE: &str = "active";

/// Where a run has all groups at once and each alone: what they reach at once, against the sum of what each reaches alone.
pub fn shared_limit(analysis: &Analysis) -> Vec<Finding> {
    let place = analysis.factors.iter().position(|factor| factor == ACTIVE);
    let Some(place) = place else {
        return Vec::new();
    };
    if analysis.response.is_time() || analysis.response_group.is_some() {
        return Vec::new();
    }
    let level = |cell: &CellAnalysis| cell.cell.levels.get(place).cloned().unwrap_or_default();
    let whole = analysis.cells.iter().filter(|cell| level(cell) == ALL);
    let texts = whole.filter_map(|whole| {
        let others = |cell: &CellAnalysis| -> Vec<String> {
            let levels = cell.cell.levels.iter().enumerate();
            let others = levels.filter(|(number, _)| *number != place);
            others.map(|(_, level)| level.clone()).collect()
        };
        let own = others(whole);
        let beside: Vec<(String, &CellAnalysis)> = analysis
            .cells
            .iter()
            .filter(|cell| others(cell) == own)
            .map(|cell| (level(cell), cell))
            .collect();
        let names: Vec<&str> = whole
            .cell
            .spec
            .groups
            .iter()
            .map(|g| g.name.as_str())
            .collect();
        let at = where_it_is(analysis, place, &own);
        of_one(analysis, whole, &beside, &names).map(|text| format!("{at}{text}"))
    });
    let finding = |text| Finding {
        rule: SHARED_LIMIT,
        text,
    };
    texts.map(finding).collect()
}

/// The other levels of the cells, where there are any.
fn where_it_is(analysis: &Analysis, place: usize, levels: &[String]) -> String {
    let factors = analysis.factors.iter().enumerate();
    let factors = factors.filter(|(number, _)| *number != place);
    let parts: Vec<String> = factors
        .zip(levels)
        .map(|((_, factor), level)| format!("{factor}={level}"))
        .collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("At {}, ", parts.join(", ")),
    }
}

/// The groups of a level: `a, b and c`.
fn listed(level: &str) -> String {
    match level.rsplit_once('+') {
        Some((before, last)) => format!("{} and {last}", before.replace('+', ", ")),
        None => level.to_owned(),
    }
}

/// A median with its interval.
fn reached(cell: &CellAnalysis) -> Option<(f64, Interval)> {
    let response = cell.response?;
    Some((response.median, response.median_interval?))
}

fn of_one(
    analysis: &Analysis,
    whole: &CellAnalysis,
    beside: &[(String, &CellAnalysis)],
    names: &[&str],
) -> Option<String> {
    // Where a rate or a proportion holds groups back, what they reach at once tells of that.
    let mut trials = whole.cell.spec.groups.iter().map(|group| &group.spec.trial);
    if trials.any(|trial| trial.rate.is_some() || trial.flow.is_some()) {
        return None;
    }
    let (at_once, of_all) = reached(whole)?;
    let mut sum = (0.0, 0.0, 0.0);
    for name in names {
        let (_, alone) = beside.iter().find(|(level, _)| level == name)?;
        let (median, interval) = reached(alone)?;
        sum = (sum.0 + median, sum.1 + interval.low, sum.2 + interval.high);
    }
    let (alone, low, high) = sum;
    let unit = analysis.response.unit();
    let compared = format!(
        "{} groups at once reach {} {unit} ({} to {}), {} times the {} {unit} ({} to {}) that they reach one at a time, added up",
        names.len(),
        significant(at_once),
        significant(of_all.low),
        significant(of_all.high),
        significant(at_once / alone),
        significant(alone),
        significant(low),
        significant(high),
    );
    if of_all.high >= low {
        return Some(format!("{compared}: no limit that they share is shown."));
    }
    // The fewest of the first groups that already reach what all do.
    let enough = beside.iter().filter(|(level, cell)| {
        let within = reached(cell).is_some_and(|(median, _)| median >= of_all.low);
        level != ALL && within
    });
    let fewest = enough.min_by_key(|(level, _)| level.matches('+').count());
    Some(match fewest {
        Some((level, _)) => format!(
            "{compared}: they share a limit; {} already {} it.",
            listed(level),
            if level.contains('+') {
                "reach"
            } else {
                "reaches"
            }
        ),
        None => format!("{compared}: they share a limit, which fewer of them do not reach."),
    })
}
