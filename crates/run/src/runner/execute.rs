//! What carries a trial out: the engine, or a stand-in where the runner itself is tested.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iolab_engine::clock::Clock;
use iolab_engine::trial;
use iolab_spec::Result;
use iolab_spec::outcome::Outcome;
use iolab_target::Target;

use super::fit;
use super::programs::Programs;
use crate::peer::Peers;
use iolab_plan::cells::PlannedCell;
use iolab_spec::settings::CellSpec;

/// How often a pause looks whether it is to end early.
const LOOK: Duration = Duration::from_millis(50);

/// Carries trials out, one after the other.
pub trait Executor {
    /// One trial of a cell, whose `trial` bears the trial's seed.
    ///
    /// # Errors
    /// When it could not be set up; a request that failed is counted in the outcome instead.
    fn run(&mut self, cell: &CellSpec, stop: &AtomicBool) -> Result<Outcome>;

    /// Why a cell cannot be carried out by the tool that it asks for; `None` where it can.
    fn gap(&self, cell: &CellSpec) -> Option<String>;

    /// Lets the time pass, unless `stop` is raised.
    fn pause(&mut self, time: Duration, stop: &AtomicBool);

    /// Fits a cell that is added in mid-run to what there is, as the others were before.
    ///
    /// # Errors
    /// Of kind usage: what does not fit.
    fn fit(&self, cell: &mut PlannedCell) -> Result<()>;

    /// What the sizes of direct requests have to be multiples of, bytes.
    fn alignment(&self) -> u64;

    /// Time since some moment before the first trial, by the clock that budgets count.
    fn now(&self) -> Duration;
}

/// The engine on a target, or on files made for programs.
pub(super) struct Engine<'a> {
    pub(super) target: &'a Target,
    pub(super) programs: Option<&'a Programs>,
    pub(super) peers: Peers,
    pub(super) clock: &'a Clock,
    pub(super) began: Instant,
}

impl Executor for Engine<'_> {
    fn run(&mut self, cell: &CellSpec, stop: &AtomicBool) -> Result<Outcome> {
        match self.programs {
            Some(programs) => programs.run(cell, self.clock, stop),
            None if cell.tool.is_peer() => self.peers.run(cell, self.target, self.clock, stop),
            None => trial::run(&cell.trial, self.target, self.clock, stop),
        }
    }

    fn gap(&self, cell: &CellSpec) -> Option<String> {
        self.peers.gap(cell, self.target)
    }

    fn pause(&mut self, time: Duration, stop: &AtomicBool) {
        let end = Instant::now() + time;
        while !stop.load(Ordering::Relaxed) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    fn fit(&self, cell: &mut PlannedCell) -> Result<()> {
        fit::fit(cell, self.target)
    }

    fn alignment(&self) -> u64 {
        self.target
            .direct_alignment()
            .map_or(1, |alignment| alignment.offset)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}
