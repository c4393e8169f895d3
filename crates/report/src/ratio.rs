//! Ratios, shares of a ceiling and numbers of cells in words.

use crate::layout::{Column, none};
use iolab_analysis::analysis::{DoubtKind, Efficiency};
use iolab_analysis::claim::Estimate;
use iolab_analysis::doubt::RatioBound;
use iolab_figure::labels;
use iolab_workload::units::{counted, format_percent, significant};

/// Words for a ratio above 1, and for one below.
type Directions = (&'static str, &'static str);

/// Directions of a quantity.
const AMOUNTS: Directions = ("higher", "lower");

/// Directions of a time.
const TIMES: Directions = ("slower", "faster");

/// Factor of two values that are alike in the digits shown.
const AS_HIGH: &str = "1.00×";

/// A ratio with the interval that decides, if it has one.
#[derive(Debug, Clone, Copy)]
pub struct RatioShown {
    ratio: f64,
    interval: Option<(f64, f64)>,
    bound: Option<RatioBound>,
    words: Directions,
    /// Whether it is not the ratio of the two numbers next to it, but was estimated within blocks.
    is_within_blocks: bool,
}

impl RatioShown {
    /// The ratio as one of times: `1.20× slower (1.15 to 1.25×)`.
    pub(crate) fn of_times(self) -> Self {
        Self {
            words: TIMES,
            ..self
        }
    }

    /// The bound on the true ratio and its number; `None` if the ratio is more than a bound.
    pub(crate) fn bound(self) -> Option<(RatioBound, f64)> {
        let bound = self.bound?;
        Some((bound, bound.of(self.ratio, self.interval)))
    }

    /// The number that is shown.
    fn shown(self) -> f64 {
        self.bound().map_or(self.ratio, |(_, ratio)| ratio)
    }

    /// The ratio of two medians if the interval of the estimate holds it; without an interval, if both have one direction.
    /// Otherwise the estimate, named as such where the digits differ.
    pub fn beside(estimate: &Estimate, (base, other): (f64, f64)) -> Self {
        let (ratio, shown) = (other / base, of(estimate));
        let is_held = match estimate.interval {
            Some((low, high)) => (low..=high).contains(&ratio),
            None => (ratio > 1.0) == (estimate.ratio > 1.0),
        };
        match ratio.is_finite() && ratio > 0.0 && is_held {
            true => Self { ratio, ..shown },
            false => Self {
                is_within_blocks: significant(ratio) != significant(estimate.ratio),
                ..shown
            },
        }
    }

    /// `27.5× higher`, `34.5× lower within blocks`, or `at most 1.20× higher` for a bound: the larger number first.
    /// `1.00×` without a direction, unless the interval shows one.
    pub fn factor(self) -> String {
        let words = self.words;
        let holds_one = |(low, high): (f64, f64)| low <= 1.0 && high >= 1.0;
        let estimator = if self.is_within_blocks {
            " within blocks"
        } else {
            ""
        };
        match self.bound() {
            None if !is_one(self.ratio) => one_way(self.ratio, words) + estimator,
            None if self.interval.is_none_or(holds_one) => AS_HIGH.to_owned(),
            None if self.ratio < 1.0 => format!("less than 1.01× {}{estimator}", words.1),
            None => format!("less than 1.01× {}{estimator}", words.0),
            Some((bound, ratio)) => {
                // A bound of at most a tenth means at least ten times lower.
                let bound = match (bound, ratio < 1.0) {
                    (RatioBound::AtMost, true) => RatioBound::AtLeast,
                    (RatioBound::AtLeast, true) => RatioBound::AtMost,
                    (bound, false) => bound,
                };
                format!("{} {}", labels::bound(bound), one_way(ratio, words))
            }
        }
    }

    /// `27.5× higher than`, or `as high as` where the digits of the factor show none.
    pub fn than(self) -> String {
        match self.factor() {
            none if none == AS_HIGH => "as high as".to_owned(),
            factor => format!("{factor} than"),
        }
    }

