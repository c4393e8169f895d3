//! The environment of all runs: common facts once, others for each run.

use std::collections::HashSet;

use iolab_record::environment::KEYS;

use super::Input;
use crate::fact;

/// Name and value of each property of the machine, the kernel, the file systems and the devices, in the order in
/// which they first appear. `RUNS: VALUE` for each value if runs differ.
pub(super) fn facts(inputs: &[Input], runs: &[String]) -> Vec<(String, String)> {
    let mut seen = HashSet::new();
    let names = inputs
        .iter()
        .flat_map(|i| i.run.record().environment.iter());
    // A definition has a place of its own.
    let names = names
        .map(|(name, _)| name)
        .filter(|name| *name != KEYS.model_definition.name() && seen.insert(*name));
    let fact = |name: &str| (fact::name(name), values(inputs, runs, name).join("; "));
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
