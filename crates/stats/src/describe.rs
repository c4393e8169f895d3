//! Location and spread of one sample.

/// The data in ascending order; `None` when it is empty or holds a value that is not finite.
pub(crate) fn sorted(data: &[f64]) -> Option<Vec<f64>> {
    if data.is_empty() || data.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let mut sorted = data.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

/// The median: the middle order statistic, or the midpoint of the two middle ones.
///
/// `x_((n+1)/2)` for odd `n`, `(x_(n/2) + x_(n/2+1)) / 2` for even `n`.
/// `None` when the data is empty or holds a value that is not finite.
pub fn median(data: &[f64]) -> Option<f64> {
    sorted(data).map(|x| median_of_sorted(&x))
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

fn quantile_of_sorted(x: &[f64], p: f64) -> f64 {
    let h = (x.len() - 1) as f64 * p;
    let below = h as usize;
    let above = (below + 1).min(x.len() - 1);
    let share = h - below as f64;
    let gap = x[above] - x[below];
    if gap.is_finite() {
        x[below] + share * gap
    } else {
        // The two values are so far apart that their difference overflows.
        x[below] * (1.0 - share) + x[above] * share
    }
}

/// The arithmetic mean, `sum(x) / n`.
///
/// `None` when the data is empty, holds a value that is not finite, or its sum overflows.
pub fn mean(data: &[f64]) -> Option<f64> {
    // Summed in ascending order, so that the order of the trials cannot change the last digit.
    let sorted = sorted(data)?;
    let rough = sorted.iter().sum::<f64>() / sorted.len() as f64;
    // A second pass removes most of the rounding of the first.
    let rest = sorted.iter().map(|x| x - rough).sum::<f64>() / sorted.len() as f64;
    Some(rough + rest).filter(|m| m.is_finite())
}

/// The standard deviation of the sample, with `n - 1`.
///
/// `sqrt((sum(d^2) - sum(d)^2 / n) / (n - 1))` with `d = x - mean`: the corrected two-pass
/// algorithm of Chan, Golub and LeVeque, "Algorithms for computing the sample variance",
/// The American Statistician 37 (1983). `None` below two values, when a value is not finite,
/// or when a square overflows.
pub fn sd(data: &[f64]) -> Option<f64> {
    if data.len() < 2 {
        return None;
    }
    let sorted = sorted(data)?;
    let mean = mean(data)?;
    let n = sorted.len() as f64;
    let sum: f64 = sorted.iter().map(|x| x - mean).sum();
    let squares: f64 = sorted.iter().map(|x| (x - mean) * (x - mean)).sum();
    let variance = (squares - sum * sum / n).max(0.0) / (n - 1.0);
    Some(variance.sqrt()).filter(|s| s.is_finite())
}
