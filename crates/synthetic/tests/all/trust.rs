//! Trust in results, with known disturbed cells and known cells below each claim.

use std::collections::BTreeSet;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{CellId, Claim, HEADLINES_MAX, claims, headlines, kind};
use iolab_analysis::doubt::{DoubtClass, DoubtKind};
use iolab_analysis::trust::{Shown, Trust, TrustLevel};
use iolab_synthetic::{At, Change, Common, Curve, Disturbance, Disturber, Noise, Scenario};

/// Seeds of each combination.
const SEEDS: u64 = 10;

/// A grid, and a curve over sizes, with the disturbed cells.
struct Study {
    runs: Vec<AnalysedRun>,
    disturbed: BTreeSet<CellId>,
}

fn study(seed: u64, by: Option<(Disturber, &str)>) -> Study {
    let grid = Scenario {
        effects: vec![(At::levels("threads=8"), 1.5)],
        ..Scenario::of("disk-grid", &["workload=RS,RR", "bs=4k,64k", "threads=1,8"])
    };
    let sizes = Scenario {
        curves: vec![("bs", Curve::Amortised { half: 65536.0 })],
        ..Scenario::of("read-size", &["bs=4k,64k,1M"])
    };
    let mut made = Study {
        runs: Vec::new(),
        disturbed: BTreeSet::new(),
    };
    for (run, one) in [grid, sizes.later()].into_iter().enumerate() {
        // Its trials are as fast as without the disturbance: claims stay as they are, only the evidence
        // differs.
        let disturbances = by
            .into_iter()
            .map(|(by, at)| Disturbance::of_every_trial(by, At::levels(at), 1.0));
        let scenario = Scenario {
            noise: Noise::Lognormal { sigma: 0.01 },
            disturbances: disturbances.collect(),
            ..one
        };
        let (record, _) = scenario.run(10 * seed + run as u64);
        let selected = by.map(|(_, at)| At::levels(at).of(&record));
        let ids = selected.into_iter().flatten().map(|at| CellId {
            run,
            cell: record.cells[at].id,
        });
        made.disturbed.extend(ids);
        made.runs.push(AnalysedRun::of(record));
    }
    made
}

fn analyses(runs: &[AnalysedRun]) -> Vec<&Analysis> {
    runs.iter().map(AnalysedRun::analysis).collect()
}

fn trust(runs: &[AnalysedRun], claims: &[&Claim], numbers: &[CellId]) -> Trust {
    Trust::of(&Shown {
        runs: &runs.iter().collect::<Vec<_>>(),
        findings: &[claims.to_vec()],
        numbers,
    })
}

/// Worst reason that a disturbance must at least give.
fn least(by: Disturber) -> DoubtKind {
    match by {
        Disturber::Traffic => DoubtKind::OtherTraffic,
        Disturber::Cpu => DoubtKind::CpuContended,
        Disturber::PageCache => DoubtKind::PageCache,
        Disturber::Sleep => DoubtKind::Suspended,
    }
}

/// Each claim alone: a disturbance of a cell below it lowers the trust in it, a disturbance of another cell
/// changes nothing.
#[test]
fn only_a_claims_own_cells_lower_its_trust() {
    let (mut kept, mut lowered) = (0, 0);
    for seed in 0..SEEDS {
        let quiet = study(seed, None).runs;
        let all = claims(&analyses(&quiet));
        for by in [
            Disturber::Traffic,
            Disturber::Cpu,
            Disturber::PageCache,
            Disturber::Sleep,
        ] {
            for at in ["bs=4k", "bs=1M", "threads=8", "bs=64k, threads=8"] {
                let Study { runs, disturbed } = study(seed, Some((by, at)));
                for claim in &all {
                    let before = trust(&quiet, &[claim], &[]);
                    let after = trust(&runs, &[claim], &[]);
                    let own: BTreeSet<CellId> = claim.cells.iter().copied().collect();
                    if own.is_disjoint(&disturbed) {
                        assert_eq!(before, after, "{by:?} {at} {seed} {claim:?}");
                        kept += 1;
                    } else {
                        assert_ne!(
                            after.level,
                            TrustLevel::Good,
                            "{by:?} {at} {seed} {claim:?}"
                        );
                        assert!(after.doubt <= Some(least(by)), "{after:?}");
                        lowered += 1;
                    }
                }
            }
        }
    }
    // Neither case is rare.
    assert!(kept > 100 && lowered > 100, "{kept} {lowered}");
}

