//! Models whose definition is a file of the user: what a reader needs to repeat a run on one.

use std::path::Path;

use iolab_record::RunRecord;
use iolab_record::environment::KEYS;
use iolab_workload::escape_control::escape_control;

use super::Input;
use super::file_names::{file_name, id};
use super::run_sequence::RunSequence;

/// Beginning of the target of a run on a model.
const PREFIX: &str = "model:";

/// The model of a run.
#[derive(Debug, Clone)]
pub(super) struct OwnModel {
    /// Name of its file in commands.
    pub(super) file: String,
    /// Definition of the model.
    pub(super) text: String,
    /// Whether it is shown with this run; it is shown once for all runs on it.
    pub(super) is_shown: bool,
}

impl OwnModel {
    /// The target in commands.
    pub(super) fn target(&self) -> String {
        format!("{PREFIX}{}", self.file)
    }

    /// The definition without characters that may control a terminal.
    pub(super) fn shown(&self) -> String {
        let lines = self.text.lines();
        let lines = lines.map(|line| escape_control(&line.replace('\t', "    ")).into_owned());
        lines.map(|line| line + "\n").collect()
    }
}

/// The model of each run; `None` for a built-in one, for storage, and if the run file lacks the definition.
pub(super) fn all(inputs: &[Input], sequences: &[RunSequence]) -> Vec<Option<OwnModel>> {
    // Documents show the latest run of each experiment.
    let latest: Vec<usize> = sequences.iter().filter_map(RunSequence::latest).collect();
    let text = |index: usize| definition(inputs.get(index)?.run.record());
    let of = |index: usize| {
        let own = text(index)?;
        let mut shown = latest.iter().copied();
        let shown = shown.find(|other| text(*other).as_ref() == Some(&own));
        let shown = shown.unwrap_or(index);
        let target = &inputs.get(shown)?.run.record().run.target;
        let path = Path::new(target.trim_start_matches(PREFIX));
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        // The file may have the name from an earlier report, from which this run was repeated.
        let name = file_name(stem.strip_suffix(".model").unwrap_or(&stem));
        Some(OwnModel {
            file: format!("{}-{name}.model.toml", id(shown)),
            text: own,
            is_shown: shown == index,
        })
    };
    (0..inputs.len()).map(of).collect()
}

fn definition(record: &RunRecord) -> Option<String> {
    let is_model = record.run.target.starts_with(PREFIX);
    let definition = record.environment.get(&KEYS.model_definition);
    definition.filter(|_| is_model)
}

/// Note that the run file lacks the definition of its model, which no command finds elsewhere; empty otherwise.
pub(super) fn lacking(record: &RunRecord) -> String {
    let digest = record.environment.get(&KEYS.model_digest);
    let named = record.run.target.strip_prefix(PREFIX);
    let is_file = named.is_some_and(|name| name.ends_with(".toml"));
    match digest.filter(|_| is_file && definition(record).is_none()) {
        Some(digest) => escape_control(&format!(
            "The run file does not contain the definition of {}, whose digest is {digest}.",
            record.run.target
        ))
        .into_owned(),
        None => String::new(),
    }
}
