//! Rounds of all cells, in the order of the definition, until the last of them are steady; these are the measured trials.
//!
//! The search for the highest rate at which service levels hold: one trial after another, each at the rate that the search
//! chooses.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::super::Basis;
use super::super::record::{Record, Trial};
use super::super::sample::VisitPosition;
use super::{Finding, Outlook, Step, Strategy};
use crate::peers::overhead;
use crate::sample;
use crate::stopping_rule::Repetition;
use iolab_analysis::analysis::limits;
use iolab_analysis::slo::{self, Visits};
use iolab_plan::cells::PlannedCell;
use iolab_plan::precondition::SteadyRounds;
use iolab_record::{EndedBy, EventKind};
use iolab_stats::{Steadiness, steady_state};
use iolab_workload::histogram::counts;
use iolab_workload::names::TargetName;
use iolab_workload::service_level::ServiceLevels;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{RATE_MAX, Rate};
use iolab_workload::units::counted;
use iolab_workload::{Error, Result};

/// Number of the first round, counted like blocks: 0 is the warm-up of designs that have one.
const FIRST: u32 = 1;

/// Visits every cell in each round.
pub(super) struct Rounds {
    steady: SteadyRounds,
    /// The cells whose response decides whether rounds are steady.
    tracked: Vec<usize>,
    /// The first round that is judged: one that this session makes as a whole, because its targets were prepared anew.
    judged_from: u32,
    /// Number of trials of earlier sessions, whose data was trimmed or overwritten when the targets were prepared anew.
    earlier: usize,
    /// The number of the next round.
    next: u32,
    /// The remaining visits of the current round.
    order: VecDeque<VisitPosition>,
    /// Whether this session has begun a round: each makes at least one, whatever the budget is.
    has_begun: bool,
    is_over: bool,
}

impl Rounds {
    /// Starts with the first round that is not complete.
    pub(super) fn new(steady: SteadyRounds, record: &Record) -> Self {
        let cells: Vec<&CellSpec> = record.plan.cells().iter().map(|cell| &cell.spec).collect();
        let made = record.last_block.unwrap_or(FIRST);
        let is_open = |round: &u32| !Self::visits(record, *round).is_empty();
        let next = (FIRST..=made).find(is_open).unwrap_or(made + 1);
        let begun = record.trials.iter();
        let begun = begun.filter(|trial| trial.ok && trial.place.block == next);
        Self {
            steady,
            tracked: record.plan.experiment().tracked(cells),
            judged_from: next + u32::from(begun.count() > 0),
            earlier: record.trials.len(),
            next,
            order: VecDeque::new(),
            has_begun: false,
            is_over: false,
        }
    }

    /// The visits of a round that are still to be made.
    fn visits(record: &Record, round: u32) -> VecDeque<VisitPosition> {
        let place = |(position, cell): (usize, usize)| VisitPosition {
            cell,
            block: round,
            position: position as u32,
            warmup: false,
        };
        let all = record.open_cells().enumerate().map(place);
        all.filter(|place| !record.has(place.cell, round)).collect()
    }

    /// Steadiness of the last rounds in each tracked cell that is open; `None` for a cell with too few rounds.
    fn steadiness(&self, record: &Record) -> Vec<Option<Steadiness>> {
        let open = self
            .tracked
            .iter()
            .filter(|cell| !record.closed.contains(*cell));
        let of_cell = |cell: &usize| {
            let own = |trial: &&Trial| {
                let place = trial.place;
                trial.is_measured && place.cell == *cell && place.block >= self.judged_from
            };
            let rounds = record.trials.iter().filter(own);
            let rounds: Option<Vec<f64>> = rounds.map(|trial| trial.value).collect();
            steady_state(&rounds?, limits(&self.steady))
        };
        open.map(of_cell).collect()
    }

    /// Number of times that this session has written the range of a target in rounds before this one, the least over
    /// targets with writing cells. `None` without such cells.
    fn fills(&self, record: &Record, before: u32) -> Option<f64> {
        let cells = record.plan.cells();
        let mut of: BTreeMap<Option<&TargetName>, (u64, u64)> = BTreeMap::new();
        for spec in cells.iter().map(|cell| &cell.spec) {
            let own = spec.trials().into_iter().filter(|trial| trial.writes());
            let region = own.map(|trial| trial.region).max().unwrap_or(0);
            let (_, widest) = of.entry(spec.target.as_ref()).or_default();
            *widest = region.max(*widest);
        }
        let made = record.trials[self.earlier..].iter();
        for trial in made.filter(|trial| trial.place.block < before) {
            let target = cells[trial.place.cell].spec.target.as_ref();
            if let Some((written, _)) = of.get_mut(&target) {
                *written = written.saturating_add(trial.written);
            }
        }
        let fills = of.into_values().filter(|(_, region)| *region > 0);
        fills
            .map(|(written, region)| written as f64 / region as f64)
            .min_by(f64::total_cmp)
    }

