//! Measures how often claims are true.

use std::fmt;

/// The result for one claim in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was not claimed.
    NotClaimed,
    /// It was claimed, and is true.
    True,
    /// It was claimed, and is false.
    False,
}

impl Outcome {
    /// The result for several claims of one run: false if any is false, claimed if any is claimed.
    pub fn of_all(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter()
            .fold(Self::NotClaimed, |sum, one| match (sum, one) {
                (Self::False, _) | (_, Self::False) => Self::False,
                (Self::True, _) | (_, Self::True) => Self::True,
                (Self::NotClaimed, Self::NotClaimed) => Self::NotClaimed,
            })
    }
}

/// The results of one kind of claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score<K> {
    /// The kind.
    pub kind: K,
    /// Number of runs in which it could be claimed.
    pub runs: usize,
    /// Number of runs in which it was claimed.
    pub claimed: usize,
    /// Number of runs in which it was claimed and false.
    pub false_claims: usize,
}

/// Makes runs with the seeds from 1 on, and counts the results. A run can be any value: a record with its truth, or two of them.
pub fn grade<K, R>(
    kind: K,
    runs: usize,
    make: impl Fn(u64) -> R,
    claimed: impl Fn(R) -> Outcome,
) -> Score<K> {
    let mut score = Score {
        kind,
        runs,
        claimed: 0,
        false_claims: 0,
    };
    for seed in 1..=runs as u64 {
        match claimed(make(seed)) {
            Outcome::NotClaimed => {}
            Outcome::True => score.claimed += 1,
            Outcome::False => {
                score.claimed += 1;
                score.false_claims += 1;
            }
        }
    }
    score
}

impl<K> Score<K> {
    /// Whether the share of false claims is at most this, plus three standard errors.
    pub fn is_false_at_most(&self, share: f64) -> bool {
        self.false_claims as f64 <= share * self.runs as f64 + self.chance(share)
    }

    /// Whether the share of runs with a true claim is at least this, minus three standard errors.
    pub fn is_true_at_least(&self, share: f64) -> bool {
        (self.claimed - self.false_claims) as f64 >= share * self.runs as f64 - self.chance(share)
    }

    /// Three standard errors of a count with this share.
    fn chance(&self, share: f64) -> f64 {
        3.0 * (self.runs as f64 * share * (1.0 - share)).sqrt()
    }
}

/// A row of a Markdown table: kind, runs, claimed in %, false in %.
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
    fn each_run_is_counted_once() {
        let outcomes = [Outcome::True, Outcome::False, Outcome::NotClaimed];
        let score = grade("kind", 30, |seed| seed as usize, |run| outcomes[run % 3]);
        assert_eq!((score.claimed, score.false_claims), (20, 10));
        assert_eq!(Outcome::of_all(outcomes), Outcome::False);
        assert_eq!(score.to_string(), "| kind | 30 | 66.7 | 33.3 |");
    }
}
