//! Used part of a target: the wanted size against the available one.

use std::path::Path;

use iolab_workload::{Error, Result};

const MIB: u64 = 1 << 20;

/// Wanted size of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Exactly this many bytes (the user's request): refused when they are not available.
    Exactly(u64),
    /// At most this many bytes (a default): reduced to what exists or fits, never below `least`.
    AtMost {
        /// The wanted size, bytes.
        most: u64,
        /// The smallest useful size, bytes.
        least: u64,
    },
}

impl Size {
    /// Value of `most` in [`Size::AtMost`] for the whole of an existing target. Reducing it needs no remark.
    pub const ENTIRE: u64 = i64::MAX as u64 - MIB;

    /// Largest wanted size, bytes.
    pub fn wanted(self) -> u64 {
        match self {
            Size::Exactly(bytes) | Size::AtMost { most: bytes, .. } => bytes,
        }
    }

    /// Checks the wanted size itself, before any target is examined.
    pub(super) fn check(self) -> Result<()> {
        let wanted = self.wanted();
        if wanted == 0 {
            return Err(Error::usage("a size of 0 bytes leaves nothing to measure")
                .hint("give --size a value above zero, for example 1GiB"));
        }
        // Stays below the greatest offset that Linux supports.
        if wanted > Self::ENTIRE {
            return Err(
                Error::usage(format!("{wanted} bytes are more than a file can have"))
                    .hint("choose a smaller --size"),
            );
        }
        Ok(())
    }

    /// Bytes to use of an existing target of `length` bytes, and a note if the size was reduced.
    pub(super) fn of_existing(self, length: u64, path: &Path) -> Result<(u64, Option<String>)> {
        let place = path.display();
        if length == 0 {
            return Err(
                Error::usage(format!("{place} is empty: there is nothing to measure"))
                    .hint("give a file with data, or a directory for a scratch file"),
            );
        }
        let has = exactly(length);
        match self {
            Size::Exactly(bytes) if bytes > length => {
                Err(
                    Error::usage(format!("{place} has {has}, {} are wanted", exactly(bytes))).hint(
                        format!("choose --size {length} or less (in a new run: one that is resumed keeps its size); iolab never extends a file"),
                    ),
                )
            }
            Size::Exactly(bytes) => Ok((bytes, None)),
            Size::AtMost { least, .. } if length < least => Err(Error::usage(format!(
                "{place} has {has}, at least {} are needed",
                human(least)
            ))
            .hint("choose a larger file or device, or a directory for a scratch file")),
            Size::AtMost { most, .. } if most == Self::ENTIRE => Ok((length, None)),
            Size::AtMost { most, .. } if most > length => Ok((
                length,
                Some(format!(
                    "{place} has {}: iolab uses that much instead of {}",
                    human(length),
                    human(most)
                )),
            )),
            Size::AtMost { most, .. } => Ok((most, None)),
        }
    }

    /// Bytes for a new scratch file where `room` bytes may be taken, and a note if the size was reduced.
    pub(super) fn of_room(self, room: u64, dir: &Path) -> Result<(u64, Option<String>)> {
        if self.wanted() <= room {
            return Ok((self.wanted(), None));
        }
        let whole = room / MIB * MIB;
        if let Size::AtMost { most, least } = self
            && whole >= least.max(1)
        {
            let note = format!(
                "the scratch file in {} has {} instead of {}, to leave free space on the file system",
                dir.display(),
                human(whole),
                human(most)
            );
            return Ok((whole, Some(note)));
        }
        let needed = match self {
            Size::Exactly(bytes) => bytes,
            Size::AtMost { least, .. } => least,
        };
        let hint = match whole {
            0 => "free some space there or choose another directory".to_owned(),
            _ => format!(
                "choose --size {}MiB or less, free some space there, or choose another directory",
                whole / MIB
            ),
        };
        Err(Error::refused(format!(
            "a scratch file of {} does not fit into {}: {} can be used, the rest stays free for the system",
            human(needed),
            dir.display(),
            human(room)
        ))
        .hint(hint))
    }
}

/// Refuses a file size beyond `ulimit -f`: the kernel would kill the process on such a write.
pub(super) fn check_process_limit(length: u64) -> Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    match limit.current {
        Some(most) if length > most => Err(Error::usage(format!(
            "writing {} exceeds the limit of {} on file sizes of this process",
            human(length),
            human(most)
        ))
        .hint("raise it with `ulimit -f unlimited`, or choose a smaller --size")),
        _ => Ok(()),
    }
}

/// A size for people, with its exact bytes: `1.50 MiB (1572864 bytes)`.
fn exactly(bytes: u64) -> String {
    if bytes < 1024 {
        human(bytes)
    } else {
        format!("{} ({bytes} bytes)", human(bytes))
    }
}

/// A size for people: binary units, at most two decimals.
pub(super) fn human(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let power = (bytes.ilog2() / 10) as usize;
    // Truncated, not rounded: space stated as free must exist.
    let hundredths = (u128::from(bytes) * 100) >> (10 * power);
    format!("{} {}", hundredths as f64 / 100.0, UNITS[power - 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_workload::Kind;

    const GIB: u64 = 1 << 30;

    #[test]
    fn sizes_read_well_and_never_promise_too_much() {
        assert_eq!(human(1023), "1023 bytes");
        assert_eq!(human(1024), "1 KiB");
        assert_eq!(human(GIB + GIB / 2), "1.5 GiB");
        assert_eq!(human(GIB - 1), "1023.99 MiB");
        assert_eq!(human(u64::MAX), "15.99 EiB");
    }

    #[test]
    fn only_default_sizes_are_cut_to_whole_mebibytes() {
        let dir = Path::new("d");
        let default = Size::AtMost {
            most: GIB,
            least: 64 * MIB,
        };
        assert_eq!(default.of_room(2 * GIB, dir), Ok((GIB, None)));
        let (bytes, note) = default.of_room(100 * MIB + 5, dir).unwrap();
        assert_eq!(bytes, 100 * MIB);
        insta::assert_snapshot!(note.unwrap(), @"the scratch file in d has 100 MiB instead of 1 GiB, to leave free space on the file system");
        let error = default.of_room(63 * MIB, dir).unwrap_err();
        assert_eq!(error.kind(), Kind::Refused);
        let error = Size::Exactly(GIB).of_room(100 * MIB, dir).unwrap_err();
        assert_eq!(error.kind(), Kind::Refused);
        insta::assert_snapshot!(error.message(), @"a scratch file of 1 GiB does not fit into d: 100 MiB can be used, the rest stays free for the system");
        insta::assert_snapshot!(error.remedy().unwrap(), @"choose --size 100MiB or less, free some space there, or choose another directory");
    }
}
