//! Autocovariance sums for many lags at once.

use std::f64::consts::PI;

/// Length of the transform of a block and the values after it: a power of two.
const BLOCK: usize = 8192;

/// The sum of `values[i] * values[i + lag]` over all pairs, for each lag below `lags` (at most half of a block).
///
/// The products of a block with the values after it are a cyclic correlation of [`BLOCK`] values, which is a product of their
/// Fourier transforms. The cost per value grows with the logarithm of the block, not with the number of lags.
pub(crate) fn lagged_products(values: &[f64], lags: usize) -> Vec<f64> {
    let lags = lags.min(BLOCK / 2);
    let step = BLOCK - lags;
    let turns = turns();
    let mut sum = vec![(0.0, 0.0); BLOCK];
    for start in (0..values.len()).step_by(step) {
        let rest = &values[start..];
        let padded = |length: usize| -> Vec<(f64, f64)> {
            let own = rest.iter().take(length).map(|value| (*value, 0.0));
            own.chain(std::iter::repeat((0.0, 0.0)))
                .take(BLOCK)
                .collect()
        };
        let (mut block, mut met) = (padded(step), padded(BLOCK));
        transform(&mut block, &turns);
        transform(&mut met, &turns);
        for ((a, b), sum) in block.iter().zip(&met).zip(&mut sum) {
            // The first factor is conjugated.
            sum.0 += a.0 * b.0 + a.1 * b.1;
            sum.1 += a.0 * b.1 - a.1 * b.0;
        }
    }
    // The inverse is the conjugate of the transform of the conjugate; the result is real.
    sum.iter_mut().for_each(|value| value.1 = -value.1);
    transform(&mut sum, &turns);
    let products = sum.iter().take(lags);
    products.map(|value| value.0 / BLOCK as f64).collect()
}

/// The roots of unity of a block.
fn turns() -> Vec<(f64, f64)> {
    let turn = |k: usize| {
        let angle = -2.0 * PI * k as f64 / BLOCK as f64;
        (angle.cos(), angle.sin())
    };
    (0..BLOCK / 2).map(turn).collect()
}

/// The Fourier transform of a block in place (Cooley and Tukey, radix 2).
fn transform(values: &mut [(f64, f64)], turns: &[(f64, f64)]) {
    let bits = BLOCK.trailing_zeros();
    for i in 0..BLOCK {
        let j = i.reverse_bits() >> (usize::BITS - bits);
        if i < j {
            values.swap(i, j);
        }
    }
    let mut half = 1;
    while half < BLOCK {
        let stride = BLOCK / (2 * half);
        for pair in values.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            let turns = turns.iter().step_by(stride);
            for ((a, b), turn) in low.iter_mut().zip(high).zip(turns) {
                let turned = (b.0 * turn.0 - b.1 * turn.1, b.0 * turn.1 + b.1 * turn.0);
                *b = (a.0 - turned.0, a.1 - turned.1);
                *a = (a.0 + turned.0, a.1 + turned.1);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_the_pairs() {
        let value = |i: usize| ((i * 7919) % 1009) as f64 / 1009.0 - 0.4;
        for length in [1, 7, 2000, 6191, 6192, 8192, 20_000] {
            let values: Vec<f64> = (0..length).map(value).collect();
            let found = lagged_products(&values, 2001);
            assert_eq!(found.len(), 2001);
            for lag in [0, 1, 2, 17, 999, 2000] {
                let later = values.iter().skip(lag);
                let sum: f64 = values.iter().zip(later).map(|(a, b)| a * b).sum();
                assert!((found[lag] - sum).abs() < 1e-8, "{length}, {lag}");
            }
        }
    }
}
