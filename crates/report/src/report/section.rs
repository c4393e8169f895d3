//! One experiment of a report: its question, its numbers and their basis.

use std::time::Duration;

use iolab_analysis::analysis::Analysis;
use iolab_analysis::buffer_preparation::preparation;
use iolab_analysis::compare::Comparison;
use iolab_analysis::equivalence::program_pairs;
use iolab_record::{Cell, EndedBy, RunRecord, exported_settings};
use iolab_workload::quantity::{exact_duration, format_percent};
use iolab_workload::settings::{DESCRIBING, Value, cell_label};

use super::captioned::Captioned;
use super::file_names::{id, stem};
use super::own_model::{self, OwnModel};
use super::run_sequence::RunSequence;
use super::summary::moment;
use super::{Input, clean, commands, evidence, standard_tables};
use crate::layout::Grid;
use crate::setting_value::setting_value;
use crate::{clients, compare, comparison_table, equivalence, table};
use iolab_workload::quantity::counted;

/// The content of a report about one run.
#[derive(Debug, Clone)]
pub(super) struct Section {
    /// Id of the section in the document.
    pub(super) id: String,
    /// Common beginning of its file names: `e1-read-size`.
    pub(super) stem: String,
    pub(super) name: String,
    pub(super) question: String,
    /// The run in lines that can be pasted, one per target.
    pub(super) conclusions: Vec<String>,
    /// Run file of the section.
    pub(super) file: String,
    /// The number of trials that its findings are based on, and the source of their bytes.
    pub(super) trials: String,
    pub(super) tables: Vec<Captioned>,
    /// Tables of a standard's report, which precede the others and follow the figure of its rounds; empty
    /// without a standard.
    pub(super) standard_tables: Vec<Captioned>,
    /// The cells of the rows of its first table; empty if rows do not stand for cells.
    pub(super) cells: Vec<i64>,
    pub(super) evidence: Captioned,
    /// Name and value of the settings that are the same in every cell.
    pub(super) settings: Vec<(String, String)>,
    /// The way in which the repetition ended.
    pub(super) ended: String,
    pub(super) events: Vec<Event>,
    /// The definition of its model, if that is a file of the user.
    pub(super) model: Option<OwnModel>,
    /// Note that the run file lacks this definition; empty otherwise.
    pub(super) model_note: String,
    /// The definition as TOML, and the name of its file in commands. The file of the latest run serves all runs
    /// with the same definition.
    pub(super) toml: String,
    pub(super) toml_name: String,
    pub(super) commands: Vec<String>,
}

/// A warning, an error or a decision of the run.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) at: String,
    pub(super) kind: String,
    pub(super) message: String,
}

impl Event {
    pub(super) fn line(&self) -> String {
        format!("{} {}: {}", self.at, self.kind, self.message)
    }
}

/// The sections of all run files, in the same order.
pub(super) fn all(inputs: &[Input], sequences: &[RunSequence]) -> Vec<Section> {
    let toml_name = |index: usize, input: &Input| {
        let latest = sequences.iter().filter(|one| one.0.contains(&index));
        let latest = latest.filter_map(RunSequence::latest);
        let mut latest = latest.filter_map(|index| Some((index, inputs.get(index)?)));
        let toml = |input: &Input| input.run.record().experiment.toml.clone();
        let same = latest.find(|(_, latest)| toml(latest) == toml(input));
        let (index, input) = same.unwrap_or((index, input));
        format!("{}.toml", stem(index, input))
    };
    let models = own_model::all(inputs, sequences);
    let named = names(inputs).into_iter().zip(models).zip(inputs);
    named
        .enumerate()
        .map(|(index, ((name, model), input))| {
            let place = SectionPlace {
                index,
                name,
                toml_name: toml_name(index, input),
                model,
            };
            Section::new(place, input)
        })
        .collect()
}

/// Distinct names for all runs of a document.
pub(super) fn names(inputs: &[Input]) -> Vec<String> {
    let name = |input: &Input| {
        let name = &input.run.record().experiment.name;
        let stem = input.path.file_stem().unwrap_or_default();
        // The titles of runs of one experiment name the targets; on the same target they name the files.
        let target = input.run.record().target_text();
        let alike = inputs
            .iter()
            .filter(|other| other.run.record().experiment.name == *name);
        let on_target = alike
            .clone()
            .filter(|other| other.run.record().target_text() == target);
        let name = match (alike.count(), on_target.count()) {
            (1, _) => name.clone(),
            (_, 1) => format!("{name} on {target}"),
            _ => format!("{name} ({})", stem.to_string_lossy()),
        };
        clean(&name)
    };
    inputs.iter().map(name).collect()
}

