//! How far a run has come. What is left is estimated anew after every trial, from what the trials of each cell took so far.
//! The estimate can grow, but the share that is done never falls: each trial takes it forward by its part of what is left.

use std::collections::HashMap;
use std::time::Duration;

/// The share that is done (0 to 1) and the time left, as last shown.
#[derive(Debug, Default)]
pub(super) struct ProgressEstimate {
    share: Option<f64>,
    left: Option<Duration>,
}

impl ProgressEstimate {
    /// Notes a trial: `done` trials are done with it, `left` are left as far as can be foreseen. Gives the share that is done,
    /// which is 1 only where none is left.
    pub(super) fn trial(&mut self, done: u64, left: u64) -> f64 {
        let share = match self.share {
            // What an earlier session has done counts at once.
            None => done as f64 / (done + left).max(1) as f64,
            Some(before) => before + (1.0 - before) / (left + 1) as f64,
        };
        self.share = Some(share);
        share
    }

    /// The time that is left, which never grows: where a later estimate is longer, the earlier one stands.
    pub(super) fn time(&mut self, estimate: Duration) -> Duration {
        let left = self.left.map_or(estimate, |before| before.min(estimate));
        self.left = Some(left);
        left
    }
}

/// What trials of each cell take.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// Per cell the time of its warm-up trials and their number, and the same of its measured ones.
    cells: HashMap<usize, [(Duration, u32); 2]>,
    /// The same of all trials.
    all: (Duration, u32),
}

impl Costs {
    /// Notes a trial.
    pub(super) fn add(&mut self, cell: usize, warmup: bool, took: Duration) {
        let own = &mut self.cells.entry(cell).or_default()[usize::from(!warmup)];
        for (time, trials) in [own, &mut self.all] {
            *time += took;
            *trials += 1;
        }
    }

    /// What the next trial of a cell takes: the mean of its measured trials, else of its warm-up, else of all cells.
    pub(super) fn of(&self, cell: usize) -> Duration {
        let mean = |(time, trials): (Duration, u32)| time.checked_div(trials);
        let own = self.cells.get(&cell);
        let own = own.and_then(|[warmup, measured]| mean(*measured).or_else(|| mean(*warmup)));
        own.or_else(|| mean(self.all)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_never_goes_back(lefts in prop::collection::vec(0u64..10_000, 1..200), before in 0u64..1000) {
            let mut advance = ProgressEstimate::default();
            let mut last = 0.0;
            for (trial, left) in lefts.iter().enumerate() {
                let share = advance.trial(before + trial as u64 + 1, *left);
                prop_assert!((last..=1.0).contains(&share));
                last = share;
            }
        }
    }

    #[test]
    fn the_time_left_never_grows() {
        let mut advance = ProgressEstimate::default();
        let seconds = [60, 40, 55, 30, 31, 0].map(Duration::from_secs);
        let told = seconds.map(|estimate| advance.time(estimate).as_secs());
        assert_eq!(told, [60, 40, 40, 30, 30, 0]);
    }

    #[test]
    fn steady_estimates_give_equal_steps() {
        let mut advance = ProgressEstimate::default();
        for done in 1..=10 {
            let share = advance.trial(done, 10 - done);
            assert!((share - done as f64 / 10.0).abs() < 1e-12);
        }
    }

    #[test]
    fn the_next_trial_of_a_cell_takes_what_its_measured_ones_took() {
        let seconds = Duration::from_secs;
        let mut costs = Costs::default();
        assert_eq!(costs.of(0), seconds(0), "nothing is known");
        costs.add(0, true, seconds(9));
        assert_eq!(costs.of(0), seconds(9), "the warm-up");
        assert_eq!(costs.of(1), seconds(9), "the mean of all");
        costs.add(0, false, seconds(1));
        costs.add(0, false, seconds(3));
        assert_eq!(costs.of(0), seconds(2));
    }
}
