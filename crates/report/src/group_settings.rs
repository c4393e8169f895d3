//! Settings in advice, for the groups of workers that they concern: `--set sync=end`, `--set log.sync=end`.

use iolab_analysis::analysis::CellAnalysis;
use iolab_workload::trial::TrialSpec;

/// Names of the groups of these cells whose trials the advice concerns, each once; empty without groups.
pub(crate) fn names<'a>(
    cells: impl IntoIterator<Item = &'a CellAnalysis>,
    concerns: impl Fn(&TrialSpec) -> bool,
) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for cell in cells {
        for (group, trial) in cell.cell.spec.named_trials() {
            if let Some(name) = group.filter(|name| concerns(trial) && !names.contains(name)) {
                names.push(name);
            }
        }
    }
    names
}

/// `--set sync=end`, or for cells with groups `--set log.sync=end --set bulk.sync=end`, for the groups that it
/// concerns.
pub(crate) fn set<'a>(
    cells: impl IntoIterator<Item = &'a CellAnalysis>,
    concerns: impl Fn(&TrialSpec) -> bool,
    setting: &str,
) -> String {
    let names = names(cells, concerns);
    if names.is_empty() {
        return format!("--set {setting}");
    }
    let sets = names.iter().map(|name| format!("--set {name}.{setting}"));
    sets.collect::<Vec<_>>().join(" ")
}

/// `groups log and bulk`.
pub(crate) fn in_words(names: &[&str]) -> String {
    match names {
        [some @ .., last] if !some.is_empty() => format!("groups {} and {last}", some.join(", ")),
        names => format!("group {}", names.concat()),
    }
}
