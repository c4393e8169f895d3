//! A target of a run: its description, the origin of its bytes, and the counts of its drives.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::disturbance::throttled_ns;
use crate::trial_values::median_of;
use iolab_record::environment::KEYS;
use iolab_record::{Cell, DriveLog, RunRecord, Sample, ServedBy, TargetKind};

/// A target of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredTarget {
    /// Absolute path of the target; `model:NAME` for a model.
    pub path: String,
    /// Name that the user gave, else the path.
    pub name: String,
    /// Kind of target, such as a file or a device.
    pub kind: TargetKind,
    /// The device that has its bytes, as the kernel names it.
    pub device: Option<String>,
    /// The whole disk.
    pub disk: Option<String>,
    /// The model name that the disk reports, or the title of a modelled disk.
    pub model: Option<String>,
    /// Size of the disk, or of a modelled target, bytes.
    pub bytes: Option<u64>,
    /// Size of the largest region that a trial can touch, bytes: the whole block device or model. `None` for
    /// files, which share their storage with others.
    pub largest_region: Option<u64>,
    /// Type of its file system.
    pub file_system: Option<String>,
}

/// All targets of a run, its own first.
pub(super) fn all(record: &RunRecord) -> Vec<MeasuredTarget> {
    let named = record.targets().zip(record.target_names());
    let named = named.zip(record.target_kinds().zip(record.target_bytes()));
    type Named<'a> = ((&'a str, String), (TargetKind, u64));
    let of = |(number, ((path, name), (kind, bytes))): (usize, Named<'_>)| {
        let text = |key| record.environment.get_of(number, key);
        let is_model = kind == TargetKind::Model;
        MeasuredTarget {
            path: path.to_owned(),
            name,
            kind,
            device: text(&KEYS.device),
            disk: text(&KEYS.device_disk),
            model: match is_model {
                true => text(&KEYS.model_title),
                false => text(&KEYS.device_model),
            },
            bytes: match is_model {
                true => Some(bytes),
                false => record.environment.get_of(number, &KEYS.device_bytes),
            },
            largest_region: match kind {
                TargetKind::BlockDevice | TargetKind::Model => Some(bytes),
                TargetKind::Scratch
                | TargetKind::File
                | TargetKind::CharDevice
                | TargetKind::Imported
                | TargetKind::Commands => None,
            },
            file_system: text(&KEYS.file_system),
        }
    };
    named.enumerate().map(of).collect()
}

/// Replaces targets in the levels of a cell by the names that the user gave.
pub(super) fn in_levels(record: &RunRecord) -> impl Fn(&Cell) -> Cow<'_, Cell> {
    let factors = &record.experiment.factors;
    let has_names = !record.targets().eq(record.target_names());
    let place = factors.iter().position(|name| name == "target");
    let place = place.filter(|_| has_names);
    move |cell| {
        let mut called = Cow::Borrowed(cell);
        if let Some(place) = place.filter(|place| *place < cell.levels.len()) {
            let name = record.target_called(cell.spec.target.as_ref());
            called.to_mut().levels[place] = name;
        }
        called
    }
}

/// Identity of the storage of a run, which distinguishes equal paths on different storage.
pub(super) fn storage(record: &RunRecord) -> String {
    [record.run.target_kind.name(), " ", &record.storage_of(0)].concat()
}

/// Counts of drives over the measured trials of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellDrives {
    /// Bytes that hosts wrote to all drives; `None` if a drive does not count them.
    pub host_write_bytes: Option<u64>,
    /// Bytes written to their flash memory; `None` if a drive does not count them.
    pub media_write_bytes: Option<u64>,
    /// Whether one of both counts is missing that a drive has, or went back.
    pub lacks_writes: bool,
    /// Bytes that the trials wrote.
    pub written_bytes: u64,
    /// Time for which a drive throttled itself, of several the longest of each trial, ns.
    pub throttled_ns: u64,
    /// Times that drives throttled themselves.
    pub throttles: u64,
    /// Whether a count of throttling is missing, or went back.
    pub lacks_throttling: bool,
    /// Time of the trials, ns.
    pub elapsed_ns: u64,
}

