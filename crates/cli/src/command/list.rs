//! `iolab list`: the built-in experiments, suites and requirements, and every setting.

use std::io::Write;

use iolab_plan::experiment::{BUILTIN, Experiment, design_names};
use iolab_plan::requirement::{BUILTIN_REQUIREMENTS, Requirement};
use iolab_plan::suite::{BUILTIN_SUITES, Suite};
use iolab_report::layout::{paragraph, wrapped};
use iolab_workload::quantity::counted;
use iolab_workload::settings::{CellSpec, SETTINGS, Topic};
use iolab_workload::units::rough_duration;

use crate::arguments::List;
use iolab_command::failure::Outcome;
use iolab_command::output::{self, style};

/// Writes the list to stdout.
pub(crate) fn list(options: &List) -> Outcome {
    let mut to = output::open(None)?;
    if options.settings {
        settings(options.all, &mut to)?;
    } else {
        experiments(&mut to)?;
    }
    Ok(to.flush()?)
}

fn experiments(to: &mut dyn Write) -> Outcome {
    let all = [BUILTIN, BUILTIN_SUITES, BUILTIN_REQUIREMENTS].concat();
    let width = widest(all.iter().map(|(name, _)| *name));
    writeln!(to, "Experiments (iolab run NAME, iolab show NAME):")?;
    for (name, _) in BUILTIN {
        let experiment = Experiment::find(name)?;
        let cells = counted(experiment.cell_count() as u64, "cell");
        let time = rough_duration(experiment.time_at_most());
        let about = format!("{} ({cells}, {time})", experiment.question);
        entry(name, width, &about, to)?;
    }
    writeln!(to, "\nSuites (iolab study --suite NAME, iolab show NAME):")?;
    for (name, _) in BUILTIN_SUITES {
        entry(name, width, &Suite::find(name)?.about, to)?;
    }
    writeln!(to, "\nRequirements (iolab fit NAME, iolab show NAME):")?;
    for (name, _) in BUILTIN_REQUIREMENTS {
        entry(name, width, &Requirement::find(name, &[])?.question, to)?;
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
    for topic in Topic::ALL {
        let own = || shown().filter(|setting| setting.topic == topic);
        if own().next().is_none() {
            continue;
        }
        writeln!(to, "\n{}:", topic.title())?;
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
