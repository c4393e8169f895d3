//! Content of every file of a stack, outside the ranges that may change.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, SeekFrom, fadvise, seek};

use super::build::{Built, WITNESS};
use super::plan::{Id, Plan, Step};
use crate::files::is_blank;
use crate::system::{Made, failed};

/// Bytes of a file that no process may change, with their checksum.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Step that made the file, or the mount with the witness.
    pub step: Id,
    /// File system that it is in.
    pub home: Id,
    name: Option<&'static str>,
    range: Range<u64>,
    sum: u64,
}

/// All pieces of a stack: the ranges of each file that the kernel does not write to by itself, and the witness
/// of each file system in use. Each piece is either inside or outside of a target.
///
/// # Errors
/// A piece cannot be read.
pub fn all(plan: &Plan, targets: &[Id], built: &Built) -> Made<Vec<Piece>> {
    let mut pieces = Vec::new();
    for (id, step) in plan.all() {
        let whole = |name, range| Piece {
            step: id,
            home: plan.home(id),
            name,
            range,
            sum: 0,
        };
        if let Step::Mount { .. } = step {
            pieces.push(whole(Some(WITNESS), 0..u64::MAX));
        }
        // The bytes of a thin volume or snapshot that was ended cannot be read anywhere.
        let own = plan.extent(id).filter(|extent| extent.base == id);
        let Some(extent) = own.filter(|_| plan.is_there(id)) else {
            continue;
        };
        pieces.extend(
            quiet(plan, targets, id, extent.range)
                .into_iter()
                .map(|range| whole(None, range)),
        );
    }
    for piece in &mut pieces {
        piece.sum = piece.sum_now(built)?;
    }
    Ok(pieces)
}

/// Ranges of a file that the kernel does not write to by itself; ranges of the targets are separate pieces.
fn quiet(plan: &Plan, targets: &[Id], base: Id, whole: Range<u64>) -> Vec<Range<u64>> {
    let active = plan.unsettled().into_iter();
    let active = active.filter(|extent| extent.base == base);
    let mut cuts: Vec<u64> = vec![whole.start, whole.end];
    let active: Vec<Range<u64>> = active.map(|extent| extent.range).collect();
    let targets = targets.iter().filter_map(|target| plan.extent(*target));
    let targets = targets.filter(|extent| extent.base == base);
    let targets: Vec<Range<u64>> = targets.map(|extent| extent.range).collect();
    for range in active.iter().chain(&targets) {
        cuts.extend([range.start, range.end]);
    }
    cuts.sort_unstable();
    cuts.dedup();
    let between = cuts.windows(2).map(|pair| pair[0]..pair[1]);
    between
        .filter(|part| !active.iter().any(|range| range.contains(&part.start)))
        .collect()
}

impl Piece {
    /// Whether the piece is in this target.
    pub fn is_in(&self, plan: &Plan, target: Id) -> bool {
        self.name.is_none()
            && plan.extent(target).is_some_and(|extent| {
                extent.base == self.step && extent.range.contains(&self.range.start)
            })
    }

    /// Description of a change, if any.
    pub fn changed(&self, built: &Built) -> Option<String> {
        let what = self.path(built).display().to_string();
        let Range { start, end } = self.range;
        match self.sum_now(built) {
            Err(why) => Some(format!("step {}: {what} cannot be read: {why}", self.step)),
            Ok(sum) if sum != self.sum => Some(format!(
                "step {}: bytes {start} to {end} of {what} have changed",
                self.step
            )),
            Ok(_) => None,
        }
    }

    fn path(&self, built: &Built) -> PathBuf {
        match self.name {
            Some(name) => built.inside(self.step, name),
            None => built.path(self.step).to_owned(),
        }
    }

    fn sum_now(&self, built: &Built) -> Made<u64> {
        let path = self.path(built);
        sum(&path, &self.range).map_err(failed(path.display()))
    }
}

/// Checksum of the non-zero bytes in a range of a file, as stored.
fn sum(path: &Path, range: &Range<u64>) -> std::io::Result<u64> {
    let file = File::open(path)?;
    // Dirty pages stay, clean ones are read again from below.
    file.sync_all()?;
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    // The metadata of a device has no length.
    let end = range.end.min(seek(&file, SeekFrom::End(0))?);
    let mut sum = DefaultHasher::new();
    let mut memory = vec![0; 1 << 20];
    let mut at = range.start;
    while at < end {
        let Ok(data) = seek(&file, SeekFrom::Data(at)) else {
            break;
        };
        let data = data.max(at) / 4096 * 4096;
        at = data.max(range.start);
        if at >= end {
            break;
        }
        let wanted = (end - at).min(memory.len() as u64) as usize;
        let read = file.read_at(&mut memory[..wanted], at)?;
        if read == 0 {
            break;
        }
        for (block, bytes) in memory[..read].chunks(4096).enumerate() {
            if !is_blank(bytes) {
                sum.write_u64(at + block as u64 * 4096);
                sum.write(bytes);
            }
        }
        at += read as u64;
    }
    Ok(sum.finish())
}
