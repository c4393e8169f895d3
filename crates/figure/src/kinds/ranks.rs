//! Throughput of each host, or of each rank of one host, block by block: one that holds the others up is a dark row, a disturbance
//! that hits all is a dark column.

use iolab_analysis::analysis::{CellAnalysis, CellRanks, Response};
use iolab_record::tables::Rank;
use iolab_spec::{Error, Result};
use iolab_stats::median;

use super::super::Run;
use super::super::data::verdict;
use super::super::model::{Field, Model, Origin, Panel};
use super::super::options::Options;
use super::super::words;
use super::{axis, heat};

/// Most panels of one figure, as elsewhere.
const PANELS_MAX: usize = 30;
/// Most rows of a panel: of more, the slowest are shown.
const ROWS_MAX: usize = 48;

/// A row: its name, and the value of each block, MB/s.
struct Line {
    name: String,
    values: Vec<(u32, f64)>,
}

/// Makes the model: a panel for each cell that several ranks carried out.
///
/// # Errors
/// Of kind usage when no cell was, or too many were.
pub(in super::super) fn model(runs: &[Run<'_>], options: &Options) -> Result<Model> {
    let cells = || {
        let cells = runs.iter().flat_map(|run| {
            let own = run.analysis().cells.iter();
            own.map(move |cell| (&run.analysis().factors, cell))
        });
        cells.filter_map(|(factors, cell)| {
            let ranks = cell.ranks.as_ref().filter(|ranks| ranks.ranks > 1)?;
            Some((factors, cell, ranks))
        })
    };
    let count = cells().count();
    if count == 0 {
        return Err(Rank::none());
    }
    if count > PANELS_MAX {
        return Err(
            Error::usage(format!("{count} cells make {count} panels")).hint(format!(
                "at most {PANELS_MAX} are legible: choose cells with --where"
            )),
        );
    }
    let quantity = Response::Throughput;
    let lines: Vec<Vec<Line>> = cells().map(|(_, _, ranks)| lines(ranks)).collect();
    let values: Vec<f64> = lines
        .iter()
        .flatten()
        .flat_map(|line| line.values.iter().map(|(_, value)| *value))
        .collect();
    let scale = axis::of_quantity(quantity, &values, true, options).scale;
    let mut hidden = 0;
    let mut shown: Vec<Vec<Line>> = Vec::new();
    for mut lines in lines {
        if lines.len() > ROWS_MAX {
            hidden += lines.len() - ROWS_MAX;
            keep_slowest(&mut lines);
        }
        shown.push(lines);
    }
    // Panels have the same rows, as only those of the left column are named.
    let longest = shown.iter().max_by_key(|lines| lines.len());
    let mut names: Vec<String> = longest.map_or_else(Vec::new, |lines| {
        lines.iter().map(|line| line.name.clone()).collect()
    });
    for line in shown.iter().flatten() {
        if !names.contains(&line.name) {
            names.push(line.name.clone());
        }
    }
    let one_host = cells().all(|(_, _, ranks)| ranks.hosts == 1);
    let panels = cells().zip(&shown);
    let panels = panels
        .map(|((factors, cell, _), lines)| panel(factors, cell, lines, &names, one_host, scale));
    let panels = panels.collect();
    let left_out = match hidden {
        0 => String::new(),
        rows => format!("; {rows} faster rows are left out"),
    };
    Ok(Model {
        description: "Throughput of each rank or host, by block".to_owned(),
        unit: quantity.unit().to_owned(),
        note: format!(
            "Colour: {}, MB/s{}{}{left_out}.",
            words::of_response(quantity),
            if one_host {
                ""
            } else {
                ", of the median rank of a host"
            },
            super::corner(cells().map(|(_, cell, _)| cell)),
        ),
        ..Model::of(panels)
    })
}

/// The ranks of one host, or the hosts with the median of their ranks.
fn lines(ranks: &CellRanks) -> Vec<Line> {
    let name = |host: &str, rank: u32| match ranks.hosts {
        1 => format!("rank {rank}"),
        _ => host.to_owned(),
    };
    if ranks.hosts == 1 {
        let line = |course: &iolab_analysis::analysis::RankCourse| Line {
            name: name(&course.host_name, course.rank),
            values: course.trials.clone(),
        };
        return ranks.by_rank.iter().map(line).collect();
    }
    let mut hosts: Vec<u32> = ranks.by_rank.iter().map(|course| course.host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let of_host = |host: u32| {
        let own: Vec<_> = ranks.by_rank.iter().filter(|c| c.host == host).collect();
        let first = own.first()?;
        let value = |place: usize| {
            let values = own.iter().filter_map(|course| course.trials.get(place));
            median(&values.map(|(_, value)| *value).collect::<Vec<f64>>())
        };
        let values = first.trials.iter().enumerate();
        Some(Line {
            name: name(&first.host_name, first.rank),
            values: values
                .filter_map(|(place, (block, _))| Some((*block, value(place)?)))
                .collect(),
        })
    };
    hosts.into_iter().filter_map(of_host).collect()
}

/// Keeps the rows with the least medians, in their order.
fn keep_slowest(lines: &mut Vec<Line>) {
    let center = |line: &Line| {
        let values: Vec<f64> = line.values.iter().map(|(_, value)| *value).collect();
        median(&values).unwrap_or(0.0)
    };
    let mut centers: Vec<f64> = lines.iter().map(center).collect();
    centers.sort_by(f64::total_cmp);
    let most = centers.get(ROWS_MAX - 1).copied().unwrap_or(f64::MAX);
    lines.retain(|line| center(line) <= most);
    lines.truncate(ROWS_MAX);
}

fn panel(
    factors: &[String],
    cell: &CellAnalysis,
    lines: &[Line],
    rows: &[String],
    one_host: bool,
    scale: super::super::scale::Scale,
) -> Panel {
    let mut blocks: Vec<u32> = lines
        .iter()
        .flat_map(|line| line.values.iter().map(|(block, _)| *block))
        .collect();
    blocks.sort_unstable();
    blocks.dedup();
    let numbers: Vec<String> = blocks.iter().map(u32::to_string).collect();
    let named = |level: &str| level.to_owned();
    let columns = axis::names(
        numbers.iter().map(String::as_str).collect(),
        named,
        "Block".to_owned(),
        true,
    );
    let what = if one_host { "Rank" } else { "Host" };
    let names = axis::names(
        rows.iter().map(String::as_str).collect(),
        named,
        what.to_owned(),
        true,
    );
    let quantity = Response::Throughput;
    let verdict = verdict(cell);
    let mut fields = Vec::new();
    for line in lines {
        let Some(row) = rows.iter().position(|name| *name == line.name) else {
            continue;
        };
        for (block, value) in &line.values {
            let Ok(column) = blocks.binary_search(block) else {
                continue;
            };
            fields.push(Field {
                column,
                row,
                value: *value,
                label: heat::short(quantity, *value),
                hollow: !cell.is_target(),
                origin: Origin {
                    cell: Some(cell.cell.id),
                    n: Some(1),
                    x: block.to_string(),
                    text: format!(
                        "{}, block {block}: {}; {verdict}",
                        line.name,
                        quantity.format(*value)
                    ),
                    verdict: verdict.clone(),
                },
            });
        }
    }
    let mut panel = Panel::new(columns.axis, names.axis);
    if !factors.is_empty() {
        panel.title = iolab_plan::cells::label(factors, &cell.cell.levels);
    }
    panel.heat = Some((fields, scale));
    panel
}