    /// Whether the range was written as often as the design allows.
    fn is_filled(&self, record: &Record) -> bool {
        self.steady.fills.is_some_and(|most| {
            let fills = self.fills(record, u32::MAX);
            fills.is_some_and(|fills| fills >= f64::from(most))
        })
    }

    /// Whether equal rounds are not enough to end. The design limits how often the range is written. Before the last window
    /// it was not written once, so the storage may still be new. The rounds of a standard, of its length, end as the
    /// standard says.
    fn awaits_overwriting(&self, record: &Record, rounds: u32) -> bool {
        let experiment = record.plan.experiment();
        let cells: Vec<&CellSpec> = record.plan.cells().iter().map(|cell| &cell.spec).collect();
        let is_short = experiment
            .standard
            .is_none_or(|standard| standard.has_short_rounds(&cells));
        let prepared = experiment.design.precondition.seq + experiment.design.precondition.rand;
        let window = (rounds + FIRST).saturating_sub(self.steady.window);
        self.steady.fills.is_some()
            && is_short
            && prepared == 0
            && self.fills(record, window).is_some_and(|fills| fills < 1.0)
    }

    /// Reason for the end of the run after this many rounds; `None` if another follows.
    fn ends(&self, record: &Record, rounds: u32) -> Option<EndedBy> {
        let steady = self.steadiness(record);
        let is_steady = |one: &Option<Steadiness>| one.is_some_and(|steady| steady.reached);
        let is_steady = !steady.is_empty() && steady.iter().all(is_steady);
        let limit = if self.is_filled(record) {
            Some(EndedBy::Fills)
        } else if rounds >= self.steady.rounds {
            Some(EndedBy::TrialsMax)
        } else if self.has_begun && record.spent >= record.plan.experiment().design.budget {
            Some(EndedBy::Budget)
        } else {
            None
        };
        match is_steady && (limit.is_some() || !self.awaits_overwriting(record, rounds)) {
            true => Some(EndedBy::Steady),
            false => limit,
        }
    }

    /// Excludes the rounds before the last window, and names the reason for the end of the run.
    fn end(&mut self, record: &Record, rounds: u32, ended_by: EndedBy) -> Step {
        self.is_over = true;
        let first = (rounds + FIRST)
            .saturating_sub(self.steady.window)
            .max(FIRST);
        let judged = (rounds + FIRST).saturating_sub(self.judged_from);
        let made = counted(u64::from(rounds), "round");
        let state = match ended_by {
            // Whether that is a steady state depends on the whole run, which is known later.
            EndedBy::Steady => format!("after {made} the last {} are alike", self.steady.window),
            _ if judged < self.steady.window => format!(
                "cannot tell whether it is steady: {made}, a window needs {}",
                self.steady.window
            ),
            _ => format!("NOT steady after {made}"),
        };
        let measured = rounds + FIRST - first;
        let message = match measured == rounds {
            true => format!("{state}; all are measured"),
            false => format!("{state}; the last {measured} are measured"),
        };
        let kind = match ended_by {
            EndedBy::Steady => EventKind::Note,
            _ => EventKind::Warning,
        };
        let ended = record.open_cells();
        let ended = ended.map(|cell| Finding::Ended(cell, ended_by));
        let found = [Finding::LeftOutBefore(first), Finding::Told(kind, message)];
        Step::Keep(found.into_iter().chain(ended).collect())
    }
}

impl Strategy for Rounds {
    fn next(&mut self, record: &Record) -> Result<Step> {
        loop {
            if self.is_over {
                return Ok(Step::Done);
            }
            while let Some(place) = self.order.pop_front() {
                if !record.has(place.cell, place.block) {
                    return Ok(Step::Visit(place));
                }
            }
            let open = record.plan.cells().len() - record.closed.len();
            if open == 0 {
                self.is_over = true;
                continue;
            }
            let done = self.next - FIRST;
            let visits = Self::visits(record, self.next);
            // A round that an earlier session began is completed.
            if done > 0
                && visits.len() == open
                && let Some(ended_by) = self.ends(record, done)
            {
                return Ok(self.end(record, done, ended_by));
            }
            self.order = visits;
            self.next += 1;
            self.has_begun = true;
            let settle = record.plan.experiment().design.settle;
            if done > 0 && !settle.is_zero() {
                return Ok(Step::Rest(settle));
            }
        }
    }

