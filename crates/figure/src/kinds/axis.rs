//! Axes that several kinds of figures share.

use std::collections::HashMap;

use iolab_analysis::analysis::Response;

use super::super::labels;
use super::super::model::{Axis, Scale, Ticks, spans_decades};
use super::super::options::Options;
use iolab_workload::escape_control::escape_control;
use iolab_workload::settings::ValueKind;

/// Counts with a range of at least this factor are on a log axis.
const LOG_COUNTS: f64 = 8.0;

/// Number of counts up to which each has a tick, as the beginning has.
const FEW_COUNTS: usize = 4;

/// An axis for a factor, with the position of each level.
#[derive(Debug, Clone)]
pub(super) struct FactorAxis<'a> {
    pub(super) axis: Axis,
    places: HashMap<&'a str, f64>,
    /// Whether the levels are names without an order.
    pub(super) is_names: bool,
}

impl FactorAxis<'_> {
    /// The position of a level.
    pub(super) fn place(&self, level: &str) -> f64 {
        self.places.get(level).copied().unwrap_or(0.0)
    }
}

/// The axis along a factor with these levels; without one, an axis with a single position.
pub(super) fn along<'a>(factor: Option<(&str, Vec<&'a str>)>, options: &Options) -> FactorAxis<'a> {
    let (name, mut levels) = factor.unwrap_or(("", vec![""]));
    let position = |level: &str| labels::position(name, level);
    let places: Option<Vec<f64>> = levels.iter().map(|level| position(level)).collect();
    let Some(mut places) = places else {
        let label = labels::capital(&labels::noun(name));
        let written = |level: &str| escape_control(level).into_owned();
        return names(levels, written, label, true);
    };
    let least = places.iter().copied().fold(f64::INFINITY, f64::min);
    let most = places.iter().copied().fold(0.0, f64::max);
    let kind = labels::number_kind(name);
    let suits_log = kind == Some(ValueKind::Size) || most >= LOG_COUNTS * least;
    if least <= 0.0 && suits_log && options.log_x != Some(false) && most > 0.0 {
        // Zero has no position on a log axis: all levels are one step apart, in ascending order.
        let place = |level: &str| position(level).unwrap_or(0.0);
        levels.sort_by(|a, b| place(a).total_cmp(&place(b)));
        let written = |level: &str| match kind {
            Some(ValueKind::Size) => labels::size(place(level)),
            _ => level.to_owned(),
        };
        return names(levels, written, labels::axis(name), false);
    }
    let is_log = least > 0.0 && options.log_x.unwrap_or(suits_log);
    let scale = Scale::either(is_log, &places);
    let all = levels.into_iter().zip(places.iter().copied()).collect();
    let ticks = match kind {
        Some(ValueKind::Size) => Ticks::Size,
        Some(ValueKind::Time) => Ticks::Time,
        _ => {
            places.sort_by(f64::total_cmp);
            places.dedup();
            Ticks::Levels(places)
        }
    };
    FactorAxis {
        axis: Axis::new(labels::axis(name), scale, ticks),
        places: all,
        is_names: false,
    }
}

/// Levels one step apart, in the order given.
pub(super) fn names<'a>(
    levels: Vec<&'a str>,
    written: impl Fn(&str) -> String,
    label: String,
    is_names: bool,
) -> FactorAxis<'a> {
    let places: Vec<(&str, f64)> = levels.into_iter().zip((0..).map(f64::from)).collect();
    let mut texts: Vec<String> = places.iter().map(|(level, _)| written(level)).collect();
    labels::leave_out_common(&mut texts);
    let ticks = places.iter().map(|(_, place)| *place).zip(texts);
    let ticks = Ticks::Named(ticks.collect());
    FactorAxis {
        axis: Axis::new(label, steps(places.len() as f64), ticks),
        places: places.into_iter().collect(),
        is_names,
    }
}

/// The axis of a quantity for all values, on the requested or a suitable scale.
pub fn of_quantity(quantity: Response, values: &[f64], from_zero: bool, options: &Options) -> Axis {
    let noun = labels::of_response(quantity);
    named((quantity, &noun), values, from_zero, options.log_y)
}

/// An axis with a longer name of the quantity, `median latency of reads`; on the requested or a suitable scale.
pub(super) fn named(
    (quantity, noun): (Response, &str),
    values: &[f64],
    from_zero: bool,
    log: Option<bool>,
) -> Axis {
    let positive = values.iter().any(|value| *value > 0.0);
    let is_log = positive && log.unwrap_or_else(|| spans_decades(values, quantity));
    let scale = match is_log {
        true => Scale::log(values.iter().copied()),
        false => Scale::linear(values.iter().copied(), from_zero),
    };
    let noun = labels::capital(noun);
    let (label, ticks) = match quantity {
        // The noun says the unit.
        Response::Iops => (noun, Ticks::Number),
        rate if !rate.is_time() => (format!("{noun} ({})", rate.unit()), Ticks::Number),
        _ if is_log => (noun, Ticks::Time),
        _ => {
            let (factor, unit) = labels::time_unit(scale.ends().1);
            (format!("{noun} ({unit})"), Ticks::TimeIn { factor })
        }
    };
    Axis::new(label, scale, ticks)
}

/// A scale for this many steps.
pub(super) fn steps(count: f64) -> Scale {
    let (low, high) = (-0.5, count - 0.5);
    Scale::Linear { low, high }
}

/// An axis of counts from zero: trials, rounds.
pub(super) fn counts(label: &str, most: f64) -> Axis {
    // Round values between a few numbers would be fractions.
    let ticks = match most as usize {
        few @ 1..=FEW_COUNTS => Ticks::Levels((0..=few).map(|one| one as f64).collect()),
        _ => Ticks::Number,
    };
    Axis::new(label, Scale::linear([0.0, most].into_iter(), true), ticks)
}

/// An axis of times from zero to `most` ns.
pub fn times(name: &str, most: f64) -> Axis {
    let (factor, unit) = labels::time_unit(most);
    let scale = Scale::linear([0.0, most].into_iter(), true);
    Axis::new(format!("{name} ({unit})"), scale, Ticks::TimeIn { factor })
}

/// An axis of ratios to a value of the same series; logarithmic beyond ten times that value.
pub(super) fn of_ratio(label: String, values: &[f64], shown: &[f64], options: &Options) -> Axis {
    let is_far = || values.iter().any(|value| *value > 10.0);
    let is_log = options.log_y.unwrap_or_else(is_far);
    Axis::new(label, Scale::either(is_log, shown), Ticks::Number)
}
