//! A run that searches for the greatest rate at which its levels hold: one trial after the other, each at the rate that the
//! search asks for.

use std::sync::atomic::AtomicBool;

use iolab_analysis::slo::{Search, Step, Visits};
use iolab_plan::cells::PlannedCell;
use iolab_record::EventKind;
use iolab_spec::Result;
use iolab_spec::level::Levels;
use iolab_spec::trial::{RATE_MAX, Rate};

use super::super::execute::Executor;
use super::super::repetition::Ended;
use super::super::sample::Place;
use super::Session;

/// Share of the budget from which on rates are confirmed, whether or not the search is done.
const SEARCHES: f64 = 0.6;

/// A rate, and who asked for it.
#[derive(Debug, Clone, Copy)]
enum Next {
    Searches(u64),
    Confirms(u64),
}

impl Next {
    fn rate(self) -> u64 {
        match self {
            Self::Searches(rate) | Self::Confirms(rate) => rate,
        }
    }
}

impl Session<'_> {
    /// Visits rates until the limit is known well enough or the budget is spent.
    pub(super) fn search(
        &mut self,
        levels: &Levels,
        executor: &mut dyn Executor,
        stop: &AtomicBool,
    ) -> Result<Ended> {
        let trial = &self.plan.cells()[0].spec.trial;
        let start = trial.rate.and_then(Rate::requests).unwrap_or(1);
        let least = self.plan.experiment().least_rate()?;
        let mut search = Search::new(start, least.clamp(1, RATE_MAX), RATE_MAX, self.seed);
        // What an earlier session has measured.
        let path = self.file.path().to_owned();
        let record = iolab_runfile::read(&path)?;
        let latencies = iolab_runfile::read_latency(&path)?;
        let recall = |rate, kept| search.recall(rate, kept);
        let mut visits = Visits::of_run(levels, &record, latencies, recall)?;
        let first = record.samples.iter().map(|sample| sample.block + 1).max();
        for block in first.unwrap_or(0).. {
            if block > 0 && self.phase.repetition.is_spent() {
                return Ok(Ended::Budget);
            }
            let Some(next) = self.next_rate(&mut search, &visits) else {
                break;
            };
            let rate = next.rate();
            let place = Place {
                cell: self.cell_of(rate, executor)?,
                block,
                visit: 0,
                position: 0,
                warmup: block == 0,
            };
            self.trial(place, executor, stop)?;
            let seen = self.seen.take();
            if let Some((sample, times)) = seen.filter(|_| block > 0) {
                let kept = visits.add(rate, sample, times);
                match next {
                    Next::Searches(_) => search.visited(kept),
                    Next::Confirms(_) => search.recall(rate, kept),
                }
            }
        }
        Ok(Ended::Precision)
    }

    /// The next rate: those that the search asks for, then those at which the levels are to be shown to hold and to fail. A
    /// search that is not done leaves them a share of the budget, and takes what they leave.
    fn next_rate(&self, search: &mut Search, visits: &Visits) -> Option<Next> {
        let budget = self.plan.experiment().design.budget;
        let is_late = self.phase.repetition.spent() >= budget.mul_f64(SEARCHES);
        let confirm = |search: &mut Search| search.confirm(&|rate| visits.shown(rate));
        if is_late && let Some(rate) = confirm(search) {
            return Some(Next::Confirms(rate));
        }
        match search.step() {
            Step::Visit(rate) => Some(Next::Searches(rate)),
            Step::Done => confirm(search).map(Next::Confirms),
        }
    }

    /// The cell with this rate, which is added where there is none.
    fn cell_of(&mut self, rate: u64, executor: &mut dyn Executor) -> Result<usize> {
        let has = |cell: &PlannedCell| cell.spec.trial.rate == Some(Rate::Requests(rate));
        if let Some(known) = self.plan.cells().iter().position(has) {
            return Ok(known);
        }
        let id = self.plan.cells().len();
        self.take_in(self.plan.at_rate(rate)?, executor)?;
        self.phase.repetition.grow();
        Ok(id)
    }

    /// Notes the rates that were never visited.
    pub(super) fn leave_unvisited(&mut self) -> Result<()> {
        for id in 0..self.plan.cells().len() {
            if !self.phase.has_any(id) {
                self.phase.close(id);
                self.keep(
                    EventKind::Gap,
                    Some(id),
                    "the search did not come to this rate",
                )?;
            }
        }
        Ok(())
    }
}
