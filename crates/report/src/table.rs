//! One row per cell, as text that fits a terminal or as Markdown.

use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_record::EndedBy;
use iolab_record::RunStatus;
use iolab_spec::quantity::{digits, format_ns, format_percent, significant};
use iolab_stats::Interval;

use crate::layout::{self, Column};
use crate::markdown;
use crate::plain::plain;

/// The table for a terminal of `width` columns. Columns that do not fit are left out, least
/// important first, and named in a line below.
pub fn text(analysis: &Analysis, width: u16) -> String {
    caption(analysis) + &layout::text(columns(analysis), width)
}

/// The table in Markdown, with every column.
pub fn markdown(analysis: &Analysis) -> String {
    let caption = caption(analysis);
    let lines: String = caption
        .lines()
        .map(|text| markdown::line(text) + "\n")
        .collect();
    format!("{lines}\n{}", layout::markdown(columns(analysis)))
}

/// The table as a LaTeX `tabular` with every column; it takes no package.
pub fn latex(analysis: &Analysis) -> String {
    let caption: String = caption(analysis)
        .lines()
        .map(|line| format!("% {line}\n"))
        .collect();
    caption + &layout::latex(columns(analysis))
}

pub(crate) fn caption(analysis: &Analysis) -> String {
    let unfinished = match analysis.status {
        RunStatus::Done => "",
        RunStatus::Running => "; unfinished",
        RunStatus::Interrupted => "; interrupted",
        RunStatus::Failed => "; ended by a failure",
    };
    let model = match &analysis.model {
        Some(_) => format!("computed by {} in virtual time\n", plain(&analysis.target)),
        None => String::new(),
    };
    format!(
        "{}: {}, median of n trials with its 95 % interval{unfinished}\n{model}{}",
        plain(&analysis.experiment),
        analysis.response,
        times(analysis),
    )
}

/// Says what the latencies of the table are times of: they depend on how the requests were made.
fn times(analysis: &Analysis) -> String {
    let timed = || analysis.cells.iter().filter(|c| c.latency.is_some());
    let same = |value: fn(&CellAnalysis) -> u64| {
        let mut values = timed().map(value);
        let first = values.next()?;
        values.all(|other| other == first).then_some(first)
    };
    let service = match same(|c| u64::from(c.cell.trial().depth)) {
        Some(depth) => format!("service time at depth {depth}"),
        None => "service time at the depth of the cell".to_owned(),
    };
    let response = match same(|c| c.cell.trial().rate.unwrap_or(0)) {
        Some(rate) => format!("response time at {rate}/s"),
        None => "response time at the rate of the cell".to_owned(),
    };
    let open = timed().filter(|c| c.pace.is_some()).count();
    let what = match timed().count() {
        0 => return String::new(),
        _ if open == 0 => service,
        all if open == all => response,
        _ => format!("{response}; without a rate {service}"),
    };
    let which = match analysis.response {
        Response::Latency => "latency, p50 and p99",
        _ => "p50 and p99",
    };
    format!("{which}: {what}\n")
}

