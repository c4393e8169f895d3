//! Assigns positions to everything in a figure, so that texts do not overlap and stay on the paper.

mod axes;
mod legend;
mod marks;

use super::model::{Arrangement, FigureModel, Panel};
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

impl Sizes {
    fn new(tick: f64) -> Self {
        Self {
            tick,
            label: tick * 8.0 / 7.0,
            small: tick * 6.2 / 7.0,
        }
    }
}

/// Positions of a panel's values.
struct Places<'a> {
    frame: Frame,
    panel: &'a Panel,
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
struct Canvas {
    width: f64,
    sizes: Sizes,
    items: Vec<Item>,
}

impl Canvas {
    fn write(&mut self, text: Text) {
        self.items.push(Item::Text(text));
    }

    fn shape(&mut self, shape: Shape) {
        self.items.push(Item::Shape(shape));
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
        let mut shape = Shape::drawn(class, polyline(points), width, paint);
        shape.stroke = shape.stroke.map(|stroke| Stroke { dash, ..stroke });
        self.shape(shape);
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
        canvas.write(Text::at(
            (MARGIN, top - sizes.label * 0.25),
            sizes.label,
            line,
        ));
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
    let heights = grid.frames.iter().map(Frame::height);
    if heights
        .chain([grid.panel_width()])
        .any(|length| length < PANEL_HEIGHT_MIN)
    {
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
        canvas.write(Text {
            paint: Paint::Muted,
            ..Text::at((MARGIN, bottom), sizes.small, line)
        });
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
    margins: Margins,
    frames: Vec<Frame>,
    x_ticks: Vec<AxisTicks>,
    y_ticks: Vec<AxisTicks>,
    bottom: f64,
}

/// Space around each panel.
#[derive(Debug)]
struct Margins {
    left: f64,
    right: f64,
    /// Below the last row.
    below: f64,
    /// Between two columns.
    gap: f64,
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
            columns: match model.arrangement {
                Arrangement::Stack => 1,
                // Uses no more columns than the number of rows requires.
                Arrangement::Facets => panels.div_ceil(panels.div_ceil(most)),
            },
            // Starts with the smallest margins and only increases them, so that the iteration converges.
            margins: Margins {
                left: MARGIN + sizes.label * 1.45,
                right: MARGIN + names,
                below: axes::below(sizes.tick) + sizes.label * 1.5 + 2.0,
                gap: COLUMN_GAP,
            },
            frames: Vec::new(),
            x_ticks: Vec::new(),
            y_ticks: Vec::new(),
            bottom: 0.0,
        };
        for _ in 0..ROUNDS {
            grid.arrange();
            grid.widen_margins();
        }
        grid.arrange();
        grid
    }

    /// Width of the panels.
    fn panel_width(&self) -> f64 {
        self.frames.first().map_or(f64::INFINITY, Frame::width)
    }

    /// Computes the frame and the ticks of every panel.
    fn arrange(&mut self) {
        let (size, margins) = (self.sizes.tick, &self.margins);
        let gaps = (self.columns - 1) as f64 * margins.gap;
        let inner = self.width - margins.left - margins.right - gaps;
        let width = inner / self.columns as f64;
        let rows = || self.model.panels.chunks(self.columns);
        let heads: Vec<f64> = rows()
            .enumerate()
            .map(|(row, panels)| self.head(panels, width, row == 0))
            .collect();
        let weights: f64 = rows().map(|row| row[0].weight).sum();
        let unit = match self.room.1 {
            Some(height) => {
                let gaps = heads.len().saturating_sub(1) as f64 * ROW_GAP;
                (height - heads.iter().sum::<f64>() - gaps - margins.below) / weights
            }
            None if self.columns > 1 => width * ASPECT_FACET,
            None => width * ASPECT,
        };
        let mut frames = Vec::new();
        let mut top = self.room.0;
        for (panels, head) in rows().zip(heads) {
            top += head;
            let bottom = top + panels[0].weight * unit;
            for column in 0..panels.len() {
                let left = margins.left + column as f64 * (width + margins.gap);
                frames.push(Frame {
                    left,
                    top,
                    right: left + width,
                    bottom,
                });
            }
            top = bottom + ROW_GAP;
        }
        self.bottom = top - ROW_GAP + margins.below;
        self.frames = frames;
        let panels = || self.model.panels.iter().zip(&self.frames);
        let across = panels().map(|(panel, frame)| axes::horizontal(&panel.x, frame.width(), size));
        let up = panels().map(|(panel, frame)| axes::vertical(&panel.y, frame.height(), size));
        (self.x_ticks, self.y_ticks) = (across.collect(), up.collect());
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
        let widest = |ticks: &[AxisTicks]| {
            let widths = ticks.iter().map(|chosen| chosen.width(tick));
            widths.fold(0.0, f64::max)
        };
        let labels = match self.x_ticks.iter().any(|chosen| chosen.upwards) {
            true => widest(&self.x_ticks),
            false => tick * text::CAP_HEIGHT,
        };
        let width = self.panel_width();
        let overhangs = self.model.panels.iter().zip(&self.x_ticks);
        let (before_first, overhang) = overhangs
            .map(|(panel, chosen)| chosen.overhangs(panel.x.scale, width, tick))
            .fold((0.0f64, 0.0f64), |most, own| {
                (most.0.max(own.0), most.1.max(own.1))
            });
        let gap = before_first + overhang + tick * LABEL_GAP;
        let left = MARGIN + label * 1.45 + widest(&self.y_ticks) + axes::GAP + axes::TICK;
        let below = axes::below(tick) + labels + label * 1.5 + 2.0;
        let right = MARGIN + self.names.max(overhang);
        let before = &self.margins;
        self.margins = Margins {
            left: left.max(before.left),
            right: right.max(before.right),
            below: below.max(before.below),
            gap: gap.max(before.gap),
        };
    }

