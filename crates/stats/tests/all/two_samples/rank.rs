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
fn counting_ends_where_it_gets_long() {
    let line = |n: i32, from: f64| (0..n).map(|i| from + f64::from(i)).collect::<Vec<f64>>();
    let method = |n: i32| mann_whitney(&line(n, 0.0), &line(n, 0.5)).unwrap().method;
    assert_eq!(method(60), RankMethod::Exact);
    assert_eq!(method(100), RankMethod::Asymptotic);
}

#[test]
fn one_value_each_tells_nothing() {
    let test = mann_whitney(&[1.0], &[2.0]).unwrap();
    assert_eq!((test.u, test.p), (1.0, 1.0));
}

#[test]
fn three_against_three_cannot_reach_5_percent() {
    // p counts the 2 most extreme of the 20 ways to share out six ranks.
    let test = mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap();
    close(test.p, 0.1);
}

#[test]
fn all_values_equal_give_p_of_1() {
    for n in [1, 5, 40, 300] {
        let data = vec![3.5; n];
        let test = mann_whitney(&data, &data).unwrap();
        assert_eq!((test.u, test.p), ((n * n) as f64 / 2.0, 1.0));
    }
}

#[test]
fn zeros_of_either_sign_are_tied() {
    let test = mann_whitney(&[0.0, -0.0, 0.0], &[-0.0, 0.0, -0.0]).unwrap();
    assert_eq!((test.u, test.p), (4.5, 1.0));
}

#[test]
fn a_million_values() {
    let base: Vec<f64> = (0..1_000_000).map(f64::from).collect();
    let new: Vec<f64> = base.iter().map(|x| x + 0.5).collect();
    let n = base.len() as f64;
    assert_eq!(mann_whitney(&base, &new).unwrap().u, n * (n + 1.0) / 2.0);
}
