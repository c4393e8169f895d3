//! Reads the command line, and explains errors in it.
//!
//! Selection of the commands and options that help shows, and their headings.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::exit;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::arguments::program;
#[cfg(feature = "measure")]
use crate::measuring::builtin_names::check_command;
use iolab_command::failure::Outcome;
use iolab_command::output::{self, Log, style};
use iolab_command::{Lists, Task};
use iolab_report::layout::paragraph;
use iolab_workload::foreign_options::unknown_option;
use iolab_workload::names::nearest;

/// Parses the command line. clap prints errors and ends the program.
///
/// # Errors
/// Help that cannot be written.
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): an option of another tool, with iolab's equivalent; a built-in name in the
/// position of a command.
pub(crate) fn read(lists: &Lists, is_silent: bool) -> Outcome<Task> {
    let mut command = program(lists);
    if std::env::args_os().skip(1).eq(["help", "all"]) {
        let mut to = output::open(None)?;
        write!(to, "{}", list(command.get_subcommands())).and_then(|()| to.flush())?;
        exit(0);
    }
    let parsed = command.try_get_matches_from_mut(std::env::args_os());
    let parsed = parsed.or_else(|error| match error.kind() {
        // Grouping takes as long as all other parsing, and only help shows it.
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            grouped(program(lists)).try_get_matches()
        }
        _ => Err(error),
    });
    let parsed = parsed.and_then(|matches| {
        let task = task(lists, &matches);
        task.map_err(|error| error.format(&mut command))
    });
    parsed.or_else(|mut error| {
        // No value begins with a dash, so that the tip to pass the option as a value is dropped.
        if error.kind() == ErrorKind::UnknownArgument
            && error.get(ContextKind::SuggestedArg).is_none()
        {
            error.remove(ContextKind::Suggested);
        }
        answer_unknown_command(lists, &command, &mut error)?;
        let known_elsewhere = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::Strings(missing))
                if error.kind() == ErrorKind::MissingRequiredArgument =>
            {
                missing.iter().find_map(|argument| unnamed(argument, lists))
            }
            Some(ContextValue::String(option)) if error.kind() == ErrorKind::UnknownArgument => {
                unknown(&command, option)
            }
            Some(ContextValue::String(option)) if option == "--direct" => Some(
                iolab_workload::Error::usage("'--direct' takes no value")
                    .hint("write --direct alone, or --buffered for the page cache"),
            ),
            Some(ContextValue::String(option)) => {
                let source = std::error::Error::source(&error);
                let own = source.and_then(|own| own.downcast_ref::<iolab_workload::Error>());
                let option = option.split(' ').next().unwrap_or_default();
                own.map(|own| own.clone().within(option))
            }
            _ => None,
        };
        if logs_json() && error.use_stderr() {
            output::set_log(Log::Json);
            return Err(known_elsewhere.unwrap_or_else(|| plain(&error)).into());
        }
        match known_elsewhere {
            _ if is_silent => Err(iolab_workload::Error::usage(error.to_string()).into()),
            Some(known) => Err(known.into()),
            None => match error.print().and_then(|()| io::stdout().flush()) {
                Err(cause) if !error.use_stderr() => Err(cause.into()),
                _ => exit(error.exit_code()),
            },
        }
    })
}

/// The command that is asked for.
fn task(lists: &Lists, matches: &ArgMatches) -> clap::error::Result<Task> {
    let asked = matches.subcommand().and_then(|(name, matches)| {
        let mut all = lists.commands.iter();
        Some((all.find(|command| command.name() == name)?, matches))
    });
    let Some((command, matches)) = asked else {
        return Err(clap::Error::new(ErrorKind::MissingSubcommand));
    };
    command.read(matches)
}

/// The error if a built-in name is missing.
fn unnamed(argument: &str, lists: &Lists) -> Option<iolab_workload::Error> {
    let mut kinds = lists.built_in.iter();
    let of = kinds.find(|kind| kind.argument == argument)?;
    let (what, command, example) = (of.kind(), of.command, of.example);
    let error = iolab_workload::Error::usage(format!("the name of the {what} is missing"));
    Some(error.hint(format!(
        "iolab list shows all names; for example: {command} {example}"
    )))
}

