//! When to stop repeating: the precision goal, the number of trials, or the budget. Never a p-value.

use std::time::Duration;

use super::record::Record;
use iolab_plan::experiment::{Design, LAST_BLOCK};
use iolab_record::EndedBy;
use iolab_workload::settings::CellSpec;

/// The block that is being measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnderWay {
    /// Remaining time of the block.
    pub(super) rest: Duration,
    /// Whether its trials count, as trials of a warm-up do not.
    pub(super) is_measured: bool,
    /// Time of a whole block.
    pub(super) block: Duration,
}

/// Measured responses per cell, and their costs.
#[derive(Debug)]
pub(super) struct Repetition {
    design: Design,
    /// `None` for a cell that is not waited for.
    values: Vec<Option<Vec<f64>>>,
    spent: Duration,
    /// Duration of the last complete block, the estimate for the next.
    block: Duration,
    /// Trials of earlier blocks are not its own.
    first_block: u32,
    /// Trials of the record that were taken in.
    taken: usize,
    /// Time besides the trials that was taken in.
    probed: Duration,
    /// Whether no block begins beyond the budget, however few there are: blocks of an explanation are many trials each.
    must_be_paid: bool,
}

impl Repetition {
    pub(super) fn new(design: Design, cells: usize) -> Self {
        Self {
            design,
            values: vec![Some(Vec::new()); cells],
            spent: Duration::ZERO,
            block: Duration::ZERO,
            first_block: 0,
            taken: 0,
            probed: Duration::ZERO,
            must_be_paid: false,
        }
    }

    /// The rule from this block on, with a budget of its own: earlier measurements and probes do not count.
    pub(super) fn from(self, first_block: u32, record: &Record) -> Self {
        Self {
            first_block,
            probed: record.probed,
            must_be_paid: record.plan.experiment().inquiry.is_some(),
            ..self
        }
    }

    /// Adds the samples that were measured since the last call.
    pub(super) fn follow(&mut self, record: &Record) {
        let cells = record.plan.cells().len();
        self.values.resize(cells, Some(Vec::new()));
        let mut closed: Vec<usize> = record.closed.iter().copied().collect();
        // The group that the response is of may not run in some cells.
        let group = record.plan.experiment().response_group.as_deref();
        let all = record.plan.cells().iter().enumerate();
        // Likewise the operation whose latency it is.
        let is_latency = record.plan.experiment().response.is_latency();
        let timed = record.timed(None);
        let lacks =
            |spec: &CellSpec| is_latency && !spec.has_groups() && !timed.is_asked(&spec.trial);
        let silent = all.filter(|(_, cell)| !cell.spec.runs_group(group) || lacks(&cell.spec));
        closed.extend(silent.map(|(cell, _)| cell));
        for cell in closed {
            self.values[cell] = None;
        }
        let (new, first) = (&record.trials[self.taken..], self.first_block);
        for trial in new.iter().filter(|trial| trial.place.block >= first) {
            self.spend(trial.wall);
            if trial.is_measured {
                self.measured(trial.place.cell, trial.value.unwrap_or(0.0));
            }
        }
        self.taken = record.trials.len();
        self.spend(record.probed.saturating_sub(self.probed));
        self.probed = record.probed;
    }

    /// Adds a measured trial's response; not for warm-ups.
    pub(super) fn measured(&mut self, cell: usize, value: f64) {
        if let Some(values) = &mut self.values[cell] {
            values.push(value);
        }
    }

    /// Trials of the cell that has the fewest; `None` when no cell is waited for.
    fn fewest(&self) -> Option<usize> {
        self.values.iter().flatten().map(Vec::len).min()
    }

    /// Adds time that counts against the budget.
    pub(super) fn spend(&mut self, time: Duration) {
        self.spent += time;
    }

    /// Remaining budget.
    pub(super) fn left(&self) -> Duration {
        self.design.budget.saturating_sub(self.spent)
    }

    /// Notes the time of a whole block.
    pub(super) fn block_took(&mut self, time: Duration) {
        self.block = time;
    }

    pub(super) fn spent(&self) -> Duration {
        self.spent
    }

