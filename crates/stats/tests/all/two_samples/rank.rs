use iolab_stats::{RankMethod, mann_whitney};

use super::data::{Pair, apart, close, far, five, large, large_ties, published, thirty, ties};

#[track_caller]
fn check((base, new): Pair, u: f64, p: f64, method: RankMethod) {
    let ours = mann_whitney(&base, &new).unwrap();
    assert_eq!((ours.u, ours.method), (u, method));
    close(ours.p, p);
}

#[test]
fn ranks_agree_with_scipy() {
    use RankMethod::{Asymptotic, Exact};
    check(five(), 24.0, 0.01587301587301587, Exact);
    check(published(), 35.0, 0.2544122544122544, Exact);
    check(ties(), 54.5, 0.08712464006581654, Exact);
    check(far(), 13.0, 0.5238095238095238, Exact);
    check(thirty(), 512.0, 0.1555783624559491, Exact);
    check(large(), 41071.0, 2.660018874449592e-12, Asymptotic);
    check(large_ties(), 34647.5, 0.003224331143356905, Asymptotic);
    check(apart(), 1800.0, 6.929214843141313e-25, Exact);
}

#[test]
fn counting_with_ties_to_fifty_in_each() {
    // Counted in whole numbers by reference_two_samples.py.
    let base: Vec<f64> = (0..50).map(|i| f64::from(i % 17)).collect();
    let new: Vec<f64> = (0..50).map(|i| f64::from((i * 3 + 4) % 19)).collect();
    check((base, new), 1417.0, 0.2510821104351005, RankMethod::Exact);
}

#[test]
fn all_values_equal_give_p_of_1() {
    for n in [1, 5, 40, 300] {
        let data = vec![3.5; n];
        let test = mann_whitney(&data, &data).unwrap();
        assert_eq!((test.u, test.p), ((n * n) as f64 / 2.0, 1.0));
    }
}
