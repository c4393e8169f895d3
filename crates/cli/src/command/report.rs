//! `iolab report`: all that run files tell, in one document.

use std::io::Write;
use std::path::{Path, PathBuf};

use iolab_lab::{Kind, Result, runfile};
use iolab_report::report::{Input, Report};

use crate::arguments::Report as Options;
use crate::exit::Outcome;
use crate::output;

/// More names than anybody's folder has of reports.
const NAMES_MAX: u32 = 10_000;

/// Writes the report to a new file, and its name to stdout.
pub(crate) fn report(options: &Options) -> Outcome {
    let page = Report::new(&read(&options.files)?).html()?;
    let path = options.output.as_deref();
    let path = path.unwrap_or(Path::new("report.html"));
    write(&page, output::open(Some(path))?)?;
    let mut to = output::open(None)?;
    writeln!(to, "{}", path.display())?;
    Ok(to.flush()?)
}

/// Reads run files as what a report is made of.
fn read(files: &[PathBuf]) -> Result<Vec<Input>> {
    let input = |path: &PathBuf| {
        Ok(Input {
            path: path.clone(),
            record: runfile::read(path)?,
        })
    };
    files.iter().map(input).collect()
}

/// Writes the page of these run files to a folder, under the first of `report.html`, `report-2.html`, ... that is free.
pub(crate) fn write_in(folder: &Path, files: &[PathBuf]) -> Outcome<PathBuf> {
    let page = Report::new(&read(files)?).html()?;
    for number in 1..=NAMES_MAX {
        let path = folder.join(match number {
            1 => "report.html".to_owned(),
            _ => format!("report-{number}.html"),
        });
        match output::open(Some(&path)) {
            Err(error) if error.kind() == Kind::Refused && number < NAMES_MAX => {}
            to => {
                write(&page, to?)?;
                return Ok(path);
            }
        }
    }
    Err(output::exists(folder).into())
}

fn write(page: &str, mut to: impl Write) -> Outcome {
    to.write_all(page.as_bytes())?;
    Ok(to.flush()?)
}
