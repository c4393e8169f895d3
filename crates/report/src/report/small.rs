//! The outline of a run as a small figure on a page: its shape at a glance, linked to its section.

use std::fmt::Write as _;

use iolab_analysis::outline::{Outline, OutlinePoint};

use super::clean;
use iolab_figure::escaped;
use iolab_figure::spans_decades;

/// Size in units of the view box.
const SIZE: (f64, f64) = (200.0, 84.0);
/// Room around the curves.
const EDGE: f64 = 6.0;
/// Most curves that stay apart.
const CURVES_MAX: usize = 6;

/// A small figure with its words.
#[derive(Debug, Clone)]
pub(super) struct Small {
    /// Id of the section that it leads to.
    pub(super) id: String,
    pub(super) name: String,
    /// The best value with its unit.
    pub(super) best: String,
    /// First and last level along the axis, and what lies between.
    pub(super) first: String,
    pub(super) factor: String,
    pub(super) last: String,
    pub(super) svg: String,
}

impl Small {
    /// Of an outline; `None` without a value.
    pub(super) fn of(id: &str, name: &str, outline: &Outline) -> Option<Self> {
        let best = outline.best()?.points.iter().map(|(_, point)| point.value);
        let worth = |value: &f64| outline.response.worth(*value);
        let best = best.max_by(|a, b| worth(a).total_cmp(&worth(b)))?;
        let best = outline.response.format(best);
        let name = clean(name);
        let factor = clean(&outline.factor);
        let words = format!("{name}: {} along {factor}, best {best}", outline.response);
        Some(Self {
            id: id.to_owned(),
            svg: svg(outline, &words),
            name,
            best,
            first: clean(outline.levels.first()?),
            factor,
            last: clean(outline.levels.last()?),
        })
    }
}

fn svg(outline: &Outline, words: &str) -> String {
    let points = || outline.curves.iter().flat_map(|curve| &curve.points);
    let values: Vec<f64> = points().map(|(_, point)| point.value).collect();
    let scale = Scale::of(&values, outline);
    let (width, height) = SIZE;
    let mut svg = format!(
        "<svg class=\"iolab-figure\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\" fill=\"none\">\
         <path class=\"grid\" d=\"M0 {bottom}H{width}\"/>",
        escaped(words),
        bottom = height - 1.0
    );
    for (number, curve) in outline.curves.iter().take(CURVES_MAX).enumerate() {
        let _ = write!(svg, "<g class=\"c{number}\">");
        let mut line = String::new();
        for (i, (level, point)) in curve.points.iter().enumerate() {
            let (x, y) = (scale.x(*level), scale.y(point.value));
            let _ = write!(line, "{}{x:.1} {y:.1}", if i == 0 { "M" } else { "L" });
            svg.push_str(&mark(&scale, x, y, point));
        }
        let _ = write!(
            svg,
            "<path d=\"{line}\" stroke=\"currentColor\" stroke-width=\"1.6\"/></g>"
        );
    }
    svg + "</svg>"
}

/// A point, hollow where the device did not serve all of it, with its interval.
fn mark(scale: &Scale, x: f64, y: f64, point: &OutlinePoint) -> String {
    let interval = point.interval.map_or_else(String::new, |(low, high)| {
        format!(
            "<path d=\"M{x:.1} {:.1}V{:.1}\" stroke=\"currentColor\" stroke-width=\"1\"/>",
            scale.y(low),
            scale.y(high)
        )
    });
    let fill = if point.device { "currentColor" } else { "none" };
    format!(
        "{interval}<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.4\" fill=\"{fill}\" stroke=\"currentColor\"/>"
    )
}

/// From levels and values to places.
struct Scale {
    levels: usize,
    least: f64,
    most: f64,
    log: bool,
}

impl Scale {
    fn of(values: &[f64], outline: &Outline) -> Self {
        let most = values.iter().copied().fold(0.0, f64::max);
        let positive = values.iter().copied().filter(|v| *v > 0.0);
        let log = spans_decades(values, outline.response);
        Self {
            levels: outline.levels.len(),
            least: positive.fold(f64::INFINITY, f64::min),
            most,
            log,
        }
    }

    fn x(&self, level: usize) -> f64 {
        let steps = self.levels.saturating_sub(1).max(1) as f64;
        EDGE + (SIZE.0 - 2.0 * EDGE) * level as f64 / steps
    }

    fn y(&self, value: f64) -> f64 {
        let share = match self.log {
            true => (value / self.least).log10() / (self.most / self.least).log10(),
            false => value / self.most,
        };
        let share = if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        };
        SIZE.1 - EDGE - (SIZE.1 - 2.0 * EDGE) * share
    }
}
