//! Holes of a file by lseek(2), where FIEMAP is missing or says nothing.

use std::fs::File;
use std::ops::Range;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// Follows data and holes of a range in at most `steps` steps. Returns the end of the examined part, and its
/// bytes in holes; `None` where the file system does not report them.
pub fn seek_holes(file: &File, range: &Range<u64>, steps: usize) -> Option<(u64, u64)> {
    let (mut at, mut holes) = (range.start, 0);
    for _ in 0..steps {
        if at >= range.end {
            break;
        }
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.clamp(at, range.end),
            // No data from here to the end of the file.
            Err(Errno::NXIO) => range.end,
            Err(_) => return None,
        };
        holes += data - at;
        at = data;
        if data < range.end {
            let hole = seek(file, SeekFrom::Hole(data)).ok()?;
            // Progress is made even if the data has become a hole meanwhile.
            at = hole.clamp(data + 1, range.end);
        }
    }
    Some((at, holes))
}
