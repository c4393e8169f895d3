//! Sparklines of runs as small text charts, side by side.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::sparkline::{Sparkline, SparklineCurve};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::chart::Style;
use iolab_figure::spans_decades;
use iolab_workload::escape_control::escape_control;

/// Height of a panel, lines.
const HEIGHT: usize = 3;
/// Number of panels in a row.
const ACROSS: usize = 3;
/// Columns between two panels.
const GAP: usize = 2;
/// Widest column of a panel, characters.
const COLUMN_MAX: usize = 3;
/// Eighths of a character from the bottom.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same without Unicode.
const ASCII: [char; 9] = [' ', '.', '.', ':', ':', ':', '#', '#', '#'];

/// The sparklines with their names, in rows of three, no wider than the terminal.
pub fn text(outlines: &[(String, Sparkline)], style: &Style) -> String {
    let width = (usize::from(style.width) + GAP) / ACROSS - GAP;
    let panels: Vec<Vec<String>> = outlines
        .iter()
        .filter_map(|(name, outline)| panel(name, outline, width, style.ascii))
        .collect();
    let rows = panels.chunks(ACROSS).map(|row| {
        let lines = (0..HEIGHT + 2).map(|line| {
            let parts: Vec<String> = row
                .iter()
                .map(|panel| padded(&panel[line], width))
                .collect();
            parts.join(&" ".repeat(GAP)).trim_end().to_owned() + "\n"
        });
        lines.collect::<String>()
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// Fewest levels of a curve; a shorter one is easily read from the table.
const LEVELS_MIN: usize = 4;
/// Most panels of one run.
const PANELS_MAX: usize = 6;

/// Each curve of one run as a panel; empty for too few levels, too many curves, or an axis of names.
pub fn curves(analysis: &Analysis, style: &Style) -> String {
    let Some(outline) = Sparkline::of(analysis) else {
        return String::new();
    };
    let numeric = |level: &String| level.starts_with(|c: char| c.is_ascii_digit());
    if outline.levels.len() < LEVELS_MIN
        || outline.curves.len() > PANELS_MAX
        || !outline.levels.iter().all(numeric)
    {
        return String::new();
    }
    let has_targets = outline.targets().len() > 1;
    let each = outline.curves.iter().map(|curve| {
        let own = Sparkline {
            curves: vec![SparklineCurve {
                name: String::new(),
                ..curve.clone()
            }],
            ..outline.clone()
        };
        let name = match (has_targets, curve.name.as_str()) {
            (false, "") => analysis.experiment.clone(),
            (false, name) => name.to_owned(),
            (true, name) => format!("{} {name}", curve.target),
        };
        (name, own)
    });
    text(&each.collect::<Vec<_>>(), style)
}

/// Name and highest value, the columns, the ends of the axis.
fn panel(name: &str, outline: &Sparkline, width: usize, ascii: bool) -> Option<Vec<String>> {
    let curve = outline.best()?;
    let values: Vec<f64> = curve.points.iter().map(|(_, point)| point.value).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    let log = spans_decades(&values, outline.response);
    let peak = outline.response.format(most);
    let mut lines = vec![between(&escape_control(name), &peak, width)];
    lines.extend(columns(
        curve,
        outline.levels.len(),
        most,
        log,
        width,
        ascii,
    ));
    let (first, last) = (outline.levels.first()?, outline.levels.last()?);
    let target = Some(curve.target.as_str()).filter(|_| outline.targets().len() > 1);
    let name = Some(curve.name.as_str()).filter(|name| !name.is_empty());
    let parts = [Some(outline.factor.as_str()), name, target];
    let held = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let scale = if log { " (log)" } else { "" };
    let middle = format!("{}{scale}", escape_control(&held));
    lines.push(axis(
        &escape_control(first),
        &middle,
        &escape_control(last),
        width,
    ));
    Some(lines)
}

/// One line per eighth of the height times [`HEIGHT`], from the top.
fn columns(
    curve: &SparklineCurve,
    levels: usize,
    most: f64,
    log: bool,
    width: usize,
    ascii: bool,
) -> Vec<String> {
    let values = curve.points.iter().map(|(_, point)| point.value);
    let least = values.filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
    let share = |value: f64| match log {
        // A decade below the lowest value, so that its column is visible.
        true => (value * 10.0 / least).log10() / (most * 10.0 / least).log10(),
        false => value / most,
    };
    let column = (width / levels.max(1)).clamp(1, COLUMN_MAX);
    let shown = levels.min(width);
    let heights: Vec<usize> = (0..shown)
        .map(|place| {
            let level = place * levels / shown;
            let point = curve.points.iter().find(|(at, _)| *at == level);
            let share = point.map_or(0.0, |(_, point)| share(point.value));
            let eighths = (share.clamp(0.0, 1.0) * (8 * HEIGHT) as f64).round() as usize;
            // At least one eighth for a measured value.
            eighths.max(usize::from(point.is_some()))
        })
        .collect();
    let blocks = if ascii { ASCII } else { EIGHTHS };
    let line = |from_top: usize| {
        let floor = 8 * (HEIGHT - 1 - from_top);
        let cell = |height: &usize| {
            let block = blocks[height.saturating_sub(floor).min(8)];
            std::iter::repeat_n(block, column)
        };
        heights.iter().flat_map(cell).collect::<String>()
    };
    (0..HEIGHT).map(line).collect()
}

/// The first text left-aligned, the second right-aligned; the first is truncated.
fn between(left: &str, right: &str, width: usize) -> String {
    let room = width.saturating_sub(right.width() + 1);
    let left = cut(left, room);
    let gap = width.saturating_sub(left.width() + right.width());
    format!("{left}{}{right}", " ".repeat(gap))
}

/// The ends of an axis with its label, which is omitted without space.
fn axis(first: &str, middle: &str, last: &str, width: usize) -> String {
    let length = |text: &str| text.width();
    if length(first) + length(middle) + length(last) + 2 > width {
        return match length(first) + length(last) < width {
            true => between(first, last, width),
            false => cut(first, width),
        };
    }
    let room = width - length(first) - length(last);
    let before = (room - length(middle)) / 2;
    let after = room - length(middle) - before;
    format!(
        "{first}{}{middle}{}{last}",
        " ".repeat(before),
        " ".repeat(after)
    )
}

/// The beginning of a text, at most `width` columns.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    text.chars().take_while(fits).collect()
}

fn padded(text: &str, width: usize) -> String {
    let length = text.width();
    format!("{text}{}", " ".repeat(width.saturating_sub(length)))
}
