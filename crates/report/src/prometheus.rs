//! The text format of Prometheus, for the textfile collector of its node exporter or a push gateway.
//!
//! Source: "Exposition formats" and "Metric and label naming" of prometheus.io/docs: base units (seconds,
//! bytes), ratios from 0 to 1. One series per cell; quantiles of latencies are from the median trial.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use iolab_analysis::analysed_run::{AnalysedRun, AnswerBasis};
use iolab_analysis::analysis::{CellAnalysis, Response};
use iolab_analysis::fitness::Answer;
use iolab_analysis::trial_values::distinct;
use iolab_figure::labels;
use iolab_record::Asked;
use iolab_workload::escape_control::escape_control;
use iolab_workload::settings::{SETTINGS, Setting};
use iolab_workload::table;

/// Writes a gauge per cell and quantity, and the answers of the runs. Labels contain everything in which the
/// runs differ. For cells with equal labels, the latest value is written.
///
/// # Errors
///
/// When the output cannot be written.
pub fn cells(runs: &[AnalysedRun], to: &mut dyn Write) -> io::Result<()> {
    let labelling = &Labelling::of(runs);
    let cells = runs.iter().flat_map(|run| {
        let cells = run.analysis().cells.iter();
        cells.map(move |cell| (labelling.labels(run, cell), run, cell))
    });
    let series = latest(cells);
    let mut write = |name: &str, help: &str, values: &dyn Fn(&CellAnalysis) -> Values| {
        let rows = series.iter().flat_map(|(labels, cell)| {
            values(cell).into_iter().map(move |(extra, value)| {
                let mut labels = labels.clone();
                // The origin of the bytes, so that a number that is not the device's does not look like one.
                let served = cell.served_alone().map_or_else(String::new, labels::served);
                labels.insert(SERVED_BY, ("served_by".to_owned(), served));
                labels.extend(extra.map(|(name, value)| (name.to_owned(), value)));
                (labels, value)
            })
        });
        gauge((name, help), rows.collect(), to)
    };
    for of in Response::ALL
        .into_iter()
        .filter(|of| of.quantile().is_none())
    {
        // Gauges have base units, which their names give.
        let meaning = of.meaning().rsplit_once(", ");
        let meaning = labels::capital(meaning.map_or(of.meaning(), |(what, _)| what));
        let help = format!("{meaning}: median over the trials, and its 95 % interval.");
        write(&name_of(of).0, &help, &|cell| spread(cell, of))?;
    }
    for (name, help, values) in GAUGES {
        write(name, help, &values)?;
    }
    answers(runs, labelling, to)
}

/// The value of the latest run for each list of labels, in the order in which these occur first.
fn latest<'a, T>(
    all: impl Iterator<Item = (Vec<Label>, &'a AnalysedRun, T)>,
) -> Vec<(Vec<Label>, T)> {
    let mut places: BTreeMap<Vec<Label>, usize> = BTreeMap::new();
    let mut found: Vec<(Vec<Label>, &AnalysedRun, T)> = Vec::new();
    for one in all {
        match places.get(&one.0) {
            Some(place) if begun(found[*place].1) > begun(one.1) => {}
            Some(place) => found[*place] = one,
            None => {
                places.insert(one.0.clone(), found.len());
                found.push(one);
            }
        }
    }
    let found = found.into_iter();
    found.map(|(labels, _, value)| (labels, value)).collect()
}

/// Writes the name and the meaning of a gauge.
///
/// # Errors
///
/// When the output cannot be written.
pub fn head(name: &str, help: &str, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "# HELP {name} {help}")?;
    writeln!(to, "# TYPE {name} gauge")
}

/// A value of a gauge with its labels.
type GaugeValue = (Vec<Label>, f64);

/// Writes a gauge, unless it has no value.
fn gauge(
    (name, help): (&str, &str),
    values: Vec<GaugeValue>,
    to: &mut dyn Write,
) -> io::Result<()> {
    if !values.is_empty() {
        head(name, help, to)?;
    }
    for (labels, value) in values {
        writeln!(to, "{name}{{{}}} {value}", written(&labels))?;
    }
    Ok(())
}

/// A label and its value.
pub type Label = (String, String);

/// Index of the label `served_by`, which does not distinguish cells, after experiment and target.
const SERVED_BY: usize = 2;

/// The labels that distinguish the cells of some runs.
struct Labelling {
    /// Whether there are several hosts.
    has_hosts: bool,
    /// Names of factors, in the order of the files; then settings in which the runs differ without sweeping them.
    names: Vec<String>,
}