    /// Draws all panels; returns their lower edge, including labels.
    fn draw(&self, canvas: &mut Canvas) -> f64 {
        for (i, panel) in self.model.panels.iter().enumerate() {
            self.panel(i, panel, canvas);
        }
        self.axis_labels(canvas);
        self.bottom
    }

    fn panel(&self, i: usize, panel: &Panel, canvas: &mut Canvas) {
        let (frame, model) = (self.frames[i], self.model);
        let facets = model.arrangement == Arrangement::Facets;
        let is_last = i + self.columns >= model.panels.len();
        let is_left = i.is_multiple_of(self.columns);
        let places = Places { frame, panel };
        canvas.open("panel");
        axes::draw(
            canvas,
            &places,
            (&self.x_ticks[i], is_last),
            (&self.y_ticks[i], is_left || !facets),
        );
        if !panel.title.is_empty() {
            let size = canvas.sizes.tick;
            let title = text::fitted_name(&panel.title, size, frame.width());
            canvas.write(Text::at((frame.left, frame.top - size * 0.5), size, title));
        }
        legend::draw_uprights(canvas, &places, i < self.columns);
        marks::draw(canvas, &places);
        if self.names > 0.0 {
            legend::draw_direct(canvas, &places);
        }
        canvas.close();
    }

    /// The labels of the axes: once for facets, for each panel of a stack.
    fn axis_labels(&self, canvas: &mut Canvas) {
        let model = self.model;
        let (Some(first), Some(panel)) = (self.frames.first(), model.panels.last()) else {
            return;
        };
        let sizes = canvas.sizes;
        let right = self.frames.iter().map(|f| f.right).fold(0.0, f64::max);
        let last = self.frames.iter().map(|f| f.bottom).fold(0.0, f64::max);
        let baseline = last + self.margins.below - sizes.label * 0.3;
        // The label may extend below the vertical axis.
        let (least, most) = (MARGIN + sizes.label * 1.4, canvas.width - MARGIN);
        let label = text::fitted(&panel.x.label, sizes.label, most - least);
        let half = text::width(&label, sizes.label) / 2.0;
        let centre = f64::midpoint(first.left, right);
        let centre = centre.min(most - half).max(least + half);
        canvas.write(Text {
            anchor: Anchor::Middle,
            ..Text::at((centre, baseline), sizes.label, label)
        });
        let spans: Vec<(f64, f64, &str)> = match model.arrangement {
            Arrangement::Facets => vec![(first.top, last, &panel.y.label)],
            Arrangement::Stack => {
                let panels = model.panels.iter().zip(&self.frames);
                panels
                    .map(|(p, f)| (f.top, f.bottom, &*p.y.label))
                    .collect()
            }
        };
        for (top, bottom, label) in spans {
            // A label longer than its axis extends downwards where no axis follows.
            let below = if bottom >= last {
                self.margins.below
            } else {
                ROW_GAP
            };
            let (label, size) = text::fitted_label(label, sizes.label, bottom - top + below);
            let half = text::width(&label, size) / 2.0;
            let centre = f64::midpoint(top, bottom).max(top + half);
            let x = MARGIN + sizes.label * text::CAP_HEIGHT;
            canvas.write(Text {
                anchor: Anchor::Middle,
                upwards: true,
                ..Text::at((x, centre), size, label)
            });
        }
    }
}
