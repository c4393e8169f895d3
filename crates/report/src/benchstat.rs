//! The Go benchmark format, which benchstat reads: one line per trial.
//!
//! Source: "Go Benchmark Data Format", golang.org/design/14313-benchmark-format, and the units of
//! golang.org/x/perf/benchfmt. The two sides are told apart by the key `run`: `benchstat -col run FILE`.

use std::io::{self, Write};

use iolab_lab::analysis::Response;
use iolab_lab::compare::{Better, Comparison};

use crate::plain::plain;

/// Writes both sides of a comparison.
///
/// # Errors
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
        // A key for the file would make benchstat put the sides into tables of their own.
        writeln!(to, "\nrun: {side}")?;
        for pair in &comparison.pairs {
            let name = benchmark(&comparison.factors, &pair.levels);
            let values = if side == "base" {
                &pair.base
            } else {
                &pair.new
            };
            for value in values {
                writeln!(to, "{name} 1 {} {unit}", value * scale)?;
            }
        }
    }
    Ok(())
}

/// The unit as benchstat knows it, and what a value is multiplied by to be in it.
fn unit(response: Option<Response>) -> (&'static str, f64) {
    match response {
        Some(Response::Throughput) => ("B/s", 1e6),
        Some(Response::Iops) => ("requests/s", 1.0),
        Some(Response::Latency) => ("p50-sec/request", 1e-9),
        Some(Response::Elapsed) => ("sec/op", 1e-9),
        None => ("value", 1.0),
    }
}

/// `BenchmarkTrial/bs=4KiB/threads=1`. Spaces would end the name, and a `-8` at its end would be taken for the number
/// of processors, so that one is always given.
fn benchmark(factors: &[String], levels: &[String]) -> String {
    let mut name = "BenchmarkTrial".to_owned();
    for (factor, level) in factors.iter().zip(levels) {
        let part = format!("/{}={}", plain(factor), plain(level));
        name.extend(
            part.chars()
                .map(|c| if c.is_whitespace() { '_' } else { c }),
        );
    }
    name + "-1"
}
