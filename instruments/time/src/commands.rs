//! The commands to time, from the arguments to the shell that runs them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use iolab_host::clock::Clock;
use iolab_host::program;
use iolab_host::program::{Arguments, Program, ProgramRun};
use iolab_stats::{Interval, median, median_interval};
use iolab_workload::command_template::Template;
use iolab_workload::escape_control::shell_word;
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::trial::TrialSpec;
use iolab_workload::units::{counted, parse_positive_duration};
use iolab_workload::{Error, Result, usage_errors};

/// Most commands: each is a cell, and a table of more cannot be read.
const COMMANDS_MAX: usize = 100;

/// Values of parameters by name.
pub(crate) type Parameters = BTreeMap<String, String>;

/// A command to time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimedCommand {
    /// Its text as the user wrote it, with parameters filled in.
    pub(crate) text: String,
    /// Its text in the run file, as a value of the setting `command`.
    pub(crate) level: String,
    /// The name to show.
    pub(crate) name: String,
    /// Values of its parameters.
    pub(crate) parameters: Parameters,
    /// Command before each of its runs, as a value of `command`.
    pub(crate) prepare: Option<String>,
    /// Command before its first run.
    pub(crate) setup: Option<String>,
    /// Command after its last run.
    pub(crate) cleanup: Option<String>,
}

/// The commands that the options ask for, each in every combination of parameters.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): too many commands or names, one name twice, a parameter without a value.
pub(crate) fn of(options: &Options, shell: &Shell) -> Result<Vec<TimedCommand>> {
    let (given, prepare) = (&options.commands, &options.prepare);
    let combinations = combinations(&options.parameters)?;
    let all = given.len().saturating_mul(combinations.len());
    let texts = given.iter().chain(prepare);
    let texts = texts.chain(&options.setup).chain(&options.cleanup);
    let is_used = |name: &str| texts.clone().any(|text| text.contains(&braced(name)));
    let mut parameters = options.parameters.chunks(2);
    if let Some([name, list]) = parameters.find(|pair| !is_used(&pair[0])) {
        let (parameter, list) = (braced(name), shell_word(list));
        return Err(
            Error::usage(format!("-L {name} {list}: no command has {parameter}"))
                .hint("write for example: iolab time -L seconds 0.1,0.2 'sleep {seconds}'"),
        );
    }
    usage_errors! {
        all > COMMANDS_MAX => counted(all as u64, "command"), format!("time at most {COMMANDS_MAX} at once");
        prepare.len() > 1 && prepare.len() != given.len() =>
            format!("{} for {}", counted(prepare.len() as u64, "--prepare"), counted(given.len() as u64, "command")),
            "give --prepare once, or once for each command";
        options.names.len() > all => format!("{} for {}", counted(options.names.len() as u64, "name"), counted(all as u64, "command")),
            "give at most one -n for each command";
    }
    let mut commands: Vec<TimedCommand> = Vec::with_capacity(all);
    for (number, command) in given.iter().enumerate() {
        for parameters in &combinations {
            let fill = |text: &String| shell.template(&filled(text, parameters));
            let text = filled(command, parameters);
            // A command may be timed against itself.
            let again = commands.iter().filter(|known| known.text == text).count();
            let unnamed = match again {
                0 => text.clone(),
                _ => format!("{text} ({})", again + 1),
            };
            let name = options
                .names
                .get(commands.len())
                .unwrap_or(&unnamed)
                .clone();
            usage_errors! {
                text.trim().is_empty() => "a command is empty", "write a program and its arguments in quotes: iolab time './a x' './b x'";
                commands.iter().any(|known| known.name == name) => format!("the name '{name}' is given twice"),
                    "give each command its own -n";
            }
            // Empty quotes change no word, and tell equal commands apart in the run file.
            let level = shell.template(&text) + &"''".repeat(again);
            read(&level)?;
            commands.push(TimedCommand {
                level,
                name,
                prepare: prepare.get(number).or(prepare.first()).map(fill),
                setup: options.setup.as_ref().map(fill),
                cleanup: options.cleanup.as_ref().map(fill),
                parameters: parameters.clone(),
                text,
            });
        }
    }
    Ok(commands)
}

