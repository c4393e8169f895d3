//! The answer: which command is faster and by how much, as text and as hyperfine's JSON.

use std::io::{self, Write};

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::Conclusion;
use iolab_analysis::doubt::{DoubtClass, DoubtKind};
use iolab_analysis::equivalence::{MARGINS, ProgramAnswer, ProgramPair, SizePoint, program_pairs};
use iolab_record::Sample;
use iolab_report::comparison_table::share;
use iolab_report::layout::{Column, none, wrapped};
use iolab_report::ratio::{in_time_than, range_in_time};
use iolab_report::{doubt, layout};
use iolab_stats::{Interval, median, summary};
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::{between, digits, format_bytes, format_ns};
use serde::Serialize;

use crate::commands::StartUp;
use crate::commands::{Parameters, TimedCommand};
use crate::executor::{OwnRun, Runner};

/// Most sentences and most rows of the table: a first screen has 24 lines, and long sentences take two or three.
const SENTENCES_MAX: usize = 4;
const ROWS_MAX: usize = 6;
/// Longest name in a sentence or a table, characters.
const NAME_MAX: usize = 40;

/// A command with its runs.
pub(crate) struct TimedRuns {
    /// The command.
    pub(crate) command: TimedCommand,
    /// Measured runs, in the order of time.
    pub(crate) samples: Vec<Sample>,
    /// Facts of the runs that the run file does not keep.
    pub(crate) own: Vec<OwnRun>,
    interval: Option<Interval>,
    /// Doubts that other programs raise about its runs.
    disturbed: Vec<DoubtKind>,
}

/// All commands with their runs, and each but the first against the first.
pub(crate) struct Timed {
    /// The commands in the order of the command line.
    pub(crate) commands: Vec<TimedRuns>,
    pairs: Vec<ProgramPair>,
}

impl StartUp {
    /// The start-up in words.
    pub(crate) fn in_words(&self, shell: &str) -> String {
        let range = self.interval.map_or_else(String::new, |interval| {
            format!(
                " ({})",
                between(&format_ns(interval.low), &format_ns(interval.high))
            )
        });
        let time = format_ns(self.elapsed_ns);
        format!("The start-up of {shell}, {time}{range}, is subtracted from every run.")
    }
}

impl Timed {
    /// The commands of a run file, and what the runner saw.
    pub(crate) fn of(commands: &[TimedCommand], run: &AnalysedRun, runner: &Runner<'_>) -> Self {
        let (analysis, record) = (run.analysis(), run.record());
        let timed = |(number, command): (usize, &TimedCommand)| {
            let is_own = |sample: &&Sample| sample.cell == number as i64;
            let measured = |sample: &&Sample| sample.ok && !sample.warmup;
            let samples: Vec<Sample> = record
                .samples
                .iter()
                .filter(is_own)
                .filter(measured)
                .cloned()
                .collect();
            let cell = analysis
                .cells
                .iter()
                .find(|cell| cell.cell.id == number as i64);
            let summary = cell.and_then(|cell| cell.response);
            let flags = cell.map_or(&[][..], |cell| &cell.flags);
            let is_by_others = |what: &DoubtKind| {
                what.class() == DoubtClass::Others || *what == DoubtKind::Suspended
            };
            TimedRuns {
                command: command.clone(),
                own: runner.last_runs(number, samples.len()).to_vec(),
                interval: summary.and_then(|summary| summary.median_interval),
                disturbed: flags.iter().copied().filter(is_by_others).collect(),
                samples,
            }
        };
        Self {
            commands: commands.iter().enumerate().map(timed).collect(),
            pairs: program_pairs(analysis),
        }
    }

    /// Whether any run counts.
    pub(crate) fn has_results(&self) -> bool {
        self.commands.iter().any(|own| !own.samples.is_empty())
    }

    /// Whether a command is slower than the first, otherwise whether each is shown to be faster or equal.
    pub(crate) fn conclusion(&self) -> Conclusion {
        let answers = || self.pairs.iter().map(|pair| answer_of(pair.points.first()));
        if answers().any(|answer| answer == ProgramAnswer::Slower) {
            Conclusion::Regression
        } else if answers().any(|answer| answer == ProgramAnswer::CannotTell) {
            Conclusion::CannotTell
        } else {
            Conclusion::Settled
        }
    }

