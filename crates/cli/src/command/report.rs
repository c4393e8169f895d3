//! `iolab report`: all facts of run files, in one document.
//!
//! `iolab table`: the content of run files.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::arguments::{ReportFormat, ReportOptions as Options, Table, TableFormat};
use crate::command::input;
use crate::target_names::{give, rename};
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::runs::RunName;
use iolab_command::Lists;
use iolab_command::failure::Outcome;
use iolab_command::output::{self, note};
use iolab_command::output_format::{Extensions, check_not_stdout, format_of, is_folder};
use iolab_command::run_files::{analysed, answers, files_of, without_copies};
use iolab_record::targets::target_paths;
use iolab_record::{RunRecord, tell_targets_apart};
use iolab_report::findings::interpretation::Together;
use iolab_report::observation::FiledObservation;
use iolab_report::overview::Input;
use iolab_report::report::{Bundle, StudyReport};
use iolab_report::{document, export, table as tables};
use iolab_runfile::{Content, unmade_folder};
use iolab_workload::units::counted;
use iolab_workload::{Error, Result};

const REPORT_FORMATS: &Extensions<ReportFormat> = &[
    (ReportFormat::Html, &["html", "htm"]),
    (ReportFormat::Markdown, &["md", "markdown"]),
    (ReportFormat::Latex, &["tex"]),
    (ReportFormat::Text, &["txt"]),
];

/// Writes the report to a new file, and its name to stdout.
pub(crate) fn report(options: &Options, lists: &Lists) -> Outcome {
    if let Some(path) = &options.output {
        check_not_stdout(path, "report.html")?;
    }
    let files = files_of(&options.files)?;
    let format = format_of(
        options.output.as_deref(),
        options.format,
        Some(ReportFormat::Html),
        REPORT_FORMATS,
    )?;
    let (inputs, programs) = read(&files, &options.names, lists)?;
    let (folder, path) = place(options.output.as_deref(), format);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let report = StudyReport {
        inputs: &inputs,
        programs: &programs,
        sequence_figures: &lists.sequence_figures,
        answers: &lists.answers,
    };
    let bundle = match format {
        ReportFormat::Html => Bundle {
            text: report.html()?,
            figures: Vec::new(),
        },
        ReportFormat::Markdown => report.markdown(&stem)?,
        ReportFormat::Latex => report.latex(&stem)?,
        ReportFormat::Text => report.text(output::style().width)?,
    };
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder)
            .map_err(|error| unmade_folder(folder, "the report", &error))?;
    }
    write(&bundle, &path)?;
    if let Some((first, _)) = bundle.figures.first() {
        let more = if bundle.figures.len() > 1 {
            ", ..."
        } else {
            ""
        };
        note(format_args!(
            "note: {}: {}{more}",
            counted(bundle.figures.len() as u64, "figure"),
            path.with_file_name(first).display()
        ));
    }
    let mut to = output::open(None)?;
    writeln!(to, "{}", path.display())?;
    Ok(to.flush()?)
}

/// The requested file, by its name or by the name of a folder, and the folder if it is to be made.
fn place(named: Option<&Path>, format: ReportFormat) -> (Option<&Path>, PathBuf) {
    let own = REPORT_FORMATS.iter().filter(|(own, _)| *own == format);
    let extension: String = own.map(|(_, extensions)| extensions[0]).collect();
    let name = format!("report.{extension}");
    let has_figures = matches!(format, ReportFormat::Markdown | ReportFormat::Latex);
    match named {
        None => (None, name.into()),
        Some(folder) if is_folder(folder) || (folder.extension().is_none() && has_figures) => {
            (Some(folder), folder.join(name))
        }
        Some(file) => (None, file.to_owned()),
    }
}

/// Runs, each with its file.
type Records<'a> = Vec<(&'a Path, RunRecord)>;

/// The runs in files, without copies, and the observations of programs.
fn content<'a>(
    files: &'a [PathBuf],
    lists: &Lists,
) -> Result<(Records<'a>, Vec<FiledObservation>)> {
    let (mut records, mut programs) = (Vec::new(), Vec::new());
    for path in files {
        match iolab_runfile::read_content(path)? {
            Content::Run(record) => records.push((path.as_path(), *record)),
            Content::Observation(kept) => programs.push(lists.seen(*kept, path)?),
        }
    }
    Ok((without_copies(records), programs))
}

/// Reads files as the input of a report, runs and observations of programs, and gives the targets of runs the requested
/// names.
fn read(
    files: &[PathBuf],
    names: &[String],
    lists: &Lists,
) -> Result<(Vec<Input>, Vec<FiledObservation>)> {
    let (mut records, programs) = content(files, lists)?;
    let targets: Vec<Vec<PathBuf>> = records
        .iter()
        .map(|(_, record)| target_paths(record))
        .collect();
    let names = give(names, &targets)?;
    for ((_, record), names) in records.iter_mut().zip(names) {
        rename(record, names);
    }
    // Statements about several runs do not depend on the order of their files.
    records.sort_by_cached_key(|(_, record)| (record.run.started_utc.clone(), record.id()));
    tell_targets_apart(records.iter_mut().map(|(_, record)| record));
    let inputs = records
        .into_iter()
        .map(|(path, record)| input(path.to_owned(), analysed(record, path, None)?));
    Ok((inputs.collect::<Result<_>>()?, programs))
}

