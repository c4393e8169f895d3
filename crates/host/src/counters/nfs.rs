//! What the NFS client sent to its servers and fetched from them: `/proc/self/mountstats`, as `nfs_show_stats` of Linux
//! (fs/nfs/super.c) writes it.

use std::collections::BTreeMap;
use std::path::Path;

use iolab_workload::counters::NfsIo;

use iolab_storage::{Stack, unescape};

/// The counts of the mounts that targets lie on, those of one file system once; `None` where none lies on NFS, or one is not in
/// the list.
pub(super) fn read(stacks: &[Stack]) -> Option<NfsIo> {
    stacks.iter().find(|stack| stack.nfs.is_some())?;
    NfsMounts::read().of(stacks)
}

/// What all mounts had counted at a moment.
pub(crate) struct NfsMounts(Option<String>);

impl NfsMounts {
    /// Now.
    pub(crate) fn read() -> Self {
        Self(std::fs::read_to_string("/proc/self/mountstats").ok())
    }

    /// Of all together, one file system as often as it is mounted; `None` where there is none.
    pub(crate) fn all(&self) -> Option<NfsIo> {
        let sections = self.0.as_ref()?.split("device ");
        sections.filter_map(counts).reduce(NfsIo::plus)
    }

    /// Of those that targets lie on, as [`read`].
    pub(crate) fn of(&self, stacks: &[Stack]) -> Option<NfsIo> {
        let mounts = stacks.iter().filter_map(|stack| stack.nfs.as_ref());
        let mounts: BTreeMap<_, &Path> = mounts
            .map(|mount| (mount.file_system, &*mount.point))
            .collect();
        let text = self.0.as_ref().filter(|_| !mounts.is_empty())?;
        let mut mounts = mounts.into_values();
        mounts.try_fold(NfsIo::default(), |sum, mount| {
            Some(sum.plus(parse(text, mount)?))
        })
    }
}

/// The counts in a section of a mount.
fn counts(section: &str) -> Option<NfsIo> {
    let bytes = section
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("bytes:"))?;
    let counts: Vec<u64> = bytes
        .split_whitespace()
        .map_while(|count| count.parse().ok())
        .collect();
    // By read and write calls, by direct ones, then what went over the wire, in bytes and in pages.
    let [_, _, _, _, read_bytes, write_bytes, ..] = counts[..] else {
        return None;
    };
    Some(NfsIo {
        read_bytes,
        write_bytes,
    })
}

/// The counts of the mount at a path; `None` where there is none of NFS. What was mounted last is what is seen.
fn parse(text: &str, mount: &Path) -> Option<NfsIo> {
    let own = |section: &&str| {
        let head = section.lines().next().unwrap_or_default();
        let place = head.split_once(" mounted on ").map(|(_, place)| place);
        let place = place.and_then(|place| place.split_once(" with fstype nfs"));
        place.is_some_and(|(path, _)| {
            unescape(path.as_bytes()) == mount.as_os_str().as_encoded_bytes()
        })
    };
    counts(text.split("device ").filter(own).last()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 5.15 writes it, shortened: a local file system, two mounts of NFS, one with a space in its path.
    const RECORDED: &str = include_str!("nfs_mountstats.txt");

    #[test]
    fn counts_are_those_of_the_mount() {
        let of = |mount: &str| parse(RECORDED, Path::new(mount));
        assert_eq!(
            of("/mnt/data"),
            Some(NfsIo {
                read_bytes: 1_073_741_824,
                write_bytes: 268_435_456,
            })
        );
        assert_eq!(
            of("/mnt/old data"),
            Some(NfsIo {
                read_bytes: 4096,
                write_bytes: 0,
            })
        );
        assert_eq!((of("/"), of("/mnt"), of("/mnt/data/x")), (None, None, None));
        let all = NfsMounts(Some(RECORDED.to_owned())).all();
        assert_eq!(all.map(|all| all.read_bytes), Some(1_073_745_920));
        assert_eq!(NfsMounts(Some(String::new())).all(), None);
    }

    #[test]
    fn what_is_cut_short_is_none_or_whole() {
        let whole = parse(RECORDED, Path::new("/mnt/data"));
        for length in 0..RECORDED.len() {
            let cut = parse(&RECORDED[..length], Path::new("/mnt/data"));
            let is_line_end = RECORDED[..length].ends_with(char::is_whitespace);
            assert!(cut.is_none() || cut == whole || !is_line_end, "at {length}");
        }
    }
}