    /// Whether the cell's median is known well enough: its exact 95 % interval is within the goal on both sides of the median,
    /// with its last trial and without it. Ending at the first interval that is narrow enough would
    /// pick the intervals that are narrow by chance, and fewer than 93 % of them would hold the median. Values with a gap may be two
    /// groups, of which an interval may lie within one by chance: they are held to the 99 % interval.
    pub(super) fn is_precise(&self, cell: usize) -> bool {
        let Some(values) = &self.values[cell] else {
            return true;
        };
        let narrow = |values: &[f64]| {
            let confidence = if iolab_stats::has_gap(values) {
                0.99
            } else {
                0.95
            };
            let interval = iolab_stats::median_interval(values, confidence);
            let median = iolab_stats::median(values);
            median
                .zip(interval)
                .and_then(|(median, interval)| interval.precision(median))
                .is_some_and(|width| width <= self.design.precision)
        };
        values.len() >= self.design.trials_min as usize
            && narrow(values)
            && narrow(&values[..values.len() - 1])
    }

    /// Whether the repetition ends before another block, and why.
    pub(super) fn ends(&self) -> Option<EndedBy> {
        let Some(fewest) = self.fewest() else {
            return Some(EndedBy::TrialsMax);
        };
        let enough = fewest >= self.design.trials_min as usize;
        let most = self.design.trials_max as usize;
        let is_full = |values: &Vec<f64>| values.len() >= most;
        let is_over =
            |cell: usize| self.is_precise(cell) || self.values[cell].as_ref().is_some_and(is_full);
        let is_paid = !self.is_spent() && self.spent + self.block <= self.design.budget;
        // A run that is precise goes on until another one can be compared with it, if the budget has room for that.
        let wanted = self.design.trials_wanted(self.values.len()) as usize;
        let is_complete = enough && (fewest >= wanted || !is_paid);
        if is_complete && (0..self.values.len()).all(|cell| self.is_precise(cell)) {
            Some(EndedBy::Precision)
        } else if fewest >= most || is_complete && (0..self.values.len()).all(is_over) {
            Some(EndedBy::TrialsMax)
        } else if self.is_spent() || !is_paid && (enough || self.must_be_paid) {
            Some(EndedBy::Budget)
        } else {
            None
        }
    }

    /// Whether any cell still lacks trials or precision.
    pub(super) fn has_open_cells(&self) -> bool {
        (0..self.values.len()).any(|cell| !self.is_precise(cell))
    }

    /// Whether no further block is paid for. One that completes the fewest trials may begin a little late: without it all before were in
    /// vain.
    pub(super) fn is_spent(&self) -> bool {
        let lacks_one =
            self.fewest().map(|fewest| fewest + 1) == Some(self.design.trials_min as usize);
        let budget = match lacks_one {
            true => self.design.budget.mul_f64(LAST_BLOCK),
            false => self.design.budget,
        };
        self.spent >= budget
    }

    /// Reason for the end of the repetition of one cell, if this one ended the repetition as a whole.
    pub(super) fn ended_by(&self, cell: usize, ended: EndedBy) -> EndedBy {
        match self.values[cell].is_some() && self.is_precise(cell) {
            true => EndedBy::Precision,
            false => ended,
        }
    }

    /// Blocks that follow the one under way, as far as can be foreseen.
    pub(super) fn blocks_after(&self, now: &UnderWay) -> u32 {
        let room = self.room_after(now);
        self.trials_to_precision().map_or(room, |trials| {
            trials.saturating_sub(self.done(now)).min(room)
        })
    }

    /// Whether the number of blocks is only known to be bounded by the budget: too few trials show how precise they are.
    pub(super) fn is_bound_only(&self) -> bool {
        self.trials_to_precision().is_none()
    }

    /// Measured blocks that are complete once the one under way is.
    fn done(&self, now: &UnderWay) -> u32 {
        self.fewest().unwrap_or(0) as u32 + u32::from(now.is_measured && !now.rest.is_zero())
    }

    /// Blocks that the budget has room for; while trials are lacking, one more may exceed it.
    fn room_after(&self, now: &UnderWay) -> u32 {
        if self.fewest().is_none() {
            return 0;
        }
        let done = self.done(now);
        let left = self.design.budget.saturating_sub(self.spent + now.rest);
        let room = left.as_secs_f64() / now.block.as_secs_f64().max(1e-9);
        let lacking = self.design.trials_min.saturating_sub(done);
        (room as u32)
            .max(lacking.min(room.ceil() as u32))
            .max(u32::from(done == 0))
            .min(self.design.trials_max.saturating_sub(done))
    }

