//! `iolab list`: the built-in experiments, suites and requirements, and every setting.
//!
//! `iolab show`: the definition of an experiment, suite or requirement, the definition of a run, or its cells in the format of
//! another tool.
//!
//! `iolab completions`: completions of commands and options for shells.

use std::io::Write;
use std::path::Path;

use crate::arguments::{Completions, List, Show, program};
use iolab_analysis::trial_values::distinct;
use iolab_command::built_in::BuiltIn;
use iolab_command::failure::Outcome;
use iolab_command::output::{note, open, style};
use iolab_command::{DefinitionFormat, Lists};
use iolab_figure::labels::capital;
use iolab_plan::experiment::{BUILTIN, Experiment, design_names};
use iolab_plan::suite::{BUILTIN_SUITES, Suite};
use iolab_report::layout::{paragraph, wrapped};
use iolab_runfile::Content;
use iolab_runfile::number_list::is_database;
use iolab_workload::Result;
use iolab_workload::escape_control::escape_control;
use iolab_workload::names::{alternatives, unknown};
use iolab_workload::settings::{CellSpec, SETTINGS, Topic};
use iolab_workload::units::{counted, rough_duration};

/// Writes the list to stdout.
pub(crate) fn list(options: &List, lists: &Lists) -> Outcome {
    let mut to = open(None)?;
    if options.settings {
        settings(options.all, &mut to)?;
    } else {
        definitions(lists, &mut to)?;
    }
    Ok(to.flush()?)
}

/// The built-in definitions of the core.
pub(super) fn built_in() -> Vec<BuiltIn> {
    let experiment = |name: &str| {
        let experiment = Experiment::find(name)?;
        let cells = counted(experiment.cell_count() as u64, "cell");
        let time = rough_duration(experiment.time_at_most());
        Ok(format!("{} ({cells}, {time})", experiment.question))
    };
    vec![
        BuiltIn {
            one: "an experiment",
            argument: "<EXPERIMENT>",
            command: "iolab run",
            example: "read-random",
            entries: BUILTIN,
            about: experiment,
        },
        BuiltIn {
            one: "a suite",
            argument: "--suite <NAME>",
            command: "iolab study --suite",
            example: "quick",
            entries: BUILTIN_SUITES,
            about: |name| Ok(Suite::find(name)?.about),
        },
    ]
}

fn definitions(lists: &Lists, to: &mut dyn Write) -> Outcome {
    let all = lists.built_in.iter().flat_map(|kind| kind.entries);
    let width = widest(all.map(|(name, _)| *name));
    for (number, kind) in lists.built_in.iter().enumerate() {
        let apart = if number > 0 { "\n" } else { "" };
        let (plural, command) = (capital(kind.kind()), kind.command);
        writeln!(to, "{apart}{plural}s ({command} NAME, iolab show NAME):")?;
        for (name, _) in kind.entries {
            entry(name, width, &(kind.about)(name)?, to)?;
        }
    }
    Ok(())
}

/// The settings that most experiments need.
const COMMON: [&str; 15] = [
    "bs", "pattern", "workload", "read_percent", "region", "threads", "depth", "rate", "backend",
    "sync", "layout", "cache", "verify", "bytes", "time",
];

fn settings(all: bool, to: &mut dyn Write) -> Outcome {
    let defaults = CellSpec::default();
    let heading = "Every setting can be fixed (--set NAME=VALUE) or swept (--set NAME=VALUE,VALUE; between values that hold commas a semicolon):";
    write!(to, "{}", wrapped(heading, style().width))?;
    let shown = || {
        let is_shown = |name: &str| all || COMMON.contains(&name);
        SETTINGS
            .iter()
            .filter(move |setting| is_shown(setting.name))
    };
    let width = widest(shown().map(|setting| setting.name));
    for topic in Topic::ALL.iter().copied() {
        let own = || shown().filter(|setting| setting.topic == topic);
        if own().next().is_none() {
            continue;
        }
        writeln!(to, "\n{}:", topic.name())?;
        for setting in own() {
            let mut about = setting.doc.to_owned();
            if !setting.aliases.is_empty() {
                about.push_str(&format!("; also called {}", setting.aliases.join(", ")));
            }
            let default = Some(setting.get(&defaults)).filter(|d| !d.is_empty());
            if let Some(default) = default {
                about.push_str(&format!(" [default: {default}]"));
            }
            entry(setting.name, width, &about, to)?;
        }
    }
    let design = match all {
        true => format!("Also with one value each: {}.", design_names().join(", ")),
        false => "Every setting: iolab list --settings --all".to_owned(),
    };
    write!(to, "\n{}", wrapped(&design, style().width))?;
    Ok(())
}

