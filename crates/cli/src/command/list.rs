//! `iolab list`: the built-in experiments, suites and requirements, and every setting.

use std::io::Write;

use iolab_plan::experiment::{BUILTIN, DESIGN, Experiment};
use iolab_plan::requirement::{BUILTIN_REQUIREMENTS, Requirement};
use iolab_plan::suite::{BUILTIN_SUITES, Suite};
use iolab_spec::settings::{CellSpec, SETTINGS, Topic};
use iolab_spec::units::format_duration;

use crate::arguments::List;
use crate::exit::Outcome;
use crate::output;

/// Writes the list to stdout.
pub(crate) fn list(options: &List) -> Outcome {
    let mut to = output::open(None)?;
    if options.settings {
        settings(&mut to)?;
    } else {
        experiments(&mut to)?;
    }
    Ok(to.flush()?)
}

fn experiments(to: &mut dyn Write) -> Outcome {
    writeln!(to, "Experiments (iolab run NAME, iolab show NAME):")?;
    for (name, _) in BUILTIN {
        let experiment = Experiment::find(name)?;
        let cells = experiment.cell_count();
        let budget = format_duration(experiment.design.budget);
        writeln!(
            to,
            "  {name:<14} {} ({cells} cells, {budget})",
            experiment.question
        )?;
    }
    writeln!(to, "\nSuites (iolab study --suite NAME, iolab show NAME):")?;
    for (name, _) in BUILTIN_SUITES {
        writeln!(to, "  {name:<14} {}", Suite::find(name)?.about)?;
    }
    writeln!(to, "\nRequirements (iolab fit NAME, iolab show NAME):")?;
    for (name, _) in BUILTIN_REQUIREMENTS {
        let question = Requirement::find(name)?.question;
        writeln!(to, "  {name:<14} {question}")?;
    }
    Ok(())
}

fn settings(to: &mut dyn Write) -> Outcome {
    let defaults = CellSpec::default();
    writeln!(
        to,
        "Every setting can be fixed (--set NAME=VALUE) or swept (--set NAME=VALUE,VALUE; between values that hold commas a semicolon):"
    )?;
    for topic in Topic::ALL {
        writeln!(to, "\n{}:", topic.title())?;
        for setting in SETTINGS.iter().filter(|setting| setting.topic == topic) {
            let mut about = setting.doc.to_owned();
            if !setting.aliases.is_empty() {
                about.push_str(&format!("; also called {}", setting.aliases.join(", ")));
            }
            let default = Some(setting.get(&defaults)).filter(|d| !d.is_empty());
            if let Some(default) = default {
                about.push_str(&format!(" [default: {default}]"));
            }
            writeln!(to, "  {:<17} {about}", setting.name)?;
        }
    }
    writeln!(to, "\nAlso with one value each: {}.", DESIGN.join(", "))?;
    Ok(())
}
