//! Assigns positions to everything in a figure, so that texts do not overlap and stay on the paper.

mod axes;
mod legend;
mod marks;

use super::model::{FigureModel, Panel};
use super::options::Options;
use super::scene::{Anchor, Frame, Item, Paint, Scene, Shape, Stroke, Text, polyline};
use super::text;
use axes::AxisTicks;
use iolab_workload::{Error, Result};

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

/// A panel with its place and its ticks.
#[derive(Debug)]
struct Places<'a> {
    frame: Frame,
    panel: &'a Panel,
    x_ticks: AxisTicks,
    y_ticks: AxisTicks,
}

impl Places<'_> {
    fn x(&self, value: f64) -> Option<f64> {
        let share = self.panel.x.scale.share(value)?;
        Some(self.frame.left + share * self.frame.width())
    }

    /// A value beyond the axis is drawn at its end.
    fn y(&self, value: f64) -> Option<f64> {
        let share = self.panel.y.scale.share(value)?;
        Some(self.frame.bottom - share.clamp(-0.02, 1.02) * self.frame.height())
    }

    fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.x(x)?, self.y(y)?))
    }
}

/// The items drawn so far.
#[derive(Debug)]
pub(super) struct Canvas {
    width: f64,
    sizes: Sizes,
    pub(super) items: Vec<Item>,
}

impl Canvas {
    /// An empty one of this width, with labels at ticks of the size `tick`, points.
    pub(super) fn new(width: f64, tick: f64) -> Self {
        Self {
            width,
            sizes: Sizes {
                tick,
                label: tick * 8.0 / 7.0,
                small: tick * 6.2 / 7.0,
            },
            items: Vec::new(),
        }
    }

    pub(super) fn write(&mut self, text: Text) {
        self.items.push(Item::Text(text));
    }

    pub(super) fn shape(&mut self, shape: Shape) {
        self.items.push(Item::Shape(shape));
    }