/// Every combination of the parameters, given as names and lists in turn: one without any where there are none.
fn combinations(given: &[String]) -> Result<Vec<Parameters>> {
    let mut all = vec![Parameters::new()];
    for pair in given.chunks(2) {
        let [name, list] = pair else { break };
        usage_errors! {
            all[0].contains_key(name) => format!("the parameter {name} is given twice"), "give all its values in one list";
        }
        let values = values(list);
        usage_errors! {
            name.is_empty() || values.iter().any(String::is_empty) => format!("-L {name} '{list}' has an empty value"),
                "write for example: -L level 1,6,9";
        }
        all = all
            .iter()
            .flat_map(|own| {
                values.iter().map(move |value| {
                    let mut own = own.clone();
                    own.insert(name.clone(), value.clone());
                    own
                })
            })
            .take(COMMANDS_MAX + 1)
            .collect();
    }
    Ok(all)
}

/// Values between commas; `\,` is a comma. No argument has a NUL.
fn values(list: &str) -> Vec<String> {
    let apart = list.replace(r"\,", "\0");
    let values = apart.split(',');
    values.map(|value| value.replace('\0', ",")).collect()
}

/// A parameter in a command.
fn braced(name: &str) -> String {
    format!("{{{name}}}")
}

/// The text with `{NAME}` replaced by the value of each parameter.
fn filled(text: &str, parameters: &Parameters) -> String {
    let fill = |text: String, (name, value): (&String, &String)| text.replace(&braced(name), value);
    parameters.iter().fold(text.to_owned(), fill)
}

const HELP: &str = "\
Each block runs every command once, in random order, so that what else the machine does \
meets all of them alike. The first command is the base. The run ends after --min-runs and the \
budget, or once every median is known within 0.2 %.

A difference is reported when the 95 % interval of the ratio excludes 1; commands are equal when \
an equivalence test (5 %) shows a difference below 1 %, or below 5 % where no difference was \
found; otherwise the answer is 'cannot tell'.

Examples:
  iolab time 'sleep 0.010' 'sleep 0.011'
  iolab time -N --runs 40 -o new.iolab './old x' './new x'
  iolab time -L seconds 0.1,0.2 'sleep {seconds}'

Exit codes: 0 faster, slower or equal; 5 cannot tell; 4 a command is slower than the base, with \
--fail-if-slower; 1 a command failed.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Commands to time
    #[arg(required = true, value_name = "COMMAND")]
    pub(crate) commands: Vec<String>,
    /// Runs of each command before those that count
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub(crate) warmup: u32,
    /// Exactly this number of runs of each command
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["min_runs", "max_runs", "budget"])]
    pub(crate) runs: Option<u32>,
    /// Fewest runs of each command
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) min_runs: u32,
    /// Most runs of each command
    #[arg(short = 'M', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_runs: Option<u32>,
    /// Time for all runs [default: 3 s for each command]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration)]
    pub(crate) budget: Option<Duration>,
    /// Command to run before each run, not timed; once for all commands, or once for each
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) prepare: Vec<String>,
    /// Command to run before the first run of each command, not timed
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) setup: Option<String>,
    /// Command to run for each command at the end, not timed
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) cleanup: Option<String>,
    /// Shell that runs the commands; its start-up is measured and subtracted
    #[arg(short = 'S', long, value_name = "SHELL", default_value = "sh", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) shell: String,
    /// Run the commands without a shell
    #[arg(short = 'N', long = "no-shell", conflicts_with = "shell")]
    pub(crate) no_shell: bool,
    /// Count runs that end with an exit code other than 0
    #[arg(short, long)]
    pub(crate) ignore_failure: bool,
    /// Time each command with each of these values in place of {NAME}
    #[arg(short = 'L', long = "parameter-list", value_names = ["NAME", "VALUES"], num_args = 2)]
    pub(crate) parameters: Vec<String>,
    /// Name to show for a command, in the order of the commands
    #[arg(short = 'n', long = "command-name", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) names: Vec<String>,
    /// Exit code 4 if a command is slower than the first
    #[arg(long)]
    pub(crate) fail_if_slower: bool,
    /// Run file to write, for report, compare and gate
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// File to write, as hyperfine's --export-json does; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) export_json: Option<PathBuf>,
    /// Seed of the order of the runs; random by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..1 << 62))]
    pub(crate) seed: Option<u64>,
}

