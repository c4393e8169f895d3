//! `iolab compare`: compares two sides cell by cell.

use std::io::Write;
use std::path::Path;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::{Comparison, Criteria, HypothesisTest, RunSide, SideName};
use iolab_report::{block, compare as report};
use iolab_runfile::number_list;
use iolab_workload::{Error, Result};

use crate::arguments::{Compare, CompareFormat, TestName};
use iolab_command::failure::{Outcome, conclude};
use iolab_command::output::{self, is_stdout};
use iolab_command::output_format::format_of;
use iolab_command::run_files::{filed, named_runs, read_run_by};

/// Writes the comparison to stdout; the outcome is its conclusion.
pub(crate) fn compare(options: &Compare) -> Outcome {
    let format = format_of(
        options.output.as_deref(),
        options.format,
        Some(CompareFormat::Text),
        &[
            (CompareFormat::Text, &["txt"]),
            (CompareFormat::Json, &["json"]),
            (CompareFormat::Markdown, &["md", "markdown"]),
        ],
    )?;
    let comparison = match options.base_runs.is_empty() {
        true => compared(options)?,
        false => many_runs(options)?,
    };
    let to = output::open(options.output.as_deref())?;
    let is_whole = options.output.is_some();
    let written = write(&comparison, format, is_whole, to);
    conclude(written, comparison.conclusion())
}

/// Several runs of each side.
fn many_runs(options: &Compare) -> Result<Comparison> {
    let base = named_runs(&options.base_runs, options.metric.as_ref())?;
    let new = named_runs(&options.new_runs, options.metric.as_ref())?;
    let terms = Criteria {
        margin: options.margin,
        ..Criteria::default()
    };
    Comparison::of_several(&filed(&base), &filed(&new), terms)
}

/// Writes the comparison; a file has all of it, the terminal what fits a screen.
fn write(
    comparison: &Comparison,
    format: CompareFormat,
    is_whole: bool,
    mut to: Box<dyn Write>,
) -> Outcome {
    let width = output::style().width;
    let blocks = || report::blocks(comparison);
    match format {
        CompareFormat::Json => report::json(comparison, &mut to)?,
        CompareFormat::Markdown => write!(to, "{}", block::parts_in_markdown(&blocks()))?,
        CompareFormat::Text if is_whole => write!(to, "{}", block::in_text(&blocks(), width))?,
        CompareFormat::Text => write!(to, "{}", report::screen(comparison, width))?,
    }
    Ok(to.flush()?)
}

fn compared(options: &Compare) -> Result<Comparison> {
    let Some(base) = &options.base else {
        return Err(Error::usage("there is nothing to compare").hint("name two files"));
    };
    let base_is_run = is_run(base)?;
    match (&options.new, &options.by) {
        (Some(new), None) if is_stdout(base) && is_stdout(new) => Err(Error::usage(
            "both files are '-', and standard input can be read once",
        )
        .hint("write one of them to a file: iolab compare base.txt -")),
        (Some(new), None) => {
            let new_is_run = is_run(new)?;
            if base_is_run != new_is_run {
                return Err(
                    Error::usage("one of the two is a run file and the other is not")
                        .hint("compare two run files, or two text files with one number per line"),
                );
            }
            if base_is_run {
                runs(options, base, new)
            } else {
                texts(options, base, new)
            }
        }
        (None, Some(by)) if base_is_run => levels(options, base, by),
        (None, Some(_)) => Err(Error::usage(format!(
            "{} is not a run file, so it has no factors",
            base.display()
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
    number_list::is_database(path)
}

fn terms(options: &Compare) -> Criteria {
    let mut tests = Vec::new();
    for name in &options.test {
        let test = match name {
            TestName::Welch => HypothesisTest::Welch,
            TestName::Student => HypothesisTest::Student,
            TestName::MannWhitney => HypothesisTest::MannWhitney,
        };
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    Criteria {
        margin: options.margin,
        tests,
        within_run: options.within_run,
        ..Criteria::default()
    }
}

fn runs(options: &Compare, base: &Path, new: &Path) -> Result<Comparison> {
    let read = |path| read_run_by(path, options.metric.as_ref());
    let runs = [read(base)?, read(new)?];
    let names = [name(base, &runs[0]), name(new, &runs[1])];
    let [base, new] = &runs;
    Comparison::of_runs(
        names,
        RunSide::whole(base),
        RunSide::whole(new),
        terms(options),
    )
}

/// Two levels of one run.
fn levels(options: &Compare, base: &Path, by: &str) -> Result<Comparison> {
    let run = read_run_by(base, options.metric.as_ref())?;
    let of = format!("of {}", report::whole(&name(base, &run)));
    Comparison::of_levels(&run, by, &of, terms(options))
}

fn name(path: &Path, run: &AnalysedRun) -> SideName {
    let record = run.record();
    SideName {
        name: path.display().to_string(),
        of: format!(
            "({} on {}, {})",
            record.experiment.name,
            record.target_text(),
            record.run.started_utc
        ),
        ..SideName::default()
    }
}

fn texts(options: &Compare, base: &Path, new: &Path) -> Result<Comparison> {
    if options.metric.is_some() || options.within_run {
        return Err(Error::usage("--metric and --within-run are for run files")
            .hint("remove them: a text file holds only numbers"));
    }
    let names = [base, new].map(|path| path.display().to_string().into());
    let (base, new) = (number_list::read(base)?, number_list::read(new)?);
    Ok(Comparison::of_numbers(names, base, new, terms(options)))
}