/// The error for an option that a command does not have: a setting, an option of another tool, or of another command. `None` for
/// other names. An option of another tool means nothing to a command without settings.
fn unknown(program: &Command, option: &str) -> Option<iolab_workload::Error> {
    let mut words = std::env::args_os().skip(1);
    let command = words.find_map(|word| program.find_subcommand(word));
    let options = |command: &Command| -> Vec<String> {
        let all = command.get_arguments().filter_map(Arg::get_long);
        all.map(str::to_owned).collect()
    };
    let own = command.map_or_else(Vec::new, options);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let name = command.map_or_else(
        || "iolab".to_owned(),
        |command| format!("iolab {}", command.get_name()),
    );
    let foreign = || unknown_option(&name, &own, option, given_value(option).as_deref());
    // The --set of iolab fit changes parameters.
    let takes_settings = command.is_none_or(|command| {
        let mut arguments = command.get_arguments();
        arguments.any(|argument| argument.get_id() == "sets")
    });
    takes_settings.then(foreign).flatten().or_else(|| {
        let long = option.trim_start_matches('-').split('=').next()?;
        let others = program.get_subcommands();
        let others = others.filter(|other| options(other).iter().any(|name| name == long));
        let others: Vec<String> = others
            .map(|other| format!("'iolab {}'", other.get_name()))
            .collect();
        let error =
            iolab_workload::Error::usage(format!("'{option}' is not an option of '{name}'"));
        (!others.is_empty()).then(|| {
            error.hint(format!(
                "it is an option of {}; '{name} --help' shows its own",
                others.join(", ")
            ))
        })
    })
}

/// The value that an unknown option has on the command line: after its `=`, or in the next word.
fn given_value(option: &str) -> Option<String> {
    let arguments = std::env::args_os().skip(1);
    let mut words = arguments.map(|word| word.to_string_lossy().into_owned());
    let given = words.find_map(|word| match word.strip_prefix(option) {
        Some("") => Some(None),
        Some(rest) => rest.strip_prefix('=').map(|value| Some(value.to_owned())),
        None => None,
    })?;
    given.or_else(|| words.next().filter(|next| !next.starts_with('-')))
}

/// Whether errors are asked for as objects, of a command line that cannot be read as a whole.
fn logs_json() -> bool {
    let arguments: Vec<_> = std::env::args_os().collect();
    let is_pair = |pair: &[OsString]| pair[0] == "--log" && pair[1] == "json";
    arguments.windows(2).any(is_pair) || arguments.iter().any(|argument| argument == "--log=json")
}

/// An error of clap without its layout: the fault, then the remedy.
fn plain(error: &clap::Error) -> iolab_workload::Error {
    let text = error.to_string();
    let text = text.trim_start_matches("error: ").trim();
    let (what, helps) = text.split_once("\n\n").unwrap_or((text, ""));
    let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = iolab_workload::Error::usage(in_one_line(what));
    match in_one_line(helps) {
        helps if helps.is_empty() => plain,
        helps => plain.hint(helps),
    }
}

/// Suggests for an unknown command the one that accepts this name, or the nearest, if clap suggests none: it finds no
/// similarity between `rnu` and `run`.
fn answer_unknown_command(
    lists: &Lists,
    program: &Command,
    error: &mut clap::Error,
) -> iolab_workload::Result<()> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return Ok(());
    };
    // `model` has commands of its own, of which clap suggests one.
    let words = std::env::args_os().skip(1);
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    if words.find(|word| !word.starts_with('-')).as_ref() != Some(name) {
        return Ok(());
    }
    check_command(name, lists)?;
    let known: Vec<&str> = program.get_subcommands().map(|c| c.get_name()).collect();
    let near = nearest(name, &known).into_iter().map(str::to_owned);
    let near: Vec<String> = near.collect();
    if !near.is_empty() && error.get(ContextKind::SuggestedSubcommand).is_none() {
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(near),
        );
    }
    Ok(())
}

/// The commands that measure.
#[cfg(any(test, not(feature = "measure")))]
const MEASURING: [&str; 9] = [
    "study", "run", "fit", "why", "import", "resume", "doctor", "serve", "witness",
];

/// Refuses in the position of a command what this build lacks.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage).
#[cfg(not(feature = "measure"))]
fn check_command(name: &str, _: &Lists) -> iolab_workload::Result<()> {
    match MEASURING.contains(&name) {
        true => Err(iolab_workload::Error::usage(format!(
            "this build reads results, and has no '{name}'"
        ))
        .hint("iolab measures on Linux: use the build for it")),
        false => Ok(()),
    }
}

