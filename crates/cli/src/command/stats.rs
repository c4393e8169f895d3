//! `iolab stats`: numbers, one a line, described.

use std::io::Write;
use std::path::Path;

use iolab_analysis::series_tests::series_tests;
use iolab_report::series;
use iolab_runfile::number_list;
use iolab_stats::{Summary, summary};
use iolab_workload::escape_control::escape_control;
use iolab_workload::{Error, Result};
use serde_json::Value;

use crate::arguments::{Stats, StatsFormat};
use iolab_command::failure::Outcome;
use iolab_command::output;

/// Writes the descriptions to stdout.
pub(crate) fn stats(options: &Stats) -> Outcome {
    let files: Vec<Numbers> = options
        .files
        .iter()
        .map(|path| of_file(path))
        .collect::<Result<_>>()?;
    let mut to = output::open(None)?;
    match options.format {
        StatsFormat::Json => {
            let all: Vec<Value> = files
                .iter()
                .map(|file| series::json(&file.name, &file.summary, &series_tests(&file.values)))
                .collect();
            writeln!(to, "{:#}", Value::Array(all))?;
        }
        StatsFormat::Text => {
            for Numbers {
                name,
                values,
                summary,
            } in &files
            {
                let text = series::text(summary, &series_tests(values), values, output::style());
                writeln!(to, "{}\n{text}", escape_control(name))?;
            }
        }
    }
    Ok(to.flush()?)
}

/// One file.
struct Numbers {
    name: String,
    values: Vec<f64>,
    summary: Summary,
}

fn of_file(path: &Path) -> Result<Numbers> {
    let name = path.display().to_string();
    if path != Path::new("-") && number_list::is_database(path)? {
        return Err(Error::usage(format!("{name} is not a text file"))
            .hint("for a run file use: iolab table, or iolab compare"));
    }
    let values = number_list::read(path)?;
    let summary = summary(&values).ok_or_else(|| {
        Error::usage(format!("there is no number in {name}")).hint("write one number per line")
    })?;
    Ok(Numbers {
        name,
        values,
        summary,
    })
}
