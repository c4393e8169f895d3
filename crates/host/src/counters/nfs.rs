//! Traffic of the NFS client with its servers, from `/proc/self/mountstats` as `nfs_show_stats` of Linux
//! (fs/nfs/super.c) writes it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use iolab_workload::counters::NfsIo;

use iolab_storage::{Stack, unescape};

/// Counts of the NFS mounts that targets lie on, each file system once; `None` where no target lies on NFS, or
/// a mount is not in the list.
pub(super) fn read(stacks: &[Stack]) -> Option<NfsIo> {
    stacks.iter().find(|stack| stack.nfs.is_some())?;
    NfsMounts::read().of(stacks)
}

/// Counters of all NFS mounts at one moment.
pub struct NfsMounts(Option<Vec<u8>>);

impl NfsMounts {
    /// Reads the counters now.
    pub fn read() -> Self {
        Self(std::fs::read("/proc/self/mountstats").ok())
    }

    /// Traffic of the targets' mounts since an earlier moment; `None` where no target lies on NFS, or a count
    /// is unknown. A mount made in between counts from zero.
    pub fn since(&self, earlier: &Self, stacks: &[Stack]) -> Option<NfsIo> {
        let sections = self.sections()?;
        differences(&own(&sections, stacks)?, &earlier.sections()?)
    }

    /// Traffic of all NFS mounts since an earlier moment, a file system once per mount; `None` without any
    /// mount.
    pub fn all_since(&self, earlier: &Self) -> Option<NfsIo> {
        let sections = self.sections()?;
        let counted: Vec<&Section<'_>> = sections.iter().filter(|one| one.io.is_some()).collect();
        differences(&counted, &earlier.sections()?)
    }

    /// Counts of the targets' mounts, as [`read`].
    fn of(&self, stacks: &[Stack]) -> Option<NfsIo> {
        let sections = self.sections()?;
        sum(own(&sections, stacks)?
            .into_iter()
            .map(|section| section.io))
    }

    fn sections(&self) -> Option<Vec<Section<'_>>> {
        self.0.as_deref().map(sections)
    }
}

/// Mount points of the file systems that targets lie on, each once.
fn points(stacks: &[Stack]) -> Vec<&Path> {
    let mounts = stacks.iter().filter_map(|stack| stack.nfs.as_ref());
    let points: BTreeMap<_, &Path> = mounts
        .map(|mount| (mount.file_system, &*mount.point))
        .collect();
    points.into_values().collect()
}

/// Mounts that targets lie on; `None` where one is not in the list.
fn own<'a, 's>(sections: &'s [Section<'a>], stacks: &[Stack]) -> Option<Vec<&'s Section<'a>>> {
    let points = points(stacks).into_iter();
    points.map(|point| seen_at(sections, point)).collect()
}

/// NFS mount at a path, if any: the last mount hides the earlier ones.
fn seen_at<'a, 's>(sections: &'s [Section<'a>], point: &Path) -> Option<&'s Section<'a>> {
    let is_own = |section: &&Section<'_>| section.point.as_deref() == Some(point);
    sections.iter().rfind(is_own)
}

/// Sum of several counts; `None` without any, or if one is unknown.
fn sum(counts: impl Iterator<Item = Option<NfsIo>>) -> Option<NfsIo> {
    let all = counts.collect::<Option<Vec<_>>>()?;
    all.into_iter().reduce(NfsIo::plus)
}

/// Summed traffic of these mounts since an earlier moment; `None` without any mount, or if a count is unknown.
fn differences(mounts: &[&Section<'_>], earlier: &[Section<'_>]) -> Option<NfsIo> {
    let since = |now: &&Section<'_>| {
        let is_same = |then: &&Section<'_>| then.device == now.device && then.point == now.point;
        let before = match earlier.iter().rfind(is_same) {
            Some(then) => then.io?,
            // The file system had counted before, at another mount point.
            None if earlier.iter().any(|then| then.device == now.device) => return None,
            None => NfsIo::default(),
        };
        Some(now.io?.since(before))
    };
    sum(mounts.iter().map(since))
}

/// Section of one mount in `mountstats`.
struct Section<'a> {
    /// Mounted device: server and export.
    device: &'a [u8],
    /// Mount point, if the mount is an NFS one.
    point: Option<PathBuf>,
    io: Option<NfsIo>,
}

/// Mounts in file order. A path can contain the word that starts a section, but not a line break.
fn sections(text: &[u8]) -> Vec<Section<'_>> {
    let mut all: Vec<Section<'_>> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(head) = line.strip_prefix(b"device ") {
            let (device, place) = split_once(head, b" mounted on ").unwrap_or((head, b""));
            let point = split_once(place, b" with fstype nfs");
            let point = point.map(|(point, _)| OsString::from_vec(unescape(point)).into());
            all.push(Section {
                device,
                point,
                io: None,
            });
        } else if let (Some(last), Some(bytes)) = (
            all.last_mut(),
            line.trim_ascii_start().strip_prefix(b"bytes:"),
        ) {
            last.io = last.io.or_else(|| counts(bytes));
        }
    }
    all
}

