//! Location and spread of one sample.
//!
//! Each measure comes twice: for data in any order, and for data that is sorted already, so
//! that a summary sorts once.

/// The data in ascending order; `None` when it is empty or contains a value that is not finite.
pub(crate) fn sorted(data: &[f64]) -> Option<Vec<f64>> {
    if data.is_empty() || data.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let mut sorted = data.to_vec();
    // An unstable sort suffices, since values that compare equal have equal bits.
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

/// The median: the middle order statistic, or the midpoint of the two middle ones.
///
/// `x_((n+1)/2)` for odd `n`, `(x_(n/2) + x_(n/2+1)) / 2` for even `n`.
/// `None` when the data is empty or holds a value that is not finite.
pub fn median(data: &[f64]) -> Option<f64> {
    if data.is_empty() || data.iter().any(|x| !x.is_finite()) {
        return None;
    }
    Some(median_of(&mut data.to_vec()))
}

/// Median of non-empty finite data in any order. By selection: sorting costs several times as much.
fn median_of(data: &mut [f64]) -> f64 {
    let is_odd = data.len() % 2 == 1;
    let middle = data.len() / 2;
    let (smaller, middle, _) = data.select_nth_unstable_by(middle, f64::total_cmp);
    match smaller.iter().copied().max_by(f64::total_cmp) {
        Some(below) if !is_odd => f64::midpoint(below, *middle),
        _ => *middle,
    }
}

pub(crate) fn median_of_sorted(x: &[f64]) -> f64 {
    let middle = x.len() / 2;
    if x.len() % 2 == 1 {
        x[middle]
    } else {
        f64::midpoint(x[middle - 1], x[middle])
    }
}

/// The first and the third quartile by linear interpolation between order statistics.
///
/// With `h = (n - 1) p`, `j = floor(h)` and 0-based order statistics, the quantile is
/// `x_j + (h - j) (x_(j+1) - x_j)`: definition 7 of Hyndman and Fan, "Sample quantiles in
/// statistical packages", The American Statistician 50 (1996), the default of R and NumPy.
/// `None` when the data is empty or holds a value that is not finite; one value is both quartiles.
pub fn quartiles(data: &[f64]) -> Option<(f64, f64)> {
    sorted(data).map(|x| quartiles_of_sorted(&x))
}

pub(crate) fn quartiles_of_sorted(x: &[f64]) -> (f64, f64) {
    (quantile_of_sorted(x, 0.25), quantile_of_sorted(x, 0.75))
}

pub(crate) fn quantile_of_sorted(x: &[f64], p: f64) -> f64 {
    let h = (x.len() - 1) as f64 * p;
    let below = h as usize;
    let above = (below + 1).min(x.len() - 1);
    let share = h - below as f64;
    let gap = x[above] - x[below];
    if gap.is_finite() {
        x[below] + share * gap
    } else {
        // The values are so far apart that their difference overflows.
        x[below] * (1.0 - share) + x[above] * share
    }
}

/// The median absolute deviation: the median of `|x - median(x)|`.
///
/// It is raw: multiply by 1.4826 to estimate the standard deviation of normal data. Half of
/// the data may be wild before it is. Source: Hampel, "The influence curve and its role in robust
/// estimation", J. Amer. Statist. Assoc. 69 (1974). `None` when the data is empty or
/// holds a value that is not finite.
pub fn mad(data: &[f64]) -> Option<f64> {
    sorted(data).map(|x| mad_of_sorted(&x))
}

/// Median absolute deviation of sorted data; always finite, because at most half of the deviations overflow.
pub(crate) fn mad_of_sorted(x: &[f64]) -> f64 {
    let centre = median_of_sorted(x);
    let mut deviations: Vec<f64> = x.iter().map(|v| (v - centre).abs()).collect();
    median_of(&mut deviations)
}

/// The arithmetic mean, `sum(x) / n`.
///
/// `None` when the data is empty, holds a value that is not finite, or its sum overflows.
pub fn mean(data: &[f64]) -> Option<f64> {
    mean_of_sorted(&sorted(data)?)
}

/// Mean of sorted data. Sums in ascending order, so that the order of the trials does not affect rounding.
pub(crate) fn mean_of_sorted(x: &[f64]) -> Option<f64> {
    let n = x.len() as f64;
    let rough = x.iter().sum::<f64>() / n;
    // A second pass removes most of the rounding error.
    let rest = x.iter().map(|v| v - rough).sum::<f64>() / n;
    let mean = Some(rough + rest).filter(|m| m.is_finite())?;
    // Keeps the mean of equal values equal to them despite rounding.
    Some(mean.clamp(x[0], x[x.len() - 1]))
}

/// The standard deviation of the sample, with `n - 1`.
///
/// `sqrt((sum(d^2) - sum(d)^2 / n) / (n - 1))` with `d = x - mean`: the corrected two-pass
/// algorithm of Chan, Golub and LeVeque, "Algorithms for computing the sample variance",
/// The American Statistician 37 (1983). `None` below two values, when a value is not finite,
/// or when the sum or the result overflows.
pub fn sd(data: &[f64]) -> Option<f64> {
    sd_of_sorted(&sorted(data)?)
}

pub(crate) fn sd_of_sorted(x: &[f64]) -> Option<f64> {
    if x.len() < 2 {
        return None;
    }
    let mean = mean_of_sorted(x)?;
    let n = x.len() as f64;
    // Deviations relative to the largest: their squares neither overflow nor underflow.
    let greatest = (mean - x[0]).max(x[x.len() - 1] - mean);
    if greatest == 0.0 {
        return Some(0.0);
    }
    let deviations = || x.iter().map(|v| (v - mean) / greatest);
    let sum: f64 = deviations().sum();
    let squares: f64 = deviations().map(|d| d * d).sum();
    let variance = (squares - sum * sum / n).max(0.0) / (n - 1.0);
    Some(greatest * variance.sqrt()).filter(|s| s.is_finite())
}
