//! Order of the claims on a run with known truth: effects by their size whatever their sign, and a change of
//! level before the tail that it causes.

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::{
    Claim, Comparison, Contrast, Difference, Point, Standing, choices, claims, headlines,
};
use iolab_synthetic::{At, Change, Curve, Noise, Scenario};

/// First claims of a page on a run.
fn first_claims(scenario: &Scenario) -> Vec<Claim> {
    let (record, _) = scenario.run(1);
    let all = claims(&[&analyse(&record)]);
    headlines(&all).into_iter().cloned().collect()
}

/// Eight threads give `at_4k` times the throughput of one at 4 KiB, and `at_64k` times at 64 KiB.
fn scaling(at_4k: f64, at_64k: f64) -> Scenario {
    Scenario {
        effects: vec![
            (At::levels("threads=8,bs=4k"), at_4k),
            (At::levels("threads=8,bs=64k"), at_64k),
        ],
        noise: Noise::None,
        ..Scenario::of("disk-grid", &["workload=RS", "bs=4k,64k", "threads=1,8"])
    }
}

fn is_of_levels(claim: &&Claim) -> bool {
    let is_of_levels = |found: &Comparison| matches!(found.contrast, Contrast::Levels { .. });
    claim.comparison().is_some_and(is_of_levels)
}

#[test]
fn an_effect_weighs_the_same_in_either_direction() {
    for ratios in [[2.0, 2.0], [0.5, 0.5], [3.0, 0.9], [1.0 / 3.0, 1.0 / 0.9]] {
        let first = first_claims(&scaling(ratios[0], ratios[1]));
        let Some(claim) = first.iter().find(is_of_levels) else {
            panic!("{ratios:?}: {first:?}");
        };
        let effects = claim.points.iter().filter(|one| one.is_effect());
        assert_eq!(effects.count(), 2, "{ratios:?}: {claim:?}");
        let largest = ratios.map(|ratio| ratio.ln().abs());
        let largest = largest[0].max(largest[1]);
        assert!(
            (claim.size() - largest).abs() < 1e-6,
            "{ratios:?}: {claim:?}"
        );
    }
}

/// A median over both levels of a cliff means nothing, so no claim about slow requests precedes it.
#[test]
fn cliff_precedes_the_tail_of_its_requests() {
    let cliff = Scenario {
        changes: vec![Change {
            at: At::all(),
            after: 0.5,
            ratio: 0.1,
        }],
        tails: vec![(At::all(), 10.0)],
        trials: 12,
        ..Scenario::of("write-size", &["bs=4k", "sync=end", "region=16M"])
    };
    let kinds: Vec<&str> = first_claims(&cliff)
        .iter()
        .map(|claim| claim.kind().0)
        .collect();
    assert_eq!(kinds, ["level-over-run", "long-tail"]);
}

/// Sizes of several curves within 5 % of each other are not an effect, whichever has the highest median.
#[test]
fn sizes_that_are_all_alike_begin_no_page() {
    let grid = |curve: Curve| Scenario {
        curves: vec![("bs", curve)],
        ..Scenario::of("disk-grid", &["workload=RS,RR", "bs=4k,64k", "threads=1"])
    };
    let begins = |scenario: &Scenario| {
        let first = first_claims(scenario);
        first.iter().any(|claim| claim.ranked().next().is_some())
    };
    for noise in [Noise::None, Noise::Lognormal { sigma: 0.005 }] {
        let alike = Scenario {
            noise,
            ..grid(Curve::Flat)
        };
        assert!(!begins(&alike), "{noise:?}");
    }
    assert!(begins(&grid(Curve::Amortised { half: 65536.0 })));
}

/// Threads help at one of four sizes, cost in one setting of the others, and make no difference in eleven.
#[test]
fn settings_without_an_effect_are_counted_separately() {
    for noise in [Noise::None, Noise::Lognormal { sigma: 0.01 }] {
        let grid = Scenario {
            effects: vec![
                (At::levels("threads=8,bs=4k"), 8.0),
                (At::levels("threads=8,bs=1M,workload=RS"), 0.57),
            ],
            noise,
            ..Scenario::of("disk-grid", &["bs=4k,16k,64k,1M", "threads=1,8"])
        };
        let (record, _) = grid.run(1);
        let all = claims(&[&analyse(&record)]);
        let found = all.iter().find(is_of_levels).expect("two levels");
        let count = |difference| {
            let own = |one: &&Point| one.difference() == difference;
            found.points.iter().filter(own).count()
        };
        let differences = [Difference::Higher, Difference::Lower].map(count);
        assert_eq!((found.points.len(), differences), (16, [4, 1]), "{noise:?}");
    }
}

/// A setting recommended as the best, or as close to it, is not called lower than the best size.
#[test]
fn recommended_setting_is_not_called_lower() {
    let mut named = 0;
    for curve in [
        Curve::Flat,
        Curve::Amortised { half: 65536.0 },
        Curve::Plateau { from: 65536.0 },
    ] {
        for sigma in [0.005, 0.03, 0.2] {
            let sizes = Scenario {
                curves: vec![("bs", curve)],
                noise: Noise::Lognormal { sigma },
                trials: 16,
                ..Scenario::of("read-size", &["bs=4k,16k,64k,256k,1M"])
            };
            let run = sizes.runs();
            for seed in 1..=12 {
                let (record, _) = run(seed);
                let analysis = analyse(&record);
                let chosen = choices(&[&analysis]);
                let chosen = chosen.iter().flat_map(|one| &one.points);
                let chosen: Vec<_> = chosen.filter_map(|point| point.cell).collect();
                let all = claims(&[&analysis]);
                let candidates = all.iter().flat_map(Claim::ranked);
                for one in candidates.filter(|one| one.cell.is_some_and(|id| chosen.contains(&id)))
                {
                    named += 1;
                    let of = format!("{curve:?}, {sigma}, seed {seed}");
                    assert_ne!(one.standing, Standing::Worse, "{of}");
                }
            }
        }
    }
    assert!(named >= 20, "{named}");
}
