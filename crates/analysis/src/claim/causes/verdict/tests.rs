use super::*;
use iolab_plan::experiment::{Untried, Variant};
use iolab_plan::suspect::Obstacle;

const NAMES: [&str; 3] = ["reach", "read-ahead", "waiting"];

/// A run of `blocks` blocks with normal noise of this spread in each variant. The phenomenon is the `effect` of
/// the suspects that are present.
fn world(
    effect: impl Fn(&[&str]) -> f64,
    (blocks, spread): (u32, f64),
    seed: u64,
) -> (Inquiry, Vec<Deviations>) {
    let sets: [&[&str]; 8] = [
        &[],
        &["reach"],
        &["read-ahead"],
        &["waiting"],
        &["read-ahead", "waiting"],
        &["reach", "waiting"],
        &["reach", "read-ahead"],
        &NAMES,
    ];
    let inquiry = Inquiry {
        phenomenon: "throughput of rand is 2.00× lower than of seq".to_owned(),
        seen: 0.5,
        expected: 1.0,
        tried: NAMES.map(str::to_owned).to_vec(),
        untried: vec![Untried {
            suspect: "write-cache".to_owned(),
            why: Obstacle::NoTime {
                budget_s: 120,
                idle_ns: 0,
            },
        }],
        idle_ns: None,
        shorter_ns: None,
        between: Vec::new(),
        variants: sets
            .iter()
            .map(|set| Variant {
                without: set.iter().map(|one| (*one).to_owned()).collect(),
                base: "one side".to_owned(),
                other: "the other side".to_owned(),
            })
            .collect(),
    };
    let mut state = seed.wrapping_mul(2) | 1;
    let mut uniform = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let deviations = sets.iter().map(|set| {
        let there: Vec<&str> = NAMES.into_iter().filter(|one| !set.contains(one)).collect();
        let value = effect(&there);
        (0..blocks)
            .map(|block| {
                let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
                (block, value + spread * normal)
            })
            .collect()
    });
    let deviations = deviations.collect();
    (inquiry, deviations)
}

fn judged<'a>(inquiry: &'a Inquiry, deviations: &[Deviations]) -> Found<'a> {
    judge(inquiry, deviations, Vec::new())
}

/// The point of a suspect alone.
fn point<'a>(found: &'a Found<'_>, name: &str) -> &'a Point {
    let mut own = found.suspects.iter();
    own.find(|point| point.suspects == [name])
        .expect("a verdict")
}

fn of(found: &Found<'_>, name: &str) -> Standing {
    point(found, name).standing
}

#[test]
fn cause_is_named_with_share_and_others_cleared() {
    let effect = |there: &[&str]| if there.contains(&"reach") { 0.7 } else { 0.07 };
    let (inquiry, deviations) = world(effect, (30, 0.03), 1);
    let found = judged(&inquiry, &deviations);
    assert_eq!(found.again, Standing::Reproduced);
    assert_eq!(of(&found, "reach"), Standing::Cause);
    assert_eq!(of(&found, "read-ahead"), Standing::Cleared);
    assert_eq!(of(&found, "waiting"), Standing::Cleared);
    assert_eq!(found.untried[0].0, "write-cache");
    let (low, high) = found.suspects[0].interval.expect("enough blocks");
    assert!(low < 0.9 && 0.9 < high && high - low < 0.1, "{low} {high}");
    let rest = found.rest.expect("there").value;
    assert!((rest - 0.1).abs() < 0.05, "{rest}");
}

#[test]
fn suspect_that_was_not_removed_is_no_cause() {
    let effect = |there: &[&str]| if there.contains(&"waiting") { 0.7 } else { 0.0 };
    let (inquiry, deviations) = world(effect, (30, 0.03), 11);
    let why = WhyUntried::NoTrial;
    let unchecked = vec![("waiting".to_owned(), why.clone())];
    let found = judge(&inquiry, &deviations, unchecked);
    assert_eq!(found.untried[0], ("waiting".to_owned(), why));
    let mut suspects = found.suspects.iter();
    assert!(suspects.all(|one| one.suspects != ["waiting"]));
    assert!(found.rest.is_none());
}

/// Everything disappears either way; a reversal is a separate result.
#[test]
fn reversal_is_distinguished_from_disappearance() {
    for (left, is_reversed) in [(-0.7, true), (-0.1, true), (-0.04, false), (0.0, false)] {
        let effect = |there: &[&str]| if there.contains(&"reach") { 0.7 } else { left };
        let (inquiry, deviations) = world(effect, (30, 0.03), 1);
        let found = judged(&inquiry, &deviations);
        let reversed = found.suspects.iter();
        let reversed: Vec<&Point> = reversed
            .filter(|one| one.standing == Standing::Reverses)
            .collect();
        assert_eq!(reversed.len(), usize::from(is_reversed), "{left}");
        assert!(reversed.iter().all(|one| one.suspects == ["reach"]));
        let share = found.suspects[0].value;
        assert!((share - 1.0).abs() < 0.05, "{share}");
    }
}

