//! Grading of claims: how often they are true.

use std::fmt;

use iolab_stats::share_bounds;

/// Result for one claim in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The claim was not made.
    NotClaimed,
    /// The claim was made, and is true.
    True,
    /// The claim was made, and is false.
    False,
}

impl Outcome {
    /// Result for several claims of one run: false if any is false, claimed if any is claimed.
    pub fn of_all(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter()
            .fold(Self::NotClaimed, |sum, one| match (sum, one) {
                (Self::False, _) | (_, Self::False) => Self::False,
                (Self::True, _) | (_, Self::True) => Self::True,
                (Self::NotClaimed, Self::NotClaimed) => Self::NotClaimed,
            })
    }
}

/// Results of one kind of claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score<K> {
    /// Kind of claim.
    pub kind: K,
    /// Number of runs in which it could be claimed.
    pub runs: usize,
    /// Number of runs in which it was claimed.
    pub claimed: usize,
    /// Number of runs in which it was claimed and false.
    pub false_claims: usize,
}

/// Makes runs with the seeds from 1 on, and counts the results of one kind of claim. A run can be any value: a
/// record with its truth, or two of them.
pub fn grade<K, R>(
    kind: K,
    runs: usize,
    make: impl Fn(u64) -> R,
    claimed: impl Fn(R) -> Outcome,
) -> Score<K> {
    let [score] = grade_each([kind], runs, make, |run| [claimed(run)], |_| false);
    score
}

/// Grades several kinds in the same runs: as many as `runs`, or until `is_decided` of each kind.
pub fn grade_each<K, R, const N: usize>(
    kinds: [K; N],
    runs: usize,
    make: impl Fn(u64) -> R,
    claimed: impl Fn(R) -> [Outcome; N],
    is_decided: impl Fn(&Score<K>) -> bool,
) -> [Score<K>; N] {
    let mut scores = kinds.map(|kind| Score {
        kind,
        runs: 0,
        claimed: 0,
        false_claims: 0,
    });
    for seed in 1..=runs as u64 {
        for (score, outcome) in scores.iter_mut().zip(claimed(make(seed))) {
            score.count(outcome);
        }
        if scores.iter().all(&is_decided) {
            break;
        }
    }
    scores
}

impl<K> Score<K> {
    fn count(&mut self, outcome: Outcome) {
        self.runs += 1;
        self.claimed += usize::from(outcome != Outcome::NotClaimed);
        self.false_claims += usize::from(outcome == Outcome::False);
    }

    /// Whether the runs so far already show a share of false claims below the limit of
    /// [`is_false_at_most`](Self::is_false_at_most) for `runs` runs. Uses the exact bound for a share that is
    /// wrong as rarely as three standard errors.
    pub fn shows_false_at_most(&self, share: f64, runs: usize) -> bool {
        let limit = share + chance(share, runs) / runs as f64;
        let bounds = share_bounds(
            self.false_claims as f64, self.runs as f64, BEYOND_THREE_ERRORS,
        );
        bounds.is_some_and(|(_, high)| high <= limit)
    }

    /// Whether the share of false claims is at most `share`, plus three standard errors.
    pub fn is_false_at_most(&self, share: f64) -> bool {
        self.false_claims as f64 <= share * self.runs as f64 + chance(share, self.runs)
    }

    /// Whether the share of runs with a true claim is at least `share`, minus three standard errors.
    pub fn is_true_at_least(&self, share: f64) -> bool {
        (self.claimed - self.false_claims) as f64
            >= share * self.runs as f64 - chance(share, self.runs)
    }
}

/// Three standard errors of the count of a share in this number of runs.
fn chance(share: f64, runs: usize) -> f64 {
    3.0 * (runs as f64 * share * (1.0 - share)).sqrt()
}

/// Probability of a normal distribution beyond three standard errors.
const BEYOND_THREE_ERRORS: f64 = 0.001_35;

/// Row of a Markdown table: kind, runs, claimed in %, false in %.
impl<K: fmt::Display> fmt::Display for Score<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |count: usize| 100.0 * count as f64 / self.runs.max(1) as f64;
        write!(
            f,
            "| {} | {} | {:.1} | {:.1} |",
            self.kind,
            self.runs,
            share(self.claimed),
            share(self.false_claims)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