    /// The first screen for a terminal of `width` columns; `shell` says what was subtracted.
    pub(crate) fn text(&self, shell: Option<&str>, width: u16) -> String {
        let mut text = String::new();
        let mut say =
            |sentence: &str| text += &wrapped(&format!("{}\n", escape_control(sentence)), width);
        for pair in self.pairs.iter().take(SENTENCES_MAX) {
            say(&self.sentence(pair));
        }
        if self.pairs.len() > SENTENCES_MAX {
            say(&format!(
                "And {} more: -o FILE keeps them all, and iolab table FILE shows them.",
                self.pairs.len() - SENTENCES_MAX
            ));
        }
        if !self.pairs.is_empty() {
            text += "\n";
        }
        text += &layout::text(self.columns(), width);
        let mut foot: Vec<String> = shell.map(str::to_owned).into_iter().collect();
        foot.extend(self.too_short());
        foot.extend(self.disturbances());
        for sentence in foot {
            text += &wrapped(&format!("{}\n", escape_control(&sentence)), width);
        }
        text
    }

    /// The answer about one command.
    fn sentence(&self, pair: &ProgramPair) -> String {
        let (base, new) = (self.name(&pair.base), self.name(&pair.new));
        let Some(point) = pair.points.first() else {
            return format!("Cannot tell whether {new} is faster than {base}: too few runs.");
        };
        let than = point.ratio.as_ref().zip(point.medians_ns);
        let than = than.map(|(ratio, medians)| in_time_than(&base, ratio, medians));
        let range = point.ratio.as_ref().and_then(range_in_time);
        match answer_of(Some(point)) {
            ProgramAnswer::Slower | ProgramAnswer::Faster => {
                format!("{new} is {}.", than.unwrap_or_default())
            }
            ProgramAnswer::Equivalent(margin) => {
                let interval = point.ratio.and_then(|ratio| ratio.interval);
                let range =
                    range.filter(|_| interval.is_some_and(|(low, high)| low < 1.0 && high > 1.0));
                let range = range.map_or_else(String::new, |range| format!(" ({range})"));
                let within = share(MARGINS[margin]);
                format!("{new} and {base} are equal within {within}{range}.")
            }
            ProgramAnswer::CannotTell => {
                let why = match (point.doubts.as_slice(), range) {
                    ([], Some(range)) => {
                        format!("{range}; more runs narrow that (--runs, --budget)")
                    }
                    ([], None) => "too few runs".to_owned(),
                    (doubts, _) => doubt::clauses(doubts),
                };
                format!("Cannot tell whether {new} is faster than {base}: {why}.")
            }
        }
    }

    /// The name of a command by its level.
    fn name(&self, level: &str) -> String {
        let mut commands = self.commands.iter().map(|own| &own.command);
        let found = commands.find(|own| own.level.trim() == level);
        found.map_or_else(|| level.to_owned(), |own| short(&own.name))
    }

    fn columns(&self) -> Vec<Column> {
        let rows = || self.commands.iter().take(ROWS_MAX);
        let of = |value: &dyn Fn(&TimedRuns) -> String| rows().map(value).collect::<Vec<_>>();
        let column = |heading: &str, dispensable: u8, value: &dyn Fn(&TimedRuns) -> String| {
            Column::new(heading, dispensable, of(value))
        };
        let between = |own: &TimedRuns| {
            let interval = own
                .interval
                .map(|own| between(&format_ns(own.low), &format_ns(own.high)));
            interval.unwrap_or_else(none)
        };
        let median_of = |own: &TimedRuns, value: &dyn Fn(&Sample) -> u64| {
            let values: Vec<f64> = own
                .samples
                .iter()
                .map(|sample| value(sample) as f64)
                .collect();
            median(&values)
        };
        let cpu = |sample: &Sample| sample.counters.usage.user_ns + sample.counters.usage.system_ns;
        let faults = |sample: &Sample| {
            sample.counters.usage.minor_faults + sample.counters.usage.major_faults
        };
        let memory = |own: &TimedRuns| {
            let bytes: Vec<f64> = own
                .own
                .iter()
                .map(|run| run.resident_bytes as f64)
                .collect();
            let below = match own.own.iter().any(|run| run.is_of_iolab) {
                true => "< ",
                false => "",
            };
            median(&bytes).map_or_else(none, |bytes| format!("{below}{}", format_bytes(bytes)))
        };
        vec![
            column("command", 0, &|own| {
                escape_control(&short(&own.command.name)).into_owned()
            })
            .left(),
            column("time", 0, &|own| {
                median_of(own, &|sample| sample.elapsed_ns).map_or_else(none, format_ns)
            }),
            column("95 % interval", 0, &between),
            column("CPU time", 1, &|own| {
                median_of(own, &cpu).map_or_else(none, format_ns)
            }),
            column("memory", 2, &memory),
            column("faults", 3, &|own| {
                median_of(own, &faults).map_or_else(none, |count| digits(count, 3))
            }),
            column("runs", 1, &|own| own.samples.len().to_string()),
        ]
    }

