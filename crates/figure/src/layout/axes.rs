//! Ticks of an axis: the values whose labels fit, and their drawing.

use super::super::model::{Axis, Scale, Ticks};
use super::super::scene::{Anchor, Paint, Text};
use super::super::{labels, text};
use super::{Canvas, Places};

/// Length of a tick, points.
pub(super) const TICK: f64 = 2.5;
/// Length of a tick without a label.
const TICK_MINOR: f64 = 1.5;
/// Space between a tick and its label.
pub(super) const GAP: f64 = 2.0;
/// Space between a horizontal axis and its labels: leaves room for the lowest label of the vertical axis.
pub(super) fn below(size: f64) -> f64 {
    (size * (text::CAP_HEIGHT / 2.0 + text::DESCENT) + 0.1).max(TICK + GAP)
}

/// Width of the lines of axes and ticks.
pub(super) const AXIS_WIDTH: f64 = 0.6;
/// Width of the lines of the grid.
const GRID_WIDTH: f64 = 0.5;
/// Most labels of an axis.
const LABELS_MAX: usize = 8;
/// Longest name as an upright label, points per point of text.
const NAME_MAX: f64 = 9.0;

/// A tick with its label.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    /// Value on the axis.
    pub(super) at: f64,
    pub(super) label: String,
}

impl Tick {
    /// Both ends of its label along a horizontal axis of this length.
    fn ends(&self, scale: Scale, length: f64, size: f64) -> (f64, f64) {
        let half = text::width(&self.label, size) / 2.0;
        let centre = scale.share(self.at).unwrap_or(0.0) * length;
        (centre - half, centre + half)
    }
}

/// The ticks of one axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct AxisTicks {
    pub(super) ticks: Vec<Tick>,
    /// Values with a short tick and no label.
    pub(super) minor: Vec<f64>,
    /// Whether the labels are rotated to read upwards, because they are too wide.
    pub(super) upwards: bool,
}

impl AxisTicks {
    /// Width of the widest label.
    pub(super) fn width(&self, size: f64) -> f64 {
        let widths = self.ticks.iter().map(|tick| text::width(&tick.label, size));
        widths.fold(0.0, f64::max)
    }

    /// Lengths by which the labels extend beyond both ends of a horizontal axis of this length.
    pub(super) fn overhangs(&self, scale: Scale, length: f64, size: f64) -> (f64, f64) {
        if self.upwards {
            return (0.0, 0.0);
        }
        let ends = self.ticks.iter().map(|tick| tick.ends(scale, length, size));
        ends.fold((0.0, 0.0), |(before, after), (start, end)| {
            (before.max(-start), after.max(end - length))
        })
    }
}

/// Ticks along a horizontal axis of `length` points. Names that do not fit side by side are rotated: all of them, or as many as fit.
pub(super) fn horizontal(axis: &Axis, length: f64, size: f64) -> AxisTicks {
    let ends = |tick: &Tick| tick.ends(axis.scale, length, size);
    let fits = |ticks: &[Tick]| {
        let ends = ticks.iter().map(ends);
        let mut pairs = ends.clone().zip(ends.skip(1));
        pairs.all(|((_, before), (after, _))| after >= before + size * 0.6)
    };
    let Ticks::Named(names) = &axis.ticks else {
        return choose(axis, fits);
    };
    let mut ticks = labelled(axis, names.iter().map(|(at, _)| *at).collect());
    let last = ticks.last().map_or(0.0, |tick| ends(tick).1);
    let upwards = !fits(&ticks) || last > length;
    if upwards {
        let (low, high) = axis.scale.ends();
        let room = length / (high - low).max(1.0);
        let every = (size * text::LINE_HEIGHT / room).ceil().max(1.0) as usize;
        let some = ticks.into_iter().step_by(every);
        let shortened = some.map(|tick| Tick {
            label: text::fitted_name(&tick.label, size, size * NAME_MAX),
            ..tick
        });
        ticks = shortened.collect();
    }
    AxisTicks {
        ticks,
        minor: Vec::new(),
        upwards,
    }
}

/// Ticks along a vertical axis of `length` points.
pub(super) fn vertical(axis: &Axis, length: f64, size: f64) -> AxisTicks {
    let place = |tick: &Tick| axis.scale.share(tick.at).unwrap_or(0.0) * length;
    choose(axis, |ticks| {
        let mut pairs = ticks.windows(2);
        pairs.all(|pair| (place(&pair[1]) - place(&pair[0])).abs() >= size * 2.0)
    })
}

