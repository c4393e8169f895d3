//! Properties of a target that must not change during a run: its length, the blocks of a file, and the part of
//! its file that a loop device shows.

use std::path::{Path, PathBuf};

use iolab_workload::{Error, Result};

use super::device::Number;
use super::holes::moves_data;
use super::{Target, TargetKind, sysfs};

/// Deepest stack that is followed: deeper ones do not occur, but a cycle would.
const DEPTH_MAX: u32 = 8;
/// Share of a file's blocks that may disappear in a trial: blocks of extent trees, which the file system
/// merges.
const LOST_MAX: f64 = 0.05;

/// Properties of a target before a trial.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// Bytes in the blocks of a file; `None` if they mean nothing.
    allocated: Option<u64>,
}

impl Target {
    /// Properties before a trial; `trims` says whether the trial gives blocks back.
    ///
    /// # Errors
    /// Of kind [`Failed`](iolab_workload::Kind::Failed): the target is shorter than it was; of kind
    /// [`Refused`](iolab_workload::Kind::Refused): a loop device shows another part of its file.
    pub fn standing(&self, trims: bool) -> Result<Standing> {
        // A moved part is shorter, too, but the move is the better reason.
        self.check_loops()?;
        self.check_length()?;
        let is_file = matches!(self.kind, TargetKind::File | TargetKind::Scratch);
        let stays = is_file && !trims && !moves_data(&self.file);
        Ok(Standing {
            allocated: stays.then(|| self.allocated()).flatten(),
        })
    }

    /// Checks after the trial that all is as it was before.
    ///
    /// # Errors
    /// As [`Target::standing`]; also if a file has lost blocks, as after a truncation and regrowth.
    pub fn check_standing(&self, before: Standing) -> Result<()> {
        self.standing(true)?;
        let lost = before
            .allocated
            .zip(self.allocated())
            .map_or(0, |(before, now)| before.saturating_sub(now));
        match lost as f64 > self.size as f64 * LOST_MAX {
            false => Ok(()),
            true => Err(self.cut("lost blocks during the trial")),
        }
    }

    fn allocated(&self) -> Option<u64> {
        let stat = rustix::fs::fstat(&self.file).ok()?;
        let blocks = u64::try_from(stat.st_blocks).ok()?.checked_mul(512)?;
        // A file system frees space that it has reserved beyond the end.
        Some(blocks.min(u64::try_from(stat.st_size).ok()?))
    }

    fn check_length(&self) -> Result<()> {
        let length = match self.kind {
            TargetKind::CharDevice => return Ok(()),
            TargetKind::BlockDevice => self.block_number().and_then(sysfs::bytes_of),
            TargetKind::File | TargetKind::Scratch => {
                let stat = rustix::fs::fstat(&self.file).ok();
                stat.and_then(|stat| u64::try_from(stat.st_size).ok())
            }
        };
        match length.is_none_or(|length| length >= self.size) {
            true => Ok(()),
            false => Err(self.cut("became shorter during the run")),
        }
    }

    fn cut(&self, what: &str) -> Error {
        Error::failed(format!(
            "{} {what}: another process has truncated it",
            self.path.display()
        ))
        .hint("the run file keeps the earlier trials; find that process before you measure again")
    }

    fn check_loops(&self) -> Result<()> {
        let number = self.block_number();
        match self.kind == TargetKind::BlockDevice && number.map(shown_parts) != self.shown {
            false => Ok(()),
            true => Err(Error::refused(format!(
                "{} is not what iolab has opened: a loop device shows another part of its file, or another file",
                self.path.display()
            ))
            .hint("the run file keeps the earlier trials; see 'losetup -l', and measure again once nothing changes it")),
        }
    }
}

/// File, offset and limit of each loop device that a device stands on.
pub(super) fn shown_parts(number: Number) -> Vec<String> {
    let mut parts = Vec::new();
    let folder = PathBuf::from(format!("/sys/dev/block/{}:{}", number.0, number.1));
    if let Ok(folder) = folder.canonicalize() {
        add_parts(&folder, DEPTH_MAX, &mut parts);
    }
    parts
}

fn add_parts(folder: &Path, depth: u32, parts: &mut Vec<String>) {
    let Some(below) = depth.checked_sub(1) else {
        return;
    };
    let disk = match folder.join("partition").exists() {
        true => folder.parent().unwrap_or(folder),
        false => folder,
    };
    let text = |name: &str| std::fs::read_to_string(disk.join("loop").join(name));
    let shown = ["backing_file", "offset", "sizelimit"].map(|name| text(name).unwrap_or_default());
    if disk.join("loop").exists() {
        parts.push(shown.concat());
    }
    let members = std::fs::read_dir(disk.join("slaves")).into_iter().flatten();
    for member in members.flatten() {
        if let Ok(member) = member.path().canonicalize() {
            add_parts(&member, below, parts);
        }
    }
}
