//! A target of a run, as reports describe it.

use std::borrow::Cow;

use iolab_record::environment::KEYS;
use iolab_record::{Cell, RunRecord, TargetKind};

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
