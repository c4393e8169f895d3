//! iolab-figure: draws figures of analyses, for paper and for pages.
//!
//! The data of runs becomes a model (panels, axes, series: values without positions), layout assigns positions using the metrics
//! of the font (a scene), and writers draw that as SVG, PNG and PDF. Output is deterministic.
//!
//! In the SVG each series is a `<g class="series cN" data-series="NAME">` whose `color` all its marks share.
//! Each mark is a `<g class="mark">` with its description as `<title>`. Its attributes, as far as known, are
//! `data-cell`, `data-x`, `data-value`, `data-lo`, `data-hi`, `data-n` and `data-verdict`. The unit of values is
//! `data-unit` of the `<svg>`. [`style`] gives the colours as custom properties.
//!
//! Files to begin with: this one the kinds, `options.rs` their options, `kinds/` from rows to a model, `layout/` from the model to a scene,
//! `svg.rs`, `png.rs`, `pdf.rs` the writers; `preview_image.rs` the picture for link previews.

#![cfg_attr(test, allow(clippy::disallowed_fields))]

mod data;
mod kinds;
pub mod labels;
mod layout;
pub mod model;
mod options;
mod pdf;
mod png;
pub mod preview_image;
mod scene;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_analysis::claim::remainders;
use iolab_analysis::slo::LevelValues;
use iolab_analysis::trial_values::CellLatencies;
use iolab_record::{RunRecord, SampleLatencyOverTime, SampleSeries};
use iolab_workload::Result;

pub use kinds::axis::{of_quantity as axis_of_quantity, times as axis_of_times};
pub use model::{Scale, least_and_most, spans_decades};
pub use options::{Center, Options, parse_length};
pub use svg::{escaped, style};

use model::FigureModel;
use options::{LEVELS, LOG_X, LOG_Y};
use scene::Scene;

use iolab_workload::escape_control::escape_control;

/// Name of the factor whose levels are the runs of several files.
pub const RUN: &str = "run";

/// One run with the data for figures.
#[derive(Debug, Clone, Copy)]
pub struct FigureRun<'a> {
    /// Name that distinguishes the run from others: its file's name.
    pub name: &'a str,
    /// The analysed content of its file.
    pub run: &'a AnalysedRun,
    /// The latencies of its cells; empty unless [`FigureKind::needs_latencies`] holds.
    pub latencies: &'a CellLatencies,
    /// The level of its rate search, where the figure shows its quantity instead of one of the analysis.
    pub level: Option<&'a LevelValues>,
    /// Time series of its trials; empty unless [`FigureKind::needs_series`] holds.
    pub series: &'a [SampleSeries],
    /// Latencies of its trials over time; empty unless [`FigureKind::needs_latency_over_time`] holds.
    pub over_time: &'a [SampleLatencyOverTime],
}

impl<'a> FigureRun<'a> {
    /// A run without latencies and time series.
    pub fn new(name: &'a str, run: &'a AnalysedRun) -> Self {
        Self {
            name,
            run,
            level: None,
            latencies: const { &CellLatencies::new() },
            series: &[],
            over_time: &[],
        }
    }

    fn record(&self) -> &'a RunRecord {
        self.run.record()
    }

    fn analysis(&self) -> &'a Analysis {
        self.run.analysis()
    }
}

