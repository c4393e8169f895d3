use iolab_stats::holm;
use proptest::prelude::*;

use super::data::close;

/// P-values with a tie, and in no order; `reference_family.py` adjusts them with statsmodels.
const P: [f64; 8] = [0.04, 0.001, 0.3, 0.011, 0.02, 0.02, 1.0, 0.005];

#[test]
fn holm_as_statsmodels() {
    let expected = [0.12, 0.008, 0.6, 0.066, 0.1, 0.1, 1.0, 0.035];
    for (ours, reference) in holm(&P).unwrap().into_iter().zip(expected) {
        close(ours, reference);
    }
}

#[test]
fn what_is_no_probability_is_refused() {
    for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(holm(&[0.1, bad]), None);
    }
}

proptest! {
    #[test]
    fn adjusting_keeps_the_order_and_never_lowers(p in prop::collection::vec(0.0..=1.0_f64, 0..40)) {
        let adjusted = holm(&p).unwrap();
        for i in 0..p.len() {
            prop_assert!(p[i] <= adjusted[i] && adjusted[i] <= 1.0);
            prop_assert!(adjusted[i] <= (p.len() as f64 * p[i]).min(1.0));
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || adjusted[i] <= adjusted[j]);
            }
        }
    }
}