/// Columns that the longest name takes.
fn widest<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(str::len).max().unwrap_or(0)
}

/// A name with its description, in lines that fit.
fn entry(name: &str, width: usize, about: &str, to: &mut dyn Write) -> Outcome {
    let mark = format!("  {name:<width$} ");
    Ok(write!(to, "{}", paragraph(about, &mark, style().width))?)
}

/// Writes the definition to stdout.
pub(crate) fn show(options: &Show, lists: &Lists) -> Outcome {
    let path = Path::new(&options.name);
    let read = |format: &DefinitionFormat| (format.read)(path, None, options.allow_include);
    let file = lists.format_of(path).map(read).transpose()?;
    let left_target = file.as_ref().and_then(|file| file.left_target.clone());
    let mut notes: Vec<String> = left_target.clone().into_iter().collect();
    let mut formats = lists.definitions.iter();
    let text = match (formats.find(|format| format.name == options.format), file) {
        (None, Some(file)) => file.to_toml()?,
        (None, None) => toml(&options.name, lists)?,
        (Some(format), file) => {
            let given = file.map(|file| Ok(file.experiment));
            let experiment = given.unwrap_or_else(|| experiment(&options.name, lists))?;
            let (text, left_out) = (format.write)(experiment, left_target.as_deref())
                .map_err(|error| error.within(escape_control(&options.name)))?;
            notes.extend(left_out);
            text
        }
    };
    for text in notes {
        note(format_args!("note: {text}"));
    }
    let mut to = open(None)?;
    write!(to, "{text}")?;
    Ok(to.flush()?)
}

/// The TOML: for built-in definitions with their comments, for a file or a run with everything resolved.
fn toml(name: &str, lists: &Lists) -> Result<String> {
    let mut builtin = lists.built_in.iter().flat_map(|kind| kind.entries);
    if let Some((_, text)) = builtin.find(|(known, _)| *known == name) {
        return Ok((*text).to_owned());
    }
    if is_run_file(name)? {
        let file = escape_control(name);
        let record = match iolab_runfile::read_content(Path::new(name))? {
            Content::Run(record) => record,
            Content::Observation(kept) => {
                let command = lists.seen(*kept, Path::new(name))?.seen.command();
                return Ok(format!(
                    "# What {file} holds was seen by this command.\n{}\n",
                    escape_control(&command)
                ));
            }
        };
        let seed = record.run.seed;
        return Ok(format!(
            "# The experiment of {file}; --seed {seed} repeats its order, offsets and data.\n{}",
            record.experiment.toml
        ));
    }
    let is_file = Path::new(name).exists() || name.ends_with(".toml");
    match is_file {
        true => Experiment::find(name)?.to_toml(),
        false => {
            let kinds: Vec<&str> = lists.built_in.iter().map(BuiltIn::kind).collect();
            let all = lists.built_in.iter().flat_map(|kind| kind.entries);
            // Tests of a standard are experiments and suites.
            let known = distinct(all.map(|(name, _)| *name));
            Err(unknown(&alternatives(&kinds), name, &known))
        }
    }
}

fn experiment(name: &str, lists: &Lists) -> Result<Experiment> {
    if is_run_file(name)? {
        let record = iolab_runfile::read(Path::new(name))?;
        return Experiment::from_toml(&record.experiment.toml, name);
    }
    lists.check_kind(name, "an experiment")?;
    Experiment::find(name)
}

/// Whether a name denotes a run file.
fn is_run_file(name: &str) -> Result<bool> {
    let path = Path::new(name);
    let is_named_so = path
        .extension()
        .is_some_and(|extension| extension == "iolab");
    match path.is_file() {
        true => is_database(path),
        false => Ok(is_named_so),
    }
}

/// Writes the completions of a shell to stdout.
pub(crate) fn completions(options: &Completions, lists: &Lists) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut program(lists), "iolab", &mut script);
    let mut to = open(None)?;
    to.write_all(&script)?;
    Ok(to.flush()?)
}