    /// `27.4 to 27.6×` in the direction of the ratio, or `1.05× lower to 1.10× higher` if the interval holds 1.
    /// `None` for a bound, and if both ends have the digits of the ratio.
    pub(crate) fn range(self) -> Option<String> {
        let words = self.words;
        let (low, high) = self.interval()?;
        if low < 1.0 && high > 1.0 {
            return Some(format!(
                "{} to {}",
                one_way(low, words),
                one_way(high, words)
            ));
        }
        let (near, far) = match self.ratio < 1.0 {
            true => (1.0 / high, 1.0 / low),
            false => (low, high),
        };
        let end = |value: f64| match significant(value) {
            hidden if value > 1.0 && hidden == "1.00" => "above 1".to_owned(),
            text => text,
        };
        let ratio = significant(self.ratio.max(1.0 / self.ratio));
        let ends = (end(near), end(far));
        let is_one = significant(near) == significant(far) && significant(far) == "1.00";
        let differs = ends.0 != ratio || ends.1 != ratio;
        (differs && !is_one).then(|| format!("{} to {}×", ends.0, ends.1))
    }

    /// The interval, unless the ratio is a bound.
    pub(crate) fn interval(self) -> Option<(f64, f64)> {
        self.interval.filter(|_| self.bound.is_none())
    }

    /// `27.5× higher (27.4 to 27.6×)`.
    pub(crate) fn in_words(self) -> String {
        let factor = self.factor();
        match self.range() {
            None => factor,
            Some(range) => format!("{factor} ({range})"),
        }
    }

    /// Distance from 1, on the logarithm.
    pub(crate) fn size(self) -> f64 {
        self.shown().ln().abs()
    }
}

impl From<(f64, Option<(f64, f64)>)> for RatioShown {
    fn from((ratio, interval): (f64, Option<(f64, f64)>)) -> Self {
        Self {
            ratio,
            interval,
            bound: None,
            words: AMOUNTS,
            is_within_blocks: false,
        }
    }
}

/// The ratio of an estimate.
pub(crate) fn of(estimate: &Estimate) -> RatioShown {
    RatioShown {
        bound: estimate.bound,
        ..RatioShown::from((estimate.ratio, estimate.interval))
    }
}

/// The ratio of two median times next to these, with its interval: `1.10× slower than BASE (1.08 to 1.12×)`.
pub fn in_time_than(base: &str, estimate: &Estimate, medians: (f64, f64)) -> String {
    let ratio = RatioShown::beside(estimate, medians).of_times();
    let range = ratio.range();
    let range = range.map_or_else(String::new, |range| format!(" ({range})"));
    format!("{} than {base}{range}", ratio.factor())
}

/// The interval of a ratio of times: `1.02× faster to 1.05× slower`; `None` where it adds nothing.
pub fn range_in_time(estimate: &Estimate) -> Option<String> {
    of(estimate).of_times().range()
}

/// Whether a ratio is 1 in the digits that are shown.
fn is_one(ratio: f64) -> bool {
    significant(ratio.max(1.0 / ratio)) == "1.00"
}

/// `27.5× higher`, `34.5× lower`, `1.00×`.
fn one_way(ratio: f64, (up, down): Directions) -> String {
    match ratio < 1.0 {
        _ if is_one(ratio) => "1.00×".to_owned(),
        true => format!("{}× {down}", significant(1.0 / ratio)),
        false => format!("{}× {up}", significant(ratio)),
    }
}

/// A ratio with three decimals: its distance from 1 matters.
pub fn factor(ratio: f64) -> String {
    if (0.01..100.0).contains(&ratio) {
        format!("{ratio:.3}")
    } else {
        significant(ratio)
    }
}

/// Columns of ratios and of their intervals. Of a bound only its number is shown: `at most 0.00116`.
pub(crate) fn columns(heading: &str, all: &[Option<Estimate>]) -> [Column; 2] {
    let shown = |one: &Estimate| match of(one).bound() {
        None => factor(one.ratio),
        Some((bound, ratio)) => format!("{} {}", labels::bound(bound), factor(ratio)),
    };
    let range = |one: &Estimate| {
        let (low, high) = one.interval.filter(|_| one.bound.is_none())?;
        Some(format!("{} to {}", factor(low), factor(high)))
    };
    let ratios = all.iter().map(|one| one.as_ref().map_or_else(none, shown));
    let ranges = all
        .iter()
        .map(|one| one.as_ref().and_then(range).unwrap_or_else(none));
    [
        Column::new(heading, 0, ratios),
        Column::new("95 % interval", 0, ranges),
    ]
}

/// `510 MB/s stated`.
pub fn ceiling(of: &Efficiency) -> String {
    let unit = if of.is_iops { "IOPS" } else { "MB/s" };
    format!("{} {unit} {}", significant(of.ceiling), of.source)
}

