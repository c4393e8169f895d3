//! Properties that all cells of a table share, in the line above it.

use iolab_analysis::analysis::Analysis;
use iolab_workload::escape_control::escape_control;
use iolab_workload::settings::{CellSpec, DESCRIBING, SETTINGS, Value};
use iolab_workload::trial_description;

/// Settings named above a table if they do not vary.
const NAMED: [&str; 6] = ["bs", "threads", "depth", "backend", "cache", "region"];
/// Settings that describe the accesses.
const OF_ACCESS: [&str; 4] = ["workload", "pattern", "read_percent", "sync"];
/// Settings that are not named: length and beginning of trials, recording of latencies, choices of iolab for new
/// runs, and settings that stand elsewhere. All others are named if they differ from their defaults.
const NOT_NAMED: [&str; 12] = [
    "bytes", "time", "batch", "first_offset", "buffer_memory", "target", "tool", "ranks", "hosts",
    "active", "latency", "latency_over_time",
];

/// Properties that all cells share, including settings that differ from their defaults: `settings: random reads,
/// threads=1, depth=1, backend=psync, cache=direct, region=1GiB`. `None` for programs and groups, whose settings
/// differ in other ways, and without cells.
pub(super) fn in_words(analysis: &Analysis) -> Option<String> {
    let cells = || analysis.cells.iter().map(|cell| &cell.cell.spec);
    let first = cells().next()?;
    if cells().any(|spec| spec.runs_program() || spec.has_groups()) {
        return None;
    }
    let varies = |name: &str| analysis.factors.iter().any(|factor| factor == name);
    // What a report leaves out has no words.
    let trial = first.only_trial();
    let access = trial.map(trial_description::in_words).filter(|access| {
        let is_one = cells().all(|spec| trial_description::accesses_of_cell(spec) == *access);
        is_one && !OF_ACCESS.iter().any(|name| varies(name))
    });
    let default = CellSpec::default();
    let is_elsewhere = |name: &&str| OF_ACCESS.contains(name) || NOT_NAMED.contains(name);
    let named = SETTINGS.iter().filter(|setting| {
        NAMED.contains(&setting.name)
            || trial.is_none() && DESCRIBING.contains(&setting.name)
            || !is_elsewhere(&setting.name)
                && ![setting.value(&default), Value::Unknown].contains(&setting.value(first))
    });
    let alike = named.filter(|setting| {
        let value = setting.get(first);
        !varies(setting.name) && cells().all(|spec| setting.get(spec) == value)
    });
    let levels = alike.map(|setting| format!("{}={}", setting.name, setting.get(first)));
    let parts: Vec<String> = access.into_iter().chain(levels).collect();
    let text = format!("settings: {}", parts.join(", "));
    (!parts.is_empty()).then(|| escape_control(&text).into_owned())
}