fn split_once<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(mark.len()).position(|part| part == mark)?;
    Some((&text[..at], &text[at + mark.len()..]))
}

/// Counts of a mount.
fn counts(bytes: &[u8]) -> Option<NfsIo> {
    let counts: Vec<u64> = std::str::from_utf8(bytes)
        .ok()?
        .split_whitespace()
        .map_while(|count| count.parse().ok())
        .collect();
    // Bytes by read and write calls, by direct ones, then over the wire in bytes and in pages.
    let [_, _, _, _, read_bytes, write_bytes, ..] = counts[..] else {
        return None;
    };
    Some(NfsIo {
        read_bytes,
        write_bytes,
    })
}

#[cfg(test)]
mod tests {
    use iolab_storage::NfsMount;

    use super::*;

    /// Counts of the mount at a path.
    fn parse(text: &[u8], mount: &Path) -> Option<NfsIo> {
        seen_at(&sections(text), mount)?.io
    }

    /// Recorded output of Linux 5.15, shortened: a local file system, two NFS mounts, one with a space in its
    /// path.
    const RECORDED: &str = include_str!("nfs_mountstats.txt");

    #[test]
    fn counts_are_those_of_the_mount() {
        let of = |mount: &str| parse(RECORDED.as_bytes(), Path::new(mount));
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
    }

    fn mounts(text: &[u8]) -> NfsMounts {
        NfsMounts(Some(text.to_owned()))
    }

    fn io(read_bytes: u64) -> Option<NfsIo> {
        Some(NfsIo {
            read_bytes,
            write_bytes: 0,
        })
    }

    /// Section of an NFS mount.
    fn section(device: &str, point: &str, read_bytes: u64) -> String {
        format!(
            "device {device} mounted on {point} with fstype nfs4 statvers=1.1\n\tbytes:\t0 0 0 0 {read_bytes} 0 0 0\n"
        )
    }

    fn on(points: &[&str]) -> Vec<Stack> {
        let stack = |(number, point): (u32, &&str)| Stack {
            nfs: Some(NfsMount {
                point: point.into(),
                file_system: (0, number),
                server: String::new(),
            }),
            ..Stack::default()
        };
        (0..).zip(points).map(stack).collect()
    }

    #[test]
    fn mount_path_may_contain_the_section_word() {
        let path = b"/mnt/device \xff";
        let mut text = b"device a:/ mounted on /mnt/device\\040\xff with fstype nfs\n".to_vec();
        text.extend(b"\tbytes:\t0 0 0 0 7 0 0 0\n");
        let path = OsString::from_vec(path.to_vec());
        assert_eq!(parse(&text, Path::new(&path)), io(7));
        let text = section("a:/device b", "/mnt/device b", 9);
        assert_eq!(parse(text.as_bytes(), Path::new("/mnt/device b")), io(9));
    }

    #[test]
    fn both_ends_are_those_of_the_same_mounts() {
        let (a, b) = (section("s:/a", "/a", 10), section("s:/b", "/b", 1000));
        let before = mounts(format!("{a}{b}").as_bytes());
        let late = section("s:/late", "/late", 5);
        let now = [section("s:/a", "/a", 12), section("s:/b", "/b", 1100), late];
        let now = mounts(now.concat().as_bytes());
        assert_eq!(now.since(&before, &on(&["/a"])), io(2));
        assert_eq!(now.since(&before, &on(&["/a", "/late"])), io(7));
        assert_eq!(now.since(&before, &on(&["/a", "/gone"])), None);
        assert_eq!(now.since(&before, &[]), None);
        assert_eq!(now.all_since(&before), io(107));
        assert_eq!(mounts(b"").all_since(&before), None);
        assert_eq!(now.all_since(&NfsMounts(None)), None);
        // Counts from before a second mount of the file system are unknown.
        let again = format!("{a}{}", section("s:/a", "/again", 15));
        let again = mounts(again.as_bytes());
        assert_eq!(again.since(&before, &on(&["/again"])), None);
        assert_eq!(again.of(&on(&["/a", "/again"])), io(25));
        assert_eq!(again.of(&[]), None);
    }

    #[test]
    fn what_is_cut_short_is_none_or_whole() {
        let whole = parse(RECORDED.as_bytes(), Path::new("/mnt/data"));
        for length in 0..RECORDED.len() {
            let cut = parse(&RECORDED.as_bytes()[..length], Path::new("/mnt/data"));
            let is_line_end = RECORDED[..length].ends_with(char::is_whitespace);
            assert!(cut.is_none() || cut == whole || !is_line_end, "at {length}");
        }
    }
}
