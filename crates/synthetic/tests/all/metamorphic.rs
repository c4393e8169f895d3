//! Invariances of the claims on several runs: their order, and whether they are analysed together or one by
//! one.

use iolab_analysis::analysis::{Analysis, analyse};
use iolab_analysis::claim::{CellId, Comparison, Contrast, Difference, Point, Standing, claims};
use iolab_record::RunRecord;
use iolab_synthetic::{At, Curve, Disturbance, Disturber, Scenario};

use crate::claims::shapes;

/// Runs of a study with effects of either sign. Two compare the same settings, one mixes reads and writes, one
/// is disturbed, and one is on another target.
fn study(seed: u64) -> Vec<RunRecord> {
    let (_, noise) = shapes()[seed as usize % 4];
    let grid = |ratio: f64| Scenario {
        effects: vec![(At::levels("threads=8"), ratio)],
        ..Scenario::of("disk-grid", &["workload=RS,RR", "bs=4k,64k", "threads=1,8"])
    };
    let sizes = |name: &str| Scenario {
        curves: vec![("bs", Curve::Amortised { half: 65536.0 })],
        ..Scenario::of(name, &["bs=4k,64k,1M"])
    };
    let slower = Scenario {
        mb_s: 40.0,
        ..sizes("read-random")
    };
    // Every other study has two grids that contradict each other.
    let again = if seed.is_multiple_of(2) {
        1.5
    } else {
        1.0 / 1.5
    };
    let mixed = Scenario {
        effects: vec![(At::levels("read_percent=50"), 0.6)],
        ..Scenario::of("read-random", &["bs=8k", "read_percent=0,50,100"])
    };
    let disturbed = Scenario {
        disturbances: vec![Disturbance::of_every_trial(
            Disturber::Traffic,
            At::levels("threads=8"),
            0.7,
        )],
        ..Scenario::of("disk-grid", &["workload=WS,WR", "bs=16k", "threads=1,8"])
    };
    let elsewhere = Scenario {
        mb_s: 250.0,
        ..slower.on("/other").later()
    };
    let all = [
        sizes("read-size"),
        slower.later(),
        grid(1.5),
        grid(again).later(),
        sizes("write-size"),
        mixed,
        disturbed,
        elsewhere,
    ];
    let of = |(place, one): (u64, Scenario)| one.drifting(noise, 10).run(seed * 10 + place).0;
    (0..).zip(all).map(of).collect()
}

/// A decided statement on two cells of these runs, or on one size of a curve, with its direction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Decided {
    /// Kind of claim, with the compared settings.
    of: String,
    /// Runs by their start and experiment, with the cells.
    about: Vec<(String, i64)>,
    way: String,
}

/// Decision of an effect. Of two targets the first run's is the base; here it is the first by name.
fn of_effect(
    comparison: &Comparison,
    effect: &Point,
    name: impl Fn(CellId) -> (String, i64),
) -> Option<Decided> {
    let is_of_targets = match &comparison.contrast {
        Contrast::Levels { factor, .. } => factor == "target",
        _ => false,
    };
    let mut about = vec![name(effect.base?), name(effect.cell?)];
    let is_swapped = is_of_targets && about[0] > about[1];
    let difference = match (effect.difference(), is_swapped) {
        (Difference::NotFound | Difference::CannotTell, _) => return None,
        (Difference::Higher, true) => Difference::Lower,
        (Difference::Lower, true) => Difference::Higher,
        (same, _) => same,
    };
    let ratio = match is_swapped {
        true => 1.0 / effect.ratio?.ratio,
        false => effect.ratio?.ratio,
    };
    if is_swapped {
        about.reverse();
    }
    let of = match is_of_targets {
        true => format!("targets {:?}", effect.quantity),
        false => format!("{:?} {:?}", comparison.contrast, effect.quantity),
    };
    Some(Decided {
        of,
        about,
        way: format!("{difference:?} {ratio:.9}"),
    })
}

/// Decisions that must not depend on the order of runs.
fn decided(runs: &[&RunRecord]) -> Vec<Decided> {
    let analyses: Vec<Analysis> = runs.iter().map(|run| analyse(run)).collect();
    let all: Vec<&Analysis> = analyses.iter().collect();
    let name = |id: CellId| {
        let run = runs[id.run];
        let name = format!("{} {}", run.experiment.name, run.run.started_utc);
        (name, id.cell)
    };
    let mut found = Vec::new();
    for claim in claims(&all) {
        match claim.comparison() {
            Some(comparison) => {
                let effects = claim.points.iter();
                let own = effects.filter_map(|effect| of_effect(comparison, effect, name));
                found.extend(own);
            }
            _ if claim.ranked().next().is_some() => {
                for one in claim.ranked() {
                    let way = match one.standing {
                        Standing::Worse | Standing::Near => format!("{:?}", one.standing),
                        _ => continue,
                    };
                    let about = one.cell.map(name).into_iter().collect();
                    let of = "size".to_owned();
                    found.push(Decided { of, about, way });
                }
            }
            _ => {
                let about = claim.cells.iter().map(|id| name(*id)).collect();
                let of = claim.kind.name.to_owned();
                let way = String::new();
                found.push(Decided { of, about, way });
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_order_of_runs_changes_no_claim() {
    for seed in 1..=12 {
        let records = study(seed);
        let mut runs: Vec<&RunRecord> = records.iter().collect();
        let own = decided(&runs);
        let is_of = |what: &str| own.iter().any(|one| one.of.contains(what));
        assert!(
            own.len() > 10 && is_of("targets") && is_of("Pattern"),
            "seed {seed}: {own:?}"
        );
        for _ in 1..runs.len() {
            runs.rotate_left(1);
            assert_eq!(decided(&runs), own, "seed {seed}");
        }
        runs.reverse();
        assert_eq!(decided(&runs), own, "seed {seed}");
    }
}

/// In joint analysis, a statement of a run is kept, or left open if another run contradicts it; a single run
/// gains no new one.
#[test]
fn a_study_and_its_single_runs_never_disagree() {
    let (mut same, mut open) = (0, 0);
    for seed in 1..=12 {
        let records = study(seed);
        let runs: Vec<&RunRecord> = records.iter().collect();
        let together = decided(&runs);
        let each: Vec<Decided> = runs.iter().flat_map(|run| decided(&[run])).collect();
        for own in &each {
            let is_about = |one: &&Decided| (&one.of, &one.about) == (&own.of, &own.about);
            let other = together.iter().find(is_about);
            match other {
                Some(_) if together.contains(own) => same += 1,
                None => open += 1,
                Some(other) => panic!("seed {seed}: {own:?} alone, {other:?} together"),
            }
        }
        let is_of_one_run = |one: &&Decided| {
            let mut runs: Vec<&String> = one.about.iter().map(|(run, _)| run).collect();
            runs.dedup();
            runs.len() == 1
        };
        for one in together.iter().filter(is_of_one_run) {
            assert!(
                each.contains(one),
                "seed {seed}: {one:?} is made together only"
            );
        }
    }
    assert!(same > 100 && open > 0, "{same} stay, {open} are open");
}
