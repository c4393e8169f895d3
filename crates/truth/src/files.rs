//! Files in a known state.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use needs::Need;
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};

use crate::system::{Made, failed, lacks};

/// One MiB.
pub const MIB: u64 = 1 << 20;

/// Zeros for the comparison in [`is_blank`].
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Whether there are only zeros. Compared by the C library: a loop in a debug build takes a hundred times as
/// long, which is seconds in a guest.
pub fn is_blank(bytes: &[u8]) -> bool {
    bytes
        .chunks(ZEROS.len())
        .all(|part| part == &ZEROS[..part.len()])
}

/// Makes a file without written data, which is a single hole.
///
/// # Errors
///
/// It cannot be made.
pub fn hole(path: PathBuf, bytes: u64) -> Made<PathBuf> {
    let file = File::create_new(&path).map_err(failed(path.display()))?;
    file.set_len(bytes).map_err(failed(path.display()))?;
    Ok(path)
}

/// Makes a file with allocated but unwritten space.
///
/// # Errors
///
/// It cannot be made, or the file system does not support it.
pub fn unwritten(path: PathBuf, bytes: u64) -> Made<PathBuf> {
    let file = File::create_new(&path).map_err(failed(path.display()))?;
    fallocate(&file, FallocateFlags::empty(), 0, bytes)
        .map_err(lacks(Need::Fallocate, path.display()))?;
    file.sync_all().map_err(failed("fsync"))?;
    Ok(path)
}

/// Whether a folder is in tmpfs or ramfs (magic numbers of linux/magic.h).
pub fn is_memory(path: &Path) -> bool {
    rustix::fs::statfs(path)
        .is_ok_and(|fs| [0x0102_1994, 0x8584_58f6].contains(&(fs.f_type as u32)))
}

/// Makes a file of incompressible data, which is on storage and not in the page cache.
///
/// # Errors
///
/// It cannot be made.
pub fn noise(path: PathBuf, bytes: u64) -> Made<PathBuf> {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let file = File::create_new(&path).map_err(failed(path.display()))?;
    written(file, bytes, |piece| fill_with_noise(piece, &mut state))?;
    Ok(path)
}

/// Fills a device with incompressible data.
pub(crate) fn fill(device: &Path, bytes: u64) -> Made<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let file = File::options()
        .write(true)
        .open(device)
        .map_err(failed(device.display()))?;
    written(file, bytes, |piece| fill_with_noise(piece, &mut state))
}

/// Makes a file of data that compresses to a few percent, on storage and not in the page cache.
///
/// # Errors
///
/// It cannot be made.
pub fn text(path: PathBuf, bytes: u64) -> Made<PathBuf> {
    let words = b"The same words, over and over again. ";
    let fill = |piece: &mut [u8]| {
        piece
            .iter_mut()
            .zip(words.iter().cycle())
            .for_each(|(to, from)| *to = *from)
    };
    let file = File::create_new(&path).map_err(failed(path.display()))?;
    written(file, bytes, fill)?;
    Ok(path)
}

/// Writes data, syncs it, and drops it from the page cache.
fn written(mut file: File, bytes: u64, mut fill: impl FnMut(&mut [u8])) -> Made<()> {
    let mut piece = vec![0; MIB as usize];
    let mut left = bytes;
    while left > 0 {
        fill(&mut piece);
        let part = left.min(MIB) as usize;
        file.write_all(&piece[..part]).map_err(failed("write"))?;
        left -= part as u64;
    }
    file.sync_all().map_err(failed("fsync"))?;
    // If the advice has no effect, the verdict of the scenario shows it.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    Ok(())
}

/// Fills with xorshift64 (Marsaglia, J. Stat. Software 8 (2003) 14), which is incompressible.
pub(crate) fn fill_with_noise(piece: &mut [u8], state: &mut u64) {
    for word in piece.chunks_mut(8) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
}

/// Reads a file once, to load it into the page cache.
///
/// # Errors
///
/// It cannot be read.
pub fn warm(path: &Path) -> Made<()> {
    let mut file = File::open(path).map_err(failed(path.display()))?;
    std::io::copy(&mut file, &mut std::io::sink()).map_err(failed(path.display()))?;
    Ok(())
}
