//! A table with one row per cell, as text that fits a terminal or as Markdown.

use crate::notation::clean;
use std::collections::BTreeSet;

use crate::block::Table;
use crate::layout::{Column, level_columns, none, shared};
use crate::ratio;
use iolab_analysis::analysis::{
    Analysis, CellAnalysis, CellRanks, CellServed, CellStages, DoubtKind, Response,
};
use iolab_figure::labels;
use iolab_record::{EndedBy, Operation, RunStatus};
use iolab_stats::Interval;
use iolab_workload::escape_control::escape_control;
use iolab_workload::response::Unasked;
use iolab_workload::settings::{CellSpec, DESCRIBING, SETTINGS, Tool, Value};
use iolab_workload::stages::CarriedBy;
use iolab_workload::trial::{Rate, TrialSpec};
use iolab_workload::units::{between, counted, digits, format_ns, format_percent, significant};
use iolab_workload::{table, trial_description};

/// Heading of the column of flags.
const FLAGS: &str = "flags";

/// Width reserved for flags, which are broken into lines.
const FLAGS_WIDTH: usize = 18;

/// The table, with what all cells have in common above it.
pub fn table(analysis: &Analysis) -> Table {
    let notes = notes(analysis).into_iter();
    let notes = notes.chain(in_words(analysis));
    Table::new(title(analysis), notes, columns(analysis))
}

/// The columns of a first screen: the interval next to its number, unless `is_precise` says that one line has
/// it.
pub(crate) fn first_columns(analysis: &Analysis, is_precise: bool) -> Vec<Column> {
    let mut columns = columns(analysis);
    let left_out = [FLAGS, "n", "IQR", "ended by"];
    columns.retain(|column| !left_out.iter().any(|name| column.is(name)));
    if is_precise {
        columns.retain(|column| !column.is("95 % interval") && !column.is("+/-"));
    }
    if analysis.cells.iter().any(|cell| cached(cell).is_some()) {
        let of = |cell: &CellAnalysis| cached(cell).map(str::to_owned);
        columns.push(column(&rows(analysis), "left in a cache", 0, of).left());
    }
    columns
}

/// The cache that still held what a cell had written, as the flag that says so.
pub(crate) fn cached(cell: &CellAnalysis) -> Option<&'static str> {
    let owed = [DoubtKind::WriteBackOwed, DoubtKind::StorageCache];
    let owed = owed.into_iter().find(|what| cell.flags.contains(what))?;
    Some(owed.name())
}

/// The content of the table.
pub(crate) fn title(analysis: &Analysis) -> String {
    format!(
        "{}: {}, median of n trials",
        escape_control(&analysis.experiment),
        escape_control(&analysis.response_name()),
    )
}

/// Origin and meaning of the numbers of all cells.
fn notes(analysis: &Analysis) -> Vec<String> {
    let unfinished = match analysis.status {
        RunStatus::Done => None,
        RunStatus::Running => Some("unfinished".to_owned()),
        RunStatus::Interrupted => Some("interrupted".to_owned()),
        RunStatus::Failed => Some("ended by a failure".to_owned()),
    };
    let mut groups = analysis.cells.iter().flat_map(|cell| &cell.groups);
    let shares = |served: &CellServed| served.is_shared;
    let all = match groups.any(|group| group.cell.served.as_ref().is_some_and(shares)) {
        true => "all groups together",
        false => "all",
    };
    let origin = match &analysis.model {
        Some(_) => Some(format!(
            "computed by {} in virtual time",
            escape_control(&analysis.target)
        )),
        None => common_source(analysis).map(|source| format!("{all} served by: {source}")),
    };
    let interval = format!("95 % interval: for a repeat at once{}", times(analysis));
    let notes = [
        unfinished,
        origin,
        of_ranks(analysis),
        of_groups(analysis),
        Some(interval),
        apart(analysis),
    ];
    notes.into_iter().flatten().collect()
}

/// The number of processes, and the uncertainty of their clocks; `None` for a single one.
fn of_ranks(analysis: &Analysis) -> Option<String> {
    let ranks = || analysis.cells.iter().filter_map(|cell| cell.ranks.as_ref());
    let most = ranks().map(|r| r.ranks).max()?;
    let hosts = ranks().map(|r| r.hosts).max()?;
    let bound = |of: fn(&CellRanks) -> f64| {
        let share = ranks().map(of).fold(0.0, f64::max);
        format!("+/- {} %", significant(share * 100.0))
    };
    Some(format!(
        "{} on {}: throughput from the first start to the last end, clock bound {}; all active: while all ranks were, clock bound {}",
        counted(most as u32, "rank"),
        counted(hosts as u32, "host"),
        bound(|r| r.clock_bound),
        bound(|r| r.all_active_bound),
    ))
}

