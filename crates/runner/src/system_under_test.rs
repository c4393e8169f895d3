//! The measured system: files and devices, programs, or a target in virtual time.
//!
//! Whether a run resumes on the same targets: a name may denote another file or disk by then.

#[cfg(test)]
mod tests;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::executor::{Engine, Executor};
use super::hung_storage::{EndProcess, Watch};
use super::targets::{Targets, devices_of, further, kind_of};
use super::virtual_target::OpenedVirtual;
use super::{Programs, Setup, fit};
use crate::environment;
use crate::peers::Peers;
use iolab_analysis::consent::NeededConsent;
use iolab_engine::request_tracer::Tracing;
use iolab_engine::trial::floor_ns;
use iolab_host::clock::Clock;
use iolab_host::device::Device;
use iolab_plan::cells::PlannedCell;
use iolab_plan::experiment::Experiment;
use iolab_record::environment::{Environment, KEYS, Key, Text};
use iolab_record::targets::beyond_text;
use iolab_record::{ClockDomain, FurtherTarget, Run, RunRecord, TargetKind};
use iolab_storage::Target;
use iolab_workload::names::all_of;
use iolab_workload::settings::CellSpec;
use iolab_workload::{Error, Result};

/// The measured system of a run, opened. Dropping it removes temporary files.
#[derive(Debug)]
pub enum SystemUnderTest {
    /// Files and devices.
    Targets(Targets),
    /// Programs, on files made for them, with targets that represent the directories of these.
    Programs(Targets, Box<dyn Programs>),
    /// A disk that is computed.
    Model(OpenedVirtual),
}

impl SystemUnderTest {
    /// Cuts a cell's region to the size of the target, and checks the cell against it. Nothing is written.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting that does not fit, with one that would.
    pub(super) fn fit(&self, cell: &mut PlannedCell, tracing: Tracing) -> Result<()> {
        if let SystemUnderTest::Model(disk) = self {
            return disk.fit(cell);
        }
        match self.targets() {
            targets if targets.is_empty() => Ok(()),
            targets => fit::fit(cell, &targets, tracing),
        }
    }

    /// The files or devices in use, each with its path from the root on; for programs, targets that represent the
    /// directories of their files. A model has none.
    pub fn targets(&self) -> Vec<(&Path, &Target)> {
        let files = self.files();
        files.map_or(Vec::new(), |targets| targets.iter().collect())
    }

    /// The files or devices; none for a model.
    fn files(&self) -> Option<&Targets> {
        match self {
            SystemUnderTest::Targets(targets) | SystemUnderTest::Programs(targets, _) => {
                Some(targets)
            }
            SystemUnderTest::Model(_) => None,
        }
    }

    /// The block devices that the targets of a cell lie on, MAJOR and MINOR; `None` for one that lies on none.
    ///
    /// # Errors
    /// A target that there is not.
    pub fn devices(&self, cell: &CellSpec) -> Result<Vec<Option<(u32, u32)>>> {
        devices_of(&self.targets(), cell)
    }

    /// The paths of the targets.
    pub(super) fn names(&self) -> impl Iterator<Item = &Path> {
        self.targets().into_iter().map(|(named, _)| named)
    }

    /// The run's own target.
    fn first(&self) -> Option<&Target> {
        self.targets().first().map(|(_, target)| *target)
    }

