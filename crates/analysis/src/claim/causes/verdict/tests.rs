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

fn judged(inquiry: &Inquiry, deviations: &[Deviations]) -> (Reproduction, Vec<Suspects>) {
    judge(inquiry, deviations, &BTreeMap::new(), None)
}

fn verdicts(found: &[Suspects]) -> BTreeMap<String, CauseVerdict> {
    let all = found.iter().flat_map(|group| {
        let verdict = group.verdict;
        group
            .suspects
            .iter()
            .map(move |one| (one.suspect.clone(), verdict))
    });
    all.collect()
}

fn of(found: &[Suspects], name: &str) -> CauseVerdict {
    verdicts(found)[name]
}

#[test]
fn cause_is_named_with_share_and_others_cleared() {
    let effect = |there: &[&str]| if there.contains(&"reach") { 0.7 } else { 0.07 };
    let (inquiry, deviations) = world(effect, (30, 0.03), 1);
    let (again, found) = judged(&inquiry, &deviations);
    assert_eq!(again.again, Again::Reproduced);
    assert_eq!(of(&found, "reach"), CauseVerdict::Cause);
    assert_eq!(of(&found, "read-ahead"), CauseVerdict::Cleared);
    assert_eq!(of(&found, "waiting"), CauseVerdict::Cleared);
    assert_eq!(of(&found, "write-cache"), CauseVerdict::NotTried);
    let share = found[0].suspects[0].share.expect("a share");
    let (low, high) = share.interval.expect("enough blocks");
    assert!(low < 0.9 && 0.9 < high && high - low < 0.1, "{share:?}");
    let rest = again.unexplained.expect("there").share;
    assert!((rest - 0.1).abs() < 0.05, "{rest}");
}

#[test]
fn suspect_that_was_not_removed_is_no_cause() {
    let effect = |there: &[&str]| if there.contains(&"waiting") { 0.7 } else { 0.0 };
    let (inquiry, deviations) = world(effect, (30, 0.03), 11);
    let why = WhyUntried::NoTrial;
    let unchecked = BTreeMap::from([("waiting".to_owned(), why.clone())]);
    let found = judge(&inquiry, &deviations, &unchecked, None).1;
    assert_eq!(of(&found, "waiting"), CauseVerdict::NotTried);
    let all = found.iter().flat_map(|group| &group.suspects);
    let reasons: Vec<&WhyUntried> = all.filter_map(|one| one.untried.as_ref()).collect();
    assert!(reasons.contains(&&why));
}

/// Everything disappears either way; a reversal is a separate result.
#[test]
fn reversal_is_distinguished_from_disappearance() {
    for (left, is_reversed) in [(-0.7, true), (-0.1, true), (-0.04, false), (0.0, false)] {
        let effect = |there: &[&str]| if there.contains(&"reach") { 0.7 } else { left };
        let (inquiry, deviations) = world(effect, (30, 0.03), 1);
        let found = judged(&inquiry, &deviations).1;
        let all = found.iter().flat_map(|group| &group.suspects);
        let reversed: Vec<&str> = all
            .filter(|one| one.is_reversed)
            .map(|one| one.suspect.as_str())
            .collect();
        assert_eq!(reversed == ["reach"], is_reversed, "{left}: {reversed:?}");
        assert_eq!(reversed.is_empty(), !is_reversed, "{left}: {reversed:?}");
        let share = found[0].suspects[0].share.expect("a share").share;
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
    let with_others = |found: &[Suspects]| -> Vec<bool> {
        let joint = found.iter().find(|one| one.verdict == CauseVerdict::Joint);
        let of_all = |one: &Suspects| one.suspects.iter().map(|one| one.with_others).collect();
        joint.map(of_all).unwrap_or_default()
    };
    let found = judged(&inquiry, &deviations).1;
    assert_eq!(of(&found, "reach"), CauseVerdict::Joint);
    assert_eq!(of(&found, "read-ahead"), CauseVerdict::Joint);
    assert_eq!(of(&found, "waiting"), CauseVerdict::Cleared);
    assert_eq!(with_others(&found), [false, false]);
    // As with more suspects, no variant is without these two alone.
    let mut variants = inquiry.variants.iter();
    let both = variants.position(|one| one.without == ["reach", "read-ahead"]);
    let both = both.expect("there");
    inquiry.variants.remove(both);
    deviations.remove(both);
    let found = judged(&inquiry, &deviations).1;
    assert_eq!(of(&found, "reach"), CauseVerdict::Joint);
    assert_eq!(with_others(&found), [true, true]);
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
    let found = judged(&inquiry, &deviations).1;
    assert_eq!(of(&found, "reach"), CauseVerdict::Cause);
    assert_eq!(of(&found, "read-ahead"), CauseVerdict::CannotTell);
    assert_eq!(of(&found, "waiting"), CauseVerdict::CannotTell);
}

/// One intervention doubles the phenomenon. The part that the others then remove from the double does not count.
#[test]
fn effect_added_by_intervention_is_not_phenomenon() {
    let effect = |there: &[&str]| {
        let doubles = !there.contains(&"read-ahead") && there.contains(&"waiting");
        if doubles { 1.4 } else { 0.7 }
    };
    let (inquiry, deviations) = world(effect, (30, 0.03), 10);
    let (again, found) = judged(&inquiry, &deviations);
    assert!((again.unexplained.expect("there").share - 1.0).abs() < 0.05);
    for name in NAMES {
        assert_eq!(of(&found, name), CauseVerdict::Cleared, "{name}");
    }
}

/// Half of the original difference has to be reproduced, whichever side is greater: a small certain part is
/// another difference.
#[test]
fn small_part_of_difference_does_not_reproduce_it() {
    let parts = [
        (0.19, Again::NotReproduced),
        (0.55, Again::Reproduced),
        (0.9, Again::Reproduced),
        (-0.9, Again::NotReproduced),
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
                let (found, suspects) = judged(&inquiry, &deviations);
                assert_eq!(found.again, again, "{part} of {seen}");
                let there = found.part().expect("trials").share;
                assert!((there - part).abs() < 0.02, "{part} of {seen}: {there}");
                let is_judged = suspects
                    .iter()
                    .any(|group| group.verdict != CauseVerdict::NotTried);
                assert_eq!(is_judged, again == Again::Reproduced, "{part} of {seen}");
            }
        }
    }
}

#[test]
fn noise_gives_no_verdict_but_blocks_needed() {
    let effect = |there: &[&str]| if there.contains(&"reach") { 0.3 } else { 0.0 };
    let (inquiry, deviations) = world(effect, (20, 0.2), 8);
    let found = judged(&inquiry, &deviations).1;
    let open = found
        .iter()
        .find(|group| group.verdict == CauseVerdict::CannotTell);
    let open = open.expect("noise of a fifth");
    let needed = open.suspects.iter().filter_map(|one| one.blocks_needed);
    assert!(needed.max().is_some_and(|blocks| blocks > 20));
    let few = world(effect, (4, 0.03), 9);
    assert_eq!(judged(&few.0, &few.1).0.again, Again::CannotTell);
}
