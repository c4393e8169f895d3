//! p-values adjusted for many tests at once.

/// Holm's step-down adjustment: below `alpha` it holds the chance of any false finding in the
/// family to `alpha`, however the tests depend on each other.
///
/// With `p_(1) <= ... <= p_(m)`, `adjusted_(i) = min(1, max over j <= i of (m - j + 1) p_(j))`.
/// Source: Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist.
/// 6 (1979). Answers in the order given; an empty family has an empty answer. `None` when a p-value
/// is not between 0 and 1.
pub fn holm(p: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p)?;
    let mut adjusted = vec![0.0; p.len()];
    let mut greatest: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        greatest = greatest.max((p.len() - rank) as f64 * p[i]).min(1.0);
        adjusted[i] = greatest;
    }
    Some(adjusted)
}

/// The indices of the p-values in ascending order.
fn ascending(p: &[f64]) -> Option<Vec<usize>> {
    if p.iter().any(|p| !(0.0..=1.0).contains(p)) {
        return None;
    }
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    Some(order)
}
