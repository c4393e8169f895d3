//! A part of a report about a program, a process or devices that `iolab witness` observed.

use std::path::{Path, PathBuf};

use iolab_analysis::witness::{Evidence, OtherCommand};
use iolab_record::witness::Witnessed;
use iolab_workload::Result;
use iolab_workload::units::{counted, format_bytes};
use iolab_workload::witness::Subject;

use super::picture::Medium;
use super::summary::moment;
use super::{clean, file_name};
use crate::block::{Block, Look, Picture, Table};
use crate::fact;
use crate::layout::columns_over;
use crate::notation::on_page;
use crate::witness;

/// Text in place of an empty table of other processes.
const NO_OTHERS: &str = "No other process that iolab can see did I/O on any disk";

/// Most names of other processes that a report lists.
const OTHERS_MAX: usize = 20;

/// A file of `iolab witness` that was read.
#[derive(Debug, Clone)]
pub struct ProgramInput {
    /// Path of the file.
    pub path: PathBuf,
    /// Content of the file.
    pub witnessed: Witnessed,
}

/// The blocks about observations.
///
/// # Errors
/// When a figure cannot be drawn.
pub(super) fn blocks(inputs: &[ProgramInput], medium: Medium) -> Result<Vec<Block>> {
    let parts = (1..)
        .zip(inputs)
        .map(|(number, input)| part(number, input, medium));
    let parts: Vec<Vec<Block>> = parts.collect::<Result<_>>()?;
    Ok(parts.into_iter().flatten().collect())
}

fn part(number: usize, input: &ProgramInput, medium: Medium) -> Result<Vec<Block>> {
    let ProgramInput { path, witnessed } = input;
    let evidence = Evidence::of(witnessed.clone());
    let (id, name) = (format!("p{number}"), clean(&name(&evidence)));
    let figure = iolab_figure::witness(&evidence, &medium.options(&id))?;
    // The table of others names them all.
    let rows = witness::rows(&evidence).into_iter();
    let rows = rows.filter(|(label, _)| *label != "other");
    let facts = witnessed.environment.iter();
    let others = others(&evidence);
    let others = match others.columns.iter().any(|column| column.rows() > 0) {
        true => Block::Table(others),
        false => {
            let mut notes = others.notes;
            notes.insert(0, NO_OTHERS.to_owned());
            Block::text(notes.join("; "))
        }
    };
    Ok(vec![
        Block::heading(2, &id, &name),
        Block::text(witness::headline(&evidence)),
        Block::Figure(Picture {
            name: format!("{id}-{}", file_name(&name)),
            class: "series",
            drawing: figure.into(),
        }),
        Block::Facts(
            rows.map(|(label, value)| (label.to_owned(), clean(&on_page(&value))))
                .collect(),
        ),
        others,
        Block::Paragraph(Look::Caption, origin(witnessed, path)),
        Block::commands(clean(&witness::command(&evidence.observed))),
        Block::folded(3, "", format!("Environment of {name}")),
        Block::Facts(
            facts
                .map(|(key, text)| (fact::name(key), fact::value(key, text)))
                .collect(),
        ),
    ])
}

/// Title of a report of observations alone.
pub(super) fn title(inputs: &[ProgramInput]) -> String {
    match inputs {
        [only] => {
            let evidence = Evidence::of(only.witnessed.clone());
            format!("Evidence for {}", clean(&name(&evidence)))
        }
        all => format!("Evidence for {}", counted(all.len(), "program")),
    }
}

/// Subject of the observation, in a few words.
fn name(evidence: &Evidence) -> String {
    match &evidence.observed.subject {
        Subject::Program(command) => witness::short(command),
        Subject::Process { pid, command } => format!("{} (PID {pid})", witness::short(command)),
        Subject::Devices => evidence.devices.join(", "),
    }
}

fn origin(witnessed: &Witnessed, path: &Path) -> String {
    format!(
        "Observed from {} by iolab {}. File: {}.",
        moment(&witnessed.started_utc),
        clean(&witnessed.tool_version),
        clean(&path.to_string_lossy())
    )
}

/// Other processes that did I/O, those that did most first.
fn others(evidence: &Evidence) -> Table {
    let others = &evidence.observed.others;
    let all = OtherCommand::all(others);
    let (shown, left) = all.split_at(all.len().min(OTHERS_MAX));
    let column = columns_over(shown);
    let bytes = |bytes: u64| format_bytes(bytes as f64);
    let left: usize = left.iter().map(OtherCommand::count).sum();
    let left = (left > 0).then(|| format!("{} did less", counted(left, "further process")));
    let unread = (others.unread > 0).then(|| {
        let unread = counted(others.unread, "process");
        format!("the accounts of {unread} cannot be read")
    });
    let unseen = (!others.sees_ended).then(|| {
        "processes that ended during the observation are missing: only root sees them".to_owned()
    });
    let notes = [left, unread, unseen].into_iter().flatten();
    let columns = vec![
        column("process", 0, &|one| clean(&witness::evidence::name(one))).left(),
        column("read", 0, &|one| bytes(one.read_bytes())),
        column("written", 0, &|one| bytes(one.write_bytes())),
    ];
    Table::new("Other processes, on any disk", notes, columns)
}
