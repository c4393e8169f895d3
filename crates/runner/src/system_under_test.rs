//! The measured system: files and devices, programs, or a modelled disk.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use iolab_doctor::environment;
use iolab_engine::trial::floor_ns;
use iolab_host::clock::Clock;
use iolab_host::device::Device;
use iolab_peers::Peers;
use iolab_plan::cells::PlannedCell;
use iolab_plan::experiment::Experiment;
use iolab_record::environment::{Environment, KEYS};
use iolab_record::target_paths::beyond_text;
use iolab_record::{ClockDomain, FurtherTarget, Run};
use iolab_storage::Target;
use iolab_workload::Result;
use iolab_workload::names::all_of;
use iolab_workload::settings::CellSpec;

use super::executor::{Engine, Executor};
use super::hung_storage::{EndProcess, Watch};
use super::simulated::{Disk, Simulated, VIRTUAL};
use super::targets::{Targets, devices_of, further, kind_of};
use super::{Programs, Setup, fit};

/// The measured system of a run.
#[derive(Debug, Clone, Copy)]
pub enum SystemUnderTest<'a> {
    /// Files and devices.
    Targets(&'a Targets),
    /// Programs, on files made for them.
    Programs(&'a Programs),
    /// A disk that is computed.
    Model(&'a Disk),
}

impl<'a> SystemUnderTest<'a> {
    /// Cuts a cell's region to the size of the target, and checks the cell against it. Nothing is written.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting that does not fit, with one that would.
    pub(super) fn fit(self, cell: &mut PlannedCell) -> Result<()> {
        if let SystemUnderTest::Model(disk) = self {
            return disk.fit(cell);
        }
        match self.targets() {
            targets if targets.is_empty() => Ok(()),
            targets => fit::fit(cell, &targets),
        }
    }

    /// The files or devices in use, each with its path from the root on; for programs, targets that represent the
    /// directories of their files. A model has none.
    pub fn targets(self) -> Vec<(&'a Path, &'a Target)> {
        match self {
            SystemUnderTest::Targets(targets) => targets.iter().collect(),
            SystemUnderTest::Programs(programs) => programs.places().collect(),
            SystemUnderTest::Model(_) => Vec::new(),
        }
    }

    /// The block devices that the targets of a cell lie on, MAJOR and MINOR; `None` for one that lies on none.
    ///
    /// # Errors
    /// A target that there is not.
    pub fn devices(self, cell: &CellSpec) -> Result<Vec<Option<(u32, u32)>>> {
        devices_of(&self.targets(), cell)
    }

    /// The paths of the targets.
    pub(super) fn names(self) -> impl Iterator<Item = &'a Path> {
        self.targets().into_iter().map(|(named, _)| named)
    }

    /// The run's own target.
    fn first(self) -> Option<&'a Target> {
        self.targets().first().map(|(_, target)| *target)
    }

    /// Notes about opening the targets.
    pub fn notes(self) -> Vec<String> {
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
    pub(super) fn bytes(self) -> u64 {
        match self {
            SystemUnderTest::Targets(_) => self.first().map_or(0, Target::size),
            SystemUnderTest::Programs(programs) => programs.bytes(),
            SystemUnderTest::Model(disk) => disk.bytes(),
        }
    }

    /// The further targets besides the run's own, as a run file keeps them.
    pub(super) fn further(self) -> Vec<FurtherTarget> {
        further(self.targets().into_iter())
    }

    /// Its name in a run file: the path of the run's own target, from the root on, or the model.
    pub(super) fn name(self) -> String {
        match self {
            SystemUnderTest::Model(disk) => disk.name().to_owned(),
            SystemUnderTest::Targets(_) | SystemUnderTest::Programs(_) => self
                .names()
                .next()
                .map_or_else(String::new, |path| path.display().to_string()),
        }
    }

    pub(super) fn kind(self) -> iolab_record::TargetKind {
        self.first()
            .map_or(iolab_record::TargetKind::Model, kind_of)
    }

    /// The clock of the measurement: the fields of a run that describe it. The host of a model takes no time.
    pub(super) fn timing(self, clock: &Clock, cells: &[PlannedCell]) -> Run {
        let times = cells.iter().any(|cell| cell.spec.trial.latency);
        match self {
            SystemUnderTest::Model(_) => Run {
                clock_domain: ClockDomain::Virtual,
                clock_cost_ns: Some(0.0),
                clock_resolution_ns: None,
                clock_source: VIRTUAL.to_owned(),
                floor_ns: Some(0.0),
                ..Run::default()
            },
            SystemUnderTest::Targets(_) | SystemUnderTest::Programs(_) => Run {
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
    pub(super) fn environment(self, clock: &Clock) -> Environment {
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
            if let SystemUnderTest::Programs(programs) = self {
                environment.extend(programs.environment());
            }
            environment.put(&KEYS.target_path_hex, beyond_text(named));
        }
        environment
    }

    /// Watches over the removal of scratch files, until what this returns is dropped: if storage does not answer, `end` gets the error,
    /// with the run files in which all trials are stored. A model has no files.
    pub fn watch_removal(self, kept: &[PathBuf], end: EndProcess) -> Option<Watch> {
        let all = self.watched();
        (!all.is_empty()).then(|| Watch::over_removal(&all, kept, end))
    }

    /// The targets that may not answer.
    pub(super) fn watched(self) -> Vec<&'a Target> {
        let targets = self.targets().into_iter();
        targets.map(|(_, target)| target).collect()
    }

    /// The executor of an experiment's trials; `seed` decides everything that a model leaves to chance.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a definition that makes no model.
    pub(super) fn executor(
        self,
        experiment: &Experiment,
        seed: u64,
        peers: Peers,
        setup: &Setup<'a>,
    ) -> Result<Box<dyn Executor + 'a>> {
        let programs = match self {
            SystemUnderTest::Model(disk) => {
                return Ok(Box::new(Simulated::new(
                    disk,
                    seed,
                    experiment.starts_afresh(),
                )?));
            }
            SystemUnderTest::Targets(_) => None,
            SystemUnderTest::Programs(programs) => Some(programs),
        };
        let watch = Watch::over(&self.watched(), setup.system.is_some(), setup.end);
        Ok(Box::new(Engine {
            targets: self.targets(),
            programs,
            peers,
            clock: setup.clock,
            ranks: setup.ranks,
            system: setup.system,
            watch,
            observers: match setup.ranks {
                None => setup.observers.iter().map(|new| new()).collect(),
                Some(_) => Vec::new(),
            },
            drives: Vec::new(),
            kept: RefCell::default(),
            began: Instant::now(),
        }))
    }
}

/// Something that several targets share below them.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Below {
    /// A disk, by its name.
    Disk(String),
    /// A file system that no disk of this machine holds, by its number.
    FileSystem(u64),
}