/// Reason why the row of all groups can lie below the row of a group; `None` if no row does.
pub(crate) fn of_groups(analysis: &Analysis) -> Option<String> {
    let throughput = |cell: &CellAnalysis| cell.median(Response::Throughput).unwrap_or(0.0);
    let is_below = |cell: &CellAnalysis| {
        let groups = cell.groups.iter().map(|group| throughput(&group.cell));
        let all = cell.groups.last().map_or(0.0, |all| throughput(&all.cell));
        groups.fold(0.0, f64::max) > all
    };
    let note =
        "all: bytes of all groups, from the first start to the last end; a group: to its own end";
    let is_needed = analysis.cells.iter().any(is_below);
    is_needed.then(|| note.to_owned())
}

/// The origin of the bytes of all measured cells; `None` where they differ.
fn common_source(analysis: &Analysis) -> Option<String> {
    let sources = analysis.cells.iter().filter_map(|c| c.served.as_ref());
    shared(sources.map(labels::served))
}

/// The end of a sentence about latencies: which times they are depends on how requests were issued.
fn times(analysis: &Analysis) -> String {
    let shown = rows(analysis);
    let timed = || {
        shown
            .iter()
            .map(|(_, cell)| *cell)
            .filter(|c| c.latency.is_some())
    };
    let same = |value: fn(&CellAnalysis) -> String| shared(timed().map(value));
    let alone = timed().all(|cell| cell.cell.trial().workers() == 1);
    let depth = |c: &CellAnalysis| match c.cell.spec.unknown.contains("depth") {
        true => "unknown".to_owned(),
        false => c.cell.trial().depth.to_string(),
    };
    let service = match same(depth).as_deref() {
        Some("unknown") => "requests at an unknown depth".to_owned(),
        Some("1") if alone => "one request at a time".to_owned(),
        Some("1") => "one request at a time per thread".to_owned(),
        Some(depth) => format!("requests at depth {depth}"),
        None => "requests at the depth of the cell".to_owned(),
    };
    let response = match same(|c| c.cell.trial().rate().map_or_else(String::new, per_second)) {
        Some(rate) => format!("time from the scheduled start, at {rate}"),
        None => "time from the scheduled start".to_owned(),
    };
    let open = timed().filter(|c| c.rate_report.is_some()).count();
    let what = match timed().count() {
        0 => return String::new(),
        _ if open == 0 => service,
        all if open == all => response,
        _ => format!("{response}; without a rate: {service}"),
    };
    let asked = [analysis.response].into_iter();
    let asked = asked.filter(|response| response.is_latency());
    let others = latencies().map(|(one, _)| one);
    let others = others.filter(|one| *one != analysis.response);
    let which: Vec<&str> = asked.chain(others).map(Response::heading).collect();
    format!("; {}: {what}", which.join(", "))
}

/// A rate in words: `5000/s`, `50MB/s`.
fn per_second(rate: Rate) -> String {
    match rate {
        Rate::Requests(requests) => format!("{requests}/s"),
        Rate::Bytes(_) => rate.to_string(),
    }
}

/// A row of the table: a cell with the name of its group; `None` without groups.
type TableRow<'a> = (Option<&'a str>, &'a CellAnalysis);

/// The rows: one per cell, or one per group of a cell and one for all of them.
fn rows(analysis: &Analysis) -> Vec<TableRow<'_>> {
    let rows = analysis.cells.iter().flat_map(|cell| {
        let groups = cell.groups.iter();
        let groups = groups.map(|group| (Some(group.name.as_str()), &group.cell));
        let own = std::iter::once((None, cell)).filter(|_| cell.groups.is_empty());
        own.chain(groups)
    });
    rows.collect()
}

/// Whether the write latency of a cell excludes the sync after the write: iolab includes it, peers do not.
fn leaves_sync_out(cell: &CellAnalysis) -> bool {
    let follows = |trial: &TrialSpec| trial.writes() && trial.sync.follows_writes();
    cell.cell.spec.tool.is_peer()
        && cell.latency.is_some()
        && cell.cell.spec.only_trial().is_some_and(follows)
}