impl Labelling {
    fn of(runs: &[AnalysedRun]) -> Self {
        let hosts: BTreeSet<Option<String>> = runs.iter().map(|run| run.record().host()).collect();
        let factors = runs.iter().flat_map(|run| run.analysis().factors.clone());
        let mut names = distinct(factors);
        for setting in SETTINGS {
            let values = |run: &AnalysedRun| -> BTreeSet<String> {
                let cells = run.analysis().cells.iter();
                cells.map(|cell| setting.get(&cell.cell.spec)).collect()
            };
            let all: BTreeSet<BTreeSet<String>> = runs.iter().map(values).collect();
            // The target has its own label.
            if all.len() > 1 && setting.name != "target" && !names.iter().any(|n| n == setting.name)
            {
                names.push(setting.name.to_owned());
            }
        }
        Self {
            has_hosts: hosts.len() > 1,
            names,
        }
    }

    /// The labels of a run.
    fn of_run(&self, run: &AnalysedRun) -> Vec<Label> {
        let mut labels = vec![
            ("experiment".to_owned(), run.analysis().experiment.clone()),
            ("target".to_owned(), run.analysis().target.clone()),
        ];
        if self.has_hosts {
            labels.push(("host".to_owned(), run.record().host().unwrap_or_default()));
        }
        labels
    }

    /// The labels of a cell, without the origin of its bytes.
    fn labels(&self, run: &AnalysedRun, cell: &CellAnalysis) -> Vec<Label> {
        let mut labels = self.of_run(run);
        for name in &self.names {
            let place = run
                .analysis()
                .factors
                .iter()
                .position(|factor| factor == name);
            let value = match place.and_then(|place| cell.cell.levels.get(place)) {
                Some(level) => level.clone(),
                // A setting that the run does not sweep; a group's has no value.
                None => Setting::find(name)
                    .map_or_else(String::new, |setting| setting.get(&cell.cell.spec)),
            };
            if value.is_empty() && place.is_none() {
                continue;
            }
            let mut name = label_name(name);
            // Two factors may map to the same label, which must be unique.
            while labels.iter().any(|(other, _)| *other == name) {
                name.push('_');
            }
            labels.push((name, value));
        }
        labels
    }
}

/// Start of a run in RFC 3339, which sorts by time.
fn begun(run: &AnalysedRun) -> &str {
    &run.record().run.started_utc
}

/// Writes the latest answer to each question.
fn answers(runs: &[AnalysedRun], labelling: &Labelling, to: &mut dyn Write) -> io::Result<()> {
    let answered = runs.iter().filter_map(|run| {
        let (labels, answer) = question(run).zip(run.answer())?;
        Some(([labelling.of_run(run), labels].concat(), run, answer))
    });
    let mut newest = latest(answered);
    newest.sort_by(|a, b| a.0.cmp(&b.0));
    let of = |labels: &[Label], name: &str, value: &str| {
        [labels, &[(name.to_owned(), value.to_owned())]].concat()
    };
    let given = newest.iter().flat_map(|(labels, answer)| {
        Answer::ALL.iter().map(move |value| {
            let is_it = f64::from(u8::from(answer.answer() == *value));
            (of(labels, "answer", value.name()), is_it)
        })
    });
    let given_help = "1 for what a run answers to its question, 0 for the others.";
    gauge(("iolab_answer", given_help), given.collect(), to)?;
    let rates = newest.iter().flat_map(|(labels, answer)| {
        let ends = match &answer.found {
            AnswerBasis::Limit(found) => [("holds", &found.holds), ("fails", &found.fails)],
            AnswerBasis::Cells(_) => [("holds", &None), ("fails", &None)],
        };
        ends.into_iter().filter_map(move |(name, rate)| {
            Some((of(labels, "stat", name), rate.as_ref()?.rate as f64))
        })
    });
    let rates_help =
        "The greatest rate at which the levels hold, and the least at which they fail.";
    let rates_name = "iolab_slo_rate_requests_per_second";
    gauge((rates_name, rates_help), rates.collect(), to)
}

/// The question of a run as labels.
fn question(run: &AnalysedRun) -> Option<Vec<Label>> {
    let asked = run.record().experiment.asked.as_ref()?;
    let label = |name: &str, value: String| (name.to_owned(), value);
    Some(match &asked.of {
        Asked::Fit(fit) => vec![
            label("question", fit.requirement.clone()),
            label("workload", fit.workload.clone()),
        ],
        Asked::Cells | Asked::Limit => vec![label("question", asked.levels().to_string())],
    })
}

