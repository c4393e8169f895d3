//! Randomised complete blocks over all cells until these are precise, or the trials or the budget are spent.

use std::collections::VecDeque;
use std::time::Duration;

use iolab_plan::blocks::block_visits;
use iolab_record::Pilot;
use iolab_workload::Result;

use super::super::Basis;
use super::super::record::Record;
use super::super::sample::VisitPosition;
use super::super::stopping_rule::{Ended, Repetition, UnderWay};
use super::{Outlook, Step, Strategy, Visit, ending};

/// Visits every cell in each block, in random order.
pub(super) struct Blocks {
    /// The warm-up.
    first: u32,
    /// The block that is begun next.
    next: u32,
    /// What is left of the block that was begun last.
    order: VecDeque<VisitPosition>,
    /// When the first trial of that block in this session began.
    began: Option<Duration>,
    repetition: Repetition,
    /// Every session measures at least one block, because a run without any has no result.
    granted: bool,
    /// What was chosen for each cell, for the blocks from `chosen_from` on; empty where nothing was.
    chosen: Vec<Pilot>,
    chosen_from: u32,
    /// Whether it has said what ended it.
    is_over: bool,
}

/// How far blocks have come.
pub(super) enum Reached {
    /// This is to be done next.
    Step(Step),
    /// The block that was asked for is next.
    Block,
}

impl Blocks {
    /// From block `first` on, which is a warm-up.
    pub(super) fn new(record: &Record, first: u32) -> Self {
        let design = record.plan.experiment().design;
        Self {
            first,
            next: first,
            order: VecDeque::new(),
            began: None,
            repetition: Repetition::new(design, record.plan.cells().len()).from(first, record),
            granted: true,
            chosen: Vec::new(),
            chosen_from: 0,
            is_over: false,
        }
    }

    /// The warm-up.
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// The repetition of the cells.
    pub(super) fn repetition(&self) -> &Repetition {
        &self.repetition
    }

    /// Visits each cell as `chosen` says from this block on, each of which then takes so long.
    pub(super) fn choose(&mut self, from: u32, chosen: Vec<Pilot>, takes: Option<Duration>) {
        (self.chosen, self.chosen_from) = (chosen, from);
        if let Some(takes) = takes {
            self.repetition.block_took(takes);
        }
    }

    /// What a cell gets in a block, where something was chosen for it.
    fn chosen(&self, cell: usize, block: u32) -> Option<Pilot> {
        let chosen = self.chosen.get(cell).copied();
        chosen.filter(|_| block >= self.chosen_from)
    }

    /// Visits of a block to a cell. A cell never gets more trials than are allowed, and none after those.
    fn visits(&self, record: &Record, cell: usize, block: u32) -> u32 {
        let Some(Pilot { visits, .. }) = self.chosen(cell, block) else {
            return 1;
        };
        // The warm-up does not count, and the blocks before the choice visit each cell once.
        let before = self.chosen_from - self.first - 1;
        let before = before.saturating_add((block - self.chosen_from).saturating_mul(visits));
        let most = record.plan.experiment().design.trials_max;
        visits.min(most.saturating_sub(before))
    }

    /// The next step; where block `until` is the next to be begun, that.
    pub(super) fn advance(&mut self, record: &Record, until: Option<u32>) -> Reached {
        self.repetition.follow(record);
        if self.is_over {
            return Reached::Step(Step::Done);
        }
        loop {
            if let Some(visit) = self.rest_of_block(record) {
                self.began.get_or_insert(record.now);
                return Reached::Step(Step::Visit(visit));
            }
            if let Some(began) = self.began.take() {
                let took = record.now.saturating_sub(began);
                self.repetition.block_took(took);
            }
            if until == Some(self.next) {
                return Reached::Block;
            }
            if let Some(step) = self.begin_block(record) {
                return Reached::Step(step);
            }
        }
    }