    /// A line of this width with these dashes; empty for a solid one.
    pub(super) fn line(
        &mut self,
        class: &'static str,
        points: &[(f64, f64)],
        (width, dash): (f64, &'static str),
        paint: Paint,
    ) {
        let mut shape = Shape::drawn(class, polyline(points), width, paint);
        shape.stroke = shape.stroke.map(|stroke| Stroke { dash, ..stroke });
        self.shape(shape);
    }

    pub(super) fn group(
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

    pub(super) fn close(&mut self) {
        self.items.push(Item::Close);
    }
}

/// Lays out a figure.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when the requested size is too small for it.
pub(super) fn scene(model: &FigureModel, options: &Options) -> Result<Scene> {
    let mut canvas = Canvas::new(options.width_pt, options.text_pt);
    let sizes = canvas.sizes;
    let room = options.width_pt - 2.0 * MARGIN;
    let mut top = MARGIN;
    for line in text::wrapped(&model.title, sizes.label, room) {
        top += sizes.label * text::LINE_HEIGHT;
        let at = (MARGIN, top - sizes.label * 0.25);
        canvas.write(Text::at(at, sizes.label, line));
    }
    let direct = legend::with_direct_names(model, &canvas);
    top = legend::draw(model, direct.is_some(), &mut canvas, top);
    let notes = text::wrapped(&model.note, sizes.small, room);
    let below = match notes.len() {
        0 => 0.0,
        n => n as f64 * sizes.small * text::LINE_HEIGHT + 2.0,
    };
    let height = options.height_pt;
    let grid = Grid::new(
        model,
        &canvas,
        (top, height.map(|height| height - top - below - MARGIN)),
        direct.map_or(0.0, |panel| legend::direct_width(panel, sizes)),
    );
    let mut frames = grid.placed.iter().map(|places| places.frame);
    if frames.any(|frame| frame.height().min(frame.width()) < PANEL_HEIGHT_MIN) {
        return Err(Error::usage(format!(
            "there is no room for the figure on {:.0}pt by {}",
            options.width_pt,
            height.map_or("any height".to_owned(), |h| format!("{h:.0}pt"))
        ))
        .hint("choose a greater --width or --height, or fewer panels with --facet"));
    }
    let mut bottom = grid.draw(&mut canvas);
    for line in notes {
        bottom += sizes.small * text::LINE_HEIGHT;
        let text = Text::at((MARGIN, bottom), sizes.small, line);
        canvas.write(text.painted(Paint::Muted));
    }
    let height = options.height_pt.unwrap_or(bottom + MARGIN + 1.0);
    Ok(Scene::new((options.width_pt, height), canvas.items))
}

/// Height of a single panel over its width.
const ASPECT: f64 = 0.6;

/// Height of one of several panels over its width.
const ASPECT_FACET: f64 = 0.75;

/// Smallest width of one of several panels, points per point of text.
const PANEL_WIDTH: f64 = 12.0;

/// Least space between two columns, points.
const COLUMN_GAP: f64 = 9.0;

/// Space between labels of neighbouring columns, points per point of text.
const LABEL_GAP: f64 = 0.5;

/// Smallest size of the label of an axis, as a share of the usual one.
const LABEL_MIN: f64 = 0.75;

/// Space between two rows, points.
const ROW_GAP: f64 = 7.0;

/// Ticks depend on lengths, and lengths on tick labels: this many iterations suffice.
const ROUNDS: usize = 4;

/// Positioned panels.
#[derive(Debug)]
struct Grid<'a> {
    model: &'a FigureModel,
    sizes: Sizes,
    /// Width of the figure.
    width: f64,
    /// Upper edge of the panels, and height including axes and titles; `None`: follows from the width.
    room: (f64, Option<f64>),
    /// Width of the names at the ends of lines, right of the panel; 0 without.
    names: f64,
    columns: usize,
    /// Space left of all panels.
    left: f64,
    /// Space right of all panels.
    right: f64,
    /// Space below the last row.
    below: f64,
    /// Space between two columns.
    gap: f64,
    placed: Vec<Places<'a>>,
    bottom: f64,
}

impl<'a> Grid<'a> {
    fn new(model: &'a FigureModel, canvas: &Canvas, room: (f64, Option<f64>), names: f64) -> Self {
        let sizes = canvas.sizes;
        let inner = canvas.width - sizes.tick * 5.0;
        let most = (inner / (sizes.tick * PANEL_WIDTH)).floor().max(1.0) as usize;
        let panels = model.panels.len().max(1);
        let mut grid = Self {
            model,
            sizes,
            width: canvas.width,
            room,
            names,
            columns: match model.is_stack() {
                true => 1,
                // Uses no more columns than the number of rows requires.
                false => panels.div_ceil(panels.div_ceil(most)),
            },
            // Starts with the smallest margins and only increases them, so that the iteration converges.
            left: MARGIN + sizes.label * 1.45,
            right: MARGIN + names,
            below: axes::below(sizes.tick) + sizes.label * 1.5 + 2.0,
            gap: COLUMN_GAP,
            placed: Vec::new(),
            bottom: 0.0,
        };
        for _ in 0..ROUNDS {
            grid.arrange();
            grid.widen_margins();
        }
        grid.arrange();
        grid
    }

    /// Computes the frame and the ticks of every panel.
    fn arrange(&mut self) {
        let (model, columns, size) = (self.model, self.columns, self.sizes.tick);
        let gaps = (columns - 1) as f64 * self.gap;
        let width = (self.width - self.left - self.right - gaps) / columns as f64;
        let rows = || model.panels.chunks(columns);
        let heads = rows().enumerate();
        let heads = heads.map(|(row, panels)| self.head(panels, width, row == 0));
        let heads: Vec<f64> = heads.collect();
        let unit = match self.room.1 {
            Some(height) => {
                let gaps = heads.len().saturating_sub(1) as f64 * ROW_GAP;
                let weights: f64 = rows().map(|row| row[0].weight).sum();
                (height - heads.iter().sum::<f64>() - gaps - self.below) / weights
            }
            None if columns > 1 => width * ASPECT_FACET,
            None => width * ASPECT,
        };
        self.placed.clear();
        let mut top = self.room.0;
        for (panels, head) in rows().zip(heads) {
            top += head;
            let bottom = top + panels[0].weight * unit;
            for (column, panel) in panels.iter().enumerate() {
                let left = self.left + column as f64 * (width + self.gap);
                self.placed.push(Places {
                    frame: Frame::new((left, top), (left + width, bottom)),
                    panel,
                    x_ticks: axes::horizontal(&panel.x, width, size),
                    y_ticks: axes::vertical(&panel.y, bottom - top, size),
                });
            }
            top = bottom + ROW_GAP;
        }
        self.bottom = top - ROW_GAP + self.below;
    }