/// A label of one value, in addition to the labels of its cell.
type Extra = Option<(&'static str, String)>;
/// Values of a gauge in a cell.
type Values = Vec<(Extra, f64)>;
/// A gauge: its name, its meaning, and its values in a cell.
type Gauge = (&'static str, &'static str, fn(&CellAnalysis) -> Values);

/// Gauges of other facts.
const GAUGES: [Gauge; 4] = table! {
    ("iolab_latency_seconds", "Quantiles of a trial, median over the trials: response time at a given rate, else service time. Of cells with one kind of request.", latencies);
    ("iolab_device_ratio", "Share of the bytes that the storage device carried, where it is known.",
     |c| c.served_alone().and_then(|s| s.device_fraction).map(|share| (None, share)).into_iter().collect());
    ("iolab_trials", "Measured trials.", |c| vec![(None, c.n as f64)]);
    ("iolab_flag", "1 for everything about the cell that its reader must know.",
     |c| c.flags.iter().map(|flag| (Some(("flag", flag.to_string())), 1.0)).collect());
};

/// Name of the gauge of a quantity, which is its column in base units, and these units per unit of the column.
fn name_of(of: Response) -> (String, f64) {
    let (unit, base, scale) = match of.unit() {
        "MB/s" => ("mb_s", "bytes_per_second", 1e6),
        "ns" => ("ns", "seconds", 1e-9),
        _ => ("iops", "requests_per_second", 1.0),
    };
    (format!("iolab_{}", of.column().replace(unit, base)), scale)
}

fn spread(cell: &CellAnalysis, of: Response) -> Values {
    let (_, scale) = name_of(of);
    let Some(summary) = cell.of[of].filter(|_| !of.is_latency() || cell.mix.is_none()) else {
        return Vec::new();
    };
    let interval = summary.median_interval;
    [
        ("median", Some(summary.median)),
        ("low", interval.map(|i| i.low)),
        ("high", interval.map(|i| i.high)),
    ]
    .into_iter()
    .filter_map(|(stat, value)| Some((Some(("stat", stat.to_owned())), value? * scale)))
    .collect()
}

fn latencies(cell: &CellAnalysis) -> Values {
    let all = Response::ALL.into_iter().filter(|_| cell.mix.is_none());
    all.filter_map(|response| {
        let label = ("quantile", response.quantile()?.to_string());
        Some((Some(label), cell.median(response)? * 1e-9))
    })
    .collect()
}

/// `experiment="read-size",target="/data",served_by="device",bs="4KiB"`.
pub fn written(labels: &[Label]) -> String {
    let pairs = labels.iter();
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    pairs.join(",")
}

/// A factor as a label: letters, digits and underscores, and different from reserved names.
fn label_name(factor: &str) -> String {
    let plain: String = factor
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let taken = [
        "experiment", "target", "host", "served_by", "stat", "quantile", "flag",
    ];
    let is_free =
        plain.starts_with(|c: char| c.is_ascii_alphabetic()) && !taken.contains(&plain.as_str());
    if is_free {
        plain
    } else {
        format!("level_{plain}")
    }
}

/// A value of a label, without control characters, including line ends, which the format could escape.
fn escaped(value: &str) -> String {
    let value = escape_control(value).replace('\\', r"\\");
    value.replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parses a value like a reader of the format; `None` where the end is missing or too early.
    fn read(value: &str) -> Option<String> {
        let mut text = String::new();
        let mut rest = value.chars();
        while let Some(c) = rest.next() {
            text.push(match c {
                '\\' => match rest.next()? {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    _ => return None,
                },
                '"' | '\n' => return None,
                c => c,
            });
        }
        Some(text)
    }

    proptest! {
        #[test]
        fn any_text_is_a_value_without_control_characters(
            text in prop_oneof![any::<String>(), "[\"\\\\n{},= \u{0}-\u{1f}\u{7f}-\u{9f}]{0,16}"]
        ) {
            let value = escaped(&text);
            prop_assert!(!value.contains(char::is_control));
            prop_assert_eq!(read(&value), Some(escape_control(&text).into_owned()));
        }

        #[test]
        fn any_factor_is_a_name(factor in any::<String>()) {
            let name = label_name(&factor);
            prop_assert!(name.starts_with(|c: char| c.is_ascii_alphabetic()));
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        }
    }

    #[test]
    fn hostile_names_stay_inside_labels() {
        assert_eq!(escaped("a\"} 1\n\\"), r#"a\"} 1\\u{a}\\"#);
        assert_eq!(escaped("\u{1b}[2J"), r"\\u{1b}[2J");
        assert_eq!(label_name("bs"), "bs");
        assert_eq!(label_name("a-b c"), "a_b_c");
        assert_eq!(label_name("9"), "level_9");
        assert_eq!(label_name("stat"), "level_stat");
    }
}