/// `87 %`; above 100 % with the reason.
pub fn share(of: &Efficiency) -> String {
    let share = format_percent(of.share);
    match of.cause {
        _ if of.share <= 1.0 => share,
        cause => format!("{share} ({})", cause.unwrap_or(DoubtKind::ExceedsCeiling)),
    }
}

/// A number of cells: `1 cell`, `3 cells`.
pub fn cells(n: usize) -> String {
    counted(n, "cell")
}

/// `both cells`, `all 3 cells`: of several.
pub(crate) fn all_cells(n: usize) -> String {
    match n {
        2 => "both cells".to_owned(),
        n => format!("all {n} cells"),
    }
}

/// Some of all cells: ` in both cells`, ` in 3 of 8 cells`; empty for the only one.
pub(crate) fn in_cells(n: usize, all: usize) -> String {
    match all {
        1 => String::new(),
        all if n == all => format!(" in {}", all_cells(all)),
        all => format!(" in {n} of {all} cells"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(ratio: f64, low: f64, high: f64) -> String {
        RatioShown::from((ratio, Some((low, high)))).in_words()
    }

    #[test]
    fn larger_number_comes_first_with_its_interval() {
        let of = [
            shown(4.23, 4.2103, 4.2399),
            shown(0.029, 0.0285, 0.0295),
            shown(0.98, 0.97, 0.99963),
            shown(1.02, 1.000004, 1.05),
            shown(1.02, 0.95, 1.1),
            shown(11.2, 11.196, 11.204),
            RatioShown::from((0.01, None)).in_words(),
            RatioShown::from((34.2, None)).in_words(),
            shown(1.004, 0.95, 1.1),
            shown(0.997, 0.996, 0.999),
            RatioShown::from((1.0, None)).in_words(),
            RatioShown::from((1.2, Some((0.999, 1.5))))
                .of_times()
                .in_words(),
        ];
        insta::assert_snapshot!(of.join("\n"), @r"
        4.23× higher (4.21 to 4.24×)
        34.5× lower (33.9 to 35.1×)
        1.02× lower (above 1 to 1.03×)
        1.02× higher (above 1 to 1.05×)
        1.02× higher (1.05× lower to 1.10× higher)
        11.2× higher
        100× lower
        34.2× higher
        1.00× (1.05× lower to 1.10× higher)
        less than 1.01× lower
        1.00×
        1.20× slower (1.00× to 1.50× slower)
        ");
    }

    /// An interval is never made wider to hold the ratio of two medians.
    #[test]
    fn ratio_beside_two_numbers_names_its_estimator() {
        let of = |ratio, low, high, medians| {
            let estimate = Estimate::of(ratio, Some((low, high)));
            RatioShown::beside(&estimate, medians).in_words()
        };
        let told = [
            of(1.25, 1.2, 1.3, (500.0, 640.0)),
            of(1.25, 1.2, 1.3, (500.0, 700.0)),
            of(1.03, 1.01, 1.05, (500.0, 490.0)),
            of(0.5, 0.49, 0.51, (500.0, 240.0)),
            of(1.25, 1.2499, 1.2501, (500.0, 625.2)),
            of(0.5, 0.49, 0.51, (0.0, 240.0)),
        ];
        insta::assert_snapshot!(told.join("\n"), @r"
        1.28× higher (1.20 to 1.30×)
        1.25× higher within blocks (1.20 to 1.30×)
        1.03× higher within blocks (1.01 to 1.05×)
        2.00× lower within blocks (1.96 to 2.04×)
        1.25× higher
        2.00× lower within blocks (1.96 to 2.04×)
        ");
    }

    #[test]
    fn a_bound_has_no_interval() {
        let of = |bound, ratio: f64| {
            let shown = RatioShown::from((ratio, Some((0.9 * ratio, 1.1 * ratio))));
            let bound = Some(bound);
            RatioShown { bound, ..shown }.in_words()
        };
        let told = [
            of(RatioBound::AtMost, 0.001),
            of(RatioBound::AtMost, 0.5),
            of(RatioBound::AtLeast, 1000.0),
            of(RatioBound::AtLeast, 1.5),
        ];
        insta::assert_snapshot!(told.join("\n"), @r"
        at least 909× lower
        at least 1.82× lower
        at least 900× higher
        at least 1.35× higher
        ");
    }
}
