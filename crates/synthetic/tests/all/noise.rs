//! Noise around a truth.

use iolab_synthetic::Noise;

const ALL: [Noise; 7] = [
    Noise::None,
    Noise::Normal { cv: 0.1 },
    Noise::Lognormal { sigma: 0.5 },
    Noise::Exponential,
    Noise::TwoGroups {
        upper: 0.5,
        ratio: 1.2,
        sigma: 0.005,
    },
    Noise::TwoGroups {
        upper: 0.48,
        ratio: 1.2,
        sigma: 0.005,
    },
    Noise::Stalls {
        share: 0.1,
        ratio: 0.4,
        sigma: 0.05,
    },
];

#[test]
fn half_of_the_trials_are_below_the_truth() {
    for noise in ALL.into_iter().skip(1) {
        for sigma in [0.0, 0.1] {
            let truth = noise.log_median_with(sigma);
            let other = Noise::Lognormal { sigma };
            let (mut draws, mut other) = (noise.draws(3), other.draws(4));
            let n = 40_000;
            let below = (0..n)
                .filter(|_| draws.next_log() + other.next_log() < truth)
                .count();
            // Four standard deviations of the binomial.
            assert!(
                (below as f64 - 20_000.0).abs() < 400.0,
                "{noise:?} {sigma} {below}"
            );
        }
    }
}

#[test]
fn the_seed_alone_decides() {
    for noise in ALL {
        let of = |seed| {
            let mut draws = noise.draws(seed);
            (0..5).map(move |_| draws.next_log()).collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(1));
        assert_eq!(of(1) == of(2), noise == Noise::None);
    }
}
