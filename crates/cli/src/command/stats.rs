//! `iolab stats`: numbers, one a line, described.

use std::io::Write;
use std::path::Path;

use iolab_lab::series::{Series, describe};
use iolab_lab::{Error, Result, numbers};
use iolab_report::plain::plain;
use iolab_report::series;
use serde_json::Value;

use crate::arguments::{Stats, StatsFormat};
use crate::exit::Outcome;
use crate::output;

/// Writes the descriptions to stdout.
pub(crate) fn stats(options: &Stats) -> Outcome {
    let described: Vec<(String, Vec<f64>, Series)> = options
        .files
        .iter()
        .map(|path| of_file(path))
        .collect::<Result<_>>()?;
    let mut to = output::open(None)?;
    match options.format {
        StatsFormat::Json => {
            let all: Vec<Value> = described
                .iter()
                .map(|(name, _, of)| series::json(name, of))
                .collect();
            writeln!(to, "{:#}", Value::Array(all))?;
        }
        StatsFormat::Text => {
            for (name, values, of) in &described {
                let text = series::text(of, values, output::style());
                writeln!(to, "{}\n{text}", plain(name))?;
            }
        }
    }
    Ok(to.flush()?)
}

fn of_file(path: &Path) -> Result<(String, Vec<f64>, Series)> {
    let name = path.display().to_string();
    if path != Path::new("-") && numbers::is_database(path)? {
        return Err(Error::usage(format!("{name} is no text file"))
            .hint("see a run file with: iolab table, or iolab compare"));
    }
    let values = numbers::read(path)?;
    let described = describe(&values).ok_or_else(|| {
        Error::usage(format!("there is no number in {name}")).hint("write one number a line")
    })?;
    Ok((name, values, described))
}