/// Names the targets that share a disk, or a file system in memory or on another machine; one sentence for each such group.
fn notes_of_shared_disks(targets: &[(&Path, &Target)]) -> Vec<String> {
    let below = targets.iter().map(|(named, target)| {
        let path = named.display().to_string();
        (path, below(named, target))
    });
    let on_each: Vec<(String, Vec<Below>)> = below.collect();
    shared(&on_each)
}

/// The disks, or else the file system, below a target.
fn below(named: &Path, target: &Target) -> Vec<Below> {
    let device = target.device();
    let device = device.and_then(|number| Device::read(Path::new("/sys"), number));
    let Some(device) = device else {
        let file_system = named.metadata().map(|metadata| metadata.dev());
        return file_system.map(Below::FileSystem).into_iter().collect();
    };
    let ends = device.stack().into_iter();
    let ends = ends.filter(|layer| layer.below.is_empty());
    ends.map(|end| Below::Disk(end.disk.clone())).collect()
}

fn shared(on_each: &[(String, Vec<Below>)]) -> Vec<String> {
    let mut places: BTreeMap<&Below, Vec<&str>> = BTreeMap::new();
    for (path, all) in on_each {
        for below in all {
            let own = places.entry(below).or_default();
            if !own.contains(&path.as_str()) {
                own.push(path);
            }
        }
    }
    let mut groups: Vec<(Vec<&str>, Vec<&Below>)> = Vec::new();
    for (below, paths) in places.into_iter().filter(|(_, paths)| paths.len() > 1) {
        match groups.iter_mut().find(|(known, _)| *known == paths) {
            Some((_, places)) => places.push(below),
            None => groups.push((paths, vec![below])),
        }
    }
    let sentence = |(paths, places): (Vec<&str>, Vec<&Below>)| {
        let disks: Vec<&str> = places
            .into_iter()
            .filter_map(|below| match below {
                Below::Disk(name) => Some(name.as_str()),
                Below::FileSystem(_) => None,
            })
            .collect();
        let place = match disks.is_empty() {
            true => "one file system".to_owned(),
            false => all_of(&disks),
        };
        let its = if disks.len() > 1 { "their" } else { "its" };
        format!(
            "{} are on {place}: they share {its} throughput",
            all_of(&paths)
        )
    };
    groups.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_on_one_disk_are_named_together() {
        let disk = |name: &str| Below::Disk(name.to_owned());
        let on = |path: &str, below: Vec<Below>| (path.to_owned(), below);
        let all = [
            on("/a", vec![disk("vda")]),
            on("/b", vec![disk("vda")]),
            on("/c", vec![disk("sdb"), disk("sdc")]),
            on("/d", vec![disk("sdb"), disk("sdc")]),
            on("/e", vec![disk("sde")]),
            on("/run/a", vec![Below::FileSystem(7)]),
            on("/run/b", vec![Below::FileSystem(7)]),
        ];
        insta::assert_snapshot!(shared(&all).join("\n"), @r"
        /c and /d are on sdb and sdc: they share their throughput
        /a and /b are on vda: they share its throughput
        /run/a and /run/b are on one file system: they share its throughput
        ");
        assert!(shared(&all[3..6]).is_empty());
    }
}
