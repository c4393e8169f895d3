//! `iolab compare`: two sides, cell by cell.

use std::io::Write;
use std::path::Path;

use iolab_analysis::analysed::AnalysedRun;
use iolab_analysis::compare::{Better, Comparison, Conclusion, Source, Terms, Test};
use iolab_analysis::numbers;
use iolab_report::{benchstat, compare as report};
use iolab_spec::{Error, Result};

use crate::arguments::{BetterName, Compare, CompareFormat, TestName};
use crate::command::read_run;
use crate::exit::{Failure, Outcome};
use crate::output;

/// Writes the comparison to stdout; the outcome says how it ended.
pub(crate) fn compare(options: &Compare) -> Outcome {
    let comparison = compared(options)?;
    match write(&comparison, options.format) {
        // A reader that has seen enough changes nothing about the conclusion.
        Ok(()) | Err(Failure::BrokenPipe) => {}
        Err(other) => return Err(other),
    }
    match comparison.conclusion() {
        Conclusion::Settled => Ok(()),
        Conclusion::Regression => Err(Failure::No),
        Conclusion::CannotTell => Err(Failure::CannotTell),
    }
}

fn write(comparison: &Comparison, format: CompareFormat) -> Outcome {
    let mut to = output::open(None)?;
    match format {
        CompareFormat::Json => report::json(comparison, &mut to)?,
        CompareFormat::Csv => report::csv(comparison, &mut to)?,
        CompareFormat::Benchstat => benchstat::comparison(comparison, &mut to)?,
        CompareFormat::Markdown => write!(to, "{}", report::markdown(comparison))?,
        CompareFormat::Text => {
            let style = output::style();
            writeln!(to, "{}", report::text(comparison, style.width))?;
            output::paragraphs(&report::remarks(comparison), style, &mut to)?;
        }
    }
    Ok(to.flush()?)
}

fn compared(options: &Compare) -> Result<Comparison> {
    let base_is_run = is_run(&options.base)?;
    match (&options.new, &options.by) {
        (Some(new), None) => {
            let new_is_run = is_run(new)?;
            if base_is_run != new_is_run {
                return Err(
                    Error::usage("one of the two is a run file and the other is not")
                        .hint("compare two run files, or two text files with one number a line"),
                );
            }
            if base_is_run {
                runs(options, new)
            } else {
                texts(options, new)
            }
        }
        (None, Some(by)) if base_is_run => levels(options, by),
        (None, Some(_)) => Err(Error::usage(format!(
            "{} is no run file, so it has no factors",
            options.base.display()
        ))
        .hint("give two text files, or one run file with --by")),
        _ => Err(Error::usage("there is nothing to compare it with")
            .hint("give a second file, or --by FACTOR to compare two levels of one run")),
    }
}

fn is_run(path: &Path) -> Result<bool> {
    if path == Path::new("-") {
        return Ok(false);
    }
    numbers::is_database(path)
}

fn terms(options: &Compare) -> Terms {
    let mut tests = Vec::new();
    for name in &options.test {
        let test = match name {
            TestName::Welch => Test::Welch,
            TestName::Student => Test::Student,
            TestName::MannWhitney => Test::MannWhitney,
        };
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    Terms {
        margin: options.margin,
        tests,
        better: match options.better {
            Some(BetterName::Higher) => Better::Higher,
            Some(BetterName::Lower) => Better::Lower,
            None => Better::Unstated,
        },
        repeats: options.repeats.iter().map(|n| *n as usize).collect(),
    }
}

fn runs(options: &Compare, new: &Path) -> Result<Comparison> {
    check_no_better(options)?;
    let runs = [read_run(&options.base)?, read_run(new)?];
    let [base, new_run] = &runs;
    let source = |run| Source { run, held: None };
    let names = [name(&options.base, base), name(new, new_run)];
    Comparison::of_runs(names, source(base), source(new_run), terms(options))
}

/// Two levels of one run.
fn levels(options: &Compare, by: &str) -> Result<Comparison> {
    check_no_better(options)?;
    let run = read_run(&options.base)?;
    let of = format!(" of {}", name(&options.base, &run));
    Comparison::of_levels(&run, by, &of, terms(options))
}

fn check_no_better(options: &Compare) -> Result<()> {
    match options.better {
        None => Ok(()),
        Some(_) => Err(Error::usage("--better is for text files")
            .hint("leave it out: a run file says what it measures")),
    }
}

fn name(path: &Path, run: &AnalysedRun) -> String {
    let record = run.record();
    format!(
        "{} ({} on {}, {})",
        path.display(),
        record.experiment.name,
        record.run.target,
        record.run.started_utc
    )
}

fn texts(options: &Compare, new: &Path) -> Result<Comparison> {
    let names = [&*options.base, new].map(|path| path.display().to_string());
    let (base, new) = (numbers::read(&options.base)?, numbers::read(new)?);
    Ok(Comparison::of_numbers(names, base, new, terms(options)))
}
