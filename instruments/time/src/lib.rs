//! iolab-time: times commands against each other, in blocks of random order.
//!
//! Files to begin with: `lib.rs` for the command, `executor.rs` for one run of a command, `answer.rs` for the first screen.

mod answer;
mod commands;
mod executor;

use std::env::current_dir;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use iolab_analysis::compare::Conclusion;
use iolab_command::failure::{Outcome, conclude};
use iolab_command::options::new_seed;
use iolab_command::output::{Log, note};
use iolab_command::output_format::check_run_file;
use iolab_command::run_files::read_run;
use iolab_command::{Command, Lists, output};
use iolab_host::clock::Clock;
use iolab_plan::experiment::{Design, Experiment, TRIALS_MAX, WarmUp};
use iolab_record::environment::{Environment, KEYS};
use iolab_runfile::NewFile;
use iolab_runner::campaign::Program;
use iolab_runner::{Observer, OwnTrials, RunEnd, RunStart, StopFlags, TrialDone};
use iolab_workload::escape_control::shell_word;
use iolab_workload::response::Response;
use iolab_workload::settings::Setting;
use iolab_workload::units::{counted, rough_duration};
use iolab_workload::{Error, Kind, Result, usage_errors};

use answer::Timed;
use commands::Shell;
use commands::{Options, TimedCommand};
use executor::Runner;

/// The rows of this instrument.
pub fn lists(program: Program) -> Lists {
    Lists {
        commands: vec![Command::with_log(
            "time",
            "Find which of several commands is faster, and whether that is more than noise",
            |_| Log::Live,
            move |options, _| time(options, program),
        )],
        ..Lists::default()
    }
}

/// Time for each command by default.
const TIME_EACH: Duration = Duration::from_secs(3);
/// Precision of medians at which the runs end: a quarter of the least margin of equality, so that equal commands are
/// shown to be equal.
const PRECISION: f64 = 0.002;

/// Times the commands, and prints which is faster.
fn time(options: &Options, program: Program) -> Outcome {
    let shell = match options.no_shell {
        true => Shell::None,
        false => Shell::Named(options.shell.clone()),
    };
    let commands = commands::of(options, &shell)?;
    if let Some(path) = &options.output {
        check_run_file(path)?;
        iolab_runfile::check_place(NewFile::At(path))?;
    }
    let experiment = experiment(options, &commands)?;
    // The command that runs is killed then.
    let stop = (program.catch)(false)?.now;
    // Opened first, so that no timing is lost to a name that is taken.
    let exported = options.export_json.as_deref();
    let exported = exported.map(|file| output::open(Some(file))).transpose()?;
    let clock = Clock::calibrate();
    let start_up = shell.start_up(&clock, &stop)?;
    let more = options.warmup.saturating_sub(1);
    let terms = (more, options.ignore_failure);
    let mut runner = Runner::of(&commands, &clock, start_up, terms)?;
    let note_of_shell = start_up.map(|start_up| start_up.in_words(&options.shell));
    let trials = OwnTrials {
        experiment,
        place: current_dir().map_or_else(|_| ".".to_owned(), |path| path.display().to_string()),
        environment: environment(),
        notes: note_of_shell.clone().into_iter().collect(),
        seed: options.seed.unwrap_or_else(new_seed),
        clock: &clock,
        stop: StopFlags::at_once(Arc::clone(&stop)),
    };
    // Without -o the run file is a temporary one: it holds what the answer is made of.
    let folder = tempfile::tempdir().map_err(|error| {
        Error::failed(format!("cannot make a temporary folder: {error}"))
            .hint("set TMPDIR to a folder that can be written")
    })?;
    let temporary = folder.path().join("time.iolab");
    let path = options.output.as_deref().unwrap_or(&temporary);
    let finished = trials.carry_out(&mut runner, NewFile::At(path), &mut Line::new());
    let with_left = |error: Error| match runner.clean_up() {
        Ok(()) => error,
        Err(left) => error.also(left.message()),
    };
    let failure = match finished {
        Ok(_) => runner.clean_up().err(),
        Err(error) if error.kind() == Kind::Interrupted => Some(with_left(Error::interrupted())),
        Err(error) => return Err(with_left(error).into()),
    };
    let timed = Timed::of(&commands, &read_run(path)?, &runner);
    match failure {
        Some(failure) if !timed.has_results() => return Err(failure.into()),
        _ => show(&timed, note_of_shell.as_deref(), options, exported)?,
    }
    match (failure, timed.conclusion()) {
        (Some(failure), _) => Err(failure.into()),
        (None, Conclusion::Regression) if !options.fail_if_slower => Ok(()),
        (None, conclusion) => conclude(Ok(()), conclusion),
    }
}