/// The commands that help lists; `iolab help all` lists every one.
const MAIN_COMMANDS: [&str; 10] = [
    "study", "run", "fit", "compare", "time", "report", "why", "witness", "doctor", "list",
];

/// Widest help, columns, as `max_term_width` of the arguments.
const WIDTH: u16 = 100;

/// The headings of the options of `iolab run`, with the options that `-h` shows, and the options for `--help` alone.
const HEADINGS: [(&str, &[&str], &[&str]); 4] = [
    (
        "Workload",
        &[
            "sets", "bs", "size", "threads", "depth", "rate", "direct", "buffered", "slo", "soak",
            "peers",
        ],
        &[
            "names", "allow_include", "together", "peak", "verify", "fresh",
        ],
    ),
    (
        "Precision",
        &["time", "budget", "precision", "seed"],
        &["refine", "precondition", "settle"],
    ),
    (
        "Output",
        &["output", "full", HELP],
        &["no_live", "log", "quiet"],
    ),
    (
        "Safety",
        &["dry_run", "destroy_data"],
        &["change_system", "run_programs"],
    ),
];

/// The option that prints help.
const HELP: &str = "help";

/// The arguments, with help that shows the main commands, and the options of `iolab run` in groups.
fn grouped(command: Command) -> Command {
    let header = command.get_styles().get_header();
    let main = MAIN_COMMANDS.iter();
    let main = main.filter_map(|name| command.find_subcommand(name));
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{header}Commands:{header:#}\n{}\n'iolab help all' lists every command.\n\n{header}Options:{header:#}\n{{options}}{{after-help}}",
        list(main),
    );
    let command = command.help_template(template);
    match command.find_subcommand("run") {
        Some(_) => command.mut_subcommand("run", under_headings),
        None => command,
    }
}

/// Commands with their purposes.
fn list<'a>(commands: impl Iterator<Item = &'a Command>) -> String {
    let entries = commands.map(|command| {
        let about = command.get_about().map(ToString::to_string);
        let mark = format!("  {:<12} ", command.get_name());
        paragraph(&about.unwrap_or_default(), &mark, style().width.min(WIDTH))
    });
    entries.collect()
}

/// The command with its options under their headings.
fn under_headings(command: Command) -> Command {
    let help = Arg::new(HELP)
        .short('h')
        .long("help")
        .action(ArgAction::Help);
    let command = command
        .disable_help_flag(true)
        .arg(help.help("Print help; --help prints all options"));
    command.mut_args(|arg| {
        let heading = HEADINGS.iter().find_map(|(heading, common, rare)| {
            let has = |names: &[&str]| names.iter().any(|name| arg.get_id() == name);
            let is_rare = has(rare);
            (has(common) || is_rare).then_some((*heading, is_rare))
        });
        match heading {
            Some((heading, is_rare)) => arg.help_heading(heading).hide_short_help(is_rare),
            None => arg,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_report::layout::COMMANDS;

    #[test]
    fn no_line_breaks_any_command() {
        let command = crate::program();
        let mut names = command.get_subcommands().map(Command::get_name);
        assert_eq!(names.find(|name| !COMMANDS.contains(name)), None);
    }

    #[test]
    fn measuring_commands_are_in_this_build() {
        let command = crate::program();
        let missing = |name: &&str| command.find_subcommand(name).is_none();
        let found = MEASURING.iter().copied().find(missing);
        let has_all = cfg!(all(
            feature = "measure",
            feature = "doctor",
            feature = "models",
            feature = "witness"
        ));
        assert_eq!(found.is_none(), has_all);
    }

    #[test]
    fn options_of_run_have_four_headings() {
        let run = under_headings(
            super::super::program()
                .find_subcommand("run")
                .expect("run")
                .clone(),
        );
        let options: Vec<&Arg> = run
            .get_arguments()
            .filter(|arg| !arg.is_positional())
            .collect();
        let without = options
            .iter()
            .filter(|arg| arg.get_help_heading().is_none());
        let without: Vec<_> = without.map(|arg| arg.get_id().as_str()).collect();
        assert_eq!(without, [""; 0]);
        let short = options.iter().filter(|arg| !arg.is_hide_short_help_set());
        assert!(short.count() <= 20);
    }
}
