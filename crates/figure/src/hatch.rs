//! Hatching: the lines that fill a rectangle, so that bars differ without colour.

use super::frame::Frame;

/// Direction of the lines in a filled rectangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hatch {
    /// No lines.
    Plain,
    /// Upwards to the right.
    Rising,
    /// Downwards to the right.
    Falling,
    /// Lines in both directions.
    Crossed,
}

/// The ends of the lines within a rectangle, `apart` points from each other along its edges.
pub(super) fn lines(frame: Frame, hatch: Hatch, apart: f64) -> Vec<[(f64, f64); 2]> {
    match hatch {
        Hatch::Plain => Vec::new(),
        Hatch::Rising => rising(frame, apart),
        Hatch::Falling => falling(frame, apart),
        Hatch::Crossed => [rising(frame, apart), falling(frame, apart)].concat(),
    }
}

/// Lines along which the sum of both coordinates is constant.
fn rising(frame: Frame, apart: f64) -> Vec<[(f64, f64); 2]> {
    let sums = multiples(frame.left + frame.top, frame.right + frame.bottom, apart);
    let line = |sum: f64| {
        let left = frame.left.max(sum - frame.bottom);
        let right = frame.right.min(sum - frame.top);
        [(left, sum - left), (right, sum - right)]
    };
    sums.map(line).collect()
}

/// Lines along which the difference of both coordinates is constant.
fn falling(frame: Frame, apart: f64) -> Vec<[(f64, f64); 2]> {
    let differences = multiples(frame.left - frame.bottom, frame.right - frame.top, apart);
    let line = |difference: f64| {
        let left = frame.left.max(difference + frame.top);
        let right = frame.right.min(difference + frame.bottom);
        [(left, left - difference), (right, right - difference)]
    };
    differences.map(line).collect()
}

/// The multiples of a step strictly between two values.
fn multiples(low: f64, high: f64, step: f64) -> impl Iterator<Item = f64> {
    let first = (low / step).floor() + 1.0;
    let count = ((high / step).ceil() - first).max(0.0) as usize;
    (0..count).map(move |number| (first + number as f64) * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_begin_and_end_at_the_edges() {
        let frame = Frame {
            left: 10.0,
            top: 3.0,
            right: 31.0,
            bottom: 60.0,
        };
        let on_edge = |(x, y): (f64, f64)| {
            let within = (10.0..=31.0).contains(&x) && (3.0..=60.0).contains(&y);
            let edge = [x - 10.0, x - 31.0, y - 3.0, y - 60.0];
            within && edge.iter().any(|distance| distance.abs() < 1e-9)
        };
        for (hatch, slopes, count) in [
            (Hatch::Plain, &[][..], 0),
            (Hatch::Rising, &[-1.0], 19),
            (Hatch::Falling, &[1.0], 19),
            (Hatch::Crossed, &[-1.0, 1.0], 38),
        ] {
            let lines = lines(frame, hatch, 4.0);
            assert_eq!(lines.len(), count, "{hatch:?}");
            for [from, to] in lines {
                assert!(on_edge(from) && on_edge(to), "{from:?} to {to:?}");
                let slope = (to.1 - from.1) / (to.0 - from.0);
                assert!(slopes.contains(&slope.round()), "{hatch:?}: {slope}");
            }
        }
    }
}