impl CellDrives {
    /// The counts over these trials; `None` if a trial has none.
    pub(super) fn of(trials: &[&Sample]) -> Option<Self> {
        let is_known = !trials.is_empty() && trials.iter().all(|trial| !trial.drives.is_empty());
        let all = || trials.iter().flat_map(|trial| &trial.drives);
        let of_all = |of: fn(&DriveLog) -> Option<u64>| {
            let mut counts = all().map(of);
            counts.try_fold(0_u64, |sum, count| sum.checked_add(count?))
        };
        let of_trials = |of: &dyn Fn(&Sample) -> u64| {
            let counts = trials.iter().map(|trial| of(trial));
            counts.fold(0, u64::saturating_add)
        };
        is_known.then(|| Self {
            host_write_bytes: of_all(|log| log.host_write_bytes),
            media_write_bytes: of_all(|log| log.media_write_bytes),
            lacks_writes: all().any(DriveLog::lacks_writes),
            written_bytes: of_trials(&|trial| trial.operations.write.bytes),
            throttled_ns: of_trials(&|trial| throttled_ns(trial).unwrap_or(0)),
            throttles: all().map(DriveLog::throttles).fold(0, u64::saturating_add),
            lacks_throttling: all().any(DriveLog::lacks_throttling),
            elapsed_ns: of_trials(&|trial| trial.elapsed_ns),
        })
    }
}

/// The origin of a cell's bytes, over its measured trials.
#[derive(Debug, Clone, PartialEq)]
pub struct CellServed {
    /// Number of trials per verdict, in the order of [`ServedBy`]'s variants.
    pub trials: Vec<(ServedBy, usize)>,
    /// Median over the trials of the device's share; `None` where unknown.
    pub device_fraction: Option<f64>,
    /// The most frequent reason.
    pub reason: String,
    /// Whether this is one of several groups, and the origin is known only for all together.
    pub is_shared: bool,
}

impl CellServed {
    /// The verdict of all trials; `None` where they differ.
    pub fn unanimous(&self) -> Option<ServedBy> {
        match self.trials.as_slice() {
            [(only, _)] => Some(*only),
            _ => None,
        }
    }

    /// Whether every trial was served by the device; only then may a number be called the device's.
    pub fn is_device(&self) -> bool {
        self.unanimous() == Some(ServedBy::Device)
    }

    /// Whether every trial was served entirely by the target, a device or a model.
    pub fn is_target(&self) -> bool {
        matches!(self.unanimous(), Some(ServedBy::Device | ServedBy::Model))
    }

    /// The verdict for one of several groups, whose origin of bytes is known only for all together.
    #[must_use]
    pub(super) fn of_one_group(self) -> Self {
        let is_of_each = self.unanimous().is_some_and(ServedBy::holds_for_parts);
        Self {
            is_shared: !is_of_each,
            ..self
        }
    }

    /// Whether any trial had this verdict.
    pub fn any(&self, verdict: ServedBy) -> bool {
        self.trials.iter().any(|(v, _)| *v == verdict)
    }
}

/// The combined verdicts of a cell's trials.
pub(super) fn served(trials: &[&Sample]) -> Option<CellServed> {
    let count = |verdict| {
        let of = |s: &&&Sample| s.verdict.served_by == verdict;
        trials.iter().filter(of).count()
    };
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for sample in trials {
        *reasons.entry(&sample.verdict.reason).or_default() += 1;
    }
    let reason = reasons.iter().max_by_key(|(_, n)| **n)?.0;
    Some(CellServed {
        trials: ServedBy::ALL
            .iter()
            .copied()
            .map(|verdict| (verdict, count(verdict)))
            .filter(|(_, n)| *n > 0)
            .collect(),
        device_fraction: median_of(trials, |s| s.verdict.device_fraction),
        reason: (*reason).to_owned(),
        is_shared: false,
    })
}