/// Prints the answer, and writes what else was asked for.
fn show(
    timed: &Timed,
    shell: Option<&str>,
    options: &Options,
    exported: Option<Box<dyn Write>>,
) -> Outcome {
    let to_stdout = options
        .export_json
        .as_deref()
        .is_some_and(output::is_stdout);
    if !to_stdout {
        let mut to = output::open(None)?;
        write!(to, "{}", timed.text(shell, output::style().width))?;
        to.flush()?;
    }
    if let Some(mut to) = exported {
        answer::write_hyperfine(timed, &mut to)?;
        to.flush()?;
    }
    if let Some(path) = &options.output {
        note(format_args!("\nrun file: {}", path.display()));
    }
    Ok(())
}

/// The experiment that times these commands.
fn experiment(options: &Options, commands: &[TimedCommand]) -> Result<Experiment> {
    let most = options.max_runs.unwrap_or(TRIALS_MAX);
    usage_errors! {
        options.min_runs > most => format!("--min-runs {} and --max-runs {most}", options.min_runs),
            "--min-runs is at most --max-runs";
    }
    let warmup = match options.warmup {
        0 => WarmUp::None,
        _ => WarmUp::First,
    };
    let design = match options.runs {
        Some(runs) => Design::counted(runs),
        None => Design {
            trials_min: options.min_runs,
            trials_max: most,
            precision: PRECISION,
            budget: options
                .budget
                .unwrap_or(TIME_EACH.saturating_mul(commands.len() as u32)),
            ..Design::default()
        },
    };
    let mut experiment = Experiment::bare(
        "time".to_owned(),
        "Which command is faster, and is that more than noise?".to_owned(),
        Response::Elapsed,
        Design { warmup, ..design },
    );
    let levels: Vec<String> = commands.iter().map(|own| own.level.clone()).collect();
    experiment.sweep(setting("command")?, &levels)?;
    // Nothing is dropped from the page cache, and no file is read.
    experiment.fix(setting("cache")?, "hot")?;
    experiment.check()?;
    Ok(experiment)
}

/// Facts about the machine, and the command that repeats the run.
fn environment() -> Environment {
    let mut list = iolab_runner::environment::of_devices(&[]);
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    list.put(&KEYS.timed_by, format!("iolab {}", again(words)));
    list
}

/// Arguments as words for a shell, without the seed and the files to write.
fn again(mut arguments: impl Iterator<Item = String>) -> String {
    const LEFT_OUT: [&str; 4] = ["-o", "--output", "--export-json", "--seed"];
    let mut words = Vec::new();
    while let Some(argument) = arguments.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument.as_str(), None),
        };
        match LEFT_OUT.contains(&name) {
            true if value.is_none() => drop(arguments.next()),
            true => {}
            false => words.push(shell_word(&argument)),
        }
    }
    words.join(" ")
}

fn setting(name: &str) -> Result<&'static Setting> {
    Setting::find(name).ok_or_else(|| Error::failed(format!("there is no setting '{name}'")))
}

/// The progress of the runs, one line on a terminal: how many are done, and the time left.
struct Line {
    is_shown: bool,
}

impl Line {
    /// A line, if stderr is a terminal.
    fn new() -> Self {
        Self {
            is_shown: output::log() == Log::Live,
        }
    }

    /// Replaces the line. Errors do not stop the timing.
    fn show(&self, text: &str) {
        if self.is_shown {
            let _ = write!(io::stderr().lock(), "\r{text}\x1b[K");
        }
    }
}

impl Observer for Line {
    fn run_starts(&mut self, start: &RunStart<'_>) {
        let commands = counted(start.cells as u64, "command");
        let left = rough_duration(start.progress.left);
        self.show(&format!("{commands}, up to about {left}"));
    }

    fn trial_done(&mut self, trial: &TrialDone<'_>) {
        let runs = counted(trial.progress.trials_done, "run");
        let left = rough_duration(trial.progress.left);
        self.show(&format!("{runs}, up to about {left} left"));
    }

    fn run_ends(&mut self, _end: &RunEnd) {
        self.show("");
    }

    fn note(&mut self, message: &str) {
        self.show("");
        note(format_args!("note: {message}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_repeated_without_its_files() {
        let words = [
            "time", "-N", "-o", "a.iolab", "--seed=3", "--export-json", "x y", "--runs", "4",
            "./a b", "-n", "o",
        ];
        let again = again(words.map(str::to_owned).into_iter());
        assert_eq!(again, "time -N --runs 4 './a b' -n o");
    }
}
