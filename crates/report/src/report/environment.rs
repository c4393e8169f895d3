//! The environment of all runs: common facts once, others for each run.

use std::collections::HashSet;

use iolab_record::environment::KEYS;

use super::{Input, section};
use crate::fact;

/// One property of the machine, the kernel, the file system or the device.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    pub(super) name: String,
    /// Value of the property, or `NAMES: VALUE` for each value if runs differ.
    pub(super) values: Vec<String>,
}

/// The facts of all runs, in the order in which they first appear.
pub(super) fn facts(inputs: &[Input]) -> Vec<Fact> {
    let mut seen = HashSet::new();
    let names = inputs
        .iter()
        .flat_map(|i| i.run.record().environment.iter());
    // A definition has a place of its own.
    let names = names
        .map(|(name, _)| name)
        .filter(|name| *name != KEYS.model_definition.name() && seen.insert(*name));
    let runs = section::names(inputs);
    let fact = |name: &str| Fact {
        name: fact::name(name),
        values: values(inputs, &runs, name),
    };
    names.map(fact).collect()
}

fn values(inputs: &[Input], runs: &[String], name: &str) -> Vec<String> {
    let of = |input: &Input| {
        let found = input.run.record().environment.text(name);
        found.map_or_else(|| "not known".to_owned(), |text| fact::value(name, text))
    };
    let mut of_values: Vec<(String, Vec<&str>)> = Vec::new();
    for (value, run) in inputs.iter().map(of).zip(runs) {
        match of_values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, names)) => names.push(run),
            None => of_values.push((value, vec![run])),
        }
    }
    match of_values.as_slice() {
        [(only, _)] => vec![only.clone()],
        several => several
            .iter()
            .map(|(value, names)| format!("{}: {value}", names.join(", ")))
            .collect(),
    }
}
