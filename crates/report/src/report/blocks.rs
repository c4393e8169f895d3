//! The blocks of a report, in their order, with those about observations of programs.

use std::path::Path;

use super::experiment::experiments;
use super::section::{self, Medium};
use super::study::{Findings, Study};
use super::summary::{self, moment};
use super::{StudyReport, behind, clean, file_name, id};
use crate::answer::Answers;
use crate::block::{Block, Item, List, Look, Picture, ShownAnswer, Table};
use crate::notation::on_page;
use crate::observation::FiledObservation;
use crate::{doubt, fact};
use iolab_record::Observation;
use iolab_workload::Result;
use iolab_workload::units::counted;

/// All blocks.
///
/// # Errors
/// When a figure cannot be drawn.
pub(super) fn all(report: &StudyReport<'_>, medium: Medium) -> Result<Vec<Block>> {
    let programs = blocks_of_programs(report.programs, medium)?;
    if report.inputs.is_empty() {
        let title = title_of_programs(report.programs);
        let title = std::iter::once(Block::heading(1, "", title));
        return Ok(title.chain(programs).collect());
    }
    let study = Study::new(report, medium);
    let mut all = study.head();
    all.extend(study.glance());
    all.extend(study.found());
    all.extend(experiments(&study));
    all.extend(programs);
    all.extend(study.across());
    all.extend(behind::blocks(&study));
    Ok(all)
}

impl<'a> Study<'a> {
    /// Title, answers, what was measured, and how far to trust it.
    fn head(&self) -> Vec<Block> {
        let inputs = self.report.inputs;
        let runs = inputs.iter();
        let runs = runs.map(|input| (input.path.display().to_string(), &input.run));
        let answers = Answers::of(runs, self.report.answers).shown();
        let answers: Vec<ShownAnswer> = answers.collect();
        let lines = match answers.is_empty() {
            true => self.overview.lines(),
            false => answers.iter().flat_map(|one| one.lead.clone()).collect(),
        };
        let mut all = vec![Block::heading(1, "", summary::title(inputs))];
        let lines = lines
            .iter()
            .map(|line| Block::Paragraph(Look::Result, clean(line)));
        all.extend(lines);
        let trust = &self.overview.digest.trust;
        all.extend([
            Block::Paragraph(Look::Subject, self.subject()),
            Block::Facts(summary::facts(inputs)),
            Block::Paragraph(Look::Trust(trust.level.name()), doubt::sentence(trust)),
        ]);
        if !answers.is_empty() {
            all.push(Block::heading(2, "answer", "Answer"));
        }
        all.extend(
            answers
                .into_iter()
                .flat_map(|one| one.rest.into_iter().chain(one.basis)),
        );
        all
    }

    /// The measured quantities and targets, and the number of earlier runs.
    fn subject(&self) -> String {
        let subject = self.overview.subject();
        match self.report.inputs.len() - self.latest.len() {
            0 => subject,
            n => format!(
                "{subject} The page also has {}.",
                counted(n as u64, "earlier run")
            ),
        }
    }

    /// The first numbers, and a small figure of each experiment.
    fn glance(&self) -> Vec<Block> {
        let overview = &self.overview;
        let mut all = vec![Block::heading(2, "glance", "At a glance")];
        let columns = overview.main_columns();
        if columns.first().is_some_and(|column| column.rows() > 0) {
            let notes = overview.notes_on_numbers();
            all.push(Block::Table(Table::new("Main numbers", notes, columns)));
        }
        if all.len() == 1 { Vec::new() } else { all }
    }

