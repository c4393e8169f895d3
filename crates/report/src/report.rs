//! The report of a study: questions, findings and measurements as blocks, which are the same in all formats.

mod behind;
mod blocks;
mod commands;
mod experiment;
mod method;
mod section;
mod study;
pub(crate) mod summary;

use crate::answer::AnsweredBy;
use crate::block;
use crate::notation::clean;
use crate::observation::FiledObservation;
use crate::overview::Input;
use iolab_analysis::runs::FiledRun;
use iolab_figure::{Figure, Options};
use iolab_workload::Result;
use section::Medium;

/// A figure of several runs of one experiment, which are given in the order of time. An instrument adds such
/// figures to pages.
#[derive(Debug, Clone, Copy)]
pub struct SequenceFigure {
    /// Name of the figure, at the end of the names of its files.
    pub name: &'static str,
    /// The function that draws the figure.
    pub draw: fn(&[FiledRun<'_>], &Options) -> Result<Figure>,
}

/// A text and the figures it shows, to be written to one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The text.
    pub text: String,
    /// Name and content of each figure.
    pub figures: Vec<(String, Vec<u8>)>,
}

/// A report on runs and on observations of programs. Text from outside contains no control characters.
#[derive(Debug, Clone, Copy)]
pub struct StudyReport<'a> {
    /// The runs, in the order of time; there may be none.
    pub inputs: &'a [Input],
    /// The observations.
    pub programs: &'a [FiledObservation],
    /// Figures of several runs of one experiment.
    pub sequence_figures: &'a [SequenceFigure],
    /// Instruments that answer questions of runs.
    pub answers: &'a [AnsweredBy],
}

impl<'a> StudyReport<'a> {
    /// A report on runs. Deterministic.
    pub fn new(inputs: &'a [Input]) -> Self {
        Self {
            inputs,
            programs: &[],
            sequence_figures: &[],
            answers: &[],
        }
    }

    /// The report as one self-contained HTML page.
    ///
    /// # Errors
    /// When a figure cannot be drawn.
    pub fn html(&self) -> Result<String> {
        let blocks = blocks::all(self, Medium::Page)?;
        Ok(block::page(&blocks))
    }

    /// The report in Markdown, with its figures as SVG; `prefix` begins their names.
    ///
    /// # Errors
    /// When a figure cannot be drawn.
    pub fn markdown(&self, prefix: &str) -> Result<Bundle> {
        let blocks = blocks::all(self, Medium::Paper)?;
        let (text, figures) = block::document(&blocks, &file_name(prefix));
        Ok(Bundle { text, figures })
    }

    /// The report in LaTeX, with its figures as PDF; `prefix` begins their names.
    ///
    /// # Errors
    /// When a figure cannot be drawn.
    pub fn latex(&self, prefix: &str) -> Result<Bundle> {
        let blocks = blocks::all(self, Medium::Paper)?;
        let (text, figures) = block::article(&blocks, &file_name(prefix))?;
        Ok(Bundle { text, figures })
    }

    /// The report as text in lines of at most `width` characters.
    ///
    /// # Errors
    /// When a figure cannot be drawn.
    pub fn text(&self, width: u16) -> Result<Bundle> {
        let blocks = blocks::all(self, Medium::Paper)?;
        Ok(Bundle {
            text: block::in_text(&blocks, width),
            figures: Vec::new(),
        })
    }
}

/// The id of the section of a run.
fn id(index: usize) -> String {
    format!("e{}", index + 1)
}

/// Common beginning of the file names of a run, which keeps runs of one experiment apart.
fn stem(index: usize, input: &Input) -> String {
    let name = file_name(&input.run.record().experiment.name);
    format!("{}-{name}", id(index))
}

/// The name of an experiment as a name for files: letters, digits, dots, dashes and underscores.
fn file_name(name: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let name: String = name
        .chars()
        .take(80)
        .map(|c| if harmless(c) { c } else { '_' })
        .collect();
    match name.trim_start_matches('-') {
        "" => "experiment".to_owned(),
        rest => rest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_leads_nowhere_else() {
        for (name, file) in [
            ("read-size", "read-size"),
            ("../../etc/passwd", "______etc_passwd"),
            ("--help", "help"),
            ("", "experiment"),
            ("a\0b/c", "a_b_c"),
        ] {
            assert_eq!(file_name(name), file);
        }
        assert_eq!(file_name(&"x".repeat(9999)).len(), 80);
    }
}