    /// Notes about opening the targets.
    pub fn notes<'a>(&'a self) -> Vec<String> {
        let targets = self.targets();
        let is_one = targets.len() == 1;
        let of = |(named, target): (&Path, &'a Target)| {
            let named = named.display().to_string();
            target.notes().iter().map(move |note| match is_one {
                true => note.clone(),
                false => format!("{named}: {note}"),
            })
        };
        let own = targets.iter().copied().flat_map(of);
        own.chain(notes_of_shared_disks(&targets)).collect()
    }

    /// Bytes of the run's own target that there are to be read or written.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            SystemUnderTest::Targets(_) => self.first().map_or(0, Target::size),
            SystemUnderTest::Programs(targets, _) => targets.fill_bytes(),
            SystemUnderTest::Model(disk) => disk.bytes(),
        }
    }

    /// The further targets besides the run's own, as a run file keeps them.
    pub(super) fn further(&self) -> Vec<FurtherTarget> {
        further(self.targets().into_iter())
    }

    /// Its name in a run file: the path of the run's own target, from the root on, or the model.
    pub(super) fn name(&self) -> String {
        match self {
            SystemUnderTest::Model(disk) => disk.name().to_owned(),
            SystemUnderTest::Targets(_) | SystemUnderTest::Programs(..) => self
                .names()
                .next()
                .map_or_else(String::new, |path| path.display().to_string()),
        }
    }

    pub(super) fn kind(&self) -> TargetKind {
        self.first().map_or(TargetKind::Model, kind_of)
    }

    /// The clock of the measurement: the fields of a run that describe it. The host of a model takes no time.
    pub(super) fn timing(&self, clock: &Clock, cells: &[PlannedCell]) -> Run {
        let times = cells.iter().any(|cell| cell.spec.trial.latency);
        match self {
            SystemUnderTest::Model(disk) => Run {
                clock_domain: ClockDomain::Virtual,
                clock_cost_ns: Some(0.0),
                clock_source: disk
                    .environment()
                    .get(&KEYS.clock_source)
                    .unwrap_or_default(),
                floor_ns: Some(0.0),
                ..Run::default()
            },
            SystemUnderTest::Targets(_) | SystemUnderTest::Programs(..) => Run {
                clock_domain: ClockDomain::Real,
                clock_cost_ns: Some(clock.cost_ns()),
                clock_resolution_ns: Some(clock.resolution_ns()),
                clock_source: clock.source(),
                floor_ns: floor_ns(clock, times),
                ..Run::default()
            },
        }
    }

    /// The environment that its results depend on; without the machine for a model.
    pub(super) fn environment(&self, clock: &Clock) -> Environment {
        if let SystemUnderTest::Model(disk) = self {
            return disk.environment();
        }
        let mut environment = Environment::default();
        for (number, (named, target)) in self.targets().into_iter().enumerate() {
            if number > 0 {
                environment.put_target(number, environment::of_target(target));
                continue;
            }
            environment.extend(environment::capture(target, clock));
            if let SystemUnderTest::Programs(_, programs) = self {
                environment.extend(programs.environment());
            }
            environment.put(&KEYS.target_path_hex, beyond_text(named));
        }
        environment
    }

    /// Watches over the removal of scratch files, until what this returns is dropped: if storage does not answer, `end` gets the error,
    /// with the run files in which all trials are stored. A model has no files.
    pub fn watch_removal(&self, kept: &[PathBuf], end: EndProcess) -> Option<Watch> {
        let all = self.watched();
        (!all.is_empty()).then(|| Watch::over_removal(&all, kept, end))
    }

    /// Bytes of the scratch files that are filled.
    pub fn fill_bytes(&self) -> u64 {
        self.files().map_or(0, Targets::fill_bytes)
    }

    /// Fills scratch files, so that no read meets a hole; `progress` gets the bytes written so far.
    ///
    /// # Errors
    /// When a write fails, or soon after `stop` is raised.
    pub fn fill(&self, seed: u64, stop: &AtomicBool, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let files = self.files();
        files.map_or(Ok(()), |targets| targets.fill(seed, stop, progress))
    }

    /// Removes scratch files, and builds of programs.
    ///
    /// # Errors
    /// When a file cannot be removed; the others are removed all the same.
    pub fn remove(self) -> Result<()> {
        match self {
            SystemUnderTest::Targets(targets) | SystemUnderTest::Programs(targets, _) => {
                targets.remove()
            }
            SystemUnderTest::Model(_) => Ok(()),
        }
    }

    /// The targets that may not answer.
    pub(super) fn watched(&self) -> Vec<&Target> {
        let targets = self.targets().into_iter();
        targets.map(|(_, target)| target).collect()
    }

    /// The executor of an experiment's trials; `seed` decides everything that a model leaves to chance.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a definition that makes no model.
    pub(super) fn executor<'a>(
        &'a self,
        experiment: &Experiment,
        seed: u64,
        peers: Peers,
        setup: &'a Setup,
    ) -> Result<Box<dyn Executor + 'a>> {
        let programs = match self {
            SystemUnderTest::Model(disk) => {
                return disk.executor(seed, experiment.starts_afresh());
            }
            SystemUnderTest::Targets(_) => None,
            SystemUnderTest::Programs(_, programs) => Some(&**programs),
        };
        let watch = Watch::over(&self.watched(), setup.system.is_some(), setup.end);
        Ok(Box::new(Engine {
            targets: self.targets(),
            programs,
            peers,
            clock: &setup.clock,
            ranks: setup.ranks.as_deref(),
            system: setup.system.as_ref(),
            watch,
            observers: match &setup.ranks {
                None => setup.observers.iter().map(|new| new()).collect(),
                Some(_) => Vec::new(),
            },
            drives: Vec::new(),
            tracing: setup.tracing,
            began: Instant::now(),
        }))
    }
}

/// Names the targets that share a disk, or a file system in memory or on another machine.
fn notes_of_shared_disks(targets: &[(&Path, &Target)]) -> Vec<String> {
    let below = targets.iter().map(|(named, target)| {
        let path = named.display().to_string();
        (path, below(named, target))
    });
    shared(&below.collect::<Vec<_>>())
}

/// The disks, or else the file system with its number, below a target.
fn below(named: &Path, target: &Target) -> Vec<(String, u64)> {
    let device = target.device();
    let device = device.and_then(|number| Device::read(Path::new("/sys"), number));
    let Some(device) = device else {
        let file_system = named.metadata().map(|metadata| metadata.dev());
        let place = file_system.map(|number| ("one file system".to_owned(), number));
        return place.into_iter().collect();
    };
    let ends = device.stack().into_iter();
    let ends = ends.filter(|layer| layer.below.is_empty());
    ends.map(|end| (end.disk.clone(), 0)).collect()
}

