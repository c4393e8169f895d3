//! A bar chart in text: one line per level, one group per combination of the other factors.

use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_analysis::sparkline::axis;
use iolab_figure::{Scale, least_and_most, spans_decades};

use crate::table::range;
use iolab_workload::escape_control::escape_control;

/// Options of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Available columns.
    pub width: u16,
    /// Whether to use ASCII only.
    pub ascii: bool,
}

/// Shortest bar of full length, in columns.
const BAR_MIN: usize = 8;
/// Width of the labels, in columns, if no label fits next to a bar.
const LABEL_MIN: usize = 2;
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// The scale of the bars; a logarithmic one begins with a power of ten half a decade below the lowest value.
fn scale_of(values: &[f64], response: Response) -> Scale {
    let (least, high) = least_and_most(values);
    match spans_decades(values, response) {
        true => Scale::Log {
            low: 10f64.powf((least.log10() - 0.5).floor()),
            high,
        },
        false => Scale::Linear { low: 0.0, high },
    }
}

struct BarLine {
    label: String,
    value: f64,
    text: String,
    interval: String,
    device: bool,
    measured: bool,
}

/// Draws the response of every cell. Bars of cells whose bytes did not all come from the device are light, which a legend
/// explains.
pub fn chart(analysis: &Analysis, style: &Style) -> String {
    let axis = axis(analysis);
    let groups = groups(analysis, axis);
    let lines = || groups.iter().flat_map(|(_, lines)| lines);
    let values: Vec<f64> = lines().map(|l| l.value).collect();
    let scale = scale_of(&values, analysis.response);
    let layout = Layout::new(style, &groups);
    let mut out = heading(analysis, axis, scale, style);
    for (group, lines) in &groups {
        if !group.is_empty() {
            out.push_str(&format!("{group}\n"));
        }
        for line in lines {
            out.push_str(layout.line(line, scale).trim_end());
            out.push('\n');
        }
    }
    if lines().any(|l| l.measured && !l.device) {
        let (full, light) = marks(scale, style.ascii);
        let device = match lines().any(|l| l.measured && l.device) {
            true => format!("{full} device   "),
            false => String::new(),
        };
        let legend = format!("{device}{light} not (only) the device, see the table");
        out.push_str(&cut(&legend, usize::from(style.width)));
        out.push('\n');
    }
    out
}

fn heading(analysis: &Analysis, axis: Option<usize>, scale: Scale, style: &Style) -> String {
    let over = axis
        .and_then(|i| analysis.factors.get(i))
        .map(|factor| format!(" by {}", escape_control(factor)))
        .unwrap_or_default();
    let unit = match analysis.response {
        Response::Throughput => " in MB/s".to_owned(),
        _ => String::new(),
    };
    let scale = match scale {
        Scale::Linear { .. } => String::new(),
        Scale::Log { low, .. } => {
            format!(", log scale from {}", analysis.response.format(low))
        }
    };
    let text = format!("{}{unit}{over}{scale}", analysis.response_name());
    format!("{}\n", cut(&text, usize::from(style.width)))
}

/// The lines of each group, groups and lines in the order of the definition.
fn groups(analysis: &Analysis, axis: Option<usize>) -> Vec<(String, Vec<BarLine>)> {
    let mut groups: Vec<(String, Vec<BarLine>)> = Vec::new();
    for cell in &analysis.cells {
        let held: Vec<String> = analysis
            .factors
            .iter()
            .zip(&cell.cell.levels)
            .enumerate()
            .filter(|(i, _)| Some(*i) != axis)
            .map(|(_, (factor, level))| {
                format!("{}={}", escape_control(factor), escape_control(level))
            })
            .collect();
        let (group, line) = (held.join(" "), line(analysis, cell, axis));
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, lines)) => lines.push(line),
            None => groups.push((group, vec![line])),
        }
    }
    groups
}

fn line(analysis: &Analysis, cell: &CellAnalysis, axis: Option<usize>) -> BarLine {
    let response = analysis.response;
    let label = axis.and_then(|i| cell.cell.levels.get(i));
    let summary = cell.response;
    let interval = summary.and_then(|s| s.median_interval);
    BarLine {
        label: label.map_or(String::new(), |l| escape_control(l).into_owned()),
        value: summary.map_or(0.0, |s| s.median),
        text: summary.map_or_else(
            || match (cell.n, response.requests_min()) {
                (1.., _) if !analysis.has_response(cell) => "no such requests".to_owned(),
                (0, _) | (_, 0 | 1) => "no trial".to_owned(),
                (_, least) => format!("too few requests ({least} per trial are needed)"),
            },
            |s| match response {
                Response::Throughput => iolab_workload::units::significant(s.median),
                _ => response.format(s.median),
            },
        ),
        interval: interval.map_or(String::new(), |i| format!("[{}]", range(response, &i))),
        device: cell.is_target(),
        measured: summary.is_some(),
    }
}

