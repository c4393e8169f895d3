//! All that a report rests on, in files for a repository of data: what somebody else needs to read, check, cite and repeat it.

use std::fmt::Write as _;

use iolab_analysis::runs::RunName;
use iolab_record::RunRecord;
use iolab_workload::{Error, Result};
use sha2::{Digest, Sha256};

use super::StudyReport;
use super::bundle::chapters;
use super::section::{Section, file_name};
use crate::export;
use crate::input::Input;
use crate::rows::{Format, RowWriter, text};

/// What the data may be used for, where its owner writes nothing else.
const LICENSE: &str = "The data in this archive is licensed under the Creative Commons Attribution 4.0 International License (CC BY 4.0):
https://creativecommons.org/licenses/by/4.0/

SPDX-License-Identifier: CC-BY-4.0

This is a suggestion: the owner of the data decides. Change this file and CITATION.cff before you publish the archive.
";

/// What lies where.
const CONTENTS: &str =
    "report.html        all results on one page; needs no network and no other file
figures/           each figure as SVG and as PDF
data/cells.csv     one row per cell: medians, intervals, evidence
data/samples.csv   one row per trial, warm-up and failed ones included
runs/              the run files (SQLite), from which 'iolab report' makes everything else again
experiments/       the definition of each experiment
environment.csv    machine, kernel, file system and device of each run
CITATION.cff       how to cite the data: add your name
LICENSE            what the data may be used for
SHA256SUMS         checksums; check them with: sha256sum -c SHA256SUMS
";

/// A file by its path in the archive.
pub type DepositFile = (String, Vec<u8>);

/// The files, in a fixed order. `run_files` are the contents of the run files, in the order of the report.
pub(super) fn files(report: &StudyReport<'_>, run_files: Vec<Vec<u8>>) -> Result<Vec<DepositFile>> {
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
    files.extend(tables(report.inputs)?);
    for ((section, input), content) in report.sections.iter().zip(report.inputs).zip(run_files) {
        let name = named(section, input);
        files.push((format!("runs/{name}.iolab"), content));
        let toml = section.toml.clone().into_bytes();
        files.push((format!("experiments/{name}.toml"), toml));
    }
    files.push(("environment.csv".to_owned(), environment(report.inputs)?));
    files.push(("CITATION.cff".to_owned(), citation(report).into_bytes()));
    files.push(("LICENSE".to_owned(), LICENSE.as_bytes().to_vec()));
    files.push(("SHA256SUMS".to_owned(), checksums(&files).into_bytes()));
    Ok(files)
}

/// The name of the files of a run: the same as on the page, so that two runs of one experiment stay apart.
fn named(section: &Section, input: &Input) -> String {
    format!(
        "{}-{}",
        section.id,
        file_name(&input.run.record().experiment.name)
    )
}

fn readme(report: &StudyReport<'_>) -> String {
    let mut readme = format!("{}\n\n", report.title);
    for sentence in &report.summary {
        let _ = writeln!(readme, "{sentence}");
    }
    readme + "\n" + CONTENTS
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

/// Every property of every run: `run,experiment,name,value`.
fn environment(inputs: &[Input]) -> Result<Vec<u8>> {
    let columns = ["run", "experiment", "name", "value"];
    let mut bytes = Vec::new();
    let mut written = || -> std::io::Result<()> {
        let columns_of = columns.map(str::to_owned).to_vec();
        let mut rows = RowWriter::new(&mut bytes, Format::Csv, columns_of)?;
        for record in inputs.iter().map(|input| input.run.record()) {
            for (name, value) in record.environment.iter() {
                let id = record.id();
                let values = [&id, &record.experiment.name, name, value];
                let row = columns.into_iter().zip(values);
                rows.row(
                    &row.map(|(column, value)| text(column, value))
                        .collect::<Vec<_>>(),
                )?;
            }
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
    let first = report.inputs.first().map(|input| input.run.record());
    let day = |record: &RunRecord| {
        let day = record.run.started_utc.split('T').next().unwrap_or_default();
        let is_date = day.len() == 10 && day.chars().all(|c| c.is_ascii_digit() || c == '-');
        is_date.then(|| format!("date-released: {day}\n"))
    };
    let version = first.map_or_else(String::new, |record| {
        format!(
            "    version: {}\n",
            quoted(&super::clean(&record.run.tool_version))
        )
    });
    format!(
        "cff-version: 1.2.0\nmessage: If you use this data, please cite it as below.\ntype: dataset\ntitle: {}\nabstract: {}\n\
         authors:\n  - name: Your name\n{}license: CC-BY-4.0\nkeywords:\n  - storage\n  - I/O\n  - benchmark\nreferences:\n  \
         - type: software\n    title: iolab\n    authors:\n      - name: The authors of iolab\n{version}",
        quoted(&report.title),
        quoted(&report.summary.join(" ")),
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
