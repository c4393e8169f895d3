//! The blocks that support the numbers: method, evidence, settings, environment, and commands that repeat the
//! study.

use std::collections::{BTreeMap, HashSet};

use super::commands::{self, OwnModel};
use super::study::Study;
use super::{Input, clean, method, section, stem};
use crate::block::{Block, Item, Lines, List, Table};
use crate::fact;
use crate::findings::sentences::grouped;
use crate::layout::{columns_over, level_columns, none};
use iolab_analysis::analysis::{Analysis, CellAnalysis, CellServed, Response};
use iolab_figure::labels;
use iolab_record::environment::KEYS;
use iolab_record::{ResourceUse, RunRecord, Sample};
use iolab_stats::median;
use iolab_workload::units::{format_ns, format_percent, significant};

/// All blocks of this part.
pub(super) fn blocks(study: &Study<'_>) -> Vec<Block> {
    let inputs = study.report.inputs;
    let mut all = vec![
        Block::heading(2, "all", "Behind the numbers"),
        Block::folded(3, "method", "Method"),
    ];
    let orders = study.latest.iter().filter_map(|place| inputs.get(*place));
    let orders: Vec<_> = orders
        .map(|input| input.run.analysis().trial_order)
        .collect();
    let (rules, references) = method::rules(&orders, &study.findings.kinds);
    all.push(Block::list(rules.into_iter().map(Item::of).collect()));
    all.push(Block::folded(3, "references", "References"));
    all.push(Block::List(List {
        is_ordered: true,
        items: references.into_iter().map(Item::of).collect(),
    }));
    all.push(Block::folded(
        3,
        "evidence",
        "Evidence, settings and events",
    ));
    let mut repeat: Vec<String> = Vec::new();
    for (place, input) in inputs.iter().enumerate() {
        let name = study.names.get(place).cloned().unwrap_or_default();
        let model = study.models.get(place).and_then(Option::as_ref);
        let toml = definition_of(study, place, input);
        all.push(Block::heading(4, "", name));
        all.extend(of_run(place, input, model, &toml));
        let again = format!("{}-again.iolab", stem(place, input));
        repeat.extend(commands::of_run(input, &toml, model, &again));
    }
    all.push(Block::folded(3, "environment", "Environment"));
    all.push(Block::Facts(environment(inputs, &study.names)));
    repeat.extend(commands::of_report(inputs));
    all.extend([
        Block::folded(3, "repeat", "Repeat it"),
        Block::text("Save each definition from the evidence above. Then run:"),
        Block::commands(repeat.join("\n")),
    ]);
    all
}

/// Name of the file with the definition of a run: the one of a latest run serves all runs with the same definition.
fn definition_of(study: &Study<'_>, place: usize, input: &Input) -> String {
    let inputs = study.report.inputs;
    let of_place = study.sequences.iter().filter(|one| one.0.contains(&place));
    let latest = of_place.filter_map(|one| one.latest());
    let mut latest = latest.filter_map(|index| Some((index, inputs.get(index)?)));
    let toml = |input: &Input| input.run.record().experiment.toml.clone();
    let same = latest.find(|(_, latest)| toml(latest) == toml(input));
    let (index, input) = same.unwrap_or((place, input));
    format!("{}.toml", stem(index, input))
}

/// Evidence, settings, definition and events of a run.
fn of_run(place: usize, input: &Input, model: Option<&OwnModel>, toml: &str) -> Vec<Block> {
    let (record, analysis) = (input.run.record(), input.run.analysis());
    let file = clean(&input.path.to_string_lossy());
    let mut all = vec![
        Block::Table(table(record, analysis)),
        Block::text(format!("Run file: {file}.")),
        Block::Facts(section::settings(record)),
    ];
    let lines = |heading: &str, file: &str, text: String| {
        [
            Block::folded(5, "", format!("{heading}, as {file}")),
            Block::Lines(Lines {
                file: file.to_owned(),
                text,
            }),
        ]
    };
    if toml == format!("{}.toml", stem(place, input)) {
        all.extend(lines(
            "Definition",
            toml,
            section::lines(&record.experiment.toml),
        ));
    }
    if let Some(model) = model.filter(|model| model.is_shown) {
        let text = model.text.replace('\t', "    ");
        all.extend(lines("Model", &model.file, section::lines(&text)));
    }
    let events = section::events(record);
    let note = commands::lacking(record);
    if !note.is_empty() || !events.is_empty() {
        all.push(Block::heading(5, "", "Events"));
    }
    if !note.is_empty() {
        all.push(Block::text(note));
    }
    if !events.is_empty() {
        all.push(Block::list(events.into_iter().map(Item::of).collect()));
    }
    all
}

/// Name and value of each property of the machine, the kernel, the file systems and the devices, in the order in
/// which they first appear. `RUNS: VALUE` for each value if runs differ.
fn environment(inputs: &[Input], runs: &[String]) -> Vec<(String, String)> {
    let mut seen = HashSet::new();
    let names = inputs
        .iter()
        .flat_map(|i| i.run.record().environment.iter());
    // A definition has a place of its own.
    let names = names
        .map(|(name, _)| name)
        .filter(|name| *name != KEYS.model_definition.name() && seen.insert(*name));
    let fact = |name: &str| (fact::name(name), values(inputs, runs, name).join("; "));
    names.map(fact).collect()
}