    /// Measured trials of each cell when all are precise; `None` if a cell has too few for an estimate. The width of an
    /// interval falls with the root of the number of trials, and two in a row have to be narrow.
    fn trials_to_precision(&self) -> Option<u32> {
        let open = (0..self.values.len()).filter(|cell| !self.is_precise(*cell));
        let needed = |cell: usize| {
            let values = self.values[cell].as_ref()?;
            let wider = self.precision(values)? / self.design.precision;
            let trials = (values.len() as f64 * wider.powi(2)).max(values.len() as f64);
            Some((trials.ceil().min(f64::from(u32::MAX)) as u32).saturating_add(1))
        };
        let most = open
            .map(needed)
            .collect::<Option<Vec<u32>>>()?
            .into_iter()
            .max();
        /// Six have an exact interval, and two in a row have to be narrow.
        const FEWEST: u32 = 7;
        let wanted = self.design.trials_wanted(self.values.len());
        Some(most.unwrap_or(0).max(wanted).max(FEWEST))
    }

    /// The precision of the median. If the trials are too few for the exact interval, an
    /// interval for normal values is used. Its standard deviation is a rough estimate from so few trials.
    fn precision(&self, values: &[f64]) -> Option<f64> {
        /// Trials from which a standard deviation is taken.
        const TRIALS_MIN: usize = 3;
        /// The interval of the median of normal values is 1.253 times as wide as the interval of the mean; 1.3 is for the
        /// roughness.
        const MEDIAN: f64 = 1.96 * 1.253 * 1.3;
        let median = iolab_stats::median(values)?;
        if let Some(interval) = iolab_stats::median_interval(values, 0.95) {
            return interval.precision(median);
        }
        let sd = iolab_stats::sd(values).filter(|_| values.len() >= TRIALS_MIN)?;
        let width = MEDIAN * sd / (values.len() as f64).sqrt() / median;
        Some(width).filter(|width| width.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repetition(cells: usize) -> Repetition {
        let design = Design {
            trials_min: 5,
            trials_max: 9,
            precision: 0.05,
            budget: Duration::from_secs(100),
            ..Design::default()
        };
        Repetition::new(design, cells)
    }

    fn block(r: &mut Repetition, values: &[f64], seconds: u64) {
        values
            .iter()
            .enumerate()
            .for_each(|(cell, value)| r.measured(cell, *value));
        r.spend(Duration::from_secs(seconds));
        r.block_took(Duration::from_secs(seconds));
    }

    #[test]
    fn precision_needs_two_narrow_intervals_in_all_cells() {
        let mut r = repetition(2);
        r.design.trials_max = 20;
        for _ in 0..5 {
            block(&mut r, &[100.0, 200.0], 1);
        }
        assert_eq!(r.ends(), None, "five values have no 95 % interval");
        block(&mut r, &[100.0, 300.0], 1);
        assert!(!r.is_precise(0), "six values have one, five had none");
        block(&mut r, &[100.0, 200.0], 1);
        assert!(r.is_precise(0) && !r.is_precise(1));
        // One value apart from the others leaves a gap: up to eleven the 99 % interval runs from the least to the greatest.
        for _ in 8..=12 {
            assert_eq!(r.ends(), None);
            block(&mut r, &[100.0, 200.0], 1);
        }
        assert_eq!(r.ends(), None, "the interval of twelve is the first");
        block(&mut r, &[100.0, 200.0], 1);
        assert_eq!(r.ends(), Some(EndedBy::Precision));
        assert_eq!(r.ended_by(0, EndedBy::Precision), EndedBy::Precision);
    }

    /// Ending on the width of the interval must not spoil its coverage: of the intervals that runs end with, at
    /// least 93 % hold the true median, whatever the spread.
    #[test]
    fn the_stopping_rule_keeps_the_coverage() {
        let (mut held, mut runs) = (0u32, 0u32);
        let mut normal = normal_numbers(2026);
        // Spreads from "precise at once" to "never precise"; between them the rule decides.
        for spread in [0.03, 0.06, 0.1, 0.15] {
            let mut here = 0;
            for _ in 0..400 {
                let mut r = repetition(1);
                (r.design.trials_min, r.design.trials_max) = (6, 200);
                while r.ends().is_none() {
                    r.measured(0, (spread * normal()).exp());
                }
                let interval =
                    iolab_stats::median_interval(r.values[0].as_deref().expect("open"), 0.95)
                        .expect("six");
                here += u32::from(interval.low <= 1.0 && 1.0 <= interval.high);
            }
            // Eight standard deviations of chance below 95 %.
            assert!(here >= 345, "{here} of 400 at a spread of {spread}");
            (held, runs) = (held + here, runs + 400);
        }
        assert!(held * 100 >= runs * 93, "{held} of {runs}");
    }

    /// Standard normal numbers, by the method of Box and Muller.
    fn normal_numbers(seed: u64) -> impl FnMut() -> f64 {
        use rand_core::{Rng, SeedableRng};
        let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
        move || {
            let mut uniform = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
            radius * (std::f64::consts::TAU * uniform()).cos()
        }
    }

    /// Between two measured blocks.
    fn between(block: u64) -> UnderWay {
        UnderWay {
            rest: Duration::ZERO,
            is_measured: true,
            block: Duration::from_secs(block),
        }
    }

    #[test]
    fn near_precision_fewer_blocks_are_foreseen() {
        let mut r = repetition(1);
        r.design.trials_max = 1000;
        assert_eq!(r.blocks_after(&between(1)), 100, "nothing is known yet");
        assert!(r.is_bound_only());
        // The interval of six values from 92 to 108 reaches 8 % from the median: (8 / 5)^2 times as many are needed.
        for value in [92.0, 108.0, 100.0, 100.0, 100.0, 100.0] {
            block(&mut r, &[value], 1);
        }
        assert!(!r.is_bound_only());
        assert_eq!(r.blocks_after(&between(1)), 11);
        assert_eq!(
            r.blocks_after(&between(47)),
            2,
            "the budget has room for two"
        );
        let in_mid_block = UnderWay {
            rest: Duration::from_secs(1),
            ..between(2)
        };
        assert_eq!(
            r.blocks_after(&in_mid_block),
            10,
            "one of them is under way"
        );
    }

    #[test]
    fn three_narrow_trials_foresee_the_end_by_precision() {
        let mut r = repetition(1);
        for value in [100.0, 100.2, 99.9] {
            assert!(r.is_bound_only());
            block(&mut r, &[value], 1);
        }
        assert!(!r.is_bound_only());
        assert_eq!(r.blocks_after(&between(1)), 4, "seven are the fewest");
    }

    #[test]
    fn precise_cells_complete_the_trials_of_a_comparison() {
        let ends_with = |cells: usize, most: u32, budget: u64| {
            let mut r = repetition(cells);
            r.design.trials_max = most;
            r.design.budget = Duration::from_secs(budget);
            while r.ends().is_none() {
                block(&mut r, &vec![100.0; cells], 1);
            }
            (r.ends(), r.fewest())
        };
        let precision = Some(EndedBy::Precision);
        assert_eq!(ends_with(1, 30, 100), (precision, Some(7)));
        assert_eq!(ends_with(16, 30, 100), (precision, Some(10)));
        assert_eq!(ends_with(112, 30, 100), (precision, Some(13)));
        assert_eq!(
            ends_with(112, 30, 9),
            (precision, Some(9)),
            "no room for more"
        );
        assert_eq!(
            ends_with(112, 8, 100),
            (precision, Some(8)),
            "no more allowed"
        );
    }

    #[test]
    fn no_block_beyond_the_budget_is_started() {
        let mut r = repetition(1);
        for value in 1..=5 {
            block(&mut r, &[f64::from(value)], 18);
            assert_eq!(r.ends().is_some(), value == 5, "{value}");
        }
        assert_eq!(r.ends(), Some(EndedBy::Budget));
        assert_eq!(r.ended_by(0, EndedBy::Budget), EndedBy::Budget);
        assert_eq!(r.ended_by(0, EndedBy::Search), EndedBy::Search);
    }

    #[test]
    fn below_trials_min_only_the_budget_ends_it() {
        let mut r = repetition(1);
        block(&mut r, &[1.0], 60);
        assert_eq!(
            r.ends(),
            None,
            "the next block is too long, but trials_min wants it"
        );
        assert_eq!(r.blocks_after(&between(60)), 1);
        assert_eq!(r.blocks_after(&between(15)), 3);
        assert_eq!(r.blocks_after(&between(4)), 8);
        block(&mut r, &[1.0], 60);
        assert_eq!(r.ends(), Some(EndedBy::Budget));
    }
}
