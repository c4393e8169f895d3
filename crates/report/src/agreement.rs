//! Agreement of other tools with iolab: a small table with a row per cell and tool.

use iolab_analysis::compare::{
    CellComparison, CellVerdict, Comparison, Further, SideName, WhyUndecided,
};
use iolab_figure::result_names;
use iolab_stats::Summary;
use iolab_workload::escape_control::escape_control;
use iolab_workload::quantity::format_percent;

use crate::compare::{measured, value};
use crate::layout::{self, Column, none, wrapped};

/// Fewest trials of either tool for a statement.
const TRIALS_MIN: usize = 6;

/// The table for a terminal of `width` columns; empty where no other tool was measured.
pub fn text(peers: &[Comparison], width: u16) -> String {
    let Some(first) = peers.first() else {
        return String::new();
    };
    let rows = by_cell(peers);
    let response = first.response;
    // Times are written with their units.
    let unit = response.filter(|response| response.heading() == response.unit());
    let unit = unit.map_or(String::new(), |response| format!(" in {}", response.unit()));
    let caption = format!(
        "Agreement of the tools: {}{unit}, medians of n trials; ratio of iolab to the peer in the same blocks, with its 95 % interval; margin {}",
        measured(first),
        format_percent(first.terms.margin)
    );
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
    let columns = factors
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
        .collect();
    wrapped(&caption, width) + &layout::text(columns, width)
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
