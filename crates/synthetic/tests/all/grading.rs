//! Counts of a grade, and the moment at which it shows its limit.

use iolab_synthetic::{Outcome, Score, grade, grade_each};

fn score(claimed: usize, false_claims: usize) -> Score<&'static str> {
    Score {
        kind: "kind",
        runs: 400,
        claimed,
        false_claims,
    }
}

#[test]
fn limits_leave_three_standard_errors() {
    // 20 of 400, and three times sqrt(400 * 0.05 * 0.95) = 13.08.
    assert!(score(33, 33).is_false_at_most(0.05));
    assert!(!score(34, 34).is_false_at_most(0.05));
    // 360 of 400, and three times 6.
    assert!(score(350, 8).is_true_at_least(0.9));
    assert!(!score(350, 9).is_true_at_least(0.9));
}

#[test]
fn few_false_claims_decide_before_the_end() {
    // 5 % and three standard errors of 200 runs are 9.6 %: without a false claim 66 runs show less, with
    // two 109.
    let decided = |false_claims: usize| {
        let score = |runs| Score {
            runs,
            ..score(false_claims, false_claims)
        };
        (false_claims..200).find(|runs| score(*runs).shows_false_at_most(0.05, 200))
    };
    assert_eq!([0, 2, 19].map(decided), [Some(66), Some(109), None]);
    let third = |run| [Outcome::True, Outcome::False][usize::from(run == 3)];
    let claimed = |run: u64| [Outcome::True, third(run)];
    let ended = |score: &Score<&str>| score.runs >= 5 || score.false_claims > 0;
    let scores = grade_each(["a", "b"], 100, |seed| seed, claimed, ended);
    let counts = scores.map(|score| (score.runs, score.false_claims));
    assert_eq!(counts, [(5, 0), (5, 1)]);
}

#[test]
fn each_run_is_counted_once() {
    let outcomes = [Outcome::True, Outcome::False, Outcome::NotClaimed];
    let score = grade("kind", 30, |seed| seed as usize, |run| outcomes[run % 3]);
    assert_eq!((score.claimed, score.false_claims), (20, 10));
    assert_eq!(Outcome::of_all(outcomes), Outcome::False);
    assert_eq!(score.to_string(), "| kind | 30 | 66.7 | 33.3 |");
}