/// Starts of the shell that are timed.
const STARTS: usize = 50;

/// Shell that runs the commands, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shell {
    /// This shell, with `-c`.
    Named(String),
    /// The kernel, without a shell.
    None,
}

/// The start-up of a shell, medians.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct StartUp {
    /// Time, ns.
    pub(crate) elapsed_ns: f64,
    /// Its 95 % interval.
    pub(crate) interval: Option<Interval>,
    /// CPU time in user mode, ns.
    user_ns: f64,
    /// CPU time in the kernel, ns.
    system_ns: f64,
}

impl Shell {
    /// A command as a value of the setting `command`, which splits words and fills braces.
    pub(crate) fn template(&self, command: &str) -> String {
        let braces = command.replace('{', "{{").replace('}', "}}");
        match self {
            Self::Named(shell) => format!("{shell} -c '{}'", braces.replace('\'', r"'\''")),
            Self::None => braces,
        }
    }

    /// Times the start-up; `None` without a shell.
    ///
    /// # Errors
    /// The shell cannot be started, or the user's interrupt.
    pub(crate) fn start_up(&self, clock: &Clock, stop: &AtomicBool) -> Result<Option<StartUp>> {
        if *self == Self::None {
            return Ok(None);
        }
        let program = found(&self.template(""))?;
        let mut starts: [Vec<f64>; 3] = Default::default();
        for _ in 0..STARTS {
            let outcome = run(&program, clock, stop)?.outcome;
            checked(&outcome, "")?;
            let usage = outcome.counters.usage;
            let own = [outcome.elapsed_ns, usage.user_ns, usage.system_ns];
            starts
                .iter_mut()
                .zip(own)
                .for_each(|(all, own)| all.push(own as f64));
        }
        let [elapsed_ns, user_ns, system_ns] =
            starts.each_ref().map(|all| median(all).unwrap_or(0.0));
        Ok(Some(StartUp {
            elapsed_ns,
            interval: median_interval(&starts[0], 0.95),
            user_ns,
            system_ns,
        }))
    }
}

impl StartUp {
    /// Takes the start-up away from a run, at most to 0.
    pub(crate) fn subtract_from(&self, outcome: &mut Outcome) {
        let less = |value: &mut u64, by: f64| *value = value.saturating_sub(by.round() as u64);
        less(&mut outcome.elapsed_ns, self.elapsed_ns);
        let usage = &mut outcome.counters.usage;
        less(&mut usage.user_ns, self.user_ns);
        less(&mut usage.system_ns, self.system_ns);
    }
}

/// Reads a value of the setting `command`.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): it cannot be split into words.
pub(crate) fn read(level: &str) -> Result<Template> {
    level.parse().map_err(|error: Error| {
        Error::usage(format!("'{level}': {}", error.message()))
            .hint("leave -N out: a shell takes pipes, variables and redirections")
    })
}

/// The program of a value of the setting `command`.
///
/// # Errors
/// As [`read`]; or there is no such program.
pub(crate) fn found(level: &str) -> Result<Program> {
    let template = read(level)?;
    Ok(Program {
        path: Program::find(template.program())?,
        arguments: Arguments::plain(template.arguments(Path::new(""), 0, 0)),
        time_limit: None,
        output_max: None,
    })
}

/// One run of a program on no file.
///
/// # Errors
/// It cannot be started.
pub(crate) fn run(program: &Program, clock: &Clock, stop: &AtomicBool) -> Result<ProgramRun> {
    program::run(program, &[], &TrialSpec::default(), clock, stop)
}