    /// The findings that matter.
    fn found(&self) -> Vec<Block> {
        let headlines = self.overview.digest.headlines.iter().map(|headline| {
            let cells = headline.cells.iter();
            let mut rows: Vec<String> = cells
                .filter_map(|id| self.row_id(id.run, id.cell))
                .collect();
            rows.sort_unstable();
            rows.dedup();
            let text = format!("{}{}", self.overview.place(headline), headline.text);
            let about = headline.runs.iter().filter_map(|run| self.place_of(*run));
            Item {
                about: about.filter(|_| self.latest.len() > 1).collect(),
                rows,
                ..Item::of(clean(&text))
            }
        });
        let items: Vec<Item> = headlines.collect();
        let found = match items.is_empty() {
            true => Block::text("No effect is shown."),
            false => Block::List(List {
                is_ordered: true,
                items,
            }),
        };
        vec![Block::heading(2, "found", "What matters"), found]
    }

    /// Findings of several experiments, and the limits of the study.
    fn across(&self) -> Vec<Block> {
        let Findings {
            across,
            choices,
            limits,
            ..
        } = &self.findings;
        let part = |(id, heading, items): (&str, &str, &Vec<Item>)| match items.is_empty() {
            true => Vec::new(),
            false => vec![Block::heading(2, id, heading), Block::list(items.clone())],
        };
        let parts = [
            ("across", "Findings of several experiments", across),
            ("choices", "Which settings to choose", choices),
            ("limits", "Limits of this study", limits),
        ];
        parts.into_iter().flat_map(part).collect()
    }

    /// Name and id of the part about a run of the overview.
    fn place_of(&self, number: usize) -> Option<(String, String)> {
        let place = *self.latest.get(number)?;
        Some((self.names.get(place)?.clone(), id(place)))
    }

    /// Id of the row of a cell of a run of the overview; `None` without such a row.
    fn row_id(&self, number: usize, cell: i64) -> Option<String> {
        let place = *self.latest.get(number)?;
        let analysis = self.report.inputs.get(place)?.run.analysis();
        section::has_row_of_each_cell(analysis).then(|| section::row_id(place, cell))
    }
}

/// The blocks about observations.
///
/// # Errors
/// When a figure cannot be drawn.
fn blocks_of_programs(inputs: &[FiledObservation], medium: Medium) -> Result<Vec<Block>> {
    let parts = (1..)
        .zip(inputs)
        .map(|(number, input)| part(number, input, medium));
    let parts: Vec<Vec<Block>> = parts.collect::<Result<_>>()?;
    Ok(parts.into_iter().flatten().collect())
}

fn part(number: usize, input: &FiledObservation, medium: Medium) -> Result<Vec<Block>> {
    let FiledObservation { path, kept, seen } = input;
    let (id, name) = (format!("p{number}"), clean(&seen.name()));
    let figure = seen.figure(&medium.options(&id))?;
    let rows = seen.rows().into_iter();
    let facts = kept.environment.iter();
    Ok(vec![
        Block::heading(2, &id, &name),
        Block::text(seen.headline()),
        Block::Figure(Picture {
            name: format!("{id}-{}", file_name(&name)),
            class: "series",
            figure: Box::new(figure),
        }),
        Block::Facts(
            rows.map(|(label, value)| (label.to_owned(), clean(&on_page(&value))))
                .collect(),
        ),
        Block::Paragraph(Look::Caption, origin(kept, path)),
        Block::commands(clean(&seen.command())),
        Block::folded(3, "", format!("Environment of {name}")),
        Block::Facts(
            facts
                .map(|(key, text)| (fact::name(key), fact::value(key, text)))
                .collect(),
        ),
    ])
}

/// Title of a report of observations alone.
fn title_of_programs(inputs: &[FiledObservation]) -> String {
    match inputs {
        [only] => format!("Evidence for {}", clean(&only.seen.name())),
        all => format!("Evidence for {}", counted(all.len(), "program")),
    }
}

fn origin(kept: &Observation, path: &Path) -> String {
    format!(
        "Observed from {} by iolab {}. File: {}.",
        moment(&kept.started_utc),
        clean(&kept.tool_version),
        clean(&path.to_string_lossy())
    )
}
