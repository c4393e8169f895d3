//! Figures: from analyses to a picture on paper or in a page.
//!
//! A figure goes one way: the data of runs becomes a model (panels, axes, series: values, no places), layout gives
//! everything its place by the metrics of the font (a scene), and a writer writes that as SVG; PNG and PDF are made
//! from the SVG. The same data and options give the same bytes.
//!
//! In the SVG each series is a `<g class="series cN" data-series="NAME">` whose `color` is that of all its marks, and
//! each mark a `<g class="mark">` with `data-cell`, `data-x`, `data-value`, `data-lo`, `data-hi`, `data-n` and
//! `data-verdict` (each where it is known) and its words as `<title>`. The unit of values is `data-unit` of the
//! `<svg>`. [`style`] gives the colours as custom properties.

#![allow(dead_code, reason = "the other kinds of figure follow")]

mod data;
mod kinds;
mod layout;
mod marker;
mod model;
mod options;
mod palette;
mod pdf;
mod png;
mod scale;
mod scene;
mod svg;
mod text;
mod words;

use iolab_engine::{Error, Result};
use iolab_lab::analysis::Analysis;
use iolab_lab::record::RunRecord;
use iolab_lab::runfile::SampleLatency;

pub use options::{Center, Kind, Options, Quantity, Reference, Spread, parse_length};
pub use svg::style;

use model::Model;
use scene::Scene;

/// Name of the factor that the runs of several files are the levels of.
pub const RUN: &str = "run";

/// One run, as figures need it.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Its name where several runs are told apart: that of its file.
    pub name: &'a str,
    /// What its file holds.
    pub record: &'a RunRecord,
    /// Its analysis.
    pub analysis: &'a Analysis,
    /// Its latency histograms; empty unless [`Kind::needs_latencies`].
    pub latencies: &'a [SampleLatency],
}

/// A figure, ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    model: Model,
    scene: Scene,
    id: String,
}

/// Draws runs: the kind that the options ask for, else [`default_kind`].
///
/// # Errors
/// Of kind usage: data that such a figure cannot be made of, with another figure as the remedy.
pub fn draw(runs: &[Run<'_>], options: &Options) -> Result<Figure> {
    let kind = options.kind.unwrap_or_else(|| default_kind(runs));
    let model = match kind {
        Kind::Response => kinds::response::model(runs, options),
        other => Err(Error::usage(format!(
            "a figure of kind {other} cannot be made of this data"
        ))
        .hint("choose another with --kind")),
    }?;
    Figure::new(model, options)
}

/// The kind of figure that suits the data: that of a comparison for two programs or two runs of one experiment, of the load
/// where the rate varies, of the order where nothing does, else the response.
pub fn default_kind(_runs: &[Run<'_>]) -> Kind {
    Kind::Response
}

impl Figure {
    fn new(mut model: Model, options: &Options) -> Result<Self> {
        if let Some(title) = &options.title {
            model.title.clone_from(title);
        }
        Ok(Self {
            scene: layout::scene(&model, options)?,
            model,
            id: options.id.clone(),
        })
    }

    /// The figure as SVG, in its true size.
    pub fn svg(&self) -> String {
        let title = match self.model.title.as_str() {
            "" => self.model.description.as_str(),
            title => title,
        };
        let words = svg::Words {
            id: &self.id,
            title,
            description: &self.model.description,
            unit: &self.model.unit,
        };
        svg::write(&self.scene, &words)
    }

    /// The figure as PNG with so many pixels per inch, which the file states.
    ///
    /// # Errors
    /// Of kind usage when it would have more pixels than fit into memory.
    pub fn png(&self, dpi: f64) -> Result<Vec<u8>> {
        png::png(&self.svg(), dpi)
    }

    /// The figure as PDF: one page of its true size, lines as lines, text as text, the font embedded.
    ///
    /// # Errors
    /// Of kind failed when it cannot be made.
    pub fn pdf(&self) -> Result<Vec<u8>> {
        pdf::pdf(&self.svg())
    }

    /// What it shows, in words.
    pub fn description(&self) -> &str {
        &self.model.description
    }
}
