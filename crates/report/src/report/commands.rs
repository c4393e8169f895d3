//! Commands that repeat the report and its runs.

use std::path::Path;

use super::Input;
use super::own_model::OwnModel;
use iolab_analysis::consent::NeededConsent;
use iolab_record::TargetKind;
use iolab_record::environment::KEYS;
use iolab_record::targets::target_paths;
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
        Some(model) => vec![model.target().into()],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word() {
        for (text, word) in [
            ("/mnt/disk", "/mnt/disk"),
            ("my disk", "'my disk'"),
            ("a'b", "'a'\\''b'"),
            ("$(reboot)", "'$(reboot)'"),
            ("-rf", "./-rf"),
            ("", "''"),
            ("/a\nb", r"$'/a\x0ab'"),
        ] {
            assert_eq!(quoted(text), word);
        }
    }
}
