//! Throughput of each host, or of each rank of one host, block by block: one that holds the others up is a dark row, a disturbance
//! that hits all is a dark column. Latencies are those of clients: of hosts, or of ranks that have a target of their own.

use iolab_analysis::analysis::{CellAnalysis, CellRanks, ClientAnalysis, Response};
use iolab_record::LatencySummary;
use iolab_record::tables::Rank;
use iolab_stats::median;
use iolab_workload::{Error, Result};

use super::super::FigureRun;
use super::super::data::verdict;
use super::super::labels;
use super::super::model::{Field, FigureModel, Origin, Panel, step};
use super::super::options::Options;
use super::super::result_names;
use super::super::scale::Scale;
use super::{axis, heat};

/// Most panels of one figure, as elsewhere.
const PANELS_MAX: usize = 30;
/// Most rows of a panel: of more, the slowest are shown.
const ROWS_MAX: usize = 48;

/// A row: its name, and the value of each block.
struct RankRow {
    name: String,
    values: Vec<(u32, f64)>,
}

/// Makes the model: a panel for each cell that several ranks carried out.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when no cell was, or too many were.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
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
    let quantity = options.y.unwrap_or(Response::Throughput);
    let latency = of_latency(quantity);
    if latency.is_none() && quantity != Response::Throughput {
        return Err(
            Error::usage(format!("{quantity} is not kept for each host"))
                .hint("set --y throughput, latency, p90, p99, p999 or max"),
        );
    }
    let lines: Vec<Vec<RankRow>> = cells()
        .map(|(_, _, ranks)| match latency {
            Some(latency) => lines_of_clients(ranks, latency),
            None => lines(ranks),
        })
        .collect();
    if lines.iter().all(Vec::is_empty) {
        return Err(Error::usage("the run file has no latencies of hosts")
            .hint("latency=false was set; set --y throughput"));
    }
    let values: Vec<f64> = lines
        .iter()
        .flatten()
        .flat_map(|line| line.values.iter().map(|(_, value)| *value))
        .collect();
    let scale = axis::of_quantity(quantity, &values, true, options).scale;
    let (shown, hidden) = slowest(lines, quantity);
    let names = row_names(&shown);
    let one_host = cells().all(|(_, _, ranks)| ranks.hosts == 1);
    let rows = RankRows {
        names: &names,
        what: match (latency, one_host) {
            (Some(_), _) => "Client",
            (None, true) => "Rank",
            (None, false) => "Host",
        },
        quantity,
        scale,
    };
    let panels = cells().zip(&shown);
    let panels = panels.map(|((factors, cell, _), lines)| panel(factors, cell, lines, &rows));
    let panels = panels.collect();
    let left_out = match hidden {
        0 => String::new(),
        rows => format!("; {rows} faster rows are left out"),
    };
    let of_what = match (latency, one_host) {
        (Some(_), _) => ", of all ranks of a client",
        (None, true) => ", MB/s",
        (None, false) => ", MB/s, of the median rank of a host",
    };
    Ok(FigureModel {
        description: match latency {
            Some(_) => "Latency of each client, by block".to_owned(),
            None => "Throughput of each rank or host, by block".to_owned(),
        },
        unit: quantity.unit().to_owned(),
        heat_label: labels::capital(&labels::of_response(quantity)),
        note: format!(
            "Colour: {}{of_what}{}{left_out}.",
            labels::of_response(quantity),
            super::corner(cells().map(|(_, cell, _)| cell)),
        ),
        ..FigureModel::of(panels)
    })
}

