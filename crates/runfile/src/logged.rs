//! A run file with its log (`-wal`), merged in memory, for a run that continues or was killed. SQLite would map an index of
//! the log from a further file (`-shm`). If the disk of that file is full, touching the map kills the process.
//!
//! The format: <https://sqlite.org/fileformat2.html#the_write_ahead_log>.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::system::{beside, has_wal};

/// Largest file to put together, bytes.
const BYTES_MAX: u64 = 1 << 30;
/// Number of times that a file is read again if it changes meanwhile.
const ATTEMPTS_MAX: u32 = 100;

/// Bytes of the header of a database, and where it has the size of a page and its mode.
const HEADER: usize = 100;
const PAGE_SIZE: usize = 16;
const MODE: [usize; 2] = [18, 19];
/// The mode of a file with a log, and of one without.
pub(super) const WITH_LOG: u8 = 2;
const PLAIN: u8 = 1;

const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Beginning of a log; the last bit gives the byte order of its checksums.
const LOG_MAGIC: u32 = 0x377f_0682;

/// Whether a file has a log, or may have one.
pub(super) fn has_log(path: &Path) -> bool {
    let mut header = [0; HEADER];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    has_wal(path) || read.is_ok() && MODE.iter().any(|at| header[*at] == WITH_LOG)
}

/// The bytes of a plain file with all that was committed.
pub(super) fn merged(path: &Path) -> io::Result<Vec<u8>> {
    let log = beside(path, "-wal");
    for _ in 0..ATTEMPTS_MAX {
        let before = (begin(path, HEADER)?, begin(&log, LOG_HEADER)?);
        // In this order: pages that move from the log into the file meanwhile are still in the log, as long as it begins
        // with the same header.
        let (pages, frames) = (whole(path)?, whole(&log)?);
        if (begin(path, HEADER)?, begin(&log, LOG_HEADER)?) == before {
            let mut file = pages;
            apply(&mut file, &frames)?;
            // A file in memory has no log.
            set_mode(&mut file, PLAIN);
            return Ok(file);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::WouldBlock,
        "it changes faster than it can be read",
    ))
}

/// The first bytes of a file; none if there is no file.
fn begin(path: &Path, bytes: usize) -> io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(bytes as u64).read_to_end(&mut begin)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    Ok(begin)
}

fn whole(path: &Path) -> io::Result<Vec<u8>> {
    let all = begin(path, BYTES_MAX as usize + 1)?;
    match all.len() as u64 > BYTES_MAX {
        true => Err(too_large()),
        false => Ok(all),
    }
}

fn too_large() -> io::Error {
    io::ErrorKind::FileTooLarge.into()
}

/// Writes the committed pages of a log over the pages of the file; none if the log is empty or was never complete.
fn apply(file: &mut Vec<u8>, log: &[u8]) -> io::Result<()> {
    let Some((header, frames)) = log.split_at_checked(LOG_HEADER) else {
        return Ok(());
    };
    let (magic, page) = (word(header, 0), word(header, 8) as usize);
    let is_size = page.is_power_of_two() && (512..=65_536).contains(&page);
    let is_big_endian = magic & 1 == 1;
    let mut sum = checksum((0, 0), &header[..24], is_big_endian);
    let is_whole = sum == (word(header, 24), word(header, 28));
    if magic & !1 != LOG_MAGIC || !is_size || !is_whole {
        return Ok(());
    }
    // The header of the file has a size of 65536 as 1.
    let stored = u16::try_from(page).unwrap_or(1).to_be_bytes();
    if file.get(PAGE_SIZE..PAGE_SIZE + 2) != Some(&stored[..]) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "its log has pages of another size",
        ));
    }
    let mut open = Vec::new();
    for frame in frames.chunks_exact(FRAME_HEADER + page) {
        let (head, content) = frame.split_at(FRAME_HEADER);
        sum = checksum(sum, &head[..8], is_big_endian);
        sum = checksum(sum, content, is_big_endian);
        if head[8..16] != header[16..24] || sum != (word(head, 16), word(head, 20)) {
            break;
        }
        open.push((word(head, 0), content));
        // Pages of the file after the transaction that this frame ends; 0 within one.
        let bytes = u64::from(word(head, 4)) * page as u64;
        if bytes == 0 {
            continue;
        }
        if bytes > BYTES_MAX {
            return Err(too_large());
        }
        file.resize(bytes as usize, 0);
        for (number, content) in open.drain(..) {
            // Numbers are from 1.
            let at = u64::from(number)
                .wrapping_sub(1)
                .saturating_mul(page as u64) as usize;
            // A page that a later part of the transaction cut off has no place.
            if let Some(place) = file.get_mut(at..at.saturating_add(page)) {
                place.copy_from_slice(content);
            }
        }
    }
    Ok(())
}

/// Changes the mode in a header of SQLite that has one of the two.
pub(super) fn set_mode(file: &mut [u8], to: u8) {
    for at in MODE {
        if let Some(mode) = file
            .get_mut(at)
            .filter(|mode| [PLAIN, WITH_LOG].contains(mode))
        {
            *mode = to;
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The running checksum of a log after further bytes.
fn checksum((mut a, mut b): (u32, u32), bytes: &[u8], is_big_endian: bool) -> (u32, u32) {
    let read = |at| match is_big_endian {
        true => word(bytes, at),
        false => word(bytes, at).swap_bytes(),
    };
    for at in (0..bytes.len()).step_by(8) {
        a = a.wrapping_add(read(at)).wrapping_add(b);
        b = b.wrapping_add(read(at + 4)).wrapping_add(a);
    }
    (a, b)
}
