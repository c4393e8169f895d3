//! Estimate of the remaining time of a run, made anew after every trial, from the times of the trials of each cell so far.

use std::collections::HashMap;
use std::time::Duration;

/// The time left, as last shown.
#[derive(Debug, Default)]
pub(super) struct TimeLeft(Option<Duration>);

impl TimeLeft {
    /// The remaining time, which never grows: a longer later estimate is ignored.
    pub(super) fn estimate(&mut self, estimate: Duration) -> Duration {
        let left = self.0.map_or(estimate, |before| before.min(estimate));
        self.0 = Some(left);
        left
    }
}

/// Times of the trials of each cell.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// Per cell, time and number of its warm-up trials, and of its measured ones.
    cells: HashMap<usize, [(Duration, u32); 2]>,
    /// Time and number of all trials.
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

    /// Expected time of the next trial of a cell: the mean of its measured trials, otherwise of its warm-up, otherwise of
    /// all cells.
    pub(super) fn of(&self, cell: usize) -> Duration {
        let mean = |(time, trials): (Duration, u32)| time.checked_div(trials);
        let own = self.cells.get(&cell);
        let own = own.and_then(|[warmup, measured]| mean(*measured).or_else(|| mean(*warmup)));
        own.or_else(|| mean(self.all)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_never_grows() {
        let mut left = TimeLeft::default();
        let seconds = [60, 40, 55, 30, 31, 0].map(Duration::from_secs);
        let told = seconds.map(|estimate| left.estimate(estimate).as_secs());
        assert_eq!(told, [60, 40, 40, 30, 30, 0]);
    }

    #[test]
    fn a_cells_next_trial_takes_its_measured_mean() {
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
