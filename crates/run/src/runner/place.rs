//! What a run measures: a file or device, programs, or a disk that is computed. Only what each of them has is asked of it.

use std::path::{Path, absolute};
use std::time::Instant;

use iolab_engine::clock::Clock;
use iolab_engine::trial::floor_ns;
use iolab_spec::Result;
use iolab_target::{Target, TargetKind};

use super::execute::{Engine, Executor};
use super::simulated::{Disk, Simulated};
use super::{Programs, Setup, fit, named};
use crate::evidence::Origin;
use crate::peer::Peers;
use iolab_machine::capture;
use iolab_plan::cells::PlannedCell;
use iolab_record::environment::{Environment, KEYS};
use iolab_record::{ClockDomain, Run};

/// What a run measures.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// A file or a device.
    Target(&'a Target),
    /// Programs, on files made for them.
    Programs(&'a Programs),
    /// A disk that is computed.
    Model(&'a Disk),
}

impl<'a> Place<'a> {
    /// Cuts a cell's region to what there is, and checks the cell against it. Nothing is written.
    ///
    /// # Errors
    /// Of kind usage: what does not fit, and what would.
    pub(super) fn fit(self, cell: &mut PlannedCell) -> Result<()> {
        match self {
            Place::Target(target) => fit::fit(cell, target),
            Place::Programs(programs) => fit::fit(cell, programs.place()),
            Place::Model(disk) => disk.fit(cell),
        }
    }

    /// The file or device that is used; for programs what stands for the directory of their files.
    fn target(self) -> Option<&'a Target> {
        match self {
            Place::Target(target) => Some(target),
            Place::Programs(programs) => Some(programs.place()),
            Place::Model(_) => None,
        }
    }

    /// What was found when it was opened.
    pub fn notes(self) -> &'a [String] {
        self.target().map_or(&[], Target::notes)
    }

    /// Bytes that there are to be read or written.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Place::Target(target) => target.size(),
            Place::Programs(programs) => programs.bytes(),
            Place::Model(disk) => disk.bytes(),
        }
    }

    /// How a run file calls it: the path that the user named, from the root on, or the model.
    pub(super) fn name(self, path: &Path) -> String {
        match self {
            Place::Model(disk) => disk.name().to_owned(),
            Place::Target(_) | Place::Programs(_) => full(path).display().to_string(),
        }
    }

    pub(super) fn kind(self) -> iolab_record::TargetKind {
        match self.target().map(Target::kind) {
            None => iolab_record::TargetKind::Model,
            Some(TargetKind::Scratch) => iolab_record::TargetKind::Scratch,
            Some(TargetKind::File) => iolab_record::TargetKind::File,
            Some(TargetKind::BlockDevice) => iolab_record::TargetKind::BlockDevice,
            Some(TargetKind::CharDevice) => iolab_record::TargetKind::CharDevice,
        }
    }

    /// What answers for its bytes.
    pub(super) fn origin(self) -> Origin {
        self.target()
            .map_or(Origin::Model, |target| Origin::Medium(target.medium()))
    }

    /// What it is measured with: the fields of a run that tell of the clock. The host of a model takes no time.
    pub(super) fn timing(self, clock: &Clock, cells: &[PlannedCell]) -> Run {
        match self {
            Place::Model(_) => Run {
                clock_domain: ClockDomain::Virtual,
                clock_cost_ns: 0.0,
                clock_source: VIRTUAL.to_owned(),
                floor_ns: 0.0,
                ..Run::default()
            },
            Place::Target(_) | Place::Programs(_) => Run {
                clock_domain: ClockDomain::Real,
                clock_cost_ns: clock.cost_ns(),
                clock_source: clock.source(),
                floor_ns: floor_ns(clock, cells.iter().any(|cell| cell.spec.trial.latency)),
                ..Run::default()
            },
        }
    }

    /// What its results depend on. Of the machine that computes a model nothing does.
    pub(super) fn environment(self, clock: &Clock, path: &Path) -> Environment {
        let mut environment = match self {
            Place::Model(disk) => return disk.environment(),
            Place::Target(target) => capture::capture(target, clock),
            Place::Programs(programs) => {
                let mut environment = capture::capture(programs.place(), clock);
                environment.extend(programs.environment());
                environment
            }
        };
        environment.put(&KEYS.target_path_hex, named::beyond_text(&full(path)));
        environment
    }

    /// What carries trials out; `seed` decides what a model leaves to chance.
    ///
    /// # Errors
    /// Of kind usage: a definition that makes no model.
    pub(super) fn executor(
        self,
        seed: u64,
        peers: Peers,
        setup: &Setup<'a>,
    ) -> Result<Box<dyn Executor + 'a>> {
        let (target, programs) = match self {
            Place::Model(disk) => {
                return Ok(Box::new(Simulated::new(disk, seed)?));
            }
            Place::Target(target) => (target, None),
            Place::Programs(programs) => (programs.place(), Some(programs)),
        };
        Ok(Box::new(Engine {
            target,
            programs,
            peers,
            clock: setup.clock,
            began: Instant::now(),
        }))
    }
}

/// How the clock of a model is called.
pub(super) const VIRTUAL: &str = "virtual (of the model)";

/// The path from the root on.
fn full(path: &Path) -> std::path::PathBuf {
    absolute(path).unwrap_or_else(|_| path.to_owned())
}
