//! New files in the folder of a run, under the first name that is free.

use std::io::Write;
use std::path::{Path, PathBuf};

use iolab_report::input::Input;
use iolab_report::report::StudyReport;
use iolab_workload::Kind;

use iolab_command::escape_output::harmless;
use iolab_command::failure::Outcome;
use iolab_command::output;

/// Upper bound of the names of reports in a folder.
const NAMES_MAX: u32 = 10_000;

/// Writes the page of these runs to a folder; see [`write()`].
pub(crate) fn write_page(folder: &Path, inputs: &[Input]) -> Outcome<PathBuf> {
    let page = StudyReport::new(inputs).html()?;
    write(folder, "report", "html", harmless(&page).as_bytes())
}

/// Writes a new file to a folder, under the first of `STEM.EXT`, `STEM-2.EXT`, ... that is free.
pub(crate) fn write(
    folder: &Path,
    stem: &str,
    extension: &str,
    content: &[u8],
) -> Outcome<PathBuf> {
    for number in 1..=NAMES_MAX {
        let path = folder.join(match number {
            1 => format!("{stem}.{extension}"),
            _ => format!("{stem}-{number}.{extension}"),
        });
        match output::open_raw(Some(&path)) {
            Err(error) if error.kind() == Kind::Refused && number < NAMES_MAX => {}
            to => {
                let mut to = to?;
                to.write_all(content)?;
                to.flush()?;
                return Ok(path);
            }
        }
    }
    Err(output::exists(folder).into())
}
