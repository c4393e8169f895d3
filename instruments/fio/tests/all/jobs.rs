//! Job files, each in one line: what iolab makes of each, or why it is refused. Much was compared with fio 3.33 by its `write_iolog`.

use std::path::Path;

use iolab_command::ForeignExperiment;
use iolab_fio::job::parse;
use iolab_plan::cells::cells;
use iolab_workload::Kind;
use iolab_workload::settings::{CellSpec, SETTINGS, Setting};

use crate::cases::Cases;
use crate::line_files::check;

/// The text of a file in one line.
fn text(line: &str) -> String {
    let lines = line.replace(' ', "\n");
    match line.starts_with('[') {
        true => lines,
        false => format!("[a]\n{lines}\n"),
    }
}

fn shown(line: &str) -> String {
    match parse(&text(line), "x") {
        Ok(file) => of_file(&file),
        Err(error) => {
            assert_eq!(error.kind(), Kind::Usage, "{error}");
            error.to_string()
        }
    }
}

/// Differences from `size=1m` alone: settings of the first cell, and those in which further cells differ from it, or settings of
/// groups. Then notes.
fn of_file(file: &ForeignExperiment) -> String {
    let plain = parse("[a]\nsize=1m\n", "x").expect("a job");
    let plain = plain.experiment.base().expect("a cell");
    let cells = cells(&file.experiment).expect("cells");
    let mut told: Vec<String> = Vec::new();
    for cell in &cells {
        cell.spec.check().expect("a trial");
        let groups = cell.spec.active();
        told.extend(groups.map(|one| format!("{}: {}", one.name, settings(&one.spec, &plain))));
        if !cell.spec.has_groups() {
            let others = if told.is_empty() {
                &plain
            } else {
                &cells[0].spec
            };
            told.push(format!("= {}", settings(&cell.spec, others)));
        }
    }
    let experiment = &file.experiment;
    let held = experiment.hold.as_ref();
    told.extend(held.map(|levels| format!("hold {levels} in {:?}", experiment.design.budget)));
    let target = file.target.as_ref();
    told.extend(target.map(|path| format!("target {}", path.display())));
    let is_note = |line: &&String| line.starts_with("note: ") || line.contains("nothing changes");
    let notes = file.explained();
    let notes = notes.iter().filter(is_note);
    let words = |note: &String| {
        let place = note.split_once(": ").filter(|_| note.starts_with("line "));
        format!("  {}", place.map_or(note.as_str(), |(_, words)| words))
    };
    told.extend(notes.map(words));
    told.join("\n")
}

fn settings(cell: &CellSpec, plain: &CellSpec) -> String {
    let is_changed = |one: &&Setting| one.get(cell) != one.get(plain);
    let changed = SETTINGS.iter().filter(is_changed);
    let named = changed.map(|one| format!("{}={}", one.name, one.get(cell)));
    named.collect::<Vec<_>>().join(" ")
}

#[test]
fn each_job_file_is_applied_or_refused() {
    let subjects = [
        "jobs", "sizes", "bounds", "names", "several-jobs", "clones", "read-back", "mistakes",
        "targets",
    ];
    check(&subjects, shown);
}

#[test]
fn job_files_as_people_write_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/whole_files");
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let mut told = Cases::default();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a job file");
        let name = path.file_stem().expect("a name").to_string_lossy();
        let outcome = match parse(&text, &name) {
            Ok(file) => of_file(&file),
            Err(error) => error.to_string(),
        };
        told.add(&name, &outcome);
    }
    insta::assert_snapshot!(told.text);
}

#[test]
fn each_option_of_a_file_is_explained() {
    let text = include_str!("../whole_files/05-stages.fio");
    let file = parse(text, "stages").expect("a job file");
    insta::assert_snapshot!(file.explained().join("\n"));
}
