//! Targets by their paths and numbers, and how a run file calls them.

use std::path::{Component, Path, PathBuf, absolute};

use iolab_record::FurtherTarget;
use iolab_storage::{Target, TargetKind};
use iolab_workload::names::TargetName;
use iolab_workload::settings::CellSpec;
use iolab_workload::{Error, Result};

/// The path from the root on, by which a run knows a target, however it is written: `disk/`, `./disk` and `x/../disk` are
/// one. `..` is resolved if it leads to the same place, which it does not after a symbolic link.
pub(super) fn full(path: &Path) -> PathBuf {
    let from_root = absolute(path).unwrap_or_else(|_| path.to_owned());
    // Separators at the end and in a row are not part of the path.
    let plain: PathBuf = from_root.components().collect();
    let mut resolved = PathBuf::new();
    for part in plain.components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            other => resolved.push(other),
        }
    }
    let is_same = || match (resolved.canonicalize(), plain.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    };
    match resolved == plain || is_same() {
        true => resolved,
        false => plain,
    }
}

/// The number of the target of this name; without a name, of the run's own target.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the run has none of this name.
pub(super) fn number_of<'a>(
    mut names: impl Iterator<Item = &'a Path>,
    named: Option<&TargetName>,
) -> Result<usize> {
    let Some(named) = named else {
        return Ok(0);
    };
    names
        .position(|name| name == Path::new(named.as_str()))
        .ok_or_else(|| {
            Error::usage(format!("the target {named} is not one of the run's"))
                .hint("name each target once on the command line")
        })
}

/// The block devices that the targets of a cell lie on, MAJOR and MINOR; `None` for one that lies on none.
///
/// # Errors
/// As [`number_of`].
pub(super) fn devices_of(
    targets: &[(&Path, &Target)],
    cell: &CellSpec,
) -> Result<Vec<Option<(u32, u32)>>> {
    let device = |name: Option<&TargetName>| {
        let number = number_of(targets.iter().map(|(named, _)| *named), name)?;
        Ok(targets.get(number).and_then(|(_, target)| target.device()))
    };
    cell.targets().into_iter().map(device).collect()
}

/// The further targets of a run file, after the first.
pub(super) fn further<'a>(
    targets: impl Iterator<Item = (&'a Path, &'a Target)>,
) -> Vec<FurtherTarget> {
    let further = targets.enumerate().skip(1);
    let row = |(number, (named, target)): (usize, (&Path, &Target))| FurtherTarget {
        id: number as u32,
        target: named.display().to_string(),
        kind: kind_of(target),
        bytes: target.size(),
    };
    further.map(row).collect()
}

/// Kind of a target in a run file.
pub(super) fn kind_of(target: &Target) -> iolab_record::TargetKind {
    match target.kind() {
        TargetKind::Scratch => iolab_record::TargetKind::Scratch,
        TargetKind::File => iolab_record::TargetKind::File,
        TargetKind::BlockDevice => iolab_record::TargetKind::BlockDevice,
        TargetKind::CharDevice => iolab_record::TargetKind::CharDevice,
    }
}
