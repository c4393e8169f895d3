//! Assigns positions to everything in a figure, so that texts do not overlap and stay on the paper.

mod axes;
mod grid;
mod legend;
mod marks;

use iolab_workload::{Error, Result};

use super::model::FigureModel;
use super::options::Options;
use super::scene::{Anchor, Item, Paint, Scene, Text};
use super::text;

/// Empty margin at every edge, points.
const MARGIN: f64 = 3.0;
/// Least height of a panel, points.
const PANEL_HEIGHT_MIN: f64 = 24.0;

/// Sizes of the text, points.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Labels at ticks, legend.
    tick: f64,
    /// Labels of axes, titles of panels.
    label: f64,
    /// Notes.
    small: f64,
}

impl Sizes {
    fn new(tick: f64) -> Self {
        Self {
            tick,
            label: tick * 8.0 / 7.0,
            small: tick * 6.2 / 7.0,
        }
    }
}

/// The items drawn so far.
#[derive(Debug)]
struct Canvas {
    width: f64,
    sizes: Sizes,
    items: Vec<Item>,
}

impl Canvas {
    /// A text in ink.
    fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, text: impl Into<String>) {
        self.painted(at, size, anchor, Paint::Ink, text);
    }

    fn painted(
        &mut self,
        (x, y): (f64, f64),
        size: f64,
        anchor: Anchor,
        paint: Paint,
        text: impl Into<String>,
    ) {
        self.items.push(Item::Text(Text {
            x,
            y,
            size,
            anchor,
            upwards: false,
            paint,
            text: text.into(),
        }));
    }

    /// A line of an axis or a tick.
    fn ink(&mut self, points: &[(f64, f64)], width: f64) {
        self.line("", points, width, Paint::Ink);
    }

    fn grid(&mut self, points: &[(f64, f64)]) {
        self.line("", points, 0.5, Paint::Grid);
    }

    fn line(&mut self, class: &'static str, points: &[(f64, f64)], width: f64, paint: Paint) {
        self.dashed(class, points, width, "", paint);
    }

    fn dashed(
        &mut self,
        class: &'static str,
        points: &[(f64, f64)],
        width: f64,
        dash: &'static str,
        paint: Paint,
    ) {
        self.items.push(Item::Path {
            class,
            points: points.to_vec(),
            width,
            dash,
            paint,
        });
    }

    fn open(&mut self, class: &'static str) {
        self.group(class, None, Vec::new(), "");
    }

    fn group(
        &mut self,
        class: &'static str,
        series: Option<usize>,
        data: Vec<(&'static str, String)>,
        words: &str,
    ) {
        self.items.push(Item::Open {
            class,
            series,
            data,
            words: words.to_owned(),
        });
    }

    fn close(&mut self) {
        self.items.push(Item::Close);
    }
}

/// Lays out a figure.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when the requested size is too small for it.
pub(super) fn scene(model: &FigureModel, options: &Options) -> Result<Scene> {
    let mut canvas = Canvas {
        width: options.width_pt,
        sizes: Sizes::new(options.text_pt),
        items: Vec::new(),
    };
    let sizes = canvas.sizes;
    let room = options.width_pt - 2.0 * MARGIN;
    let mut top = MARGIN;
    for line in text::wrapped(&model.title, sizes.label, room) {
        top += sizes.label * text::LINE_HEIGHT;
        canvas.text(
            (MARGIN, top - sizes.label * 0.25),
            sizes.label,
            Anchor::Start,
            line,
        );
    }
    let direct = legend::direct_labels(model, &canvas);
    top = legend::draw(model, direct.is_some(), &mut canvas, top);
    let notes = text::wrapped(&model.note, sizes.small, room);
    let below = match notes.len() {
        0 => 0.0,
        n => n as f64 * sizes.small * text::LINE_HEIGHT + 2.0,
    };
    let height = options
        .height_pt
        .map(|height| height - top - below - MARGIN);
    let place = grid::PanelArea {
        top,
        height,
        direct: direct.as_deref(),
    };
    let grid = grid::Grid::new(model, &canvas, &place);
    if grid.panel_height_min() < PANEL_HEIGHT_MIN || grid.panel_width() < PANEL_HEIGHT_MIN {
        return Err(Error::usage(format!(
            "there is no room for the figure on {:.0}pt by {}",
            options.width_pt,
            options
                .height_pt
                .map_or("any height".to_owned(), |h| format!("{h:.0}pt"))
        ))
        .hint("choose a greater --width or --height, or fewer panels with --facet"));
    }
    let mut bottom = grid.draw(model, &mut canvas);
    for line in notes {
        bottom += sizes.small * text::LINE_HEIGHT;
        canvas.painted(
            (MARGIN, bottom),
            sizes.small,
            Anchor::Start,
            Paint::Muted,
            line,
        );
    }
    Ok(Scene {
        width: options.width_pt,
        height: options.height_pt.unwrap_or(bottom + MARGIN + 1.0),
        items: canvas.items,
    })
}
