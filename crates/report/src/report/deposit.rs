//! The files of a data repository: everything needed to read, check, cite and repeat a report.

use std::fmt::Write as _;

use iolab_analysis::runs::RunName;
use iolab_workload::table;
use iolab_workload::{Error, Result};
use sha2::{Digest, Sha256};

use super::bundle::chapters;
use super::file_names::{DefinitionPlace, archived_definition, archived_run, stem};
use super::program::{self, ProgramInput, ProgramPart};
use super::{DepositFile, StudyReport};
use crate::export;
use crate::input::Input;
use crate::rows::{Format, RowWriter, text};

/// What the data may be used for, where its owner writes nothing else.
const LICENSE: &str = "The data in this archive is licensed under the Creative Commons Attribution 4.0 International License (CC BY 4.0):
https://creativecommons.org/licenses/by/4.0/

SPDX-License-Identifier: CC-BY-4.0

This is a suggestion: the owner of the data decides. Change this file and CITATION.cff before you publish the archive.
";

/// Which archives have a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holding {
    Any,
    Runs,
    /// Those with models whose definition is a file of the user.
    Models,
    /// Those with files of `iolab witness`.
    Observations,
}

/// What lies where.
const CONTENTS: [(Holding, &str); 12] = table! {
    (Holding::Any, "report.html        all results on one page; needs no network and no other file");
    (Holding::Any, "figures/           each figure as SVG and as PDF");
    (Holding::Runs, "data/cells.csv     one row per cell: medians, intervals, evidence");
    (Holding::Runs, "data/samples.csv   one row per trial, warm-up and failed ones included");
    (Holding::Observations, "data/*.json        what 'iolab witness' saw; 'iolab schema witness' describes it");
    (Holding::Any, "runs/              the run files (SQLite), from which 'iolab report' makes everything else again");
    (Holding::Runs, "experiments/       the definition of each experiment");
    (Holding::Models, "models/            the definition of each model that is not built in");
    (Holding::Any, "environment.csv    machine, kernel, file system and device of each run");
    (Holding::Any, "CITATION.cff       how to cite the data: add your name");
    (Holding::Any, "LICENSE            what the data may be used for");
    (Holding::Any, "SHA256SUMS         checksums; check them with: sha256sum -c SHA256SUMS");
};

/// The files, in a fixed order. `run_files` and `observations` are the contents of the run files, and of those of observations, each
/// in the order of the report. All documents name files by their paths in the archive.
pub(super) fn files(
    inputs: &[Input],
    programs: &[ProgramInput],
    run_files: Vec<Vec<u8>>,
    observations: Vec<Vec<u8>>,
) -> Result<Vec<DepositFile>> {
    let archived = |(index, input): (usize, &Input)| Input {
        path: archived_run(&stem(index, input)).into(),
        ..input.clone()
    };
    let inputs: Vec<Input> = inputs.iter().enumerate().map(archived).collect();
    let parts = ProgramPart::all(programs);
    let archived = |(part, program): (&ProgramPart, &ProgramInput)| ProgramInput {
        path: archived_run(&part.file_name()).into(),
        ..program.clone()
    };
    let programs: Vec<ProgramInput> = parts.iter().zip(programs).map(archived).collect();
    let report = &StudyReport::placed(&inputs, &programs, DefinitionPlace::Archive);
    of_report(report, run_files, observations)
}

fn of_report(
    report: &StudyReport<'_>,
    run_files: Vec<Vec<u8>>,
    observations: Vec<Vec<u8>>,
) -> Result<Vec<DepositFile>> {
    let mut files: Vec<DepositFile> = vec![
        ("README.txt".to_owned(), readme(report).into_bytes()),
        ("report.html".to_owned(), report.html()?.into_bytes()),
    ];
    let figures = [
        chapters(report, "figure", "svg", |figure| {
            Ok(figure.svg().into_bytes())
        })?,
        chapters(report, "figure", "pdf", iolab_figure::Figure::pdf)?,
    ];
    for shown in figures
        .into_iter()
        .flatten()
        .flat_map(|c| [c.series, c.own])
        .flatten()
    {
        let (name, content) = shown.into_file();
        files.push((format!("figures/{name}"), content));
    }
    if !report.inputs.is_empty() {
        files.extend(tables(report.inputs)?);
    }
    for (section, content) in report.sections.iter().zip(run_files) {
        files.push((archived_run(&section.stem), content));
        let toml = section.toml.clone().into_bytes();
        files.push((archived_definition(&section.stem), toml));
        let model = section.model.as_ref().filter(|model| model.is_shown);
        files.extend(model.map(|model| (model.file.clone(), model.text.clone().into_bytes())));
    }
    for (part, content) in report.programs.iter().zip(observations) {
        files.extend(part.deposited(content)?);
    }
    files.push(("environment.csv".to_owned(), environment(report)?));
    files.push(("CITATION.cff".to_owned(), citation(report).into_bytes()));
    files.push(("LICENSE".to_owned(), LICENSE.as_bytes().to_vec()));
    files.push(("SHA256SUMS".to_owned(), checksums(&files).into_bytes()));
    Ok(files)
}