/// All columns in their order. The column of flags is there only when a flag is raised.
pub(crate) fn columns(analysis: &Analysis) -> Vec<Column> {
    let response = analysis.response;
    let column = |heading: &str, dispensable, value: &dyn Fn(&CellAnalysis) -> String| {
        Column::new(heading, dispensable, analysis.cells.iter().map(value))
    };
    let mut columns: Vec<Column> = analysis
        .factors
        .iter()
        .enumerate()
        .map(|(i, factor)| {
            let level = |c: &CellAnalysis| {
                let level = c.cell.levels.get(i).map_or("", String::as_str);
                plain(level).into_owned()
            };
            column(&plain(factor), 0, &level)
        })
        .collect();
    let latency = |of: fn(&iolab_analysis::analysis::Latency) -> f64| {
        move |c: &CellAnalysis| c.latency.map_or_else(none, |l| format_ns(of(&l)))
    };
    columns.extend([
        column("n", 2, &|c| c.n.to_string()),
        column(heading(response), 0, &|c| {
            c.response.map_or_else(none, |r| bare(response, r.median))
        }),
        column("95 % interval", 1, &|c| {
            let interval = c.response.and_then(|r| r.median_interval);
            interval.map_or_else(none, |i| range(response, &i))
        }),
        column("+/-", 5, &|c| c.precision.map_or_else(none, format_percent)),
        column("IQR", 6, &|c| {
            c.response
                .map_or_else(none, |r| bare(response, r.q3 - r.q1))
        }),
    ]);
    if analysis.cells.iter().any(|c| c.pace.is_some()) {
        let achieved = |c: &CellAnalysis| {
            let pace = c.pace.as_ref();
            pace.map_or_else(none, |p| significant(p.rate_achieved))
        };
        columns.push(column("achieved/s", 3, &achieved));
    }
    // Whole programs, and trials that were not timed request by request, have none.
    if analysis.cells.iter().any(|c| c.latency.is_some()) {
        // Where the latency is the response, its median stands there already.
        let dispensable = if response == Response::Latency { 6 } else { 4 };
        columns.push(column("p50", dispensable, &latency(|l| l.p50_ns)));
        columns.push(column("p99", 4, &latency(|l| l.p99_ns)));
    }
    if analysis.cells.iter().any(|c| c.sync.is_some()) {
        let sync = |of: fn(&iolab_analysis::analysis::Latency) -> f64| {
            move |c: &CellAnalysis| c.sync.map_or_else(none, |l| format_ns(of(&l)))
        };
        columns.push(column("sync p50", 4, &sync(|l| l.p50_ns)));
        columns.push(column("sync p99", 4, &sync(|l| l.p99_ns)));
    }
    if analysis.cells.iter().any(|c| c.pace.is_some()) {
        let service = |c: &CellAnalysis| {
            // Without a rate the latency is the service time.
            let service = c.pace.as_ref().map_or(c.latency, |p| p.service);
            service.map_or_else(none, |l| format_ns(l.p50_ns))
        };
        columns.push(column("service p50", 4, &service));
    }
    columns.extend(grid_columns(analysis));
    columns.extend([
        column("served by", 0, &|c| {
            c.served.as_ref().map_or_else(none, ToString::to_string)
        })
        .left(),
        column("ended by", 7, &|c| {
            let ended = c.cell.ended_by.map_or("open", EndedBy::name);
            ended.to_owned()
        })
        .left(),
    ]);
    if analysis.cells.iter().any(|c| !c.flags.is_empty()) {
        let flags = |c: &CellAnalysis| {
            let names: Vec<String> = c.flags.iter().map(ToString::to_string).collect();
            names.join(", ")
        };
        columns.push(column("flags", 3, &flags).left());
    }
    columns
}

/// What a grid over concurrency is read for, and ceilings where there are any.
fn grid_columns(analysis: &Analysis) -> Vec<Column> {
    let column = |heading: &str, dispensable, value: &dyn Fn(&CellAnalysis) -> String| {
        Column::new(heading, dispensable, analysis.cells.iter().map(value))
    };
    let mut columns = Vec::new();
    let varies = |name: &&str| analysis.factors.iter().any(|factor| factor == name);
    if ["threads", "depth"].iter().any(varies) {
        let latency = |of: fn(&iolab_analysis::analysis::Latency) -> f64| {
            move |c: &CellAnalysis| c.latency.map_or_else(none, |l| format_ns(of(&l)))
        };
        columns.push(column("p99.9", 6, &latency(|l| l.p999_ns)));
        columns.push(column("max", 6, &latency(|l| l.max_ns)));
        if analysis.response == Response::Throughput {
            let iops = |c: &CellAnalysis| c.iops.map_or_else(none, |i| significant(i.median));
            columns.push(column("IOPS", 4, &iops));
        }
        columns.push(column("at once", 4, &at_once));
    }
    if analysis.cells.iter().any(|c| c.efficiency.is_some()) {
        columns.push(column("ceiling", 4, &|c| {
            c.efficiency.map_or_else(none, |e| e.ceiling_text())
        }));
        columns.push(column("efficiency", 2, &|c| {
            c.efficiency.map_or_else(none, |e| e.share_text())
        }));
    }
    columns
}

/// Requests in service at once, of those that were asked for: `3.9 of 8`.
fn at_once(cell: &CellAnalysis) -> String {
    let known = cell
        .concurrency
        .and_then(|c| Some((c.achieved?.0, c.asked)));
    known.map_or_else(none, |(achieved, asked)| {
        format!("{} of {asked}", digits(achieved, 2))
    })
}

pub(crate) fn none() -> String {
    "-".to_owned()
}

fn heading(response: Response) -> &'static str {
    match response {
        Response::Latency => "latency",
        Response::Elapsed => "time",
        other => other.unit(),
    }
}

pub(crate) fn bare(response: Response, value: f64) -> String {
    match response {
        Response::Latency | Response::Elapsed => format_ns(value),
        _ => significant(value),
    }
}

pub(crate) fn range(response: Response, interval: &Interval) -> String {
    format!(
        "{} to {}",
        bare(response, interval.low),
        bare(response, interval.high)
    )
}