/// A number alone is a claim about its own cell.
#[test]
fn trust_in_a_number_is_its_cells_trust() {
    let Study { runs, disturbed } = study(1, Some((Disturber::Traffic, "bs=4k")));
    let mut levels = Vec::new();
    for (run, one) in runs.iter().enumerate() {
        for cell in &one.analysis().cells {
            let id = CellId {
                run,
                cell: cell.cell.id,
            };
            let trust = trust(&runs, &[], &[id]);
            assert_eq!(trust.cells, 1);
            levels.push((trust.level == TrustLevel::Good, disturbed.contains(&id)));
        }
    }
    assert!(
        levels
            .iter()
            .all(|(is_good, is_disturbed)| is_good != is_disturbed)
    );
    assert!(levels.iter().any(|(is_good, _)| *is_good));
}

/// Without a claim or a number all cells count.
#[test]
fn output_without_claims_rests_on_all_cells() {
    for (by, level) in [
        (None, TrustLevel::Good),
        (Some((Disturber::Traffic, "bs=1M")), TrustLevel::Limited),
    ] {
        let Study { runs, .. } = study(2, by);
        let trust = trust(&runs, &[], &[]);
        assert_eq!((trust.level, trust.claims), (level, 0));
        assert_eq!((trust.cells, trust.measured), (11, 11));
    }
}

/// First claims of a page, on runs with known disturbed cells.
#[test]
fn first_claims_are_trusted_by_their_cells() {
    for (by, is_rested_on) in [
        (None, false),
        (Some((Disturber::Traffic, "threads=8")), true),
        (Some((Disturber::PageCache, "bs=64k")), true),
    ] {
        for seed in 0..SEEDS {
            let Study { runs, .. } = study(seed, by);
            let all = claims(&analyses(&runs));
            let first: Vec<&Claim> = headlines(&all).into_iter().take(HEADLINES_MAX).collect();
            let trust = trust(&runs, &first, &[]);
            assert_eq!(trust.claims, first.len());
            // A claim may be left open by chance, as with trials that seem to depend on each other; that is not
            // a disturbance.
            let class = trust.doubt.map(DoubtKind::class);
            let is_lowered = matches!(class, Some(DoubtClass::Source | DoubtClass::Others));
            assert_eq!(is_lowered, is_rested_on, "{seed} {trust:?}");
        }
    }
}

/// Two contradictory runs leave both statements open, and the trust says so.
#[test]
fn contradicted_claim_is_not_fully_trusted() {
    let grid = |ratio: f64| Scenario {
        effects: vec![(At::levels("threads=8"), ratio)],
        noise: Noise::Lognormal { sigma: 0.01 },
        ..Scenario::of("disk-grid", &["workload=RS", "bs=4k,64k", "threads=1,8"])
    };
    let of = |again: f64| {
        let records = [grid(1.5).run(1).0, grid(again).later().run(2).0];
        let runs = records.map(AnalysedRun::of);
        let all = claims(&analyses(&runs));
        let compared = all.iter().filter(|claim| claim.comparison().is_some());
        let trust = trust(&runs, &compared.collect::<Vec<_>>(), &[]);
        (trust.level, trust.doubt, trust.undecided > 0)
    };
    assert_eq!(of(1.5), (TrustLevel::Good, None, false));
    assert_eq!(
        of(1.0 / 1.5),
        (TrustLevel::Limited, Some(DoubtKind::Contradicted), true)
    );
}

