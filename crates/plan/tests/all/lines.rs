//! Experiments written as one line: a name, then changes as after `--set` and steps of commands, `STEP:ARGUMENT`.

use iolab_plan::experiment::{Change, Combination, Experiment, GroupSetting};
use iolab_workload::settings::Setting;
use iolab_workload::units::parse_duration;
use iolab_workload::{Kind, Result};

/// Definitions that lines name besides the built-in ones.
pub(crate) const DEFINITIONS: [(&str, &str); 3] = [
    (
        "mine",
        "name = 'mine'\nquestion = 'why?'\nresponse = 'iops'\n",
    ),
    (
        "latency",
        "name = 'm'\nquestion = 'q'\nresponse = 'latency'\n",
    ),
    (
        "groups",
        "name = 'x'\nquestion = '?'\nresponse = 'reader.p99'\n[factors]\n\"writer.rate\" = [0, '50MB/s', 'none']\ndepth = [1, 2]\n[settings]\nbackend = 'io_uring'\nbs = '64KiB'\n[group.reader]\nbs = '4KiB'\npattern = 'rand'\nrate = 1000\ntime = '1s'\n[group.writer]\nread_percent = 0\ndepth = 8\n",
    ),
];

/// An experiment, and what the steps that made it have said.
pub(crate) struct Made {
    pub(crate) experiment: Experiment,
    pub(crate) notes: Vec<String>,
}

/// The experiment of this name.
pub(crate) fn found(name: &str) -> Result<Experiment> {
    match DEFINITIONS.iter().find(|(own, _)| *own == name) {
        Some((name, text)) => Experiment::from_toml(text, name),
        None => Experiment::find(name),
    }
}

/// The experiment of a line without steps.
pub(crate) fn experiment(line: &str) -> Experiment {
    made(line).expect(line).experiment
}

/// Carries out a line. Changes before the next step, or before the word `then`, belong together.
pub(crate) fn made(line: &str) -> Result<Made> {
    let words = words(line);
    let (name, words) = words.split_first().expect("a name");
    let mut made = Made {
        experiment: found(name)?,
        notes: Vec::new(),
    };
    let (mut given, mut changes) = (Vec::new(), Vec::new());
    for word in words {
        if *word == "then" || step_of(word).is_some() {
            made.change(&mut changes)?;
        }
        match step_of(word) {
            Some((step, argument)) => made.take(step, argument, &given)?,
            None if *word == "then" => {}
            None => {
                given.extend(word.split_once('=').map(|(name, _)| name.to_owned()));
                changes.push(refused_alone(Change::parse(word))?);
            }
        }
    }
    made.change(&mut changes)?;
    Ok(made)
}

const STEPS: [&str; 7] = ["answer", "block", "hold", "list", "seek", "soak", "without"];

fn step_of(word: &str) -> Option<(&str, &str)> {
    word.split_once(':')
        .filter(|(step, _)| STEPS.contains(step))
}

impl Made {
    /// Applies the changes, which a refused one leaves undone.
    fn change(&mut self, changes: &mut Vec<Change>) -> Result<()> {
        let before = self.experiment.clone();
        let applied = self.experiment.apply_all(&std::mem::take(changes));
        if applied.is_err() {
            assert_eq!(self.experiment, before);
        }
        refused_alone(applied)
    }

    fn take(&mut self, step: &str, argument: &str, given: &[String]) -> Result<()> {
        let is_given = |name: &str| given.iter().any(|own| own == name);
        let experiment = &mut self.experiment;
        match step {
            "answer" => experiment.answer(&argument.parse()?, &is_given)?,
            "seek" => experiment.seek(argument.parse()?)?,
            "hold" => {
                experiment.hold = Some(argument.parse()?);
                experiment.check()?;
            }
            "soak" => self.notes = experiment.soak(parse_duration(argument)?, &is_given)?,
            "block" => {
                let block = argument.parse().expect("bytes");
                let told = experiment.leave_out_small_sizes(block, &is_given)?;
                self.notes.extend(told);
            }
            // `SETTING=LEVEL`, and `=INSTEAD` if another takes its place.
            "without" => {
                let mut parts = argument.split('=');
                let setting = Setting::find(parts.next().expect("a setting")).expect(argument);
                let level = parts.next().expect("a level");
                let done = experiment.do_without(setting, level, parts.next())?;
                self.notes.push(format!("{level}: {done:?}"));
            }
            // Settings of a combination are separated by commas, combinations by semicolons.
            _ => {
                let level = |set: &str| {
                    let (name, level) = set.split_once('=').expect(set);
                    let of = GroupSetting::find(name, &[]).expect(set);
                    (of, level.to_owned())
                };
                let row = |row: &str| -> Combination { row.split(',').map(level).collect() };
                experiment.list(&argument.split(';').map(row).collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }
}

/// Result unchanged; an error is of kind usage and has a remedy.
fn refused_alone<T>(result: Result<T>) -> Result<T> {
    if let Err(error) = &result {
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        assert!(error.remedy().is_some(), "{error}");
    }
    result
}

/// The words of a line; what stands in quotes belongs to one word.
fn words(line: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let words = line.split(|c| {
        is_quoted ^= c == '\'';
        c == ' ' && !is_quoted
    });
    let words = words.filter(|word| !word.is_empty());
    words.map(|word| word.trim_matches('\'')).collect()
}