/// The widths of the parts of a line.
struct Layout {
    width: usize,
    label: usize,
    bar: usize,
    text: usize,
    interval: usize,
    ascii: bool,
}

impl Layout {
    fn new(style: &Style, groups: &[(String, Vec<BarLine>)]) -> Self {
        let width = usize::from(style.width);
        let longest = |of: fn(&BarLine) -> &String| {
            let lengths = groups
                .iter()
                .flat_map(|(_, l)| l)
                .map(|l| of(l).chars().count());
            lengths.max().unwrap_or(0)
        };
        let labels = groups.iter().flat_map(|(_, lines)| lines);
        let labels = labels.map(|line| line.label.chars().count());
        let label = labels.filter(|label| *label <= width / 3).max();
        let label = label.unwrap_or(LABEL_MIN);
        let text = longest(|l| &l.text);
        let interval = longest(|l| &l.interval);
        // Gaps: two columns after the label, one before and one after the value.
        let fixed = label + text + 3;
        let (interval, room) = match width.checked_sub(fixed + interval + 1) {
            Some(room) if room >= BAR_MIN => (interval, room),
            _ => (0, width.saturating_sub(fixed)),
        };
        Self {
            width,
            label,
            bar: room.max(BAR_MIN),
            text,
            interval,
            ascii: style.ascii,
        }
    }

    fn line(&self, line: &BarLine, scale: Scale) -> String {
        let share = scale.share(line.value).unwrap_or(0.0).clamp(0.0, 1.0);
        let bar = if line.measured {
            self.bar(share, line.device, scale)
        } else {
            String::new()
        };
        let interval = if self.interval > 0 {
            &line.interval
        } else {
            ""
        };
        // A label that is too long has a line of its own, since two labels may differ only at their ends.
        let (above, beside) = match line.label.chars().count() > self.label {
            true => (format!("{}\n", cut(&line.label, self.width)), ""),
            false => (String::new(), line.label.as_str()),
        };
        format!(
            "{above}{beside:>label$}  {bar:<room$} {:>text$} {interval}",
            line.text,
            label = self.label,
            room = self.bar,
            text = self.text,
        )
    }

    /// A bar from zero; on a log scale, which has no zero, a dot.
    fn bar(&self, share: f64, device: bool, scale: Scale) -> String {
        if let Scale::Log { .. } = scale {
            let place = (share * (self.bar - 1) as f64).round() as usize;
            let (full, light) = marks(scale, self.ascii);
            return format!("{:>1$}", if device { full } else { light }, place + 1);
        }
        if device {
            return solid_bar(share, self.bar, self.ascii);
        }
        let character = if self.ascii { "." } else { "░" };
        character.repeat(eighths(share, self.bar).div_ceil(8))
    }
}

/// Characters for a value from the device, and for any other value.
fn marks(scale: Scale, ascii: bool) -> (char, char) {
    match (scale, ascii) {
        (Scale::Linear { .. }, true) => ('#', '.'),
        (Scale::Linear { .. }, false) => ('█', '░'),
        (Scale::Log { .. }, true) => ('o', '.'),
        (Scale::Log { .. }, false) => ('●', '○'),
    }
}

fn eighths(share: f64, width: usize) -> usize {
    (share * (width * 8) as f64).round() as usize
}

/// A solid bar of `share` (0 to 1) of `width` columns.
fn solid_bar(share: f64, width: usize, ascii: bool) -> String {
    let eighths = eighths(share, width);
    if ascii {
        return "#".repeat(eighths.div_ceil(8));
    }
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_range_is_drawn_on_a_log_scale() {
        let of = |values: &[f64]| scale_of(values, Response::Throughput);
        let (low, high) = (0.0, 100.0);
        assert_eq!(of(&[1.0, 100.0]), Scale::Linear { low, high });
        assert!(matches!(of(&[1.0, 101.0]), Scale::Log { .. }));
        assert_eq!(of(&[0.0, 0.0]).share(0.0), None);
        let elapsed = scale_of(&[1.0, 11.0], Response::Elapsed);
        assert!(matches!(elapsed, Scale::Log { .. }));
    }
}
