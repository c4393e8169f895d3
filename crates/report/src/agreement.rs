//! Agreement of other tools with iolab: a row per cell and tool.

use iolab_analysis::compare::{
    CellComparison, CellVerdict, Comparison, Further, SideName, WhyUndecided,
};
use iolab_figure::result_names;
use iolab_stats::Summary;
use iolab_workload::escape_control::escape_control;

use crate::compare::value;
use crate::layout::{Column, none};

/// Fewest trials of either tool for a statement.
const TRIALS_MIN: usize = 6;

/// The columns of the table; none where no other tool was measured.
pub(crate) fn columns(peers: &[Comparison]) -> Vec<Column> {
    let Some(first) = peers.first() else {
        return Vec::new();
    };
    let rows = by_cell(peers);
    let response = first.response;
    let column = |heading: &str, dispensable, text: &dyn Fn(&str, &CellComparison) -> String| {
        let values = rows
            .iter()
            .map(|(tool, cell)| text(&tool.to_string(), cell));
        Column::new(heading, dispensable, values.collect::<Vec<_>>())
    };
    let median =
        |summary: Option<&Summary>| summary.map_or_else(none, |s| value(response, s.median));
    let ratio = |cell: &CellComparison| cell.estimate.filter(|_| is_enough(cell));
    let factors = first.factors.iter().enumerate().map(|(place, factor)| {
        column(&escape_control(factor), 0, &|_, cell| {
            escape_control(&cell.levels[place]).into_owned()
        })
    });
    factors
        .chain([
            column("tool", 0, &|tool, _| escape_control(tool).into_owned()).left(),
            column("n", 1, &|_, cell| {
                let n = |side: Option<&Summary>| side.map_or(0, |summary| summary.n);
                let sides = [&cell.new, &cell.base].map(|side| n(side.summary.as_ref()));
                format!("{}+{}", sides[0], sides[1])
            }),
            column("iolab", 0, &|_, cell| median(cell.new.summary.as_ref())),
            column("peer", 0, &|_, cell| median(cell.base.summary.as_ref())),
            column("ratio", 0, &|_, cell| {
                ratio(cell).map_or_else(none, |ratio| format!("{:.3}", ratio.ratio))
            }),
            column("95 % interval", 2, &|_, cell| {
                let interval = ratio(cell).and_then(|ratio| ratio.interval);
                interval.map_or_else(none, |(low, high)| format!("{low:.3} to {high:.3}"))
            }),
            column("agreement", 0, &|_, cell| verdict(cell)).left(),
        ])
        .collect()
}

/// The comparisons of each cell.
fn by_cell(peers: &[Comparison]) -> Vec<(&SideName, &CellComparison)> {
    let mut cells: Vec<&Vec<String>> = Vec::new();
    for cell in peers.iter().flat_map(|peer| &peer.cells) {
        if !cells.contains(&&cell.levels) {
            cells.push(&cell.levels);
        }
    }
    let all = || {
        peers
            .iter()
            .flat_map(|peer| peer.cells.iter().map(|cell| (&peer.base, cell)))
    };
    cells
        .into_iter()
        .flat_map(|levels| all().filter(move |(_, cell)| cell.levels == *levels))
        .collect()
}

/// Whether both tools have enough trials for an interval.
fn is_enough(cell: &CellComparison) -> bool {
    let sides = [&cell.base, &cell.new].map(|side| side.summary.as_ref());
    sides
        .into_iter()
        .all(|side| side.is_some_and(|summary| summary.n >= TRIALS_MIN))
}

fn verdict(cell: &CellComparison) -> String {
    match cell.verdict {
        CellVerdict::CannotTell(WhyUndecided::FewTrials) => {
            format!("cannot tell (fewer than {TRIALS_MIN} trials)")
        }
        CellVerdict::Higher | CellVerdict::Faster => "iolab higher".to_owned(),
        CellVerdict::Lower | CellVerdict::Slower => "iolab lower".to_owned(),
        other => match (other.why_open(), cell.further) {
            (Some(why), Some(Further::Trials(n))) => format!(
                "cannot tell ({}; needs about {n} more trials)",
                result_names::undecided(why)
            ),
            _ => result_names::verdict(other).into_owned(),
        },
    }
}
