//! The blocks of each experiment: its question, its figures and tables, and its findings.

use iolab_figure::Figure;
use iolab_workload::units::counted;

use super::file_names::{id, stem};
use super::run_sequence::RunSequence;
use super::study::Study;
use super::{Input, clean, picture, section, standard_tables};
use crate::block::{Block, Look, Picture, Table};

/// The parts of all experiments. Notes that the tables of all of them share precede them.
pub(super) fn experiments(study: &Study<'_>) -> Vec<Block> {
    let parts = study.sequences.iter();
    let mut parts: Vec<Vec<Block>> = parts
        .filter_map(|sequence| experiment(study, sequence))
        .collect();
    let shared = shared_notes(&parts);
    for part in parts.iter_mut().flatten() {
        if let Block::Table(table) = part {
            table.notes.retain(|note| !shared.contains(note));
        }
    }
    let notes = format!("Tables below: {}", shared.join("; "));
    let notes = (!shared.is_empty()).then_some(Block::Paragraph(Look::Caption, notes));
    notes
        .into_iter()
        .chain(parts.into_iter().flatten())
        .collect()
}

/// Notes of the table of cells that all of several experiments have.
fn shared_notes(parts: &[Vec<Block>]) -> Vec<String> {
    let of_cells = |part: &Vec<Block>| -> Vec<String> {
        let tables = part.iter().filter_map(|block| match block {
            Block::Table(table) if !table.ids.is_empty() => Some(table),
            _ => None,
        });
        tables
            .take(1)
            .flat_map(|table| table.notes.clone())
            .collect()
    };
    let all: Vec<Vec<String>> = parts.iter().map(of_cells).collect();
    let Some((first, rest)) = all.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return Vec::new();
    };
    let is_shared = |note: &&String| rest.iter().all(|other| other.contains(note));
    first.iter().filter(is_shared).cloned().collect()
}

fn experiment(study: &Study<'_>, sequence: &RunSequence) -> Option<Vec<Block>> {
    let report = study.report;
    let latest = sequence.latest()?;
    let input = report.inputs.get(latest)?;
    let analysis = input.run.analysis();
    let (id_of, stem) = (id(latest), stem(latest, input));
    let mut all = vec![Block::heading(2, &id_of, study.names.get(latest)?)];
    let question = clean(&input.run.record().experiment.question);
    if !question.is_empty() {
        all.push(Block::Paragraph(Look::Question, question));
    }
    if study.latest.len() > 1 {
        let lines = input.interpretation.conclusions.iter();
        all.extend(lines.map(|line| Block::Paragraph(Look::Result, clean(&line.text))));
    }
    let figure = |(name, figure): (&'static str, Figure)| {
        Block::Figure(Picture {
            name: format!("{stem}-{name}"),
            class: name,
            drawing: figure.into(),
        })
    };
    let options = |name: &str| study.medium.options(&format!("{id_of}-{name}"));
    if let Some(over_time) = sequence.table(report.inputs) {
        all.push(Block::heading(3, "", "Over time"));
        all.extend(sequence.figures(report, options).into_iter().map(figure));
        all.push(Block::Table(over_time));
        all.push(Block::heading(3, "", "Latest run"));
    }
    let drawn = sequence.on_all_targets(&study.sequences, report.inputs);
    let standard = standard_tables::of(analysis);
    // Its rounds precede the figure of its cells, as in a standard's report.
    let leads = |(name, _): &(&str, Figure)| *name == "rounds" && !standard.is_empty();
    let further = picture::further(&drawn, input, options).into_iter();
    let (leading, further): (Vec<_>, Vec<_>) = further.partition(leads);
    all.extend(leading.into_iter().map(figure));
    all.extend(standard.into_iter().map(Block::Table));
    let own = picture::of_runs(&id_of, &drawn, study.medium);
    all.extend(own.map(|drawing| {
        Block::Figure(Picture {
            name: stem.clone(),
            class: "",
            drawing,
        })
    }));
    all.extend(further.into_iter().map(figure));
    all.extend(section::tables(latest, input).into_iter().map(Block::Table));
    let findings = study.findings.each.get(latest)?;
    if !findings.is_empty() {
        let found = counted(findings.len(), "finding");
        let heading = format!("{found}, from {}", section::trials(analysis));
        all.push(Block::heading(3, &format!("findings-{id_of}"), heading));
        all.push(Block::list(findings.clone()));
    }
    for place in sequence.0.iter().rev().skip(1) {
        all.extend(earlier(study, *place, report.inputs.get(*place)?));
    }
    Some(all)
}

/// An earlier run of the experiment.
fn earlier(study: &Study<'_>, place: usize, input: &Input) -> Vec<Block> {
    let name = study.names.get(place).cloned().unwrap_or_default();
    let trials = section::trials(input.run.analysis());
    let file = clean(&input.path.to_string_lossy());
    let mut all = vec![
        Block::folded(3, &id(place), format!("Earlier run: {name}")),
        Block::text(format!("{trials}. Run file: {file}.")),
    ];
    let tables: Vec<Table> = section::tables(place, input);
    all.extend(tables.into_iter().map(Block::Table));
    all
}