/// Refuses a run that failed or was interrupted.
///
/// # Errors
/// The failure in words, with the option that counts it in `counts`, or the user's interrupt.
pub(crate) fn checked(outcome: &Outcome, counts: &str) -> Result<()> {
    match &outcome.failure {
        _ if outcome.ended == Ended::Interrupted => Err(Error::interrupted()),
        None => Ok(()),
        Some(failure) => {
            let (what, _) = iolab_runner::describe_failure(failure);
            Err(Error::failed(what).hint(format!("run it by hand to see more{counts}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};

    fn commands(arguments: &[&str]) -> Result<Vec<TimedCommand>> {
        let parser = Options::augment_args(Command::new("time"));
        let matches = parser.get_matches_from([&["time"], arguments].concat());
        let options = Options::from_arg_matches(&matches);
        of(&options.expect("arguments"), &Shell::Named("sh".to_owned()))
    }

    #[test]
    fn every_combination_of_parameters_is_a_command() {
        let all = commands(&[
            "-L", "a", "1,2", "-L", "b", r"x\,y,z", "-n", "first", "--prepare", "p {a}",
            "c {a} {b}",
        ]);
        let all = all.expect("valid");
        let told: Vec<String> = all
            .iter()
            .map(|own| {
                format!(
                    "{} | {} | {}",
                    own.name,
                    own.level,
                    own.prepare.as_deref().unwrap_or("")
                )
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"), @"
        first | sh -c 'c 1 x,y' | sh -c 'p 1'
        c 1 z | sh -c 'c 1 z' | sh -c 'p 1'
        c 2 x,y | sh -c 'c 2 x,y' | sh -c 'p 2'
        c 2 z | sh -c 'c 2 z' | sh -c 'p 2'
        ");
    }

    #[test]
    fn equal_commands_get_levels_of_the_same_words() {
        let all = commands(&["a 1", "a 1"]).expect("valid");
        assert_eq!([&all[0].name, &all[1].name], ["a 1", "a 1 (2)"]);
        assert_ne!(all[0].level, all[1].level);
        let words = |own: &TimedCommand| {
            let template = read(&own.level).expect("readable");
            template.arguments(Path::new(""), 0, 0)
        };
        assert_eq!(words(&all[0]), words(&all[1]));
    }

    #[test]
    fn ambiguous_commands_are_refused() {
        let told = [
            &["a", "b", "-n", "x", "-n", "x"][..],
            &["a", "-n", "x", "-n", "y"],
            &["a", "b", "c", "--prepare", "p", "--prepare", "q"],
            &["a {n}", "-L", "n", "1,,2"],
            &["-L", "n", "a 1", "a 2"],
            &["a {n}", "-L", "n", "1", "-L", "n", "2"],
            &[" "],
        ]
        .map(|arguments| commands(arguments).expect_err("refused").to_string());
        insta::assert_snapshot!(told.join("\n"), @"
        the name 'x' is given twice
          give each command its own -n
        2 names for 1 command
          give at most one -n for each command
        2 --prepares for 3 commands
          give --prepare once, or once for each command
        -L n '1,,2' has an empty value
          write for example: -L level 1,6,9
        -L n 'a 1': no command has {n}
          write for example: iolab time -L seconds 0.1,0.2 'sleep {seconds}'
        the parameter n is given twice
          give all its values in one list
        a command is empty
          write a program and its arguments in quotes: iolab time './a x' './b x'
        ");
    }
}

#[cfg(test)]
mod shell_template_tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_shell_gets_the_command_as_typed(command in "[^\0]{0,40}") {
            let level = Shell::Named("sh".to_owned()).template(&command);
            let template: Template = level.parse().expect("readable");
            let arguments = template.arguments(Path::new("file"), 1, 2);
            prop_assert_eq!(arguments, ["-c", command.as_str()]);
            prop_assert_eq!(template.to_string(), level);
        }
    }
}
