//! The blocks that support the numbers: method, evidence, settings, environment, and commands that repeat the study.

use std::collections::HashSet;

use iolab_record::environment::KEYS;

use super::commands::OwnModel;
use super::stem;
use super::study::Study;
use super::{Input, clean, commands, evidence, method, section};
use crate::block::{Block, Item, Lines, List};
use crate::fact;

/// All blocks of this part.
pub(super) fn blocks(study: &Study<'_>) -> Vec<Block> {
    let inputs = study.report.inputs;
    let mut all = vec![
        Block::heading(2, "all", "Behind the numbers"),
        Block::folded(3, "method", "Method"),
    ];
    let orders = study.latest.iter().filter_map(|place| inputs.get(*place));
    let orders: Vec<_> = orders
        .map(|input| input.run.analysis().trial_order)
        .collect();
    let (rules, references) = method::rules(&orders, &study.findings.rules);
    all.push(Block::list(rules.into_iter().map(Item::of).collect()));
    all.push(Block::folded(3, "references", "References"));
    all.push(Block::List(List {
        is_ordered: true,
        items: references.into_iter().map(Item::of).collect(),
    }));
    all.push(Block::folded(
        3,
        "evidence",
        "Evidence, settings and events",
    ));
    let mut repeat: Vec<String> = Vec::new();
    for (place, input) in inputs.iter().enumerate() {
        let name = study.names.get(place).cloned().unwrap_or_default();
        let model = study.models.get(place).and_then(Option::as_ref);
        let toml = definition_of(study, place, input);
        all.push(Block::heading(4, "", name));
        all.extend(of_run(place, input, model, &toml));
        let again = format!("{}-again.iolab", stem(place, input));
        repeat.extend(commands::of_run(input, &toml, model, &again));
    }
    all.push(Block::folded(3, "environment", "Environment"));
    all.push(Block::Facts(environment(inputs, &study.names)));
    repeat.extend(commands::of_report(inputs));
    all.extend([
        Block::folded(3, "repeat", "Repeat it"),
        Block::text("Save each definition from the evidence above. Then run:"),
        Block::commands(repeat.join("\n")),
    ]);
    all
}

/// Name of the file with the definition of a run: the one of a latest run serves all runs with the same definition.
fn definition_of(study: &Study<'_>, place: usize, input: &Input) -> String {
    let inputs = study.report.inputs;
    let of_place = study.sequences.iter().filter(|one| one.0.contains(&place));
    let latest = of_place.filter_map(|one| one.latest());
    let mut latest = latest.filter_map(|index| Some((index, inputs.get(index)?)));
    let toml = |input: &Input| input.run.record().experiment.toml.clone();
    let same = latest.find(|(_, latest)| toml(latest) == toml(input));
    let (index, input) = same.unwrap_or((place, input));
    format!("{}.toml", stem(index, input))
}

/// Evidence, settings, definition and events of a run.
fn of_run(place: usize, input: &Input, model: Option<&OwnModel>, toml: &str) -> Vec<Block> {
    let (record, analysis) = (input.run.record(), input.run.analysis());
    let file = clean(&input.path.to_string_lossy());
    let mut all = vec![
        Block::Table(evidence::table(record, analysis)),
        Block::text(format!("Run file: {file}.")),
        Block::Facts(section::settings(record)),
    ];
    let lines = |heading: &str, file: &str, text: String| {
        [
            Block::folded(5, "", format!("{heading}, as {file}")),
            Block::Lines(Lines {
                file: file.to_owned(),
                text,
            }),
        ]
    };
    if toml == format!("{}.toml", stem(place, input)) {
        all.extend(lines(
            "Definition",
            toml,
            section::lines(&record.experiment.toml),
        ));
    }
    if let Some(model) = model.filter(|model| model.is_shown) {
        all.extend(lines("Model", &model.file, model.shown()));
    }
    let events = section::events(record);
    let note = commands::lacking(record);
    if !note.is_empty() || !events.is_empty() {
        all.push(Block::heading(5, "", "Events"));
    }
    if !note.is_empty() {
        all.push(Block::text(note));
    }
    if !events.is_empty() {
        all.push(Block::list(events.into_iter().map(Item::of).collect()));
    }
    all
}

/// Name and value of each property of the machine, the kernel, the file systems and the devices, in the order in
/// which they first appear. `RUNS: VALUE` for each value if runs differ.
fn environment(inputs: &[Input], runs: &[String]) -> Vec<(String, String)> {
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
