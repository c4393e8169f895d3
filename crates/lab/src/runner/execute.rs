//! What carries a trial out: the engine, or a stand-in where the runner itself is tested.

use std::sync::atomic::AtomicBool;

use iolab_engine::clock::Clock;
use iolab_engine::outcome::Outcome;
use iolab_engine::spec::TrialSpec;
use iolab_engine::target::Target;
use iolab_engine::{Result, trial};

/// Carries trials out, one after the other.
pub trait Executor {
    /// One trial.
    ///
    /// # Errors
    /// When it could not be set up; a request that failed is counted in the outcome instead.
    fn run(&mut self, spec: &TrialSpec, stop: &AtomicBool) -> Result<Outcome>;
}

/// The engine on a target.
pub(super) struct Engine<'a> {
    pub(super) target: &'a Target,
    pub(super) clock: &'a Clock,
}

impl Executor for Engine<'_> {
    fn run(&mut self, spec: &TrialSpec, stop: &AtomicBool) -> Result<Outcome> {
        trial::run(spec, self.target, self.clock, stop)
    }
}