/// Differences between latencies in one column; `None` if they have one meaning.
fn apart(analysis: &Analysis) -> Option<String> {
    let apart = analysis.cells.iter().filter(|cell| leaves_sync_out(cell));
    let tools: BTreeSet<Tool> = apart.map(|cell| cell.cell.spec.tool).collect();
    let tools: Vec<String> = tools.iter().map(Tool::to_string).collect();
    (!tools.is_empty()).then(|| {
        format!(
            "*: without the sync that follows a write ({}); iolab's latency of a write includes it",
            tools.join(", ")
        )
    })
}

/// All columns in order. Besides levels and response, a column exists if a row has a value, and its heading is not a factor.
pub(crate) fn columns(analysis: &Analysis) -> Vec<Column> {
    let rows = rows(analysis);
    let levels = rows.iter().map(|(_, cell)| cell.cell.levels.as_slice());
    let mut columns = level_columns(&analysis.factors, levels);
    columns.extend(group_column(&rows));
    columns.extend(response_columns(analysis, &rows));
    let mut factors = analysis.factors.iter();
    let is_grid = factors.any(|factor| ["threads", "depth"].contains(&factor.as_str()));
    let further = [
        load_columns(&rows).into(),
        other_quantities(analysis, &rows, is_grid),
        mix_columns(analysis, &rows),
        stage_columns(&rows, is_grid).into(),
        end_columns(analysis, &rows),
    ];
    let none = none();
    columns.extend(further.into_iter().flatten().filter(|column| {
        let has_value = column.values.iter().any(|value| *value != none);
        has_value && !analysis.factors.iter().any(|factor| column.is(factor))
    }));
    columns
}

