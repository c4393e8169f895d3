//! Maps values to positions on an axis, and selects the values of ticks.

use iolab_analysis::analysis::Response;

/// Values with a higher ratio of their extremes are drawn on a log scale.
const LINEAR_MAX_RATIO: f64 = 100.0;
/// Largest ratio on a linear scale for times of whole trials, most of which are small if sizes double.
const LINEAR_MAX_RATIO_ELAPSED: f64 = 10.0;

/// Whether values are drawn on a log scale because of their range.
pub fn spans_decades(values: &[f64], response: Response) -> bool {
    let limit = match response {
        Response::Elapsed => LINEAR_MAX_RATIO_ELAPSED,
        _ => LINEAR_MAX_RATIO,
    };
    let (least, most) = least_and_most(values);
    most > limit * least
}

/// The lowest positive value, and the highest.
pub fn least_and_most(values: &[f64]) -> (f64, f64) {
    let positive = values.iter().copied().filter(|v| *v > 0.0);
    let most = values.iter().copied().fold(0.0, f64::max);
    (positive.fold(f64::INFINITY, f64::min), most)
}

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Linear.
    Linear {
        /// Low end.
        low: f64,
        /// High end.
        high: f64,
    },
    /// Logarithmic.
    Log {
        /// Low end, above 0.
        low: f64,
        /// High end.
        high: f64,
    },
}

impl Scale {
    /// Position of a value: 0 at the low end, 1 at the high end; `None` where it has none (zero on a log axis).
    pub fn share(self, value: f64) -> Option<f64> {
        let share = match self {
            Scale::Linear { low, high } => (value - low) / (high - low),
            Scale::Log { low, high } => (value / low).ln() / (high / low).ln(),
        };
        share.is_finite().then_some(share)
    }

    /// Ends of the scale.
    pub(super) fn ends(self) -> (f64, f64) {
        match self {
            Scale::Linear { low, high } | Scale::Log { low, high } => (low, high),
        }
    }

    /// Whether it is logarithmic.
    pub(super) fn is_log(self) -> bool {
        matches!(self, Scale::Log { .. })
    }

    /// Whether a value is within its range.
    pub(super) fn holds(self, value: f64) -> bool {
        self.share(value)
            .is_some_and(|share| (-1e-9..=1.0 + 1e-9).contains(&share))
    }

    /// A linear scale for values, with some space above, from zero unless requested otherwise.
    pub fn linear(values: impl Iterator<Item = f64>, from_zero: bool) -> Self {
        let (mut low, mut high) = ends(values, |v| v.is_finite()).unwrap_or((0.0, 1.0));
        if from_zero {
            low = low.min(0.0);
            high = high.max(0.0);
        }
        if low == high {
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
            (low, high) = (if from_zero { low } else { low - room }, high + room);
        }
        let room = (high - low) * 0.05;
        let below = if from_zero && low == 0.0 { 0.0 } else { room };
        Scale::Linear {
            low: low - below,
            high: high + room,
        }
    }

    /// A log scale, or a linear one that need not begin at zero.
    pub(super) fn either(is_log: bool, values: &[f64]) -> Self {
        match is_log {
            true => Self::log(values.iter().copied()),
            false => Self::linear(values.iter().copied(), false),
        }
    }

    /// A log scale for the positive values, with some space on both sides.
    pub(super) fn log(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = ends(values, |v| v.is_finite() && *v > 0.0).unwrap_or((1.0, 10.0));
        let room = (high / low).powf(0.05).max(1.15);
        Scale::Log {
            low: low / room,
            high: high * room,
        }
    }
}

fn ends(values: impl Iterator<Item = f64>, fits: impl Fn(&f64) -> bool) -> Option<(f64, f64)> {
    let fitting: Vec<f64> = values.filter(fits).collect();
    let all = || fitting.iter().copied();
    all().reduce(f64::min).zip(all().reduce(f64::max))
}

/// Values that divide a linear axis into at most `most` parts, in steps of 1, 2 or 5 times a power of ten.
pub(super) fn round_steps(low: f64, high: f64, most: usize) -> Vec<f64> {
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
pub(super) fn decades(low: f64, high: f64, stride: i32) -> Vec<f64> {
    powers(low.log10(), high.log10(), stride)
        .map(|exponent| clean(10f64.powi(exponent)))
        .collect()
}

/// Powers of two within an axis whose exponents are multiples of `stride`: with 4 they read 4K, 64K, 1M.
pub(super) fn doublings(low: f64, high: f64, stride: i32) -> Vec<f64> {
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
pub(super) fn within_decades(low: f64, high: f64, digits: &[u8]) -> Vec<f64> {
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

    #[test]
    fn zero_has_no_place_on_a_log_axis() {
        let log = Scale::log([1.0, 100.0].into_iter());
        assert_eq!(log.share(0.0), None);
        assert_eq!(log.share(-1.0), None);
        assert!(log.holds(10.0) && !log.holds(1e4));
    }

    proptest! {
        #[test]
        fn every_value_lies_on_its_axis(values in prop::collection::vec(-1e12f64..1e12, 0..20), zero: bool) {
            let scale = Scale::linear(values.iter().copied(), zero);
            let (low, high) = scale.ends();
            prop_assert!(low < high);
            for value in values {
                prop_assert!(scale.holds(value));
            }
        }

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
