//! Instructions to repeat the runs of a report: commands, and models that a user defined.

use std::path::Path;

use super::section::RunSequence;
use super::{Input, file_name, id};
use crate::notation::clean;
use iolab_analysis::consent::NeededConsent;
use iolab_record::environment::KEYS;
use iolab_record::targets::target_paths;
use iolab_record::{RunRecord, TargetKind};
use iolab_workload::escape_control::shell_path;

/// The commands that make this report again and export its data.
pub(super) fn of_report(inputs: &[Input]) -> Vec<String> {
    let files: Vec<String> = inputs.iter().map(|i| quoted_path(&i.path)).collect();
    let files = files.join(" ");
    vec![
        format!("iolab report {files} -o report-again.html"),
        format!("iolab table {files}"),
        format!("iolab export {files} --format csv -o samples.csv"),
    ]
}

/// The commands that repeat one run and compare it with this one. `definition` is the name of the file with its
/// experiment, `again` is the name of the new run file.
pub(super) fn of_run(
    input: &Input,
    definition: &str,
    model: Option<&OwnModel>,
    again: &str,
) -> Vec<String> {
    let run = &input.run.record().run;
    let record = input.run.record();
    let consent = NeededConsent::of(record);
    // The definition contains targets of groups.
    let used: Vec<_> = record.cells.iter().map(|c| c.spec.targets()).collect();
    let joined = used.iter().any(|targets| targets.len() > 1);
    let own = used.iter().flatten().any(Option::is_none);
    let given = match (joined, own) {
        (true, false) => 0,
        (true, true) => 1,
        (false, _) => usize::MAX,
    };
    let paths = match model {
        Some(model) => vec![format!("{PREFIX}{}", model.file).into()],
        None => target_paths(record),
    };
    let targets: Vec<String> = paths
        .iter()
        .take(given)
        .map(|target| format!(" {}", quoted_path(target)))
        .collect();
    let timed_by = record.environment.get(&KEYS.timed_by);
    let repeats = match timed_by {
        Some(command) => command,
        None => format!("iolab run {}{}", quoted(definition), targets.concat()),
    };
    let consent = match run.target_kind {
        TargetKind::Commands => String::new(),
        _ => consent.to_string(),
    };
    vec![
        format!(
            "{repeats} --seed {}{consent} -o {}",
            run.seed,
            quoted(again)
        ),
        format!(
            "iolab compare {} {}",
            quoted_path(&input.path),
            quoted(again)
        ),
    ]
}

fn quoted(text: &str) -> String {
    quoted_path(Path::new(text))
}

/// Quotes a path as one shell word that no command reads as an option.
fn quoted_path(path: &Path) -> String {
    match path.as_os_str().as_encoded_bytes() {
        [b'-', ..] => shell_path(&Path::new(".").join(path)),
        _ => shell_path(path),
    }
}

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
        Some(digest) => clean(&format!(
            "The run file does not contain the definition of {}, whose digest is {digest}.",
            record.run.target
        )),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_no_option() {
        assert_eq!(quoted("-rf"), "./-rf");
    }
}