fn shared(on_each: &[(String, Vec<(String, u64)>)]) -> Vec<String> {
    let mut places: BTreeMap<&(String, u64), BTreeSet<&str>> = BTreeMap::new();
    for (path, below) in on_each {
        for place in below {
            places.entry(place).or_default().insert(path);
        }
    }
    let notes = places.into_iter().filter(|(_, paths)| paths.len() > 1);
    let note = |((place, _), paths): (&(String, u64), BTreeSet<&str>)| {
        let paths = all_of(&Vec::from_iter(paths));
        format!("{paths} share the throughput of {place}")
    };
    notes.map(note).collect()
}

/// The present state of a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetNow {
    /// Kind of the target.
    pub(crate) kind: TargetKind,
    /// Whether it was opened for writing.
    pub(crate) writes: bool,
}

impl TargetNow {
    /// The state of an open target.
    pub(crate) fn of(target: &Target) -> Self {
        Self {
            kind: kind_of(target),
            writes: target.is_writable(),
        }
    }
}

/// Refuses to write to existing targets that are not shown to be the targets of the `record`, and to go on with another kind of
/// target. `targets` and `now` describe them now, in its order. Returns a warning for each different target that is only
/// read.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused): another kind of target, another target, or one that the run file
/// does not identify.
pub(crate) fn check_same_targets(
    record: &RunRecord,
    targets: impl Iterator<Item = TargetNow>,
    now: &Environment,
) -> Result<Vec<String>> {
    let before = record.target_kinds();
    let mut warnings = Vec::new();
    for (number, ((before, target), path)) in before.zip(targets).zip(record.targets()).enumerate()
    {
        let TargetNow { kind, writes } = target;
        if before != kind {
            return Err(other(&format!(
                "continue on {path}: its kind was {before} and is {kind}"
            )));
        }
        let Some(identity) = identity_of(kind) else {
            continue;
        };
        let changed = difference([&record.environment, now], number);
        match changed {
            Some(changed) if writes => {
                return Err(other(&format!(
                    "write to {path}: it is not the target that the run began on ({changed})"
                )));
            }
            Some(changed) => warnings.push(format!(
                "{path} is not the target that the run began on ({changed})"
            )),
            None if writes && record.environment.get_of(number, identity).is_none() => {
                return Err(other(&format!(
                    "write to {path}: the run file has no {}, which would tell it from another target of this name",
                    identity.name()
                )));
            }
            None => {}
        }
    }
    Ok(warnings)
}

/// The target of a run with this consent that cannot be told from others, so that the run is not resumed.
pub(crate) fn unidentified(record: &RunRecord, consent: NeededConsent) -> Option<&str> {
    let targets = record.target_kinds().zip(record.targets()).enumerate();
    let mut unidentified = targets.filter(|(number, (kind, _))| {
        let identity = identity_of(*kind);
        identity.is_some_and(|key| record.environment.get_of(*number, key).is_none())
    });
    let (_, (_, path)) = unidentified.next().filter(|_| consent.destroys_data)?;
    Some(path)
}

/// The fact that identifies a target of this kind; `None` for one that is made for each session, or not written to.
fn identity_of(kind: TargetKind) -> Option<&'static Key<Text>> {
    match kind {
        TargetKind::File => Some(&KEYS.target_file_id),
        TargetKind::BlockDevice => Some(&KEYS.device_identity),
        TargetKind::Scratch
        | TargetKind::CharDevice
        | TargetKind::Imported
        | TargetKind::Model
        | TargetKind::Commands => None,
    }
}

fn other(what: &str) -> Error {
    Error::refused(format!("refusing to {what}"))
        .hint("start a new run on it; the run file keeps the trials so far")
}

/// The first fact of a target that the run has recorded and that differs now.
fn difference(lists: [&Environment; 2], number: usize) -> Option<String> {
    let bytes = [&KEYS.device_bytes, &KEYS.target_file_bytes].map(|key| {
        let of = |list: &Environment| Some(list.get_of(number, key)?.to_string());
        (key.name(), lists.map(of))
    });
    let texts = [
        &KEYS.device_vendor, &KEYS.device_model, &KEYS.device_id, &KEYS.device_partition,
        &KEYS.device_identity, &KEYS.target_file_id,
    ];
    let texts = texts.map(|key| {
        let of = |list: &Environment| list.get_of(number, key);
        (key.name(), lists.map(of))
    });
    let mut all = bytes.into_iter().chain(texts);
    all.find_map(|(name, [before, now])| {
        let (before, now) = (before?, now.unwrap_or_else(|| "unknown".to_owned()));
        (before != now).then(|| format!("{name} was {before} and is {now}"))
    })
}