#[test]
fn two_sufficient_suspects_are_a_joint_cause() {
    let effect = |there: &[&str]| {
        let any = there.contains(&"reach") || there.contains(&"read-ahead");
        if any { 0.7 } else { 0.0 }
    };
    let (mut inquiry, mut deviations) = world(effect, (30, 0.03), 2);
    let together = |found: &Found<'_>| {
        let mut points = found.suspects.iter();
        let all = points.find(|one| one.standing == Standing::Together);
        let all = all.expect("a share");
        assert!((all.value - 1.0).abs() < 0.05, "{all:?}");
        all.suspects.len()
    };
    let found = judged(&inquiry, &deviations);
    assert_eq!(of(&found, "reach"), Standing::Joint);
    assert_eq!(of(&found, "read-ahead"), Standing::Joint);
    assert_eq!(of(&found, "waiting"), Standing::Cleared);
    assert_eq!(together(&found), 2);
    // As with more suspects, no variant is without these two alone.
    let mut variants = inquiry.variants.iter();
    let both = variants.position(|one| one.without == ["reach", "read-ahead"]);
    let both = both.expect("there");
    inquiry.variants.remove(both);
    deviations.remove(both);
    let found = judged(&inquiry, &deviations);
    assert_eq!(of(&found, "reach"), Standing::Joint);
    assert_eq!(together(&found), 3);
}

#[test]
fn interchangeable_partners_of_a_cause_stay_open() {
    let effect = |there: &[&str]| {
        let either = there.contains(&"read-ahead") || there.contains(&"waiting");
        if there.contains(&"reach") && either {
            0.7
        } else {
            0.0
        }
    };
    let (inquiry, deviations) = world(effect, (30, 0.03), 4);
    let found = judged(&inquiry, &deviations);
    let is_open = |name| matches!(of(&found, name), Standing::Undecided | Standing::MoreBlocks);
    assert_eq!(of(&found, "reach"), Standing::Cause);
    assert!(is_open("read-ahead") && is_open("waiting"));
}

/// One intervention doubles the phenomenon. The part that the others then remove from the double does not count.
#[test]
fn effect_added_by_intervention_is_not_phenomenon() {
    let effect = |there: &[&str]| {
        let doubles = !there.contains(&"read-ahead") && there.contains(&"waiting");
        if doubles { 1.4 } else { 0.7 }
    };
    let (inquiry, deviations) = world(effect, (30, 0.03), 10);
    let found = judged(&inquiry, &deviations);
    assert!((found.rest.as_ref().expect("there").value - 1.0).abs() < 0.05);
    for name in NAMES {
        assert_eq!(of(&found, name), Standing::Cleared, "{name}");
    }
}

/// Half of the original difference has to be reproduced, whichever side is greater: a small certain part is
/// another difference.
#[test]
fn small_part_of_difference_does_not_reproduce_it() {
    let parts = [
        (0.19, Standing::NotReproduced),
        (0.55, Standing::Reproduced),
        (0.9, Standing::Reproduced),
        (-0.9, Standing::NotReproduced),
    ];
    for (seen, expected) in [(0.025, 1.0), (40.0, 1.0), (0.2, 8.0)] {
        for (part, again) in parts {
            for spread in [0.0, 0.03] {
                let size = f64::ln(seen / expected).abs();
                let (inquiry, deviations) = world(|_| part * size, (30, spread), 10);
                let inquiry = Inquiry {
                    seen,
                    expected,
                    ..inquiry
                };
                let found = judged(&inquiry, &deviations);
                assert_eq!(found.again, again, "{part} of {seen}");
                let there = found.part().expect("trials").value;
                assert!((there - part).abs() < 0.02, "{part} of {seen}: {there}");
                let is_judged = !found.suspects.is_empty();
                assert_eq!(is_judged, again == Standing::Reproduced, "{part} of {seen}");
            }
        }
    }
}

#[test]
fn noise_gives_no_verdict_but_blocks_needed() {
    let effect = |there: &[&str]| if there.contains(&"reach") { 0.3 } else { 0.0 };
    let (inquiry, deviations) = world(effect, (20, 0.2), 8);
    let found = judged(&inquiry, &deviations);
    let open = found.suspects.iter();
    let open = open.filter(|one| one.standing == Standing::MoreBlocks);
    let needed = open.filter_map(|one| one.of).fold(0.0, f64::max);
    assert!(needed > 20.0, "noise of a fifth: {needed}");
    let few = world(effect, (4, 0.03), 9);
    assert_eq!(judged(&few.0, &few.1).again, Standing::Undecided);
}
