//! A report as text with its figures beside it.

use iolab_spec::Result;

use super::section::file_name;
use super::{Report, clean, picture};
use iolab_figure::Figure;

/// A text and the figures that it shows, to be written into one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The text.
    pub text: String,
    /// Name and content of each figure, and of the references.
    pub figures: Vec<(String, Vec<u8>)>,
}

/// The figure of a section in a file of its own.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// Name of the file: letters, digits, dots, dashes and underscores.
    pub(super) file: String,
    /// What it shows, in words.
    pub(super) words: String,
    content: Vec<u8>,
}

/// Draws the figures of all sections, as `PREFIX-e1-NAME.EXTENSION`; `None` where a section has none.
pub(super) fn draw(
    report: &Report<'_>,
    prefix: &str,
    extension: &str,
    write: impl Fn(&Figure) -> Result<Vec<u8>>,
) -> Result<Vec<Option<Shown>>> {
    let shown = |(input, section): (&super::Input, &super::Section)| {
        let Some(figure) = picture::on_paper(input) else {
            return Ok(None);
        };
        let name = file_name(&input.run.record().experiment.name);
        Ok(Some(Shown {
            file: format!("{}-{}-{name}.{extension}", file_name(prefix), section.id),
            words: clean(figure.description()),
            content: write(&figure)?,
        }))
    };
    let runs = report.inputs.iter().zip(&report.sections);
    runs.map(shown).collect()
}

impl Bundle {
    /// The same with another file beside it.
    pub(super) fn with(mut self, name: String, content: Vec<u8>) -> Self {
        self.figures.push((name, content));
        self
    }

    pub(super) fn new(text: String, figures: Vec<Option<Shown>>) -> Self {
        let files = figures.into_iter().flatten();
        Self {
            text,
            figures: files.map(|shown| (shown.file, shown.content)).collect(),
        }
    }
}
