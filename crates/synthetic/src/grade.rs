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