fn readme(report: &StudyReport<'_>) -> String {
    let mut readme = format!("{}\n\n", title(report));
    for sentence in summary(report) {
        let _ = writeln!(readme, "{sentence}");
    }
    readme.push('\n');
    for (holding, line) in CONTENTS {
        let is_there = match holding {
            Holding::Any => true,
            Holding::Runs => !report.inputs.is_empty(),
            Holding::Models => report
                .sections
                .iter()
                .any(|section| section.model.is_some()),
            Holding::Observations => !report.programs.is_empty(),
        };
        if is_there {
            let _ = writeln!(readme, "{line}");
        }
    }
    readme
}

/// What it is about: its runs, else what was observed.
fn title(report: &StudyReport<'_>) -> String {
    match report.inputs.is_empty() {
        true => program::title(&report.programs),
        false => report.title.clone(),
    }
}

/// The measurements and the results of observations.
fn summary<'a>(report: &'a StudyReport<'_>) -> impl Iterator<Item = &'a str> {
    let measured: &[String] = match report.inputs.is_empty() {
        true => &[],
        false => &report.summary,
    };
    let observed = report.programs.iter().map(|part| part.headline.as_str());
    measured.iter().map(String::as_str).chain(observed)
}

/// The cells and the samples as CSV.
fn tables(inputs: &[Input]) -> Result<[DepositFile; 2]> {
    let name = |input: &Input| RunName::of(&input.path.to_string_lossy(), input.run.record());
    let runs: Vec<_> = inputs
        .iter()
        .map(|input| (name(input), input.run.clone()))
        .collect();
    let exported: Vec<_> = inputs
        .iter()
        .map(|input| (name(input), input.run.record(), None))
        .collect();
    let (mut cells, mut samples) = (Vec::new(), Vec::new());
    export::cells(&runs, &mut cells).map_err(|error| failed(&error))?;
    export::samples(&exported, Format::Csv, &mut samples).map_err(|error| failed(&error))?;
    Ok([
        ("data/cells.csv".to_owned(), cells),
        ("data/samples.csv".to_owned(), samples),
    ])
}

/// Every property of every run, and of the machine of every observation: `run,experiment,name,value`.
fn environment(report: &StudyReport<'_>) -> Result<Vec<u8>> {
    let columns = ["run", "experiment", "name", "value"];
    let of_runs = report.inputs.iter().flat_map(|input| {
        let record = input.run.record();
        let facts = record.environment.iter();
        facts.map(|(name, value)| {
            [
                record.id(),
                record.experiment.name.clone(),
                name.to_owned(),
                value.to_owned(),
            ]
        })
    });
    let of_observations = report.programs.iter().flat_map(|part| {
        let facts = part.facts();
        facts.map(|(name, value)| {
            [
                part.file_name(),
                "witness".to_owned(),
                name.to_owned(),
                value.to_owned(),
            ]
        })
    });
    let mut bytes = Vec::new();
    let written = || -> std::io::Result<()> {
        let columns_of = columns.map(str::to_owned).to_vec();
        let mut rows = RowWriter::new(&mut bytes, Format::Csv, columns_of)?;
        for values in of_runs.chain(of_observations) {
            let row = columns.into_iter().zip(&values);
            rows.row(
                &row.map(|(column, value)| text(column, value))
                    .collect::<Vec<_>>(),
            )?;
        }
        rows.finish()
    };
    written().map_err(|error| failed(&error))?;
    Ok(bytes)
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::failed(format!("the archive cannot be put together: {error}"))
}

/// How to cite the data, in the Citation File Format 1.2; a JSON text is a YAML text.
fn citation(report: &StudyReport<'_>) -> String {
    let quoted = |text: &str| serde_json::json!(text).to_string();
    let of_run = report.inputs.first().map(|input| {
        let run = &input.run.record().run;
        (run.started_utc.as_str(), run.tool_version.as_str())
    });
    let first = of_run.or_else(|| Some(report.programs.first()?.made()));
    let day = |(started_utc, _): (&str, &str)| {
        let day = started_utc.split('T').next().unwrap_or_default();
        let is_date = day.len() == 10 && day.chars().all(|c| c.is_ascii_digit() || c == '-');
        is_date.then(|| format!("date-released: {day}\n"))
    };
    let version = first.map_or_else(String::new, |(_, version)| {
        format!("    version: {}\n", quoted(&super::clean(version)))
    });
    format!(
        "cff-version: 1.2.0\nmessage: If you use this data, please cite it as below.\ntype: dataset\ntitle: {}\nabstract: {}\n\
         authors:\n  - name: Your name\n{}license: CC-BY-4.0\nkeywords:\n  - storage\n  - I/O\n  - benchmark\nreferences:\n  \
         - type: software\n    title: iolab\n    authors:\n      - name: The authors of iolab\n{version}",
        quoted(&title(report)),
        quoted(&summary(report).collect::<Vec<_>>().join(" ")),
        first.and_then(day).unwrap_or_default(),
    )
}

/// The checksums, as sha256sum reads them.
fn checksums(files: &[DepositFile]) -> String {
    let line = |(name, content): &DepositFile| {
        let digits: String = Sha256::digest(content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{digits}  {name}\n")
    };
    files.iter().map(line).collect()
}