/// A column of one value per row; see [`Column::new`].
fn column(
    rows: &[TableRow<'_>],
    heading: &str,
    dispensable: u8,
    value: impl Fn(&CellAnalysis) -> Option<String>,
) -> Column {
    let values = rows
        .iter()
        .map(|(_, cell)| value(cell).unwrap_or_else(none));
    Column::new(heading, dispensable, values)
}

/// The group of a row; `None` without groups.
fn group_column(rows: &[TableRow<'_>]) -> Option<Column> {
    let names = rows.iter();
    let names = names.map(|(group, _)| group.map_or_else(none, str::to_owned));
    let is_needed = rows.iter().any(|(group, _)| group.is_some());
    is_needed.then(|| Column::new("group", 0, names).left())
}

/// A value of a quantity in a cell, as in a column; marked where it is a latency that leaves the sync after a write out.
fn marked(of: Response, value: f64, cell: &CellAnalysis) -> String {
    let mark = match of.is_latency() && leaves_sync_out(cell) {
        true => "*",
        false => "",
    };
    bare(of, value) + mark
}

/// The number of trials, the response and its uncertainty.
fn response_columns(analysis: &Analysis, rows: &[TableRow<'_>]) -> [Column; 5] {
    let response = analysis.response;
    let heading = match analysis.operation() {
        Some(operation) => format!("{operation} {}", response.heading()),
        None => response.heading().to_owned(),
    };
    [
        // Number of values that the median in the next column covers: not every trial has one.
        column(rows, "n", 4, |c| {
            Some(c.response.map_or(c.n, |r| r.n).to_string())
        }),
        column(rows, &heading, 0, |c| {
            Some(marked(response, c.response?.median, c))
        }),
        column(rows, "95 % interval", 0, |c| {
            Some(range(response, &c.response?.median_interval?))
        }),
        column(rows, "+/-", 6, |c| c.precision.map(format_percent)),
        column(rows, "IQR", 7, |c| {
            let (q1, q3) = c.response?.quartiles()?;
            Some(bare(response, q3 - q1))
        }),
    ]
}

/// The latencies that every table has, with how dispensable they are.
pub(crate) fn latencies() -> impl Iterator<Item = (Response, u8)> {
    let all = Response::ALL.into_iter();
    all.filter_map(|of| match of.unasked() {
        Unasked::Everywhere(dispensable) => Some((of, dispensable)),
        _ => None,
    })
}

/// The quantities next to the response, of cells with one kind of requests: a mix has them separately. The
/// response is not among them: its own column withholds a tail that too few trials have.
fn other_quantities(analysis: &Analysis, rows: &[TableRow<'_>], is_grid: bool) -> Vec<Column> {
    let value = |of: Response, c: &CellAnalysis| match of.is_latency() {
        true => c.latency.filter(|_| c.mix.is_none())?[of],
        false => c.median(of),
    };
    let others = Response::ALL.into_iter();
    let others = others.filter(|of| *of != analysis.response);
    let columns = others.filter_map(|of| {
        let dispensable = match of.unasked() {
            Unasked::Everywhere(dispensable) => Some(dispensable),
            Unasked::OverLoads(dispensable) => is_grid.then_some(dispensable),
            Unasked::OfGroups(dispensable) => analysis.has_groups().then_some(dispensable),
            Unasked::Nowhere => None,
        };
        let text = |c: &CellAnalysis| Some(marked(of, value(of, c)?, c));
        Some(column(rows, of.heading(), dispensable?, text))
    });
    columns.collect()
}

/// The processes that took part, the throughput while all of them were active, and the achieved rate.
fn load_columns(rows: &[TableRow<'_>]) -> [Column; 4] {
    table! {
        column(rows, "ranks", 5, |c| Some(c.ranks.as_ref()?.ranks.to_string()));
        column(rows, "hosts", 5, |c| Some(c.ranks.as_ref()?.hosts.to_string()));
        column(rows, "all active MB/s", 2, |c| Some(significant(c.ranks.as_ref()?.all_active?.median)));
        column(rows, "achieved/s", 3, |c| Some(significant(c.rate_report.as_ref()?.rate_achieved)));
    }
}

/// The service time next to response times, and the time of traced requests in the device, elsewhere, and until the
/// thread had the answer. Concurrency where the load varies, and efficiency where there are ceilings.
fn stage_columns(rows: &[TableRow<'_>], is_grid: bool) -> [Column; 9] {
    let any = |is: &dyn Fn(&CellAnalysis) -> bool| rows.iter().any(|(_, cell)| is(cell));
    // Without a rate, the latency is the service time.
    let has_rates = any(&|c| c.rate_report.is_some());
    // Without traces, the device's counters give a mean.
    let is_traced = any(&|c| traced(c).is_some());
    // If layers carried all traced requests, the work of this machine is a part of their time.
    let is_disk = any(&|c| traced(c).is_some_and(|s| s.carried_by != CarriedBy::Layers));
    let device = if is_disk { "device" } else { "layers" };
    let is_short = |(seen, asked)| seen < IN_FLIGHT_TOLD * asked as f64;
    let shows_flight = is_grid && any(&|c| in_flight(c).is_some_and(is_short));
    let service = |c: &CellAnalysis| {
        let service = c.rate_report.as_ref().map_or(c.latency, |p| p.service);
        service.filter(|_| has_rates && c.mix.is_none())?[Response::Latency].map(format_ns)
    };
    table! {
        column(rows, "service p50", 5, service);
        column(rows, "device mean", 6, |c| c.disturbance.device_mean_ns.filter(|_| !is_traced).map(format_ns));
        column(rows, &format!("{device} p50"), 3, |c| Some(format_ns(traced(c)?.stages.device.as_ref()?.p50_ns)));
        column(rows, &format!("{device} p99"), 4, |c| Some(format_ns(traced(c)?.stages.device.as_ref()?.p99_ns)));
        column(rows, "host share", 3, |c| traced(c)?.host_share().map(format_percent));
        column(rows, "delivery p99", 4, |c| Some(format_ns(traced(c)?.stages.delivery.as_ref()?.p99_ns)));
        column(rows, "in flight", 5, |c| {
            let (seen, asked) = in_flight(c).filter(|_| shows_flight)?;
            Some(format!("{} of {asked}", digits(seen, 2)))
        });
        column(rows, "ceiling", 4, |c| c.efficiency.as_ref().map(ratio::ceiling));
        column(rows, "efficiency", 0, |c| c.efficiency.as_ref().map(ratio::share));
    }
}

fn traced(cell: &CellAnalysis) -> Option<&CellStages> {
    cell.stages.as_ref().filter(|stages| stages.known > 0)
}

/// Requests in flight, and those that were asked for.
fn in_flight(cell: &CellAnalysis) -> Option<(f64, u64)> {
    let known = cell.concurrency?;
    Some((known.in_flight?, known.asked))
}

/// Throughput or IOPS and latencies of each operation, where cells have several, and latencies of syncs.
fn mix_columns(analysis: &Analysis, rows: &[TableRow<'_>]) -> Vec<Column> {
    let rate = match analysis.response {
        Response::Iops => Response::Iops,
        _ => Response::Throughput,
    };
    let quantities = || std::iter::once((rate, 1)).chain(latencies());
    let of_operation = |operation: &Operation| {
        let is_response = analysis.operation() == Some(*operation);
        let others = quantities().filter(|(of, _)| !is_response || *of != analysis.response);
        let columns = others.map(|(of, dispensable)| {
            let heading = format!("{operation} {}", of.heading());
            column(rows, &heading, dispensable, |c| {
                let medians = match operation {
                    Operation::Sync => c.sync?,
                    _ => c.mix.as_ref()?[*operation].as_ref()?.medians,
                };
                medians[of].map(|value| bare(of, value))
            })
        });
        columns.collect::<Vec<_>>()
    };
    Operation::ALL.iter().flat_map(of_operation).collect()
}

/// Origin of the bytes if cells differ in it, the reason that ended the repetition, and the flags.
fn end_columns(analysis: &Analysis, rows: &[TableRow<'_>]) -> Vec<Column> {
    let is_common = common_source(analysis).is_some();
    let served = |c: &CellAnalysis| c.served_alone().filter(|_| !is_common).map(labels::served);
    let ended = |c: &CellAnalysis| Some(c.cell.ended_by.map_or("open", EndedBy::name).to_owned());
    let has_flags = rows.iter().any(|(_, cell)| !cell.flags.is_empty());
    let flags = |c: &CellAnalysis| {
        let names: Vec<String> = c.flags.iter().map(ToString::to_string).collect();
        has_flags.then(|| names.join(", "))
    };
    vec![
        column(rows, "served by", 0, served).left(),
        column(rows, "ended by", 8, ended).left(),
        column(rows, FLAGS, 1, flags).left().breaking(FLAGS_WIDTH),
    ]
}

/// Requests in flight are shown where a cell has less than this share of those requested.
const IN_FLIGHT_TOLD: f64 = 0.9;

/// A value of the response as in a column: without its unit, except times.
pub fn bare(response: Response, value: f64) -> String {
    match response.is_time() {
        true => response.format(value),
        false => significant(value),
    }
}

pub(crate) fn range(response: Response, interval: &Interval) -> String {
    let ends = [interval.low, interval.high].map(|end| bare(response, end));
    between(&ends[0], &ends[1])
}

/// Settings named above a table if they do not vary.
const NAMED: [&str; 6] = ["bs", "threads", "depth", "backend", "cache", "region"];

/// Settings that describe the accesses.
const OF_ACCESS: [&str; 4] = ["workload", "pattern", "read_percent", "sync"];

/// Settings that are not named: length and beginning of trials, recording of latencies, choices of iolab for new
/// runs, and settings that stand elsewhere. All others are named if they differ from their defaults.
const NOT_NAMED: [&str; 12] = [
    "bytes", "time", "batch", "first_offset", "buffer_memory", "target", "tool", "ranks", "hosts",
    "active", "latency", "latency_over_time",
];

/// Properties that all cells share, including settings that differ from their defaults: `settings: random reads,
/// threads=1, depth=1, backend=psync, cache=direct, region=1GiB`. `None` for programs and groups, whose settings
/// differ in other ways, and without cells.
fn in_words(analysis: &Analysis) -> Option<String> {
    let cells = || analysis.cells.iter().map(|cell| &cell.cell.spec);
    let first = cells().next()?;
    if cells().any(|spec| spec.runs_program() || spec.has_groups()) {
        return None;
    }
    let varies = |name: &str| analysis.factors.iter().any(|factor| factor == name);
    // What a report leaves out has no words.
    let trial = first.only_trial();
    let access = trial.map(trial_description::in_words).filter(|access| {
        let is_one = cells().all(|spec| trial_description::accesses_of_cell(spec) == *access);
        is_one && !OF_ACCESS.iter().any(|name| varies(name))
    });
    let default = CellSpec::default();
    let is_elsewhere = |name: &&str| OF_ACCESS.contains(name) || NOT_NAMED.contains(name);
    let named = SETTINGS.iter().filter(|setting| {
        NAMED.contains(&setting.name)
            || trial.is_none() && DESCRIBING.contains(&setting.name)
            || !is_elsewhere(&setting.name)
                && ![setting.value(&default), Value::Unknown].contains(&setting.value(first))
    });
    let alike = named.filter(|setting| {
        let value = setting.get(first);
        !varies(setting.name) && cells().all(|spec| setting.get(spec) == value)
    });
    let levels = alike.map(|setting| format!("{}={}", setting.name, setting.get(first)));
    let parts: Vec<String> = access.into_iter().chain(levels).collect();
    let text = format!("settings: {}", parts.join(", "));
    (!parts.is_empty()).then(|| clean(&text))
}