/// The densest set of values whose labels fit.
fn choose(axis: &Axis, fits: impl Fn(&[Tick]) -> bool) -> AxisTicks {
    let (low, high) = axis.scale.ends();
    let sets = candidates(axis, low, high);
    let suits = |ticks: &Vec<Tick>| ticks.len() >= 2 && ticks.len() <= LABELS_MAX && fits(ticks);
    let ticks = sets
        .into_iter()
        .map(|values| labelled(axis, values))
        .find(suits)
        .or_else(|| {
            // Fewer than two round values are within: uses the ends.
            let few = labelled(axis, round_steps(low, high, 2));
            suits(&few).then_some(few)
        })
        .unwrap_or_default();
    let mut minor = minor(axis, low, high);
    minor.retain(|value| {
        let is_same = |tick: &Tick| (tick.at / value - 1.0).abs() < 1e-9;
        !ticks.iter().any(is_same)
    });
    AxisTicks {
        ticks,
        minor,
        upwards: false,
    }
}

/// Possible sets of labelled values, from dense to sparse.
fn candidates(axis: &Axis, low: f64, high: f64) -> Vec<Vec<f64>> {
    let linear = |unit: f64| {
        (1..LABELS_MAX).rev().map(move |most| {
            let steps = round_steps(low / unit, high / unit, most);
            steps.into_iter().map(|value| value * unit).collect()
        })
    };
    let log = || {
        let within = [&[1, 2, 3, 5, 7][..], &[1, 2, 5], &[1, 3]]
            .into_iter()
            .map(|digits| within_decades(low, high, digits));
        let decades = (1..8).map(|stride| decades(low, high, stride));
        within.chain(decades).chain(linear(1.0)).collect()
    };
    let doubled = || {
        [1, 2, 4, 8, 10, 20]
            .map(|stride| doublings(low, high, stride))
            .to_vec()
    };
    match (&axis.ticks, axis.scale) {
        (Ticks::Size, Scale::Log { .. }) => doubled(),
        (Ticks::Size, Scale::Linear { .. }) => {
            let power = (high - low).max(1.0).log2().floor() as i32;
            let multiples = |k: i32| {
                let step = 2f64.powi((power - k).max(0));
                let numbers = (low / step).ceil() as i64..=(high / step).floor() as i64;
                numbers.map(|i| i as f64 * step).collect()
            };
            (-1..3).rev().map(multiples).collect()
        }
        (Ticks::Levels(levels), scale) => {
            let mut sets = vec![levels.clone()];
            match scale.is_log() {
                true => sets.extend(doubled()),
                false => sets.extend(linear(1.0)),
            }
            sets
        }
        (Ticks::Quantile, _) => {
            let mut decades = decades(low, high, 1);
            // The median, after the least, which is 1.
            decades.insert(1, 2.0);
            // Every second one, where all do not fit.
            let sparse = decades.iter().copied().step_by(2).collect();
            vec![decades, sparse]
        }
        (Ticks::TimeIn { factor }, Scale::Linear { .. }) => linear(*factor).collect(),
        (_, Scale::Log { .. }) => log(),
        _ => linear(1.0).collect(),
    }
}

/// Values with a short tick.
fn minor(axis: &Axis, low: f64, high: f64) -> Vec<f64> {
    let decades = (high / low).log10();
    match (&axis.ticks, axis.scale) {
        (Ticks::Size, Scale::Log { .. }) => doublings(low, high, 1),
        (Ticks::Number | Ticks::Time, Scale::Log { .. }) if decades <= 4.0 => {
            within_decades(low, high, &[1, 2, 3, 4, 5, 6, 7, 8, 9])
        }
        _ => Vec::new(),
    }
}

fn labelled(axis: &Axis, values: Vec<f64>) -> Vec<Tick> {
    let label = |at: f64| match &axis.ticks {
        Ticks::Number | Ticks::Levels(_) => labels::number(at),
        Ticks::Size => labels::size(at),
        Ticks::Time => labels::time(at),
        Ticks::TimeIn { factor } => labels::number(at / factor),
        Ticks::Quantile => labels::quantile(at),
        Ticks::Named(names) => {
            let name = names.iter().find(|(place, _)| *place == at);
            name.map_or_else(String::new, |(_, name)| name.clone())
        }
    };
    let within = values.into_iter().filter(|at| axis.scale.holds(*at));
    let ticks = within.map(|at| Tick {
        at,
        label: label(at),
    });
    ticks.collect()
}

