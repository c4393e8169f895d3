//! A report as text with its figures beside it.

use iolab_workload::Result;

use super::run_sequence::RunSequence;
use super::section::{Captioned, Section, file_name};
use super::{StudyReport, clean, picture};
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

/// The latest run of an experiment with what its runs show over time.
#[derive(Debug)]
pub(super) struct Chapter<'a> {
    pub(super) section: &'a Section,
    /// Place of the section in the report.
    pub(super) place: usize,
    /// Its figure; `None` where the data makes none.
    pub(super) own: Option<Shown>,
    /// All runs over time; `None` of a single run.
    pub(super) series: Option<Shown>,
    /// The same as a table.
    pub(super) over_time: Option<Captioned>,
}

/// Draws the figures of all experiments, as `PREFIX-e1-NAME.EXTENSION`.
pub(super) fn chapters<'a>(
    report: &'a StudyReport<'_>,
    prefix: &str,
    extension: &str,
    write: impl Fn(&Figure) -> Result<Vec<u8>>,
) -> Result<Vec<Chapter<'a>>> {
    let shown = |figure: Figure, name: String| -> Result<Shown> {
        Ok(Shown {
            file: format!("{}-{name}.{extension}", file_name(prefix)),
            words: clean(figure.description()),
            content: write(&figure)?,
        })
    };
    let chapter = |sequence: &RunSequence| -> Option<Result<Chapter<'a>>> {
        let place = sequence.latest()?;
        let (section, input) = (report.sections.get(place)?, report.inputs.get(place)?);
        let name = format!(
            "{}-{}",
            section.id,
            file_name(&input.run.record().experiment.name)
        );
        let drawn = sequence.on_all_targets(&report.sequences, report.inputs);
        let own = picture::on_paper(&drawn).map(|figure| shown(figure, name.clone()));
        let series = sequence.figure(report.inputs, &picture::paper_options());
        let series = series.map(|figure| shown(figure, format!("{name}-over-time")));
        let chapter = || {
            Ok(Chapter {
                section,
                place,
                own: own.transpose()?,
                series: series.transpose()?,
                over_time: sequence.table(report.inputs),
            })
        };
        Some(chapter())
    };
    report.sequences.iter().filter_map(chapter).collect()
}

impl Bundle {
    /// The same with another file beside it.
    pub(super) fn with(mut self, name: String, content: Vec<u8>) -> Self {
        self.figures.push((name, content));
        self
    }

    pub(super) fn new(text: String, chapters: Vec<Chapter<'_>>) -> Self {
        let files = chapters
            .into_iter()
            .flat_map(|c| [c.series, c.own])
            .flatten();
        Self {
            text,
            figures: files.map(|shown| (shown.file, shown.content)).collect(),
        }
    }
}