/// Doubts about a number from the order and groups of its cell's trials, in runs with one such cell.
#[test]
fn changing_grouped_or_dependent_trials_lower_trust() {
    let sizes = || Scenario {
        noise: Noise::Lognormal { sigma: 0.01 },
        trials: 30,
        ..Scenario::of("read-size", &["bs=4k,64k"])
    };
    let at = || At::levels("bs=4k");
    let changed = Scenario {
        changes: vec![Change {
            at: at(),
            after: 0.5,
            ratio: 0.7,
        }],
        ..sizes()
    };
    let grouped = Scenario {
        noises: vec![(
            at(),
            Noise::TwoGroups {
                upper: 0.5,
                ratio: 1.5,
                sigma: 0.005,
            },
        )],
        ..sizes()
    };
    for (scenario, reason) in [
        (changed, DoubtKind::LevelChanged),
        (grouped, DoubtKind::TwoGroups),
    ] {
        let mut told = 0;
        for seed in 0..SEEDS {
            let runs = [AnalysedRun::of(scenario.run(seed).0)];
            let of = |place: usize| {
                let cell = runs[0].analysis().cells[place].cell.id;
                trust(&runs, &[], &[CellId { run: 0, cell }])
            };
            let (own, other) = (of(0), of(1));
            // A group may come late by chance, which looks like a change.
            told += usize::from((own.level, own.doubt) == (TrustLevel::Limited, Some(reason)));
            assert!(own.doubt <= Some(DoubtKind::TwoGroups), "{own:?}");
            assert_eq!(own.concerned, 1, "{own:?}");
            assert_eq!(
                (other.level, other.doubt),
                (TrustLevel::Good, None),
                "{seed}"
            );
        }
        assert!(told >= SEEDS as usize * 8 / 10, "{reason:?}: {told}");
    }
}

/// Without a change, scattered trials are not a change of level: the claim that they are not settled gives its
/// own reason, the last of the reasons about trials.
#[test]
fn scattered_trials_are_not_a_level_change() {
    let scattered = Scenario {
        noise: Noise::Lognormal { sigma: 0.15 },
        trials: 30,
        ..Scenario::of("write-size", &["bs=64k,1M", "sync=end", "region=16M"])
    };
    let (mut told, mut sloped) = (0, 0);
    for seed in 0..40 {
        let runs = [AnalysedRun::of(scattered.run(seed).0)];
        let all = claims(&analyses(&runs));
        let Some(claim) = all.iter().find(|claim| claim.kind.name == "not-steady") else {
            continue;
        };
        sloped += usize::from(claim.kind == &kind::NOT_STEADY);
        let trust = trust(&runs, &[claim], &[]);
        told += usize::from(trust.doubt == Some(DoubtKind::NotSettled));
        assert_eq!(trust.level, TrustLevel::Limited, "{seed}");
    }
    assert!(told >= 30, "{told}");
    assert!(sloped <= 10, "{sloped}");
    assert!(DoubtKind::TwoGroups < DoubtKind::NotSettled);
}

/// Trials that depend on earlier ones: the interval is too narrow, where that matters.
#[test]
fn dependent_trials_lower_trust_in_wide_numbers() {
    let wandering = |sigma: f64| Scenario {
        noise: Noise::Lognormal { sigma: sigma / 4.0 },
        common: Common {
            wander_sigma: sigma,
            wander_correlation: 0.7,
            ..Common::default()
        },
        trials: 30,
        ..Scenario::of("read-size", &["bs=4k"])
    };
    let reasons = |sigma: f64| {
        let of = |seed| {
            let runs = [AnalysedRun::of(wandering(sigma).run(seed).0)];
            trust(&runs, &[], &[]).doubt
        };
        (0..40).map(of).collect::<Vec<_>>()
    };
    let wide = reasons(0.1);
    let count = |reason| wide.iter().filter(|one| **one == Some(reason)).count();
    // Trials that wander far have drifted as well, which is the worse reason.
    assert!(count(DoubtKind::Dependent) >= 5, "{wide:?}");
    assert!(
        count(DoubtKind::Dependent) + count(DoubtKind::LevelChanged) >= 20,
        "{wide:?}"
    );
    // Nearly equal numbers are not affected.
    assert!(reasons(0.001).iter().all(Option::is_none));
}