/// Draws the grid, the axis lines and the ticks of a panel, with labels on request.
pub(super) fn draw(canvas: &mut Canvas, places: &Places<'_>, x_labels: bool, y_labels: bool) {
    let Places {
        frame,
        panel,
        x_ticks,
        y_ticks,
    } = places;
    let to_left = |y: f64, length: f64| [(frame.left - length, y), (frame.left, y)];
    let down = |x: f64, length: f64| [(x, frame.bottom), (x, frame.bottom + length)];
    let across = x_ticks.ticks.iter();
    let across = across.filter_map(|tick| Some((places.x(tick.at)?, &*tick.label)));
    let up = y_ticks.ticks.iter();
    let up = up.filter_map(|tick| Some((places.y(tick.at)?, &*tick.label)));
    canvas.group("axes", None, Vec::new(), "");
    for (y, _) in up.clone() {
        let ends = [(frame.left, y), (frame.right, y)];
        canvas.line("", &ends, (GRID_WIDTH, ""), Paint::Grid);
        canvas.line("", &to_left(y, TICK), (AXIS_WIDTH, ""), Paint::Ink);
    }
    for (x, _) in across.clone() {
        if !matches!(panel.x.ticks, Ticks::Named(_)) {
            let ends = [(x, frame.top), (x, frame.bottom)];
            canvas.line("", &ends, (GRID_WIDTH, ""), Paint::Grid);
        }
        canvas.line("", &down(x, TICK), (AXIS_WIDTH, ""), Paint::Ink);
    }
    for y in y_ticks.minor.iter().filter_map(|value| places.y(*value)) {
        canvas.line("", &to_left(y, TICK_MINOR), (0.4, ""), Paint::Ink);
    }
    for x in x_ticks.minor.iter().filter_map(|value| places.x(*value)) {
        canvas.line("", &down(x, TICK_MINOR), (0.4, ""), Paint::Ink);
    }
    let corner = [
        (frame.left, frame.top),
        (frame.left, frame.bottom),
        (frame.right, frame.bottom),
    ];
    canvas.line("", &corner, (AXIS_WIDTH, ""), Paint::Ink);
    let size = canvas.sizes.tick;
    let cap = size * text::CAP_HEIGHT;
    for (y, label) in up.filter(|_| y_labels) {
        canvas.write(Text {
            anchor: Anchor::End,
            ..Text::at((frame.left - TICK - GAP, y + cap / 2.0), size, label)
        });
    }
    let top = frame.bottom + below(size);
    for (x, label) in across.filter(|_| x_labels) {
        let (at, anchor) = match x_ticks.upwards {
            true => ((x + cap / 2.0, top), Anchor::End),
            false => ((x, top + cap), Anchor::Middle),
        };
        canvas.write(Text {
            anchor,
            upwards: x_ticks.upwards,
            ..Text::at(at, size, label)
        });
    }
    canvas.close();
}

/// Values that divide a linear axis into at most `most` parts, in steps of 1, 2 or 5 times a power of ten.
fn round_steps(low: f64, high: f64, most: usize) -> Vec<f64> {
    let least = (high - low) / most.max(1) as f64;
    if !(least.is_finite() && least > 0.0) {
        return Vec::new();
    }
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| clean(i as f64 * step)).collect()
}

/// Removes binary rounding from sums of decimal steps.
fn clean(value: f64) -> f64 {
    format!("{value:.12e}").parse().unwrap_or(value)
}

/// Powers of ten within an axis, every `stride`-th.
fn decades(low: f64, high: f64, stride: i32) -> Vec<f64> {
    powers(low.log10(), high.log10(), stride)
        .map(|exponent| clean(10f64.powi(exponent)))
        .collect()
}

/// Powers of two within an axis whose exponents are multiples of `stride`: with 4 they read 4K, 64K, 1M.
fn doublings(low: f64, high: f64, stride: i32) -> Vec<f64> {
    powers(low.log2(), high.log2(), stride)
        .map(|exponent| 2f64.powi(exponent))
        .collect()
}

fn powers(low: f64, high: f64, stride: i32) -> impl Iterator<Item = i32> {
    let stride = stride.max(1);
    let first = (low / f64::from(stride) - 1e-9).ceil() as i32;
    let last = (high / f64::from(stride) + 1e-9).floor() as i32;
    (first..=last).map(move |i| i * stride)
}

/// The first `digits` of each decade within an axis: with 1, 2, 5 they are 1, 2, 5, 10, 20, ...
fn within_decades(low: f64, high: f64, digits: &[u8]) -> Vec<f64> {
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    (first..=last)
        .flat_map(|exponent| {
            digits
                .iter()
                .map(move |digit| clean(f64::from(*digit) * 10f64.powi(exponent)))
        })
        .filter(|value| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn steps_are_round() {
        assert_eq!(round_steps(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(round_steps(0.0, 0.3, 3), [0.0, 0.1, 0.2, 0.3]);
        assert_eq!(round_steps(-1.0, 1.0, 2), [-1.0, 0.0, 1.0]);
        assert!(round_steps(1.0, 1.0, 5).is_empty());
    }

    #[test]
    fn powers_lie_within() {
        assert_eq!(decades(0.5, 2000.0, 1), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(doublings(4096.0, 2e6, 4), [4096.0, 65536.0, 1_048_576.0]);
        assert_eq!(
            within_decades(1.5, 60.0, &[1, 2, 5]),
            [2.0, 5.0, 10.0, 20.0, 50.0]
        );
    }

    proptest! {
        #[test]
        fn ticks_are_few_and_within(low in -1e9f64..1e9, span in 1e-6f64..1e9, most in 1usize..20) {
            let ticks = round_steps(low, low + span, most);
            prop_assert!(ticks.len() <= most + 1);
            for tick in ticks {
                prop_assert!(tick >= low - span * 1e-3 && tick <= low + span * 1.001);
            }
        }
    }
}