fn values(inputs: &[Input], runs: &[String], name: &str) -> Vec<String> {
    let of = |input: &Input| {
        let found = input.run.record().environment.text(name);
        found.map_or_else(|| "not known".to_owned(), |text| fact::value(name, text))
    };
    let of_values = grouped(inputs.iter().map(of).zip(runs.iter().map(String::as_str)));
    match of_values.as_slice() {
        [(only, _)] => vec![only.clone()],
        several => several
            .iter()
            .map(|(value, names)| format!("{}: {value}", names.join(", ")))
            .collect(),
    }
}

/// Part of the bytes of the requests from which a factor is shown, since it would round to more than 100 %.
const PART_MAX: f64 = 1.005;

/// The table, with one row for each cell.
pub(super) fn table(record: &RunRecord, analysis: &Analysis) -> Table {
    let exceeds = |part: fn(&Sample) -> Option<f64>| {
        let mut measured = record.samples.iter().filter(|s| s.is_measured());
        measured.any(|sample| part(sample).is_some_and(|part| part >= PART_MAX))
    };
    let notes = [
        (
            true,
            "by process and by device: the bytes that the process's account and the device's counters show, over the bytes of the requests",
        ),
        (
            exceeds(written_by_process),
            "the account counts a large folio of the page cache as a whole once a part of it is written",
        ),
        (
            exceeds(by_device),
            "a device that carried several times as much was read ahead of the requests, or used by others",
        ),
        (
            true,
            "faults (minor, major) and switches (voluntary, involuntary) per trial",
        ),
        (
            true,
            "CPU: user and kernel time per request, and over the elapsed time",
        ),
    ];
    let notes = notes.iter().filter(|(is_shown, _)| *is_shown);
    let notes = notes.map(|(_, note)| (*note).to_owned());
    let mut samples: BTreeMap<i64, Vec<&Sample>> = BTreeMap::new();
    for sample in record.samples.iter().filter(|s| s.is_measured()) {
        samples.entry(sample.cell).or_default().push(sample);
    }
    let rows: Vec<EvidenceRow> = analysis
        .cells
        .iter()
        .map(|cell| EvidenceRow {
            cell,
            trials: samples.get(&cell.cell.id).map_or(&[][..], Vec::as_slice),
        })
        .collect();
    let column = columns_over(&rows);
    let levels = rows.iter().map(|row| row.cell.cell.levels.as_slice());
    let mut columns = level_columns(&analysis.factors, levels);
    columns.extend([
        column("served by", 0, &|row| row.of_source(labels::served)).left(),
        column("by process", 0, &|row| row.part(by_process)),
        column("by device", 0, &|row| row.part(by_device)),
        column("faults", 0, &|row| {
            row.two(|of| of.minor_faults, |of| of.major_faults)
        }),
        column("switches", 0, &|row| {
            row.two(|of| of.voluntary_switches, |of| of.involuntary_switches)
        }),
        column("CPU per request", 0, &|row| {
            row.cell.median(Response::Cpu).map_or_else(none, format_ns)
        }),
        column("CPU", 0, &|row| row.share(cpu)),
        column("why", 0, &|row| {
            row.of_source(|served| clean(&served.reason))
        })
        .left(),
    ]);
    Table::new("Medians over the measured trials", notes, columns)
}

/// A cell and its measured trials.
struct EvidenceRow<'a> {
    cell: &'a CellAnalysis,
    trials: &'a [&'a Sample],
}

impl EvidenceRow<'_> {
    fn median(&self, value: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.trials.iter().filter_map(|s| value(s)).collect();
        median(&values)
    }

    fn share(&self, value: impl Fn(&Sample) -> Option<f64>) -> String {
        self.median(value).map_or_else(none, format_percent)
    }

    /// `98.5 %`, or `1.53 times` where the device carried more.
    fn part(&self, value: impl Fn(&Sample) -> Option<f64>) -> String {
        match self.median(&value) {
            Some(part) if part >= PART_MAX => format!("{} times", significant(part)),
            _ => self.share(value),
        }
    }

    fn of_source(&self, text: impl Fn(&CellServed) -> String) -> String {
        self.cell.served.as_ref().map_or_else(none, text)
    }

    fn two(&self, first: fn(&ResourceUse) -> u64, second: fn(&ResourceUse) -> u64) -> String {
        let of =
            |count: fn(&ResourceUse) -> u64| self.median(|s| Some(count(&s.counters.usage) as f64));
        match of(first).zip(of(second)) {
            Some((first, second)) => format!("{}, {}", times(first), times(second)),
            None => none(),
        }
    }
}

/// Formats a median of counts, which can lie between two counts.
fn times(count: f64) -> String {
    if count.fract() == 0.0 {
        format!("{count:.0}")
    } else {
        significant(count)
    }
}

fn by_process(sample: &Sample) -> Option<f64> {
    let io = sample.counters.process_io?;
    over_bytes(io.read_bytes as f64 + io.write_bytes as f64, sample)
}

fn written_by_process(sample: &Sample) -> Option<f64> {
    over_bytes(sample.counters.process_io?.write_bytes as f64, sample)
}

fn by_device(sample: &Sample) -> Option<f64> {
    let device = sample.counters.device?;
    over_bytes(device.read_bytes as f64 + device.write_bytes as f64, sample)
}

fn over_bytes(part: f64, sample: &Sample) -> Option<f64> {
    (sample.bytes() > 0).then(|| part / sample.bytes() as f64)
}

fn cpu(sample: &Sample) -> Option<f64> {
    (sample.elapsed_ns > 0).then(|| sample.cpu_ns() as f64 / sample.elapsed_ns as f64)
}
