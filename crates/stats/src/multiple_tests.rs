//! Many tests at once: p-values adjusted for the size of the family.

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

/// Holm's adjustment with weights: below `alpha` it holds the chance of any false finding to `alpha`, however the tests
/// depend on each other, and spends on each test a share of `alpha` in proportion to its weight.
///
/// With `q_i = p_i / w_i` and `q_(1) <= ... <= q_(m)`, `adjusted_(i) = min(1, max over j <= i of (w_(j) + ... + w_(m)) q_(j))`.
/// Equal weights give [`holm`]. Source: Holm, Scand. J. Statist. 6 (1979) 65-70, section 4; Benjamini and Hochberg,
/// "Multiple hypotheses testing with weights", Scand. J. Statist. 24 (1997) 407-418.
///
/// Answers in the order given. `None` when the slices differ in length, when a p-value is not between 0 and 1, or when a
/// weight is not finite and positive.
pub fn holm_weighted(p: &[f64], weights: &[f64]) -> Option<Vec<f64>> {
    let possible = |w: &f64| *w > 0.0 && w.is_finite();
    if p.len() != weights.len() || !weights.iter().all(possible) {
        return None;
    }
    ascending(p)?;
    let per_weight = |i: usize| p[i] / weights[i];
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| per_weight(i).total_cmp(&per_weight(j)));
    let mut left: f64 = weights.iter().sum();
    let mut adjusted = vec![0.0; p.len()];
    let mut greatest: f64 = 0.0;
    for i in order {
        greatest = greatest.max(left * per_weight(i)).min(1.0);
        adjusted[i] = greatest;
        left -= weights[i];
    }
    Some(adjusted)
}

/// The indexes of the p-values, the least first.
fn ascending(p: &[f64]) -> Option<Vec<usize>> {
    if p.iter().any(|p| !(0.0..=1.0).contains(p)) {
        return None;
    }
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    Some(order)
}