/// The ranks of one host, or the hosts with the median of their ranks.
fn lines(ranks: &CellRanks) -> Vec<RankRow> {
    let name = |host: &str, rank: u32| match ranks.hosts {
        1 => format!("rank {rank}"),
        _ => host.to_owned(),
    };
    if ranks.hosts == 1 {
        let line = |series: &iolab_analysis::analysis::RankThroughput| RankRow {
            name: name(&series.host_name, series.rank),
            values: series.trials.clone(),
        };
        return ranks.by_rank.iter().map(line).collect();
    }
    let mut hosts: Vec<u32> = ranks.by_rank.iter().map(|series| series.host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let of_host = |host: u32| {
        let own: Vec<_> = ranks.by_rank.iter().filter(|c| c.host == host).collect();
        let first = own.first()?;
        let value = |place: usize| {
            let values = own.iter().filter_map(|series| series.trials.get(place));
            median(&values.map(|(_, value)| *value).collect::<Vec<f64>>())
        };
        let values = first.trials.iter().enumerate();
        Some(RankRow {
            name: name(&first.host_name, first.rank),
            values: values
                .filter_map(|(place, (block, _))| Some((*block, value(place)?)))
                .collect(),
        })
    };
    hosts.into_iter().filter_map(of_host).collect()
}

/// What of a latency shows this quantity; `None` where it is no latency.
fn of_latency(quantity: Response) -> Option<fn(LatencySummary) -> Option<u64>> {
    match quantity {
        Response::Latency => Some(|latency| Some(latency.p50_ns)),
        Response::P90 => Some(|latency| Some(latency.p90_ns)),
        Response::P99 => Some(|latency| Some(latency.p99_ns)),
        Response::P999 => Some(|latency| Some(latency.p999_ns)),
        Response::P9999 => Some(|latency| latency.p9999_ns),
        Response::P99999 => Some(|latency| latency.p99999_ns),
        Response::Max => Some(|latency| Some(latency.max_ns)),
        Response::Throughput | Response::Iops | Response::Elapsed | Response::Cpu => None,
    }
}

fn lines_of_clients(ranks: &CellRanks, latency: fn(LatencySummary) -> Option<u64>) -> Vec<RankRow> {
    let line = |client: &ClientAnalysis| {
        let values = client.latencies.iter();
        RankRow {
            name: result_names::client(&client.name),
            values: values
                .filter_map(|(block, summary)| Some((*block, latency(*summary)? as f64)))
                .collect(),
        }
    };
    let lines = ranks.clients.iter().map(line);
    lines.filter(|line| !line.values.is_empty()).collect()
}

/// The slowest rows of each panel, and how many others there are.
fn slowest(mut panels: Vec<Vec<RankRow>>, quantity: Response) -> (Vec<Vec<RankRow>>, usize) {
    let mut hidden = 0;
    for lines in panels.iter_mut().filter(|lines| lines.len() > ROWS_MAX) {
        hidden += lines.len() - ROWS_MAX;
        keep_slowest(lines, quantity);
    }
    (panels, hidden)
}

/// Names of the rows that all panels have, as only those of the left column are named.
fn row_names(panels: &[Vec<RankRow>]) -> Vec<String> {
    let longest = panels.iter().max_by_key(|lines| lines.len());
    let mut names: Vec<String> = longest.map_or_else(Vec::new, |lines| {
        lines.iter().map(|line| line.name.clone()).collect()
    });
    for line in panels.iter().flatten() {
        if !names.contains(&line.name) {
            names.push(line.name.clone());
        }
    }
    names
}

/// Keeps the slowest rows, in their order.
fn keep_slowest(lines: &mut Vec<RankRow>, quantity: Response) {
    let center = |line: &RankRow| {
        let values: Vec<f64> = line.values.iter().map(|(_, value)| *value).collect();
        let center = median(&values).unwrap_or(0.0);
        if quantity.is_time() { -center } else { center }
    };
    let mut centers: Vec<f64> = lines.iter().map(center).collect();
    centers.sort_by(f64::total_cmp);
    let most = centers.get(ROWS_MAX - 1).copied().unwrap_or(f64::MAX);
    lines.retain(|line| center(line) <= most);
    lines.truncate(ROWS_MAX);
}

/// What all panels share.
struct RankRows<'a> {
    names: &'a [String],
    /// What they are.
    what: &'static str,
    quantity: Response,
    scale: Scale,
}

fn panel(factors: &[String], cell: &CellAnalysis, lines: &[RankRow], rows: &RankRows<'_>) -> Panel {
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
    let names = axis::names(
        rows.names.iter().map(String::as_str).collect(),
        named,
        rows.what.to_owned(),
        true,
    );
    let quantity = rows.quantity;
    let verdict = verdict(cell);
    let mut fields = Vec::new();
    for line in lines {
        let Some(row) = rows.names.iter().position(|name| *name == line.name) else {
            continue;
        };
        for (block, value) in &line.values {
            let Ok(column) = blocks.binary_search(block) else {
                continue;
            };
            fields.push(Field {
                x: step(column),
                y: step(row),
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
        panel.title = iolab_workload::settings::cell_label(factors, &cell.cell.levels);
    }
    panel.heat = Some((fields, rows.scale));
    panel
}
