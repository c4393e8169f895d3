//! The text format of Prometheus, for the textfile collector of its node exporter or a push gateway.
//!
//! Source: "Exposition formats" and "Metric and label naming" of prometheus.io/docs: base units (seconds, bytes),
//! ratios from 0 to 1. One series per cell; the quantiles of latencies are those of the median trial.

use std::io::{self, Write};

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_stats::Summary;

use iolab_workload::escape_control::escape_control;

/// Writes a gauge per cell and quantity.
///
/// # Errors
/// When the output cannot be written.
pub fn cells<'a>(
    analyses: impl IntoIterator<Item = &'a Analysis, IntoIter: Clone>,
    to: &mut dyn Write,
) -> io::Result<()> {
    let analyses = analyses.into_iter();
    for (name, help, values) in GAUGES {
        writeln!(to, "# HELP {name} {help}")?;
        writeln!(to, "# TYPE {name} gauge")?;
        for analysis in analyses.clone() {
            for cell in &analysis.cells {
                for (label, value) in values(cell) {
                    let labels = labels(analysis, cell, label);
                    writeln!(to, "{name}{{{labels}}} {value}")?;
                }
            }
        }
    }
    Ok(())
}

/// A label of its own that a value needs beside those of its cell.
type Extra = Option<(&'static str, String)>;
type Values = fn(&CellAnalysis) -> Vec<(Extra, f64)>;

const GAUGES: [(&str, &str, Values); 7] = [
    (
        "iolab_throughput_bytes_per_second",
        "Median over the trials, and its 95 % interval.",
        |c| spread(c.throughput.as_ref(), 1e6),
    ),
    (
        "iolab_requests_per_second",
        "Median over the trials, and its 95 % interval.",
        |c| spread(c.iops.as_ref(), 1.0),
    ),
    (
        "iolab_latency_seconds",
        "Quantiles of the median trial: response time at a given rate, else service time.",
        latencies,
    ),
    (
        "iolab_elapsed_seconds",
        "Time of a trial: median over the trials, and its 95 % interval.",
        |c| spread(c.elapsed.as_ref(), 1e-9),
    ),
    (
        "iolab_device_ratio",
        "Share of the bytes that the storage device carried, where it is known.",
        |c| {
            let share = c.served.as_ref().and_then(|s| s.device_fraction);
            share.map(|share| (None, share)).into_iter().collect()
        },
    ),
    ("iolab_trials", "Measured trials.", |c| {
        vec![(None, c.n as f64)]
    }),
    (
        "iolab_flag",
        "1 for everything about the cell that its reader must know.",
        |c| {
            let flag =
                |flag: &iolab_analysis::analysis::Flag| (Some(("flag", flag.to_string())), 1.0);
            c.flags.iter().map(flag).collect()
        },
    ),
];

fn spread(summary: Option<&Summary>, scale: f64) -> Vec<(Extra, f64)> {
    let Some(summary) = summary else {
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

fn latencies(cell: &CellAnalysis) -> Vec<(Extra, f64)> {
    let Some(latency) = cell.latency else {
        return Vec::new();
    };
    [
        ("0.5", latency.p50_ns),
        ("0.99", latency.p99_ns),
        ("0.999", latency.p999_ns),
        ("1", latency.max_ns),
    ]
    .map(|(quantile, ns)| (Some(("quantile", quantile.to_owned())), ns * 1e-9))
    .to_vec()
}

/// `experiment="read-size",target="/data",served_by="device",bs="4KiB"`.
fn labels(analysis: &Analysis, cell: &CellAnalysis, extra: Extra) -> String {
    // A number that is not the device's must not look like one.
    let served = cell
        .served
        .as_ref()
        .map_or(String::new(), ToString::to_string);
    let mut labels = vec![
        ("experiment".to_owned(), analysis.experiment.as_str()),
        ("target".to_owned(), analysis.target.as_str()),
        ("served_by".to_owned(), served.as_str()),
    ];
    for (factor, level) in analysis.factors.iter().zip(&cell.cell.levels) {
        let mut name = label_name(factor);
        // Two factors may differ in nothing that a label can show, and no label may come twice.
        while labels.iter().any(|(other, _)| *other == name) {
            name.push('_');
        }
        labels.push((name, level));
    }
    labels.extend(
        extra
            .as_ref()
            .map(|(name, value)| ((*name).to_owned(), value.as_str())),
    );
    let pairs: Vec<String> = labels
        .into_iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    pairs.join(",")
}

/// A factor as a label: letters, digits and underscores, and none of the names that are taken.
fn label_name(factor: &str) -> String {
    let plain: String = factor
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let taken = [
        "experiment",
        "target",
        "served_by",
        "stat",
        "quantile",
        "flag",
    ];
    let is_free =
        plain.starts_with(|c: char| c.is_ascii_alphabetic()) && !taken.contains(&plain.as_str());
    if is_free {
        plain
    } else {
        format!("level_{plain}")
    }
}

/// A value of a label, without control characters. A line's end, which the format could escape, is one of them.
fn escaped(value: &str) -> String {
    let value = escape_control(value);
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | '"') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A value as a reader of the format takes it; `None` where it would find no end, or the end too soon.
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
    fn what_comes_from_outside_stays_inside_its_label() {
        assert_eq!(escaped("a\"} 1\n\\"), r#"a\"} 1\\u{a}\\"#);
        assert_eq!(escaped("\u{1b}[2J"), r"\\u{1b}[2J");
        assert_eq!(label_name("bs"), "bs");
        assert_eq!(label_name("a-b c"), "a_b_c");
        assert_eq!(label_name("9"), "level_9");
        assert_eq!(label_name("stat"), "level_stat");
    }
}