/// Writes the text with the figures in the same folder; nothing if one of the names is taken.
fn write(bundle: &Bundle, path: &Path) -> Outcome {
    let beside = |name: &String| path.with_file_name(OsStr::new(name));
    let figures: Vec<(PathBuf, &[u8])> = bundle
        .figures
        .iter()
        .map(|(name, content)| (beside(name), content.as_slice()))
        .collect();
    if let Some((taken, _)) = figures.iter().find(|(figure, _)| figure.exists()) {
        return Err(output::exists(taken).into());
    }
    let mut to = output::open(Some(path))?;
    let mut all = Vec::new();
    for (figure, content) in figures {
        let mut to = output::open_raw(Some(&figure))?;
        to.write_all(content)?;
        all.push(to);
    }
    to.write_all(bundle.text.as_bytes())?;
    to.flush()?;
    // Only now, since figures without their text would be in the way of the next try.
    for mut figure in all {
        figure.flush()?;
    }
    Ok(())
}

/// Writes the tables to stdout or to a new file.
pub(crate) fn table(options: &Table, lists: &Lists) -> Outcome {
    let format = format_of(
        options.output.as_deref(),
        options.format,
        Some(TableFormat::Text),
        &[
            (TableFormat::Text, &["txt"]),
            (TableFormat::Csv, &["csv"]),
            (TableFormat::Json, &["json"]),
            (TableFormat::Markdown, &["md", "markdown"]),
            (TableFormat::Latex, &["tex"]),
        ],
    )?;
    let paths = files_of(&options.files)?;
    let (mut records, observations) = content(&paths, lists)?;
    tell_targets_apart(records.iter_mut().map(|(_, record)| record));
    let mut runs: Vec<(RunName, AnalysedRun)> = Vec::new();
    let mut files: Vec<&Path> = Vec::new();
    for (path, record) in records {
        let run = analysed(record, path, options.metric.as_ref())?;
        let name = RunName::of(&path.display().to_string(), run.record());
        runs.push((name, run));
        files.push(path);
    }
    if !observations.is_empty() && format != TableFormat::Text {
        return of_observation(&runs, &observations, format, options);
    }
    let analyses = runs.iter().map(|(_, run)| run.analysis());
    let asked = files.into_iter().zip(runs.iter().map(|(_, run)| run));
    let answers = answers(asked, lists);
    let mut to = output::open(options.output.as_deref())?;
    match format {
        TableFormat::Csv => export::cells(&runs, &mut to)?,
        TableFormat::Json => document::table(&runs, &mut to)?,
        TableFormat::Latex => {
            write!(to, "{}", answers.latex())?;
            for analysis in analyses {
                writeln!(to, "{}", tables::table(analysis).latex())?;
            }
        }
        TableFormat::Markdown => {
            write!(to, "{}", answers.markdown())?;
            for analysis in analyses {
                write!(to, "{}", tables::table(analysis).markdown())?;
            }
        }
        TableFormat::Text => {
            write!(to, "{}", answers.text(output::style().width))?;
            let together = Together::of(runs.iter().map(|(_, run)| run));
            for ((_, run), interpretation) in runs.iter().zip(&together.each) {
                output::report(run, interpretation, &mut to)?;
                writeln!(to)?;
            }
            output::sentences(&together.across, output::style(), &mut to)?;
            for own in &observations {
                writeln!(to, "{}", own.seen.text(output::style().width))?;
            }
        }
    }
    Ok(to.flush()?)
}

/// Prints the observation of one program as data.
fn of_observation(
    runs: &[(RunName, AnalysedRun)],
    observations: &[FiledObservation],
    format: TableFormat,
    options: &Table,
) -> Outcome {
    let file = format!("a file of 'iolab {}'", observations[0].kept.command);
    match (runs, observations, format) {
        ([], [only], TableFormat::Json) => {
            let mut to = output::open(options.output.as_deref())?;
            only.seen.json(&mut to)?;
            Ok(to.flush()?)
        }
        (_, _, TableFormat::Json) => Err(Error::usage(format!(
            "{file} has a JSON document of its own"
        ))
        .hint("give one such file alone: iolab table FILE --format json")
        .into()),
        _ => Err(
            Error::usage(format!("{file} is shown as text or JSON only"))
                .hint("iolab report FILE writes HTML, Markdown or LaTeX")
                .into(),
        ),
    }
}