    fn outlook(&mut self, record: &Record) -> Outlook {
        let costs = record.open_cells().map(|cell| record.costs.of(cell));
        let round: Duration = costs.sum();
        let round = match round.is_zero() {
            true => record.plan.block_at_most(&overhead(record.peers)),
            false => round,
        };
        let current = self.order.iter().map(|place| record.costs.of(place.cell));
        let current: Duration = current.sum();
        let done = self.next - FIRST;
        let left = self.steady.rounds.saturating_sub(done);
        let settle = record.plan.experiment().design.settle;
        let budget = record.plan.experiment().design.budget;
        let all = current + (round + settle).saturating_mul(left);
        // A round that begins within the budget is completed.
        let paid = budget.saturating_sub(record.spent) + round;
        Outlook {
            time: all.min(paid),
            basis: Basis::AtMost,
        }
    }
}

/// After this share of the budget, rates are confirmed even if the search has not converged.
const SEARCHES: f64 = 0.6;

/// Searches for the rate, starting with the first rate of the experiment.
pub(super) struct RateSearch {
    repetition: Repetition,
    search: slo::Search,
    visits: Visits,
    /// The block of the next trial; the first block is the warm-up.
    block: u32,
    stage: Stage,
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
    /// Searches for the rate at which these levels hold, with the results of earlier sessions.
    ///
    /// # Errors
    /// When the run file cannot be read.
    pub(super) fn new(levels: &ServiceLevels, record: &Record) -> Result<Self> {
        let experiment = record.plan.experiment();
        let first = &record.plan.cells()[0].spec.trial;
        let start = first.rate.and_then(Rate::requests).unwrap_or(1);
        let least = experiment.least_rate()?.clamp(1, RATE_MAX);
        let mut search = slo::Search::new(start, least, RATE_MAX, record.seed);
        let stored = iolab_runfile::read(&record.path)?;
        let latencies = iolab_runfile::read_latency(&record.path)?;
        let recall = |rate, kept| search.recall(rate, kept);
        let visits = Visits::of_run(levels, &stored, latencies, recall)?;
        let next = stored.samples.iter().map(|sample| sample.block + 1).max();
        Ok(Self {
            repetition: Repetition::new(experiment.design, record.plan.cells().len()),
            search,
            visits,
            block: next.unwrap_or(0),
            stage: Stage::Choose,
        })
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

    /// Updates the search with the trial at this rate.
    fn learn(&mut self, next: Next, record: &Record) {
        let Some(last) = &record.last else {
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
    fn choose(&mut self, spent: f64) -> Option<Next> {
        let Self { search, visits, .. } = self;
        let confirm = |search: &mut slo::Search| search.confirm(&|rate| visits.shown(rate));
        if spent >= SEARCHES
            && let Some(rate) = confirm(search)
        {
            return Some(Next::Confirms(rate));
        }
        let next = search.step().map(Next::Searches);
        next.or_else(|| confirm(search).map(Next::Confirms))
    }

    /// Reports what ended each cell that was visited.
    fn end(&mut self, ended: EndedBy, record: &Record) -> Step {
        self.stage = Stage::Over;
        // A starting rate that the search did not need has no trial, and no failure.
        let visited = record.open_cells().filter(|cell| record.has_any(*cell));
        let found = visited.map(|cell| Finding::Ended(cell, self.repetition.ended_by(cell, ended)));
        Step::Keep(found.collect())
    }
}

impl Strategy for RateSearch {
    fn next(&mut self, record: &Record) -> Result<Step> {
        self.repetition.follow(record);
        if let Stage::Over = self.stage {
            return Ok(Step::Done);
        }
        if let Stage::Visits(next) = self.stage {
            // The warm-up is not a result.
            if self.block > 0 {
                self.learn(next, record);
            }
            self.block += 1;
            self.stage = Stage::Choose;
        }
        let next = match self.stage {
            Stage::Adds(next) => Some(next),
            _ if self.block > 0 && self.repetition.is_spent() => {
                return Ok(self.end(EndedBy::Budget, record));
            }
            _ => self.choose(self.spent(record)),
        };
        match next {
            Some(next) => self.towards(next, record),
            None => Ok(self.end(EndedBy::Search, record)),
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
