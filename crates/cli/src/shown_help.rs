//! Selection of the commands and options that help shows, and their headings.

use clap::{Arg, ArgAction, Command};
use iolab_report::layout::paragraph;

use iolab_command::output::style;

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
pub(crate) fn grouped(command: Command) -> Command {
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

/// Every command with its purpose.
pub(crate) fn every_command(command: &Command) -> String {
    list(command.get_subcommands())
}

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

    #[test]
    fn options_of_run_have_four_headings() {
        let run = under_headings(
            crate::program()
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