/// Properties of a section that follow from its place among the others.
struct SectionPlace {
    index: usize,
    name: String,
    toml_name: String,
    model: Option<OwnModel>,
}

impl Section {
    fn new(place: SectionPlace, input: &Input) -> Self {
        let SectionPlace {
            index,
            name,
            toml_name,
            model,
        } = place;
        let (record, analysis) = (input.run.record(), input.run.analysis());
        let tables = tables(analysis, &input.interpretation.peers);
        let rows = tables.first().map_or(0, |table| table.grid.rows.len());
        let cells = analysis.cells.iter().map(|cell| cell.cell.id);
        let stem = stem(index, input);
        Self {
            id: id(index),
            name,
            cells: cells.filter(|_| rows == analysis.cells.len()).collect(),
            question: clean(&record.experiment.question),
            conclusions: input
                .interpretation
                .conclusions
                .iter()
                .map(|line| clean(&line.text))
                .collect(),
            file: clean(&input.path.to_string_lossy()),
            trials: trials(analysis),
            tables,
            standard_tables: standard_tables::of(analysis),
            evidence: Captioned {
                caption: evidence::caption(record),
                grid: evidence::grid(record, analysis),
            },
            settings: settings(record),
            ended: ended(record, analysis),
            events: events(record),
            toml: lines(&record.experiment.toml),
            commands: commands::of_run(
                input,
                &toml_name,
                model.as_ref(),
                &format!("{stem}-again.iolab"),
            ),
            model,
            model_note: own_model::lacking(record),
            toml_name,
            stem,
        }
    }
}

impl Section {
    /// Whether a figure of this name precedes its own figure, as in a standard's report.
    pub(super) fn leads_with(&self, figure: &str) -> bool {
        figure == "rounds" && !self.standard_tables.is_empty()
    }

    /// The id of a cell's row in its first table; `None` without such a row.
    pub(super) fn row_id(&self, cell: i64) -> Option<String> {
        let has_row = self.cells.contains(&cell);
        has_row.then(|| format!("{}-c{cell}", self.id))
    }
}

/// Removes control characters from each line of a text.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(clean).collect();
    lines.join("\n") + "\n"
}

fn trials(analysis: &Analysis) -> String {
    let cells = analysis.cells.iter().filter(|c| c.n > 0);
    let (mut n, mut count, mut device) = (0, 0, 0);
    for cell in cells {
        n += cell.n;
        count += 1;
        device += usize::from(cell.is_device());
    }
    let source = match device {
        _ if analysis.model.is_some() => format!("all computed by {}", clean(&analysis.target)),
        all if all == count => "all served by the device".to_owned(),
        0 => "none served by the device alone".to_owned(),
        some => format!("{some} of them served by the device alone"),
    };
    format!(
        "{} in {}, {source}",
        counted(n, "trial"),
        counted(count, "cell")
    )
}

fn tables(analysis: &Analysis, peers: &[Comparison]) -> Vec<Captioned> {
    let mut tables = vec![Captioned {
        caption: one_line(&table::caption(analysis)),
        grid: Grid::of(table::columns(analysis)),
    }];
    tables.extend(program_pairs(analysis).iter().map(|sides| Captioned {
        caption: one_line(&equivalence::caption(sides)),
        grid: Grid::of(equivalence::columns(sides)),
    }));
    tables.extend(
        comparison_table::tabled(analysis)
            .iter()
            .map(|comparison| Captioned {
                caption: comparison_table::caption(comparison),
                grid: Grid::of(comparison_table::columns(comparison)),
            }),
    );
    let clients = clients::columns(analysis);
    if !clients.is_empty() {
        tables.push(Captioned {
            caption: clients::caption(),
            grid: Grid::of(clients),
        });
    }
    let preparations = preparation(analysis);
    if !preparations.is_empty() {
        tables.push(Captioned {
            caption: crate::buffer_preparation::caption(),
            grid: Grid::of(crate::buffer_preparation::columns(&preparations)),
        });
    }
    tables.extend(peers.iter().map(|comparison| Captioned {
        caption: format!(
            "{}; base: {}, new: {}",
            compare::caption(comparison),
            comparison.base,
            comparison.new
        ),
        grid: Grid::of(compare::columns(comparison)),
    }));
    tables
}

