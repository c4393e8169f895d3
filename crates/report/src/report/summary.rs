//! What was tested, and on what, in a few sentences.

use std::collections::BTreeSet;

use iolab_record::environment::{KEYS, Key, Text, ValueType};
use iolab_workload::quantity::format_bytes;
use iolab_workload::units::format_size;

use super::{Input, clean};
use crate::input::experiments;
use iolab_workload::quantity::counted;

/// The title: how many experiments, on which target.
pub(super) fn title(inputs: &[Input]) -> String {
    let targets = targets(inputs);
    let place = match targets.as_slice() {
        [only] => clean(only),
        many => format!("{} targets", many.len()),
    };
    match inputs {
        [only] => format!("{} on {place}", clean(&only.run.record().experiment.name)),
        many => format!("{} on {place}", experiments(many)),
    }
}

/// What was measured, what on, on which machine, when.
pub(super) fn sentences(inputs: &[Input]) -> Vec<String> {
    let mut sentences = vec![measured(inputs)];
    sentences.extend(inputs.first().map(|_| place(inputs)));
    sentences.extend(time(inputs));
    sentences
}

fn measured(inputs: &[Input]) -> String {
    let cells = || inputs.iter().flat_map(|i| &i.run.analysis().cells);
    let trials: usize = cells().map(|c| c.n).sum();
    let samples = || inputs.iter().flat_map(|i| &i.run.record().samples);
    let failed = samples().filter(|s| !s.ok).count();
    let warmups = samples().filter(|s| s.warmup && s.ok).count();
    let mut text = format!(
        "{} in {} of {}.",
        counted(trials, "measured trial"),
        counted(cells().count(), "cell"),
        experiments(inputs),
    );
    let mut besides = Vec::new();
    if warmups > 0 {
        besides.push(counted(warmups, "warm-up trial"));
    }
    if failed > 0 {
        besides.push(counted(failed, "failed trial"));
    }
    if !besides.is_empty() {
        text.push_str(&format!(" Stored but excluded: {}.", besides.join(" and ")));
    }
    text
}

fn place(inputs: &[Input]) -> String {
    let targets: Vec<String> = targets(inputs).iter().map(|name| clean(name)).collect();
    let mut text = format!("Target: {}", targets.join(", "));
    let mut kinds: Vec<&str> = Vec::new();
    for input in inputs {
        let kind = input.run.record().run.target_kind.name();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    text.push_str(&format!(" ({})", clean(&kinds.join(", "))));
    let known = |key: &Key<Text>| common(inputs, key).map(|text| clean(&text));
    for (key, what) in [
        (&KEYS.file_system, "file system"),
        (&KEYS.device, "device"),
        (&KEYS.device_vendor, "vendor"),
        (&KEYS.device_model, "model"),
    ] {
        text.extend(known(key).map(|value| format!(", {what} {value}")));
    }
    text.push_str(". ");
    let machine = [
        known(&KEYS.cpu_model),
        common(inputs, &KEYS.cpu_usable_count).map(|n| format!("{n} usable CPUs")),
        common(inputs, &KEYS.memory_bytes)
            .map(|bytes| format!("{} of memory", format_bytes(bytes as f64))),
        known(&KEYS.kernel_release).map(|release| format!("Linux {release}")),
    ];
    let machine: Vec<String> = machine.into_iter().flatten().collect();
    if !machine.is_empty() {
        text.push_str(&format!("Machine: {}.", machine.join(", ")));
    }
    text
}

fn time(inputs: &[Input]) -> Option<String> {
    let runs = || inputs.iter().map(|i| &i.run.record().run);
    let start = runs().map(|r| r.started_utc.as_str()).min()?;
    let end = runs().filter_map(|r| r.ended_utc.as_deref()).max();
    let versions: BTreeSet<&str> = runs().map(|r| r.tool_version.as_str()).collect();
    let versions: Vec<String> = versions.into_iter().map(clean).collect();
    Some(format!(
        "Measured from {} to {} by iolab {}.",
        moment(start),
        end.map_or_else(|| "an unknown time".to_owned(), moment),
        versions.join(", ")
    ))
}

/// `2026-01-02 03:04:05 UTC` for a time as run files keep it; any other text as it is.
pub(super) fn moment(utc: &str) -> String {
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

/// The targets in the order of the runs, each once: by its path, behind the name that the user gave it.
fn targets(inputs: &[Input]) -> Vec<String> {
    let mut targets: Vec<String> = Vec::new();
    for target in inputs
        .iter()
        .flat_map(|input| &input.run.analysis().targets)
    {
        let text = match target.name == target.path {
            true => target.path.clone(),
            false => format!("{} ({})", target.name, target.path),
        };
        if !targets.contains(&text) {
            targets.push(text);
        }
    }
    targets
}

/// The value of a key that all runs agree on, and all targets of each.
fn common<K: ValueType<Value: PartialEq>>(inputs: &[Input], key: &Key<K>) -> Option<K::Value> {
    let records = inputs.iter().map(|input| input.run.record());
    let mut values = records.flat_map(|record| {
        let further =
            (1..=record.further_targets.len()).map(|number| record.environment.get_of(number, key));
        std::iter::once(record.environment.get(key)).chain(further)
    });
    let first = values.next()??;
    let is_shared = values.all(|value| value.as_ref() == Some(&first));
    is_shared.then_some(first)
}

/// A value of a name that carries its unit, with sizes as people read them.
pub(super) fn readable(name: &str, value: &str) -> String {
    match value.parse::<u64>() {
        Ok(bytes) if name.ends_with("_bytes") => format_size(bytes),
        _ => clean(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_by_people() {
        for (utc, read) in [
            ("2026-01-02T03:04:05.123456789Z", "2026-01-02 03:04:05 UTC"),
            ("2026-01-02T03:04:05Z", "2026-01-02 03:04:05 UTC"),
            ("yesterdayTnoonZ", "yesterdayTnoonZ"),
            ("T.Z", "T.Z"),
            ("", ""),
        ] {
            assert_eq!(moment(utc), read);
        }
    }
}
