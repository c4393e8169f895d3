//! A summary in a few sentences: the measurement, its targets and its machine.

use std::collections::{BTreeMap, BTreeSet};

use iolab_analysis::analysis::SteadyAnalysis;
use iolab_analysis::trial_values::distinct;
use iolab_record::RunRecord;
use iolab_record::environment::{KEYS, Key, Text, ValueType};

use super::{Input, clean};
use crate::layout::shared;
use crate::overview::{description, experiments};
use iolab_workload::units::counted;

/// Most targets that a title names.
const TARGETS_NAMED_MAX: usize = 2;

/// Names of the measured drives: the user's name, else maker and model if the kernel knows them, else the
/// device, else the target.
pub(crate) fn drives(records: &[&RunRecord]) -> String {
    let names = records.iter().flat_map(|record| {
        let numbers = 0..=record.further_targets.len();
        numbers.map(|number| drive(record, number))
    });
    let names = distinct(names);
    match names.as_slice() {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        names => names.concat(),
    }
}

/// The name of the drive below one target of a run.
fn drive(record: &RunRecord, number: usize) -> String {
    let known = |key| {
        let value: Option<String> = record.environment.get_of(number, key);
        value.map(|text| clean(text.trim()))
    };
    if let Some(name) = known(&KEYS.target_name) {
        return name;
    }
    let target = || clean(record.targets().nth(number).unwrap_or_default());
    match (known(&KEYS.device_vendor), known(&KEYS.device_model)) {
        (Some(vendor), Some(model)) if !model.starts_with(&vendor) => format!("{vendor} {model}"),
        (_, Some(model)) => model,
        (_, None) => match known(&KEYS.device) {
            Some(device) => format!("{device} ({})", target()),
            None => target(),
        },
    }
}

/// Facts on the measurement: what, when, on what machine, and how. Name and value, each short enough for one
/// line.
pub(super) fn facts(inputs: &[Input]) -> Vec<(String, String)> {
    let records: Vec<&RunRecord> = inputs.iter().map(|input| input.run.record()).collect();
    let disks = inputs
        .iter()
        .flat_map(|input| &input.run.analysis().targets);
    let disks = disks.map(|one| clean(&format!("{} ({})", one.name, description(one))));
    let disks = distinct(disks);
    let known = |key: &Key<Text>| common(inputs, key).map(|text| clean(&text));
    let versions = records.iter().map(|record| clean(&record.run.tool_version));
    let versions: BTreeSet<String> = versions.collect();
    let versions: Vec<String> = versions.into_iter().collect();
    let host = [known(&KEYS.host_name), known(&KEYS.cpu_model)];
    let host: Vec<String> = host.into_iter().flatten().collect();
    let facts = [
        ("Disk", Some(disks.join("; "))),
        ("Time", Some(time(inputs))),
        ("Host", Some(host.join(", "))),
        (
            "Kernel",
            known(&KEYS.kernel_release).map(|release| format!("Linux {release}")),
        ),
        ("Left out", Some(excluded(inputs))),
        ("iolab", Some(versions.join(", "))),
    ];
    let facts = facts.into_iter();
    let facts = facts.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    facts.filter(|(_, value)| !value.is_empty()).collect()
}

/// The title: the number of experiments, and their targets.
pub(super) fn title(inputs: &[Input]) -> String {
    let targets = targets(inputs);
    let place = match targets.as_slice() {
        many if many.len() > TARGETS_NAMED_MAX => format!("{} targets", many.len()),
        few => clean(&few.join(" and ")),
    };
    match inputs {
        [only] => format!("{} on {place}", clean(&only.run.record().experiment.name)),
        many => format!("{} on {place}", experiments(many)),
    }
}

/// Trials that are stored but not in any number; empty for none.
fn excluded(inputs: &[Input]) -> String {
    let warm_ups = |of_rounds: bool| {
        let runs = inputs.iter().map(|input| input.run.analysis());
        let runs = runs.filter(|run| {
            let steady = run.steady.as_ref();
            steady.is_some_and(SteadyAnalysis::is_of_cells) == of_rounds
        });
        runs.flat_map(|run| &run.cells)
            .map(|cell| cell.warm_ups)
            .sum::<usize>()
    };
    let samples = inputs.iter().flat_map(|input| &input.run.record().samples);
    let failed = samples.filter(|sample| !sample.ok).count();
    let parts = [
        (warm_ups(false), counted(warm_ups(false), "warm-up trial")),
        (
            warm_ups(true),
            format!("{} of earlier rounds", counted(warm_ups(true), "trial")),
        ),
        (failed, counted(failed, "failed trial")),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    parts
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join(" and ")
}

/// The time of all runs: `2026-01-02 03:04:05 UTC to 2026-01-02 03:05:05 UTC`.
fn time(inputs: &[Input]) -> String {
    let runs = || inputs.iter().map(|input| &input.run.record().run);
    let start = runs().map(|run| run.started_utc.as_str()).min();
    let end = runs().filter_map(|run| run.ended_utc.as_deref()).max();
    let ends = [start, end].map(|time| time.map_or_else(|| "an unknown time".to_owned(), moment));
    ends.join(" to ")
}

/// `2026-01-02 03:04:05 UTC` for a time as run files store it; other text unchanged.
pub(crate) fn moment(utc: &str) -> String {
    let text = clean(utc);
    let parts = text.split_once('T').and_then(|(day, rest)| {
        let time = rest.strip_suffix('Z')?.split('.').next()?;
        let digits = |text: &str, mark: char| {
            let mut parts = text.split(mark);
            parts.all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()))
        };
        (digits(day, '-') && digits(time, ':')).then(|| format!("{day} {time} UTC"))
    });
    parts.unwrap_or(text)
}

/// The targets in the order of the runs, each path once, after the name that the user gave it in any run.
fn targets(inputs: &[Input]) -> Vec<String> {
    let all = || {
        inputs
            .iter()
            .flat_map(|input| &input.run.analysis().targets)
    };
    let paths = distinct(all().map(|target| target.path.as_str()));
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for target in all().filter(|target| target.name != target.path) {
        names.entry(&target.path).or_insert(&target.name);
    }
    let named = paths.into_iter().map(|path| match names.get(path) {
        Some(name) => format!("{name} ({path})"),
        None => path.to_owned(),
    });
    named.collect()
}

/// The value of a key if all targets of all runs have the same; otherwise `None`.
fn common<K: ValueType<Value: PartialEq>>(inputs: &[Input], key: &Key<K>) -> Option<K::Value> {
    let records = inputs.iter().map(|input| input.run.record());
    let values = records.flat_map(|record| {
        let numbers = 0..=record.further_targets.len();
        numbers.map(|number| record.environment.get_of(number, key))
    });
    shared(values)?
}