    /// The next trial of the block that was begun.
    fn rest_of_block(&mut self, record: &Record) -> Option<Visit> {
        let mut rest = std::iter::from_fn(|| self.order.pop_front());
        let place = rest.find(|place| !record.has(place.cell, place.block, place.visit))?;
        let chosen = self.chosen(place.cell, place.block);
        let time_ns = chosen.and_then(|chosen| chosen.time_ns);
        Some(Visit {
            time: time_ns.map(Duration::from_nanos),
            ..Visit::of(place)
        })
    }

    /// Begins the next block, and gives the pause before it; or what ended the blocks. `None` where nothing is left of it.
    fn begin_block(&mut self, record: &Record) -> Option<Step> {
        let (block, is_first) = (self.next, self.next == self.first);
        let cells = 0..record.plan.cells().len();
        let counts: Vec<u32> = cells.map(|cell| self.visits(record, cell, block)).collect();
        let mut order = block_visits(record.seed, block, &counts);
        order.retain(|(cell, _)| !record.is_closed(*cell));
        let order: VecDeque<VisitPosition> = order
            .into_iter()
            .enumerate()
            .map(|(position, (cell, visit))| VisitPosition {
                cell,
                block,
                visit,
                position: position as u32,
                warmup: is_first,
            })
            .collect();
        let has = |place: &&VisitPosition| record.has(place.cell, place.block, place.visit);
        let done = order.iter().filter(has).count();
        let is_open = done < order.len();
        // A block that an earlier session began is completed, even where the stopping rule would end the run now.
        if done == 0
            && !is_first
            && let Some(ended) = self.repetition.ends()
            && !(self.granted && ended == Ended::Budget && self.repetition.has_open_cells())
        {
            self.is_over = true;
            let cells = 0..record.plan.cells().len();
            let found = cells.filter_map(|cell| ending(record, &self.repetition, ended, cell));
            return Some(Step::Keep(found.collect()));
        }
        self.granted &= !is_open || is_first;
        self.order = order;
        self.next += 1;
        let settle = record.plan.experiment().design.settle;
        (is_open && block > 0).then_some(Step::Rest(settle))
    }
}

impl Strategy for Blocks {
    fn next(&mut self, record: &Record) -> Result<Step> {
        Ok(match self.advance(record, None) {
            Reached::Step(step) => step,
            Reached::Block => Step::Done,
        })
    }

    fn outlook(&mut self, record: &Record) -> Outlook {
        self.repetition.follow(record);
        let last = record.last_block().filter(|last| *last >= self.first);
        // The one that is being measured, and the one after it.
        let (block, next) = last.map_or((self.first, self.first), |last| (last, last + 1));
        let is_warmup = block == self.first;
        let mut now = UnderWay {
            rest: Duration::ZERO,
            is_measured: !is_warmup,
            block: Duration::ZERO,
        };
        let mut in_block = 0;
        for cell in (0..record.plan.cells().len()).filter(|cell| !record.is_closed(*cell)) {
            let visits = 0..self.visits(record, cell, block);
            let is_to_come = |visit: &u32| !record.has(cell, block, *visit);
            let to_come = visits.filter(is_to_come).count() as u32;
            let cost = record.cost(cell);
            now.rest += cost * to_come;
            now.block += cost * self.visits(record, cell, next);
            in_block += to_come;
        }
        // A part of the first block shows little.
        if is_warmup && in_block > 0 {
            // A warm-up and a measured block are granted, whatever they take.
            let granted = record.plan.block_at_most().saturating_mul(2);
            let granted = granted.saturating_sub(self.repetition.spent());
            return Outlook {
                time: self.repetition.left().max(granted).max(now.rest),
                basis: Basis::Budget,
            };
        }
        let further = self.repetition.blocks_after(&now);
        let settle = record.plan.experiment().design.settle;
        Outlook {
            time: now.rest + (now.block + settle).saturating_mul(further),
            basis: match self.repetition.is_bound_only() {
                true => Basis::AtMost,
                false => Basis::Trials,
            },
        }
    }
}
