//! A report as text, with its figures as separate files.

use iolab_workload::Result;

use super::captioned::Captioned;
use super::file_names::file_name;
use super::run_sequence::RunSequence;
use super::section::Section;
use super::{StudyReport, clean, picture};
use iolab_figure::Figure;

/// A text and the figures it shows, to be written to one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The text.
    pub text: String,
    /// Name and content of each figure.
    pub figures: Vec<(String, Vec<u8>)>,
}

/// A figure of a section in its own file.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// Name of the file: only letters, digits, dots, dashes and underscores.
    pub(super) file: String,
    /// A description of the figure.
    pub(super) words: String,
    content: Vec<u8>,
}

impl Shown {
    /// Name and content of the file.
    pub(super) fn into_file(self) -> (String, Vec<u8>) {
        (self.file, self.content)
    }
}

/// The latest run of an experiment with what its runs show over time.
#[derive(Debug)]
pub(super) struct Chapter<'a> {
    pub(super) section: &'a Section,
    /// Index of the section in the report.
    pub(super) place: usize,
    /// The text before the figure of the latest run, with the tables of its standard.
    pub(super) leading: Vec<Shown>,
    /// The figure of the latest run; `None` where its data makes none.
    pub(super) own: Option<Shown>,
    /// Further figures of the run.
    pub(super) further: Vec<Shown>,
    /// Figures of all runs over time; none of a single run.
    pub(super) series: Vec<Shown>,
    /// The table of all runs over time; `None` of a single run.
    pub(super) over_time: Option<Captioned>,
    /// The sections of earlier runs whose definition is another text.
    pub(super) otherwise_defined: Vec<&'a Section>,
}

/// Draws the figures of all experiments, as files `PREFIX-e1-NAME.EXTENSION`.
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
        let name = &section.stem;
        let drawn = sequence.on_all_targets(&report.sequences, report.inputs);
        let own = picture::on_paper(&drawn).map(|figure| shown(figure, name.to_owned()));
        let further = picture::further(&drawn, input, |_| picture::paper_options());
        let (leading, further): (Vec<_>, Vec<_>) = further
            .into_iter()
            .partition(|(what, _)| section.leads_with(what));
        let all_shown = |figures: Vec<(&str, Figure)>| -> Result<Vec<Shown>> {
            let figures = figures.into_iter();
            figures
                .map(|(what, figure)| shown(figure, format!("{name}-{what}")))
                .collect()
        };
        let series = sequence.figures(report, |_| picture::paper_options());
        let sections = sequence
            .0
            .iter()
            .filter_map(|place| report.sections.get(*place));
        let otherwise_defined = sections.filter(|earlier| earlier.toml_name != section.toml_name);
        let chapter = || {
            Ok(Chapter {
                section,
                place,
                own: own.transpose()?,
                leading: all_shown(leading)?,
                further: all_shown(further)?,
                series: all_shown(series)?,
                over_time: sequence.table(report.inputs),
                otherwise_defined: otherwise_defined.collect(),
            })
        };
        Some(chapter())
    };
    report.sequences.iter().filter_map(chapter).collect()
}

impl Bundle {
    /// Adds the text and the files of another one.
    pub(super) fn append(&mut self, other: Self) {
        self.text.push_str(&other.text);
        self.figures.extend(other.figures);
    }

    pub(super) fn new(text: String, chapters: Vec<Chapter<'_>>) -> Self {
        let files = chapters.into_iter().flat_map(|c| {
            let before = c.series.into_iter().chain(c.leading);
            before.chain(c.own).chain(c.further)
        });
        Self {
            text,
            figures: files.map(Shown::into_file).collect(),
        }
    }
}
