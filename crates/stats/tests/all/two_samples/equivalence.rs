use iolab_stats::tost_log;

use super::data::{Pair, apart, close, close_within, ends, five, large, published, thirty};

#[test]
fn equivalence_agrees_with_scipy() {
    // Margin and alpha; p, ratio, and the ends of its interval.
    let all: [(Pair, [f64; 2], [f64; 4]); 4] = [
        (
            published(),
            [0.05, 0.05],
            [
                0.9114191532024418, 1.293475782361499, 0.9983698681625786, 1.675811393061034,
            ],
        ),
        (
            apart(),
            [0.05, 0.05],
            [1.0, 1.985799703619693, 1.978826504029813, 1.992797476112968],
        ),
        (
            thirty(),
            [0.3, 0.01],
            [
                0.04465372031859373, 1.125600680746078, 0.9219894074644144, 1.374177276049601,
            ],
        ),
        (
            large(),
            [0.3, 0.01],
            [
                5.388438949851684e-147, 1.040858253462868, 1.026914421562946, 1.054991419979162,
            ],
        ),
    ];
    for ((base, new), [margin, alpha], [p, ratio, low, high]) in all {
        let ours = tost_log(&base, &new, margin, alpha).unwrap();
        close_within(ours.p, p, 1e-9);
        close(ours.ratio, ratio);
        ends(ours.interval, low, high);
        assert_eq!(ours.interval.confidence, 1.0 - 2.0 * alpha);
    }
}

#[test]
fn interval_is_within_margin_exactly_where_p_small() {
    let (base, new) = thirty();
    for margin in [0.05, 0.1, 0.2, 0.28, 0.29, 0.3, 0.5, 1.0] {
        let ours = tost_log(&base, &new, margin, 0.05).unwrap();
        let inside = 1.0 / (1.0 + margin) < ours.interval.low && ours.interval.high < 1.0 + margin;
        assert_eq!(ours.p < 0.05, inside, "{margin}");
    }
}

#[test]
fn samples_that_do_not_vary() {
    let p = |new: f64, margin: f64| tost_log(&[1.0; 4], &[new; 4], margin, 0.05).unwrap().p;
    assert_eq!(p(1.0, 0.05), 0.0);
    assert_eq!(p(1.04, 0.05), 0.0);
    assert_eq!(p(0.96, 0.05), 0.0);
    assert_eq!(p(1.06, 0.05), 1.0);
    assert_eq!(p(0.94, 0.05), 1.0);
    let ours = tost_log(&[0.7; 4], &[0.7; 9], 0.05, 0.05).unwrap();
    assert_eq!(
        (ours.ratio, ours.interval.low, ours.interval.high),
        (1.0, 1.0, 1.0)
    );
}

#[test]
fn what_cannot_be_asked() {
    let (base, new) = five();
    for margin in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        assert_eq!(tost_log(&base, &new, margin, 0.05), None);
    }
    for alpha in [0.0, 0.5, 0.7, -0.1, f64::NAN] {
        assert_eq!(tost_log(&base, &new, 0.05, alpha), None);
    }
    assert_eq!(tost_log(&base, &[1.0, 0.0, 2.0], 0.05, 0.05), None);
    assert_eq!(tost_log(&base, &[1.0], 0.05, 0.05), None);
}
