//! `iolab report`: all facts of run files, in one document.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use iolab_record::target_paths::target_paths;
use iolab_record::{RunRecord, tell_targets_apart};
use iolab_report::input::Input;
use iolab_report::report::{Bundle, ProgramInput, StudyReport};
use iolab_runfile::{Content, unmade_folder};
use iolab_workload::Result;
use iolab_workload::quantity::counted;

use crate::arguments::{ReportFormat, ReportOptions as Options};
use crate::command::input;
use crate::target_names::give;
use iolab_command::failure::Outcome;
use iolab_command::lists::Lists;
use iolab_command::output::{self, note};
use iolab_command::output_format::{check_not_stdout, format_of, is_folder};
use iolab_command::run_files::{analysed, files_of, without_copies};

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
        &[
            (ReportFormat::Html, &["html", "htm"]),
            (ReportFormat::Markdown, &["md", "markdown"]),
            (ReportFormat::Latex, &["tex"]),
            (ReportFormat::Text, &["txt"]),
        ],
    )?;
    let (inputs, programs) = read(&files, &options.names)?;
    let (folder, path) = place(options.output.as_deref(), format);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let report = StudyReport::with_programs(&inputs, &programs).drawn_by(&lists.sequence_figures);
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
    if !bundle.figures.is_empty() {
        let beside = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let names = beside.unwrap_or(Path::new(".")).join(format!("{stem}-*"));
        note(format_args!(
            "note: {}: {}",
            counted(bundle.figures.len() as u64, "figure"),
            names.display()
        ));
    }
    let mut to = output::open(None)?;
    writeln!(to, "{}", path.display())?;
    Ok(to.flush()?)
}

/// The requested file, by its name or by the name of a folder, and the folder if it is to be made.
fn place(named: Option<&Path>, format: ReportFormat) -> (Option<&Path>, PathBuf) {
    let extension = match format {
        ReportFormat::Html => "html",
        ReportFormat::Markdown => "md",
        ReportFormat::Latex => "tex",
        ReportFormat::Text => "txt",
    };
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

/// Reads files as the input of a report, runs and observations of programs, and gives the targets of runs the requested
/// names.
fn read(files: &[PathBuf], names: &[String]) -> Result<(Vec<Input>, Vec<ProgramInput>)> {
    let mut records: Vec<(&Path, RunRecord)> = Vec::new();
    let mut programs: Vec<ProgramInput> = Vec::new();
    for path in files {
        match iolab_runfile::read_content(path)? {
            Content::Run(record) => records.push((path, *record)),
            Content::Witness(witnessed) => programs.push(ProgramInput {
                path: path.clone(),
                witnessed: *witnessed,
            }),
        }
    }
    let mut records = without_copies(records);
    let targets: Vec<Vec<PathBuf>> = records
        .iter()
        .map(|(_, record)| target_paths(record))
        .collect();
    let names = give(names, &targets)?;
    for ((_, record), names) in records.iter_mut().zip(names) {
        names.rename(record);
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
    for (figure, content) in figures {
        let mut to = output::open_raw(Some(&figure))?;
        to.write_all(content)?;
        to.flush()?;
    }
    to.write_all(bundle.text.as_bytes())?;
    Ok(to.flush()?)
}
