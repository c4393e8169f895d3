//! The Go benchmark format, which benchstat reads: one line per trial.
//!
//! Source: "Go Benchmark Data Format", golang.org/design/14313-benchmark-format, and the units of
//! golang.org/x/perf/benchfmt. The two sides are distinguished by the key `run`: `benchstat -col run FILE`.

use std::io::{self, Write};

use iolab_analysis::analysis::Response;
use iolab_analysis::compare::{Better, Comparison};
use iolab_record::{RunRecord, ServedBy};

use iolab_workload::escape_control::escape_control;

/// Writes both sides of a comparison.
///
/// # Errors
///
/// When the output cannot be written.
pub fn comparison(comparison: &Comparison, to: &mut dyn Write) -> io::Result<()> {
    let (unit, scale) = unit(comparison.response);
    let better = match comparison.terms.better {
        Better::Higher => " better=higher",
        Better::Lower => " better=lower",
        Better::Unstated => "",
    };
    writeln!(to, "Unit {unit} assume=nothing{better}")?;
    for side in ["base", "new"] {
        // With a key for the file, benchstat would put the sides into separate tables.
        writeln!(to, "\nrun: {side}")?;
        for pair in &comparison.pairs {
            let name = benchmark("Trial", &comparison.factors, &pair.levels);
            let values = if side == "base" {
                &pair.base
            } else {
                &pair.new
            };
            for value in values {
                writeln!(to, "{name}-1 1 {} {unit}", value * scale)?;
            }
        }
    }
    Ok(())
}

/// Writes the measured trials of all runs with their responses. The benchmark has the name of the experiment, so that `benchstat
/// BASE NEW` compares two files of the same experiments; it also says where bytes were not the device's.
///
/// # Errors
///
/// When the output cannot be written.
pub fn runs(records: &[RunRecord], to: &mut dyn Write) -> io::Result<()> {
    for record in records {
        let response = record.experiment.response;
        let timed = record.timed(0);
        let (unit, scale) = unit(Some(response));
        let better = if response.is_time() {
            "lower"
        } else {
            "higher"
        };
        writeln!(to, "Unit {unit} assume=nothing better={better}")?;
        for (cell, trials) in record.measured() {
            let name = benchmark(
                &record.experiment.name, &record.experiment.factors, &cell.levels,
            );
            for sample in trials {
                let Some(value) = sample.value(response, timed) else {
                    continue;
                };
                let source = match sample.verdict.served_by {
                    ServedBy::Device => String::new(),
                    other => format!("/served-by={}", other),
                };
                writeln!(to, "{name}{source}-1 1 {} {unit}", value * scale)?;
            }
        }
    }
    Ok(())
}

/// The unit in benchstat, and the factor to convert values to it.
fn unit(response: Option<Response>) -> (&'static str, f64) {
    match response {
        Some(Response::Throughput) => ("B/s", 1e6),
        Some(Response::Iops) => ("requests/s", 1.0),
        Some(Response::Latency) => ("p50-sec/request", 1e-9),
        Some(Response::Elapsed) => ("sec/op", 1e-9),
        Some(Response::P90) => ("p90-sec/request", 1e-9),
        Some(Response::P99) => ("p99-sec/request", 1e-9),
        Some(Response::P999) => ("p99.9-sec/request", 1e-9),
        Some(Response::P9999) => ("p99.99-sec/request", 1e-9),
        Some(Response::P99999) => ("p99.999-sec/request", 1e-9),
        Some(Response::Max) => ("max-sec/request", 1e-9),
        Some(Response::Cpu) => ("cpu-sec/request", 1e-9),
        None => ("value", 1.0),
    }
}

/// `BenchmarkRead-size/bs=4KiB/threads=1`: the part after `Benchmark` must not begin with a lowercase letter, and a space would
/// end the name. A `-8` at the end would be read as the number of processors, so one is always added.
fn benchmark(name: &str, factors: &[String], levels: &[String]) -> String {
    let name = escape_control(name);
    let mut letters = name.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    let mut text = String::from("Benchmark");
    text.extend(first);
    text.extend(letters);
    for (factor, level) in factors.iter().zip(levels) {
        text.push_str(&format!(
            "/{}={}",
            escape_control(factor),
            escape_control(level)
        ));
    }
    text.replace(char::is_whitespace, "_")
}
