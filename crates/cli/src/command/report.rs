//! `iolab report`: all that run files tell, in one document.

use std::ffi::OsStr;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use iolab_record::target_paths::target_paths;
use iolab_record::{RunRecord, TargetKind, tell_targets_apart};
use iolab_report::input::Input;
use iolab_report::report::{Bundle, DepositFile, ProgramInput, StudyReport};
use iolab_runfile::{Content, unmade_folder};
use iolab_workload::{Error, Result};

use crate::arguments::{ReportFormat, ReportOptions as Options};
use crate::command::{analysed, input, without_copies};
use crate::exit::Outcome;
use crate::output;
use crate::output_format::{check_not_stdout, format_of, is_folder};
use crate::target_names::give;

/// Writes the report to a new file, and its name to stdout.
pub(crate) fn report(options: &Options) -> Outcome {
    if let Some(path) = &options.output {
        check_not_stdout(path, "report.html")?;
    }
    if let Some(path) = &options.bundle {
        return archive(&options.files, &options.names, path);
    }
    let format = format_of(
        options.output.as_deref(),
        options.format,
        Some(ReportFormat::Html),
        &[
            (ReportFormat::Html, &["html", "htm"]),
            (ReportFormat::Markdown, &["md", "markdown"]),
            (ReportFormat::Latex, &["tex"]),
        ],
    )?;
    let (inputs, programs) = read(&options.files, &options.names)?;
    let (folder, path) = place(options.output.as_deref(), format);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let report = StudyReport::with_programs(&inputs, &programs);
    let bundle = match format {
        ReportFormat::Html => Bundle {
            text: report.html()?,
            figures: Vec::new(),
        },
        ReportFormat::Markdown => report.markdown(&stem)?,
        ReportFormat::Latex => report.latex(&stem)?,
    };
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder)
            .map_err(|error| unmade_folder(folder, "the report", &error))?;
    }
    write(&bundle, &path)?;
    let mut to = output::open(None)?;
    writeln!(to, "{}", path.display())?;
    Ok(to.flush()?)
}

/// Writes the report with all that it rests on to a new archive, and its name to stdout. The same run files give the same archive.
fn archive(files: &[PathBuf], names: &[String], path: &Path) -> Outcome {
    if path.extension().is_none_or(|extension| extension != "zip") {
        return Err(
            Error::usage(format!("{} is not the name of an archive", path.display()))
                .hint("write --bundle NAME.zip")
                .into(),
        );
    }
    let (inputs, programs) = read(files, names)?;
    for input in &inputs {
        check_complete(input)?;
    }
    let contents = |paths: Vec<&PathBuf>| -> Outcome<Vec<Vec<u8>>> {
        let contents = paths.into_iter().map(|path| Ok(std::fs::read(path)?));
        contents.collect()
    };
    let runs = contents(inputs.iter().map(|input| &input.path).collect())?;
    let observations = contents(programs.iter().map(|one| &one.path).collect())?;
    let deposit = StudyReport::deposit(&inputs, &programs, runs, observations)?;
    let folder = path.file_stem().unwrap_or_default().to_string_lossy();
    let packed = zipped(&folder, &deposit)
        .map_err(|error| Error::failed(format!("{}: {error}", path.display())))?;
    let mut to = output::open_raw(Some(path))?;
    to.write_all(&packed)?;
    to.flush()?;
    let mut to = output::open(None)?;
    writeln!(to, "{}", path.display())?;
    Ok(to.flush()?)
}

/// Refuses a run file whose last samples lie in another file, beside it.
fn check_complete(input: &Input) -> Result<()> {
    let path = &input.path;
    let mut beside = path.as_os_str().to_owned();
    beside.push("-wal");
    match std::fs::metadata(&beside) {
        Ok(found) if found.len() > 0 => Err(Error::usage(format!(
            "{} is incomplete: its run is still in progress, or was killed",
            path.display()
        ))
        .hint(match input.run.record().run.target_kind {
            TargetKind::Model => "wait for its end, or measure again",
            _ => "wait for its end, or finish it with iolab resume",
        })),
        _ => Ok(()),
    }
}

/// The files in a folder of an archive. All bear the same time.
fn zipped(folder: &str, files: &[DepositFile]) -> zip::result::ZipResult<Vec<u8>> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default()
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(0o644);
    for (name, content) in files {
        writer.start_file(format!("{folder}/{name}"), options)?;
        writer.write_all(content)?;
    }
    Ok(writer.finish()?.into_inner())
}

/// The file that was asked for, by its name, or by that of a folder, which is given too.
fn place(named: Option<&Path>, format: ReportFormat) -> (Option<&Path>, PathBuf) {
    let extension = match format {
        ReportFormat::Html => "html",
        ReportFormat::Markdown => "md",
        ReportFormat::Latex => "tex",
    };
    let name = format!("report.{extension}");
    let has_figures = format != ReportFormat::Html;
    match named {
        None => (None, name.into()),
        Some(folder) if is_folder(folder) || (folder.extension().is_none() && has_figures) => {
            (Some(folder), folder.join(name))
        }
        Some(file) => (None, file.to_owned()),
    }
}

/// Reads files as what a report is made of, runs and observations of programs, and calls the targets of runs by the names that are
/// asked for.
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
    tell_targets_apart(records.iter_mut().map(|(_, record)| record));
    let inputs = records
        .into_iter()
        .map(|(path, record)| input(path.to_owned(), analysed(record, path, None)?));
    Ok((inputs.collect::<Result<_>>()?, programs))
}

/// Writes the text and the figures beside it; nothing where one of the names is taken.
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