/// The quantity of which a kind of figure shows every cell.
type Cells = fn(&[FigureRun<'_>], &Options) -> Response;

/// A kind of figure: a row of the table of kinds.
struct KindRow {
    words: &'static str,
    uses: &'static [&'static str],
    cells: Option<Cells>,
    model: fn(&[FigureRun<'_>], &Options) -> Result<FigureModel>,
}

/// The kinds of figures in the order of the help: name, description for the help, options that change what it shows, the quantity of
/// which it shows every cell, and its model.
macro_rules! figure_kinds {
    ($($kind:ident = $name:literal, $words:literal, uses $uses:expr, model $model:expr $(, cells $cells:expr)?;)+) => {
        iolab_workload::named! {
            /// The kind of a figure.
            pub enum FigureKind: "kind of figure" {
                $(#[doc = $words] $kind = $name,)+
            }
        }

        impl FigureKind {
            fn row(self) -> KindRow {
                match self {
                    $(Self::$kind => KindRow {
                        words: $words,
                        uses: $uses,
                        cells: None$(.or(Some($cells as Cells)))?,
                        model: $model,
                    },)+
                }
            }
        }
    };
}

figure_kinds! {
    Response = "response", "the response against a factor: lines over numbers, bars over names",
        uses &["--x", "--y", "--series", "--facet", LOG_X, LOG_Y, "--center", "--points", LEVELS],
        model kinds::response::model, cells kinds::quantity;
    Percentiles = "percentiles", "latency against its percentile, with a stretched tail",
        uses &["--series", "--facet", LOG_Y], model kinds::latency::model, cells |_, _| Response::Latency;
    Load = "load", "latency against throughput as the load grows",
        uses &["--x", "--y", "--series", "--facet", LOG_X, LOG_Y, LEVELS],
        model kinds::latency::model_of_load, cells |_, options| options.y.unwrap_or(Response::Latency);
    Ratio = "ratio", "two runs (two FILEs) or two levels (--by): both, and their ratio with its interval",
        uses &["--x", "--y", LOG_X, LOG_Y, "--by", "--margin"],
        model |runs, options| kinds::compare::ratio(&kinds::compared(runs, options)?, options);
    PValues = "p-values", "p of their difference, with the first 10, the first 20 and all trials",
        uses &["--x", "--y", LOG_X, "--by", "--margin"],
        model |runs, options| kinds::compare::p_values(&kinds::compared(runs, options)?, options);
    Distribution = "distribution", "the share of the trials up to each value: which levels overlap, and whether trials form groups",
        uses &["--y", "--series", "--facet", LOG_X], model kinds::latency::model_of_trials, cells kinds::quantity;
    Order = "order", "every trial in the order of time",
        uses &["--y", LOG_Y], model kinds::order::model;
    Rounds = "rounds", "the tracked quantity over the rounds of a run until they are steady (pts-iops, --precondition steady)",
        uses &[LOG_Y], model kinds::order::model_of_rounds;
    Course = "course", "throughput within the trials over time; with --y p99, latency (--soak, --set latency_over_time=true)",
        uses &["--y", "--series", "--facet", LOG_Y], model kinds::course::model;
    Stages = "stages", "time of requests by layer, and of the slowest 1 %, for traced cells (--set trace=true)",
        uses &[], model kinds::stages::model;
    Why = "why", "the rest of a difference without each suspect, for a run of iolab why",
        uses &[], model kinds::stages::model_of_why;
}

impl FigureKind {
    /// A description for the help, one line.
    pub fn words(self) -> &'static str {
        self.row().words
    }

    /// Whether an option changes what it shows.
    pub(crate) fn uses(self, option: &str) -> bool {
        self.row().uses.contains(&option)
    }

    /// The quantity of which it shows every cell; `None` for kinds that show no cells.
    pub(crate) fn cells(self, runs: &[FigureRun<'_>], options: &Options) -> Option<Response> {
        self.row().cells.map(|cells| cells(runs, options))
    }

    /// Whether the kind needs the latency histograms ([`FigureRun::latencies`]).
    pub fn needs_latencies(self) -> bool {
        self == Self::Percentiles
    }

    /// Whether the kind needs the time series of trials ([`FigureRun::series`]).
    pub fn needs_series(self) -> bool {
        self == Self::Course
    }

    /// Whether the kind needs the latencies of trials over time ([`FigureRun::over_time`]) to show this quantity.
    pub fn needs_latency_over_time(self, quantity: Option<Response>) -> bool {
        self == Self::Course && quantity.is_some_and(|quantity| quantity.quantile().is_some())
    }
}

/// Pixels per inch of a PNG: what journals ask for.
const DPI: f64 = 300.0;

/// File format of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Vectors for pages.
    Svg,
    /// Pixels.
    Png,
    /// Vectors for paper.
    Pdf,
}

/// A figure that can be written in several formats.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    model: FigureModel,
    scene: Scene,
    id: String,
}

/// Draws runs: the requested kind, otherwise [`default_kind`], or where trials are too short for a course, one of the cells.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): data that does not suit such a figure, with another kind as the remedy.
pub fn draw(runs: &[FigureRun<'_>], options: &Options) -> Result<Figure> {
    let (kind, model) = chosen(runs, options)?;
    finished(kind, model, runs, options)
}

/// As [`draw`], of what a user asked for: refuses options that the figure would ignore.
///
/// # Errors
///
/// Errors of [`draw`]; of kind [`Usage`](iolab_workload::Kind::Usage) for such an option, with the kinds that use it.
pub fn draw_as_asked(runs: &[FigureRun<'_>], options: &Options) -> Result<Figure> {
    if let Some(kind) = options.kind {
        options.check(Some(kind))?;
    }
    let (kind, model) = chosen(runs, options)?;
    options.check(Some(kind))?;
    finished(kind, model, runs, options)
}

/// The model of the kind that is drawn.
fn chosen(runs: &[FigureRun<'_>], options: &Options) -> Result<(FigureKind, FigureModel)> {
    let model = |kind: FigureKind| Ok((kind, (kind.row().model)(runs, options)?));
    match options.kind {
        Some(kind) => model(kind),
        None => model(default_kind(runs)).or_else(|error| match options.y {
            Some(_) => Err(error),
            None => model(kind_of_cells(runs)),
        }),
    }
}

/// The figure of a model, with what is said below all.
fn finished(
    kind: FigureKind,
    mut model: FigureModel,
    runs: &[FigureRun<'_>],
    options: &Options,
) -> Result<Figure> {
    let left_out = kinds::left_out(kind, runs, options);
    let added = kinds::computed(runs).into_iter().chain(left_out);
    let added = added.chain(kinds::not_steady(runs));
    for added in added.chain(kinds::disturbed(runs)) {
        for text in [&mut model.note, &mut model.description] {
            let end = match text.ends_with(['.', '!', '?']) || text.is_empty() {
                true => "",
                false => ".",
            };
            text.push_str(&format!("{end} {added}."));
        }
    }
    Figure::of(model, options)
}

/// The kind of figure for the data: the course inside the trials of soaks, or a ratio for two programs and for
/// two runs of one experiment. Otherwise the load if rates vary, the order of the trials if nothing varies, and
/// else the response.
pub fn default_kind(runs: &[FigureRun<'_>]) -> FigureKind {
    match runs {
        [_, ..] if runs.iter().all(|run| is_soak(run.analysis())) => FigureKind::Course,
        _ => kind_of_cells(runs),
    }
}

/// The kind of figure for what cells are as a whole.
fn kind_of_cells(runs: &[FigureRun<'_>]) -> FigureKind {
    let asked = |one: &Analysis| (one.experiment.clone(), one.factors.clone(), one.response);
    match runs {
        [run] if kinds::programs(runs).is_some() && !run.analysis().cells.is_empty() => {
            FigureKind::Ratio
        }
        [run] if !remainders(run.analysis()).is_empty() => FigureKind::Why,
        [run] if run.analysis().factors.iter().any(|factor| factor == "rate") => FigureKind::Load,
        [run] if run.analysis().factors.is_empty() => match &run.analysis().steady {
            Some(steady) if steady.is_of_cells() => FigureKind::Rounds,
            _ => FigureKind::Order,
        },
        [a, b] if asked(a.analysis()) == asked(b.analysis()) => FigureKind::Ratio,
        _ => FigureKind::Response,
    }
}

/// Whether what a run shows is inside its trials: each cell has one, which keeps its latency over time.
fn is_soak(analysis: &Analysis) -> bool {
    let mut measured = analysis.cells.iter().filter(|cell| cell.n > 0).peekable();
    let keeps = |cell: &CellAnalysis| {
        let trials = cell.cell.spec.trials();
        trials.into_iter().any(|trial| trial.latency_over_time)
    };
    measured.peek().is_some() && measured.all(|cell| cell.n == 1 && keeps(cell))
}

impl Figure {
    /// Lays out a model.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) where the figure has no room for it.
    pub fn of(mut model: FigureModel, options: &Options) -> Result<Self> {
        if let Some(title) = &options.title {
            model.title = escape_control(title).into_owned();
        }
        Ok(Self {
            scene: layout::scene(&model, options)?,
            model,
            id: options.id.clone(),
        })
    }

    /// Title of the figure; its description if it has none.
    fn title(&self) -> &str {
        match self.model.title.as_str() {
            "" => &self.model.description,
            title => title,
        }
    }

    /// The figure as SVG in its physical size.
    pub fn svg(&self) -> String {
        svg::write(&self.scene, &self.id, self.title(), &self.model)
    }

    /// The figure as PDF: one page of its physical size with lines as lines, text as text, and the font embedded.
    ///
    /// # Errors
    ///
    /// Of kind [`Failed`](iolab_workload::Kind::Failed) when it cannot be made.
    pub fn pdf(&self) -> Result<Vec<u8>> {
        pdf::pdf(&self.scene, self.title())
    }

    /// The figure as the content of a file.
    ///
    /// # Errors
    /// Errors of [`Figure::pdf`]; of kind [`Usage`](iolab_workload::Kind::Usage) when a PNG would have too many pixels for memory.
    pub fn bytes(&self, format: FileFormat) -> Result<Vec<u8>> {
        match format {
            FileFormat::Svg => Ok(self.svg().into_bytes()),
            FileFormat::Png => png::png(&self.scene, DPI),
            FileFormat::Pdf => self.pdf(),
        }
    }

    /// A description of its content.
    pub fn description(&self) -> &str {
        &self.model.description
    }
}
