//! `iolab completions`: completions of commands, options and built-in names for shells.

use std::io::Write;

use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use iolab_diskmodel::definition::catalogue;
use iolab_figure::FigureKind;
use iolab_plan::experiment::BUILTIN;
use iolab_plan::requirement::BUILTIN_REQUIREMENTS;
use iolab_plan::suite::BUILTIN_SUITES;

use crate::arguments::{Completions, program};
use iolab_command::failure::Outcome;
use iolab_command::lists::Lists;
use iolab_command::output::open;

/// An argument that takes built-in names, of a command or of a command of `iolab model`.
struct Named {
    command: &'static [&'static str],
    argument: &'static str,
    names: Vec<&'static str>,
}

/// Arguments that take built-in names.
fn named() -> Vec<Named> {
    let of = |rows: &[&[(&'static str, &'static str)]]| {
        let mut names: Vec<&str> = rows.concat().iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let models: Vec<&str> = catalogue::ENTRIES.iter().map(|entry| entry.name).collect();
    // Kept until the program ends, which is at once: clap takes no other texts.
    let targets = models.iter().map(|name| &*format!("model:{name}").leak());
    let kinds = FigureKind::ALL.iter().map(|kind| kind.name());
    let all = of(&[BUILTIN, BUILTIN_SUITES, BUILTIN_REQUIREMENTS]);
    let rows: [(&'static [&'static str], _, Vec<&str>); 7] = [
        (&["study"], "suite", of(&[BUILTIN_SUITES])),
        (&["run"], "experiment", of(&[BUILTIN])),
        (&["fit"], "requirement", of(&[BUILTIN_REQUIREMENTS])),
        (&["show"], "name", all),
        (&["plot"], "kind", kinds.collect()),
        (&["serve"], "model", targets.collect()),
        (&["model", "show"], "definition", models),
    ];
    let rows = rows.into_iter().map(|(command, argument, names)| Named {
        command,
        argument,
        names,
    });
    rows.collect()
}

/// The command with the names that one of its arguments, or one of its commands, takes; as it is if this build has no such command.
fn with_names(command: Command, path: &[&str], named: &Named) -> Command {
    match path.split_first() {
        // Not `mut_arg`, which would move the argument to the end.
        None => command.mut_args(|argument| match argument.get_id() == named.argument {
            true => argument.value_parser(PossibleValuesParser::new(named.names.clone())),
            false => argument,
        }),
        Some((first, _)) if command.find_subcommand(first).is_none() => command,
        Some((first, rest)) => {
            command.mut_subcommand(*first, |command| with_names(command, rest, named))
        }
    }
}

/// Writes the completions of a shell to stdout.
pub(crate) fn completions(options: &Completions, lists: &Lists) -> Outcome {
    let named = named();
    let mut command = named.iter().fold(program(lists), |command, named| {
        with_names(command, named.command, named)
    });
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "iolab", &mut script);
    let mut to = open(None)?;
    let script = String::from_utf8_lossy(&script).into_owned();
    match options.shell {
        // Files too, since most of these arguments take a definition.
        Shell::Zsh => {
            let with_files = named.iter().fold(script, |script, named| {
                // In the form in which clap writes them there.
                let names = named.names.join(" ").replace(':', "\\:");
                let both = format!(":{{compadd -- {names}; _files}}'");
                script.replace(&format!(":({names})'"), &both)
            });
            to.write_all(with_files.as_bytes())?;
        }
        _ => to.write_all(script.as_bytes())?,
    }
    if options.shell == Shell::Fish {
        // For positional arguments clap gives it nothing.
        for Named { command, names, .. } in &named {
            let (first, rest) = (command[0], command[1..].concat());
            let condition = match rest.as_str() {
                "" => format!("__fish_iolab_using_subcommand {first}"),
                of => format!(
                    "__fish_iolab_using_subcommand {first}; and __fish_seen_subcommand_from {of}"
                ),
            };
            let is_option = command.len() == 1 && ["study", "plot"].contains(&first);
            if !is_option {
                writeln!(
                    to,
                    "complete -c iolab -n \"{condition}\" -a \"{}\"",
                    names.join(" ")
                )?;
            }
        }
    }
    Ok(to.flush()?)
}