fn one_line(caption: &str) -> String {
    caption.lines().collect::<Vec<_>>().join("; ")
}

fn settings(record: &RunRecord) -> Vec<(String, String)> {
    let Some((first, rest)) = record.cells.split_first() else {
        return Vec::new();
    };
    if !first.spec.has_groups() {
        return settings_of(first, &rest.iter().collect::<Vec<_>>());
    }
    let of_group = |(name, own): (&str, Cell)| {
        let others = rest.iter().flat_map(Cell::groups);
        let others: Vec<Cell> = others
            .filter_map(|(other, cell)| (other == name).then_some(cell))
            .collect();
        let settings = settings_of(&own, &others.iter().collect::<Vec<_>>());
        let named = settings.into_iter();
        named
            .map(|(setting, value)| (format!("{name}.{setting}"), value))
            .collect::<Vec<_>>()
    };
    first.groups().flat_map(of_group).collect()
}

/// The settings of a cell that all of `rest` share.
fn settings_of(first: &Cell, rest: &[&Cell]) -> Vec<(String, String)> {
    let own = exported_settings().into_iter();
    let own = own.map(|setting| (setting, first.value_in_force(setting)));
    let shared = own.filter(|(setting, value)| {
        let is_same = |cell: &&Cell| cell.value_in_force(setting) == *value;
        let is_told = *value != Value::Unknown || DESCRIBING.contains(&setting.name);
        *value != Value::None && is_told && rest.iter().all(is_same)
    });
    shared
        .map(|(setting, value)| (setting.name.to_owned(), setting_value(setting, &value)))
        .collect()
}

fn ended(record: &RunRecord, analysis: &Analysis) -> String {
    let count = |ended: Option<EndedBy>| {
        let cells = record.cells.iter();
        cells.filter(|c| c.ended_by == ended).count()
    };
    let design = &record.experiment;
    let what = |ended: Option<EndedBy>| match ended {
        Some(EndedBy::Precision) => format!(
            "the goal of precision ({})",
            format_percent(analysis.precision_goal)
        ),
        Some(EndedBy::Search) => "the end of the search".to_owned(),
        Some(EndedBy::Steady) => "steady rounds".to_owned(),
        Some(EndedBy::Fills) => "the writes of the range that the design allows".to_owned(),
        Some(EndedBy::Budget) => format!(
            "the budget ({})",
            exact_duration(Duration::from_nanos(design.budget_ns))
        ),
        Some(EndedBy::Writes) => "the bytes that the run may write".to_owned(),
        Some(EndedBy::TrialsMax) => format!("the most trials allowed ({})", design.trials_max),
        Some(EndedBy::User) => "the user".to_owned(),
        None => "the end of the run, before any of these".to_owned(),
    };
    let reasons = EndedBy::ALL.iter().copied().map(Some).chain([None]);
    let parts: Vec<String> = reasons
        .map(|ended| (count(ended), what(ended)))
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} by {what}", counted(n, "cell")))
        .collect();
    let trials = analysis.cells.iter().map(|c| c.n);
    let (least, most) = (trials.clone().min(), trials.max());
    let trials = match (least.unwrap_or(0), most.unwrap_or(0)) {
        (least, most) if least == most => counted(most as u64, "measured trial"),
        (least, most) => format!("{least} to {most} measured trials"),
    };
    format!(
        "Repetition ended in {}; {trials} per cell.",
        parts.join(", ")
    )
}

fn events(record: &RunRecord) -> Vec<Event> {
    let place = |cell: i64| {
        let cell = record.cells.iter().find(|c| c.id == cell)?;
        let label = cell_label(&record.experiment.factors, &cell.levels);
        (!label.is_empty()).then(|| format!("{}: ", clean(&label)))
    };
    record
        .events
        .iter()
        .map(|event| Event {
            at: moment(&event.at_utc),
            kind: event.kind.to_string(),
            message: event.cell.and_then(place).unwrap_or_default() + &clean(&event.message),
        })
        .collect()
}
