use iolab_stats::{power_of_t_test, trials_for_difference, trials_for_equivalence};
use proptest::prelude::*;

use super::data::close_within;

#[test]
fn power_as_mpmath_scipy_and_statsmodels() {
    for (n, effect, alpha, power) in [
        (2, 0.5, 0.05, 0.06150785655602505),
        (2, 30.0, 0.001, 0.593654095398423),
        (3, 2.0, 0.05, 0.4626408118913069),
        (10, 0.0, 0.05, 0.05),
        (10, 1.0, 0.05, 0.5620066465861491),
        (20, 0.5, 0.01, 0.1439550834861354),
        (64, 0.5, 0.05, 0.8014595579222541),
        (64, -0.5, 0.05, 0.8014595579222541),
        (1000, 0.1, 0.001, 0.1451447099309544),
        (50000, 0.02, 0.05, 0.8853732595859977),
        (30, 3.0, 0.05, 1.0),
        (5, 0.01, 1e-6, 1.000960899642629e-6),
    ] {
        close_within(power_of_t_test(n, effect, alpha).unwrap(), power, 1e-11);
    }
}

#[test]
fn the_least_trials_for_a_difference() {
    // The first three are in Cohen, Statistical Power Analysis, 2nd ed. (1988), table 2.4.1.
    for (effect, alpha, power, n) in [
        (0.2, 0.05, 0.8, 394),
        (0.5, 0.05, 0.8, 64),
        (0.8, 0.05, 0.8, 26),
        (1.5, 0.01, 0.95, 18),
        (10.0, 0.05, 0.9, 2),
    ] {
        assert_eq!(trials_for_difference(effect, alpha, power), Some(n));
        assert_eq!(trials_for_difference(-effect, alpha, power), Some(n));
    }
}

#[test]
fn the_least_trials_for_equivalence() {
    const FIVE_PERCENT: f64 = 0.04879016416943205;
    for (margin, truth, sd, alpha, power, n) in [
        // Crossovers of 20 and 40 subjects, as PowerTOST's documentation has them.
        (
            0.22314355131420976,
            -0.05129329438755058,
            0.14003698288895208,
            0.05,
            0.8,
            10,
        ),
        (
            0.22314355131420976,
            -0.05129329438755058,
            0.2075785348260417,
            0.05,
            0.8,
            20,
        ),
        (FIVE_PERCENT, 0.0, 0.02, 0.05, 0.8, 4),
        (FIVE_PERCENT, 0.0, 0.05, 0.05, 0.9, 24),
        (FIVE_PERCENT, 0.03, 0.05, 0.05, 0.8, 89),
        (FIVE_PERCENT, -0.03, 0.05, 0.05, 0.8, 89),
        (0.009950330853168092, 0.0, 0.1, 0.05, 0.8, 1731),
    ] {
        assert_eq!(
            trials_for_equivalence(margin, truth, sd, alpha, power),
            Some(n)
        );
    }
}

#[test]
fn no_spread_needs_the_fewest_trials() {
    assert_eq!(trials_for_equivalence(0.05, 0.04, 0.0, 0.05, 0.8), Some(2));
    assert_eq!(trials_for_difference(1e6, 0.05, 0.8), Some(2));
}

#[test]
fn what_no_number_of_trials_shows() {
    assert_eq!(trials_for_difference(0.0, 0.05, 0.8), None);
    assert_eq!(trials_for_difference(1e-9, 0.05, 0.8), None);
    assert_eq!(trials_for_equivalence(0.05, 0.05, 0.01, 0.05, 0.8), None);
    assert_eq!(trials_for_equivalence(0.05, -0.06, 0.01, 0.05, 0.8), None);
    assert_eq!(trials_for_equivalence(0.05, 0.0, 1e9, 0.05, 0.8), None);
}

#[test]
fn what_cannot_be_asked() {
    assert_eq!(power_of_t_test(1, 0.5, 0.05), None);
    assert_eq!(power_of_t_test(1_000_001, 0.5, 0.05), None);
    for bad in [0.0, 1.0, -0.5, 2.0, f64::NAN, f64::INFINITY] {
        assert_eq!(power_of_t_test(10, 0.5, bad), None);
        assert_eq!(trials_for_difference(0.5, bad, 0.8), None);
        assert_eq!(trials_for_difference(0.5, 0.05, bad), None);
        assert_eq!(trials_for_equivalence(0.05, 0.0, 0.01, bad, 0.8), None);
        assert_eq!(trials_for_equivalence(0.05, 0.0, 0.01, 0.05, bad), None);
    }
    for bad in [f64::NAN, f64::INFINITY] {
        assert_eq!(power_of_t_test(10, bad, 0.05), None);
        assert_eq!(trials_for_equivalence(bad, 0.0, 0.01, 0.05, 0.8), None);
        assert_eq!(trials_for_equivalence(0.05, bad, 0.01, 0.05, 0.8), None);
        assert_eq!(trials_for_equivalence(0.05, 0.0, bad, 0.05, 0.8), None);
    }
    assert_eq!(trials_for_equivalence(0.0, 0.0, 0.01, 0.05, 0.8), None);
    assert_eq!(trials_for_equivalence(0.05, 0.0, -0.01, 0.05, 0.8), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn power_grows_with_the_trials_and_the_effect(n in 2..500_usize, effect in 0.0..3.0_f64, alpha in 0.001..0.5_f64) {
        let power = |n, effect| power_of_t_test(n, effect, alpha).unwrap();
        let here = power(n, effect);
        prop_assert!(alpha - 1e-12 <= here && here <= 1.0);
        prop_assert!(here <= power(n + 1, effect) + 1e-12);
        prop_assert!(here <= power(n, effect + 0.1) + 1e-12);
    }

    #[test]
    fn one_trial_fewer_is_too_few(effect in 0.05..3.0_f64, alpha in 0.001..0.2_f64, wanted in 0.3..0.99_f64) {
        let n = trials_for_difference(effect, alpha, wanted).unwrap();
        prop_assert!(power_of_t_test(n, effect, alpha).unwrap() >= wanted);
        prop_assert!(n == 2 || power_of_t_test(n - 1, effect, alpha).unwrap() < wanted);
    }

    #[test]
    fn nothing_panics(
        n in any::<usize>(), a in any::<f64>(), b in any::<f64>(), c in any::<f64>(), d in any::<f64>(), e in any::<f64>(),
    ) {
        for power in [power_of_t_test(n % 1000, a, b), power_of_t_test(n % 1000, a, 0.05)].into_iter().flatten() {
            prop_assert!((0.0..=1.0).contains(&power));
        }
        let _ = (trials_for_difference(a, b, c), trials_for_difference(a, 0.05, 0.8));
        let _ = trials_for_equivalence(a, b, c, d, e);
        let _ = trials_for_equivalence(a.abs(), b, c.abs(), 0.05, 0.8);
    }
}
