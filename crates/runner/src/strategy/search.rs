//! The search for the highest rate at which service levels hold: one trial after another, each at the rate that the search
//! chooses.

use iolab_analysis::slo::{self, Visits};
use iolab_plan::cells::PlannedCell;
use iolab_workload::histogram::counts;
use iolab_workload::response::ServiceLevels;
use iolab_workload::trial::{RATE_MAX, Rate};
use iolab_workload::{Error, Result};

use super::super::Basis;
use super::super::record::Record;
use super::super::sample::{self, VisitPosition};
use super::super::stopping_rule::{Ended, Repetition};
use super::{Outlook, Step, Strategy, ending};

/// After this share of the budget, rates are confirmed even if the search has not converged.
const SEARCHES: f64 = 0.6;

/// Searches for the rate, starting with the first rate of the experiment.
pub(super) struct RateSearch {
    levels: ServiceLevels,
    repetition: Repetition,
    /// `None` until the first step, which reads what earlier sessions measured.
    found: Option<Found>,
    /// The block of the next trial; the first block is the warm-up.
    block: u32,
    stage: Stage,
}

/// State of the search so far.
struct Found {
    search: slo::Search,
    visits: Visits,
}

/// The state of the search at one rate.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// A rate must be chosen.
    Choose,
    /// The plan needs a cell with this rate.
    Adds(Next),
    /// A trial at this rate is due.
    Visits(Next),
    /// The search has ended and reported how.
    Over,
}

/// A rate, with the reason for the trial.
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

impl RateSearch {
    /// Searches for the rate at which these levels hold.
    pub(super) fn new(levels: ServiceLevels, record: &Record) -> Self {
        let design = record.plan.experiment().design;
        Self {
            levels,
            repetition: Repetition::new(design, record.plan.cells().len()),
            found: None,
            block: 0,
            stage: Stage::Choose,
        }
    }

    /// Reads what earlier sessions found.
    fn recall(&mut self, record: &Record) -> Result<Found> {
        let experiment = record.plan.experiment();
        let first = &record.plan.cells()[0].spec.trial;
        let start = first.rate.and_then(Rate::requests).unwrap_or(1);
        let least = experiment.least_rate()?.clamp(1, RATE_MAX);
        let mut search = slo::Search::new(start, least, RATE_MAX, record.seed);
        let (stored, latencies) = (record.stored()?, record.stored_latencies()?);
        let recall = |rate, kept| search.recall(rate, kept);
        let visits = Visits::of_run(&self.levels, &stored, latencies, recall)?;
        let next = stored.samples.iter().map(|sample| sample.block + 1).max();
        self.block = next.unwrap_or(0);
        Ok(Found { search, visits })
    }

    /// The used share of the budget, from 0.
    fn spent(&self, record: &Record) -> f64 {
        let budget = record.plan.experiment().design.budget;
        self.repetition.spent().as_secs_f64() / budget.as_secs_f64().max(1e-9)
    }

    /// The next step towards a trial at this rate: adds its cell if there is none.
    fn towards(&mut self, next: Next, record: &Record) -> Result<Step> {
        let rate = Rate::Requests(next.rate());
        let has = |cell: &PlannedCell| cell.spec.trial.rate == Some(rate);
        match (record.plan.cells().iter().position(has), self.stage) {
            (Some(cell), _) => {
                self.stage = Stage::Visits(next);
                Ok(Step::Visit(VisitPosition {
                    cell,
                    block: self.block,
                    position: 0,
                    warmup: self.block == 0,
                }))
            }
            (None, Stage::Adds(_)) => Err(Error::usage(format!(
                "the plan has no cell at a rate of {rate}"
            ))
            .hint("leave [[only]] out of a search for a rate")),
            (None, _) => {
                self.stage = Stage::Adds(next);
                let addition = record.plan.at_rate(next.rate())?;
                Ok(Step::Add(Box::new(addition)))
            }
        }
    }

    /// Reports what ended each cell that was visited.
    fn end(&mut self, ended: Ended, record: &Record) -> Step {
        self.stage = Stage::Over;
        let found = |cell: usize| match record.has_any(cell) {
            true => ending(record, &self.repetition, ended, cell),
            // No failure: the search did not need this starting rate.
            false => None,
        };
        let cells = 0..record.plan.cells().len();
        Step::Keep(cells.filter_map(found).collect())
    }
}

impl Found {
    /// Updates the search with the trial at this rate.
    fn learn(&mut self, next: Next, record: &Record) {
        let Some(last) = record.last() else {
            return;
        };
        let times = sample::histograms(&last.outcome).into_iter();
        let times = times.map(|(of, histogram)| (of, counts(histogram)));
        let rate = next.rate();
        let kept = self.visits.add(rate, last.sample.clone(), times.collect());
        match next {
            Next::Searches(_) => self.search.visited(kept),
            Next::Confirms(_) => self.search.recall(rate, kept),
        }
    }

    /// The next rate: first the rates that the search chooses, then rates that confirm where the levels hold and where they
    /// fail. A search that has not converged leaves part of the budget for the confirmation, and uses the rest after it.
    fn next(&mut self, spent: f64) -> Option<Next> {
        let Self { search, visits } = self;
        let confirm = |search: &mut slo::Search| search.confirm(&|rate| visits.shown(rate));
        if spent >= SEARCHES
            && let Some(rate) = confirm(search)
        {
            return Some(Next::Confirms(rate));
        }
        match search.step() {
            slo::Step::Visit(rate) => Some(Next::Searches(rate)),
            slo::Step::Done => confirm(search).map(Next::Confirms),
        }
    }
}

impl Strategy for RateSearch {
    fn next(&mut self, record: &Record) -> Result<Step> {
        self.repetition.follow(record);
        if let Stage::Over = self.stage {
            return Ok(Step::Done);
        }
        let mut found = match self.found.take() {
            Some(found) => found,
            None => self.recall(record)?,
        };
        if let Stage::Visits(next) = self.stage {
            // The warm-up is not a result.
            if self.block > 0 {
                found.learn(next, record);
            }
            self.block += 1;
            self.stage = Stage::Choose;
        }
        let next = match self.stage {
            Stage::Adds(next) => Some(next),
            _ if self.block > 0 && self.repetition.is_spent() => {
                return Ok(self.end(Ended::Budget, record));
            }
            _ => found.next(self.spent(record)),
        };
        self.found = Some(found);
        match next {
            Some(next) => self.towards(next, record),
            None => Ok(self.end(Ended::Search, record)),
        }
    }

    /// The budget is the latest end.
    fn outlook(&mut self, record: &Record) -> Outlook {
        self.repetition.follow(record);
        Outlook {
            time: self.repetition.left(),
            basis: Basis::AtMost,
        }
    }
}
