//! The environment of all runs: common facts once, others for each run.

use std::collections::HashSet;

use super::summary::readable;
use super::{Input, clean};

/// One property of the machine, the kernel, the file system or the device.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    pub(super) name: String,
    /// Its value; or `NAME: VALUE` for each run where they differ.
    pub(super) values: Vec<String>,
}

/// The facts of all runs, in the order in which they first appear.
pub(super) fn facts(inputs: &[Input]) -> Vec<Fact> {
    let mut seen = HashSet::new();
    let names = inputs
        .iter()
        .flat_map(|i| i.run.record().environment.iter());
    let names = names
        .map(|(name, _)| name)
        .filter(|name| seen.insert(*name));
    let fact = |name: &str| Fact {
        name: clean(name),
        values: values(inputs, name),
    };
    names.map(fact).collect()
}

fn values(inputs: &[Input], name: &str) -> Vec<String> {
    let of = |input: &Input| {
        let found = input.run.record().environment.text(name);
        found.map_or_else(|| "not known".to_owned(), |v| readable(name, v))
    };
    let all: Vec<String> = inputs.iter().map(of).collect();
    match all.first() {
        Some(first) if all.iter().all(|value| value == first) => vec![first.clone()],
        _ => inputs
            .iter()
            .zip(all)
            .map(|(input, value)| {
                format!("{}: {value}", clean(&input.run.record().experiment.name))
            })
            .collect(),
    }
}