    /// Height of the items above a row of panels.
    fn head(&self, panels: &[Panel], width: f64, is_first: bool) -> f64 {
        let size = self.sizes.tick;
        let titled = panels.iter().any(|panel| !panel.title.is_empty());
        let title = if titled { size * 1.4 } else { 0.0 };
        let named = panels.iter().filter(|_| is_first);
        let uprights = named.map(|panel| legend::height(self.sizes, panel, width));
        // Half a tick label extends above the highest tick.
        (title + uprights.fold(0.0, f64::max)).max(size * 0.5)
    }

    /// Increases the margins to what the ticks chosen need.
    fn widen_margins(&mut self) {
        let Sizes { tick, label, .. } = self.sizes;
        let mut widest = (0.0f64, tick * text::CAP_HEIGHT);
        let mut overhang = (0.0f64, 0.0f64);
        for places in &self.placed {
            let (x, y) = (&places.x_ticks, &places.y_ticks);
            widest.0 = widest.0.max(y.width(tick));
            if x.upwards {
                widest.1 = widest.1.max(x.width(tick));
            }
            let own = x.overhangs(places.panel.x.scale, places.frame.width(), tick);
            overhang = (overhang.0.max(own.0), overhang.1.max(own.1));
        }
        let left = MARGIN + label * 1.45 + widest.0 + axes::GAP + axes::TICK;
        let below = axes::below(tick) + widest.1 + label * 1.5 + 2.0;
        self.left = self.left.max(left);
        self.right = self.right.max(MARGIN + self.names.max(overhang.1));
        self.below = self.below.max(below);
        self.gap = self.gap.max(overhang.0 + overhang.1 + tick * LABEL_GAP);
    }

    /// Draws all panels; returns their lower edge, including labels.
    fn draw(&self, canvas: &mut Canvas) -> f64 {
        let stacked = self.model.is_stack();
        for (i, places) in self.placed.iter().enumerate() {
            let is_last = i + self.columns >= self.placed.len();
            let is_left = i.is_multiple_of(self.columns);
            canvas.group("panel", None, Vec::new(), "");
            axes::draw(canvas, places, is_last, is_left || stacked);
            let Places { frame, panel, .. } = places;
            if !panel.title.is_empty() {
                let size = canvas.sizes.tick;
                let title = text::fitted_name(&panel.title, size, frame.width());
                canvas.write(Text::at((frame.left, frame.top - size * 0.5), size, title));
            }
            legend::draw_uprights(canvas, places, i < self.columns);
            marks::draw(canvas, places);
            if self.names > 0.0 {
                legend::draw_direct(canvas, places);
            }
            canvas.close();
        }
        self.axis_labels(canvas);
        self.bottom
    }

    /// The labels of the axes: once for facets, for each panel of a stack.
    fn axis_labels(&self, canvas: &mut Canvas) {
        let (Some(first), Some(end)) = (self.placed.first(), self.placed.last()) else {
            return;
        };
        let sizes = canvas.sizes;
        let frames = || self.placed.iter().map(|places| places.frame);
        let right = frames().map(|frame| frame.right).fold(0.0, f64::max);
        let last = end.frame.bottom;
        let baseline = last + self.below - sizes.label * 0.3;
        // The label may extend below the vertical axis.
        let (least, most) = (MARGIN + sizes.label * 1.4, canvas.width - MARGIN);
        let label = text::fitted(&end.panel.x.label, sizes.label, most - least);
        let half = text::width(&label, sizes.label) / 2.0;
        let centre = f64::midpoint(first.frame.left, right);
        let centre = centre.min(most - half).max(least + half);
        canvas.write(Text {
            anchor: Anchor::Middle,
            ..Text::at((centre, baseline), sizes.label, label)
        });
        let (labelled, facets_end) = match self.model.is_stack() {
            false => (&self.placed[..1], Some(last)),
            true => (&self.placed[..], None),
        };
        for Places { frame, panel, .. } in labelled {
            let bottom = facets_end.unwrap_or(frame.bottom);
            // A label longer than its axis extends downwards where no axis follows.
            let below = if bottom >= last { self.below } else { ROW_GAP };
            let room = bottom - frame.top + below;
            let (label, size) = text::fitted_label(&panel.y.label, sizes.label, LABEL_MIN, room);
            let half = text::width(&label, size) / 2.0;
            let centre = f64::midpoint(frame.top, bottom).max(frame.top + half);
            let x = MARGIN + sizes.label * text::CAP_HEIGHT;
            canvas.write(Text {
                anchor: Anchor::Middle,
                upwards: true,
                ..Text::at((x, centre), size, label)
            });
        }
    }
}