    /// Commands that take less time than the start-up of the shell, of which nothing is left.
    fn too_short(&self) -> Option<String> {
        let is_short = |own: &&TimedRuns| own.samples.iter().any(|sample| sample.elapsed_ns == 0);
        let own = self.commands.iter().find(is_short)?;
        let name = short(&own.command.name);
        Some(format!(
            "{name} takes less time than the shell varies by: time it without one (-N)."
        ))
    }

    /// Disturbances during the runs, in words.
    fn disturbances(&self) -> Option<String> {
        let disturbed = self.commands.iter().filter(|own| !own.disturbed.is_empty());
        let what = disturbed
            .clone()
            .flat_map(|own| &own.disturbed)
            .min()
            .copied()?;
        let of = match (disturbed.count(), self.commands.len()) {
            (_, 1) => String::new(),
            (some, all) if some == all => " during the runs of every command".to_owned(),
            (some, all) => format!(" during the runs of {some} of {all} commands"),
        };
        let remedy = doubt::remedy(what).map_or_else(String::new, |remedy| format!(" {remedy}"));
        Some(format!(
            "Disturbed: {}{of}; an idle machine may show another ratio.{remedy}",
            what.words()
        ))
    }
}

fn answer_of(point: Option<&SizePoint>) -> ProgramAnswer {
    point.map_or(ProgramAnswer::CannotTell, SizePoint::answer)
}

/// A name, cut in its middle where it is long: similar commands differ at either end.
fn short(name: &str) -> String {
    let count = name.chars().count();
    if count <= NAME_MAX {
        return name.to_owned();
    }
    let half = (NAME_MAX - 3) / 2;
    let (start, end): (String, String) = (
        name.chars().take(half).collect(),
        name.chars().skip(count - half).collect(),
    );
    format!("{start}...{end}")
}

/// The document of `--export-json`.
#[derive(Serialize)]
struct Document<'a> {
    results: Vec<Results<'a>>,
}

/// Results of one command; times in seconds.
#[derive(Serialize)]
struct Results<'a> {
    command: &'a str,
    mean: Option<f64>,
    stddev: Option<f64>,
    median: Option<f64>,
    user: Option<f64>,
    system: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    times: Vec<f64>,
    memory_usage_byte: Vec<u64>,
    exit_codes: Vec<Option<i32>>,
    #[serde(skip_serializing_if = "Parameters::is_empty")]
    parameters: &'a Parameters,
}

/// Writes the runs of all commands.
///
/// # Errors
/// When the output cannot be written.
pub(crate) fn write_hyperfine(timed: &Timed, to: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        results: timed.commands.iter().map(results).collect(),
    };
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
}

fn results(own: &TimedRuns) -> Results<'_> {
    let seconds = |ns: &dyn Fn(&Sample) -> u64| -> Vec<f64> {
        own.samples
            .iter()
            .map(|sample| ns(sample) as f64 / 1e9)
            .collect()
    };
    let mean = |values: &[f64]| summary(values).and_then(|summary| summary.mean);
    let times = seconds(&|sample| sample.elapsed_ns);
    let summary = summary(&times);
    Results {
        command: &own.command.name,
        mean: summary.and_then(|summary| summary.mean),
        stddev: summary.and_then(|summary| summary.sd),
        median: summary.map(|summary| summary.median),
        user: mean(&seconds(&|sample| sample.counters.usage.user_ns)),
        system: mean(&seconds(&|sample| sample.counters.usage.system_ns)),
        min: summary.map(|summary| summary.min),
        max: summary.map(|summary| summary.max),
        times,
        memory_usage_byte: own.own.iter().map(|run| run.resident_bytes).collect(),
        exit_codes: own.own.iter().map(|run| run.exit_code).collect(),
        parameters: &own.command.parameters,
    }
}
