//! A bar chart in text: the levels of each cell, its bar, its value and its interval.

use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_figure::{Scale, least_and_most, spans_decades};

use crate::layout::{self, columns_over, level_columns, none, wrapped};
use crate::table::{bare, range};

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

/// Draws the response of every cell. Bars of cells whose bytes did not all come from the device are light, which a legend
/// explains.
pub fn chart(analysis: &Analysis, style: &Style) -> String {
    let (response, width) = (analysis.response, usize::from(style.width));
    let cells = analysis.cells.iter();
    let medians = cells.map(|cell| cell.response.map_or(0.0, |response| response.median));
    let scale = scale_of(&medians.collect::<Vec<f64>>(), response);
    let column = columns_over(&analysis.cells);
    let levels = analysis
        .cells
        .iter()
        .map(|cell| cell.cell.levels.as_slice());
    let mut columns = level_columns(&analysis.factors, levels);
    let place = columns.len();
    columns.extend([
        column(response.heading(), 0, &|cell| value(analysis, cell)),
        column("95 % interval", 0, &|cell| {
            let interval = cell.response.and_then(|response| response.median_interval);
            interval.map_or_else(none, |interval| range(response, &interval))
        }),
    ]);
    if layout::room_beside(&columns, width) < BAR_MIN {
        columns.pop();
    }
    let room = layout::room_beside(&columns, width).max(BAR_MIN);
    let bars = column("", 0, &|cell| bar(cell, scale, room, style.ascii));
    columns.insert(place, bars.left());
    let scaled = match scale {
        Scale::Linear { .. } => String::new(),
        Scale::Log { low, .. } => format!(", log scale from {}", response.format(low)),
    };
    let title = format!("{}{scaled}", analysis.response_name());
    let legend = legend(analysis, marks(scale, style.ascii));
    wrapped(&title, style.width)
        + &layout::text(columns, style.width)
        + &wrapped(&legend, style.width)
}

/// Explains light bars; empty without any.
fn legend(analysis: &Analysis, (full, light): (char, char)) -> String {
    let mut drawn = analysis.cells.iter().filter(|cell| cell.response.is_some());
    let device = match drawn.clone().any(CellAnalysis::is_target) {
        true => format!("{full} device   "),
        false => String::new(),
    };
    match drawn.any(|cell| !cell.is_target()) {
        true => format!("{device}{light} not (only) the device, see the table"),
        false => String::new(),
    }
}

/// The median of a cell, or the reason why it has none.
fn value(analysis: &Analysis, cell: &CellAnalysis) -> String {
    let reason = || match (cell.n, analysis.response.requests_min()) {
        (1.., _) if !analysis.has_response(cell) => "no such requests".to_owned(),
        (0, _) => "no trial".to_owned(),
        (_, 0 | 1) => "no value".to_owned(),
        _ => "too few requests".to_owned(),
    };
    let median = cell.response.map(|response| response.median);
    median.map_or_else(reason, |median| bare(analysis.response, median))
}

/// A bar from zero, of at most `width` columns; on a log scale, which has no zero, a dot at the end of a dotted line.
fn bar(cell: &CellAnalysis, scale: Scale, width: usize, ascii: bool) -> String {
    let Some(response) = cell.response else {
        return String::new();
    };
    let share = scale.share(response.median).unwrap_or(0.0).clamp(0.0, 1.0);
    let (full, light) = marks(scale, ascii);
    let mark = if cell.is_target() { full } else { light };
    if let Scale::Log { .. } = scale {
        let place = (share * (width - 1) as f64).round() as usize;
        let guide = if ascii { "." } else { "·" };
        return format!("{}{mark}", guide.repeat(place));
    }
    let eighths = (share * (width * 8) as f64).round() as usize;
    let mut bar = mark.to_string();
    if ascii || mark == light {
        return bar.repeat(eighths.div_ceil(8));
    }
    bar = bar.repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
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
