//! Block-device counters: traffic of all processes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use iolab_workload::counters::{Bottom, DeviceStat, DeviceWaits};

use crate::device::Thermometer;
use iolab_storage::{Stack, sysfs};

/// Sum of the counters of several devices since each appeared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counted {
    pub(super) stat: DeviceStat,
    /// Whether one of the devices has never counted anything. After use, such a device is known not to count.
    is_silent: bool,
}

impl Counted {
    /// Whether this sum can follow `earlier`: no counter went back (as when a path to a disk goes away), and
    /// after I/O every device has counted something.
    pub(super) fn can_follow(&self, earlier: &DeviceStat, did_io: bool) -> bool {
        let mut both = traffic(&self.stat).into_iter().zip(traffic(earlier));
        both.all(|(now, then)| now >= then) && !(self.is_silent && did_io)
    }
}

fn traffic(stat: &DeviceStat) -> [u64; 5] {
    [
        stat.read_ios, stat.read_bytes, stat.write_ios, stat.write_bytes, stat.flush_ios,
    ]
}

fn is_silent(stat: &DeviceStat) -> bool {
    traffic(stat).iter().all(|count| *count == 0)
}

/// Counters of the disks at the bottom of the stacks; `None` where the disks are unknown, or are the devices
/// themselves. A disk shared by stacks counts once.
pub(super) fn read_disks(stacks: &[Stack]) -> Option<Counted> {
    if stacks.iter().all(|stack| stack.bottom.is_none()) {
        return None;
    }
    let disks: Option<Vec<Vec<(u32, u32)>>> = stacks.iter().map(Stack::disks).collect();
    sum(disks?.into_iter().flatten().collect::<BTreeSet<_>>())
}

/// Temperature sensors of the disks at the bottom of these stacks.
pub(crate) fn thermometer(sys: &Path, stacks: &[Stack]) -> Thermometer {
    let disks: BTreeSet<(u32, u32)> = stacks.iter().filter_map(Stack::disks).flatten().collect();
    Thermometer::of(sys, disks)
}

/// Disks at the bottom of the stacks, with the counters given.
pub(super) fn bottom(stacks: &[Stack], stat: DeviceStat) -> Bottom {
    Bottom {
        stat,
        in_file: stacks.iter().any(|stack| stack.in_file),
        passes_on: stacks.iter().all(|stack| stack.passes_on),
    }
}

/// Counters of the devices that targets lie on; `None` where one has no counters, or lies on another one, which
/// would count its traffic twice.
pub(super) fn read_devices(stacks: &[Stack]) -> Option<Counted> {
    let devices = stacks.iter().map(|stack| stack.device);
    let devices = devices.collect::<Option<BTreeSet<(u32, u32)>>>()?;
    let mut lower = stacks.iter().flat_map(|stack| &stack.below);
    let is_sum = !devices.is_empty() && !lower.any(|lower| devices.contains(lower));
    is_sum.then(|| sum(devices)).flatten()
}

fn sum(disks: BTreeSet<(u32, u32)>) -> Option<Counted> {
    let mut disks = disks.into_iter();
    disks.try_fold(Counted::default(), |sum, disk| {
        let stat = read_device(Path::new("/sys"), disk)?;
        Some(Counted {
            stat: sum.stat.plus(stat),
            is_silent: sum.is_silent || is_silent(&stat),
        })
    })
}

/// Counters of a device; `None` where it has none, or they are switched off. An NVMe namespace with several
/// paths may leave the counting to its paths. Then its partitions do not count either, and the paths' sum
/// covers the whole namespace.
pub fn read_device(sys: &Path, (major, minor): (u32, u32)) -> Option<DeviceStat> {
    let folder = sys.join(format!("dev/block/{major}:{minor}"));
    let is_partition = folder.join("partition").exists();
    let disk = match is_partition {
        true => folder.join(".."),
        false => folder.clone(),
    };
    let own = read_stat(&folder, &disk)?;
    if !is_silent(&own) {
        return Some(own);
    }
    let paths = paths_to(sys, &disk);
    if is_partition && !paths.is_empty() {
        let all = read_stat(&disk, &disk)?;
        if !is_silent(&all) {
            return Some(all);
        }
    }
    let mut paths = paths.into_iter();
    paths.try_fold(own, |sum, path| Some(sum.plus(read_stat(&path, &path)?)))
}

fn read_stat(folder: &Path, disk: &Path) -> Option<DeviceStat> {
    if sysfs::counts_traffic(disk) == Some(false) {
        return None;
    }
    parse_device(&std::fs::read_to_string(folder.join("stat")).ok()?)
}

/// Request times of a device; `None` where it has no counters of its own.
pub fn read_waits(sys: &Path, (major, minor): (u32, u32)) -> Option<DeviceWaits> {
    let folder = sys.join(format!("dev/block/{major}:{minor}"));
    let text = std::fs::read_to_string(folder.join("stat")).ok()?;
    let counts = !is_silent(&parse_device(&text)?);
    let field = |n: usize| text.split_whitespace().nth(n)?.parse().ok();
    counts.then_some(DeviceWaits {
        read_ms: field(3)?,
        write_ms: field(7)?,
    })
}

/// Hidden devices such as `nvme0c1n1`, one for each controller, by which the kernel reaches the namespace
/// `nvme0n1`.
fn paths_to(sys: &Path, disk: &Path) -> Vec<PathBuf> {
    let head = std::fs::canonicalize(disk).map(|folder| sysfs::name_of(&folder));
    let mut all = sysfs::paths_in(sys.join("block"));
    all.retain(|path| {
        let is_path = |head: &String| is_path_to(&sysfs::name_of(path), head);
        head.as_ref().is_ok_and(is_path)
    });
    all
}

fn is_path_to(name: &str, head: &str) -> bool {
    let parts = |name: &str| {
        let (subsystem, namespace) = name.strip_prefix("nvme")?.split_once('n')?;
        Some((subsystem.to_owned(), namespace.to_owned()))
    };
    let controller = |name: &str| {
        let (rest, namespace) = parts(name)?;
        let (subsystem, _) = rest.split_once('c')?;
        Some((subsystem.to_owned(), namespace))
    };
    controller(name).is_some_and(|path| parts(head) == Some(path))
}

/// Parses `stat` of a block device (Documentation/block/stat.rst of Linux). Sectors always have 512 bytes.
fn parse_device(text: &str) -> Option<DeviceStat> {
    let fields: Vec<u64> = text
        .split_whitespace()
        .map_while(|f| f.parse().ok())
        .collect();
    let [
        read_ios,
        read_merges,
        read_sectors,
        _,
        write_ios,
        write_merges,
        write_sectors,
        _,
        _,
        busy_ms,
        ..,
    ] = fields[..]
    else {
        return None;
    };
    Some(DeviceStat {
        read_ios,
        read_merges,
        read_bytes: read_sectors.saturating_mul(512),
        write_ios,
        write_merges,
        write_bytes: write_sectors.saturating_mul(512),
        // Counted since Linux 5.5.
        flush_ios: fields.get(15).copied().unwrap_or(0),
        busy_ms,
        queue_ms: fields.get(10).copied(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use needs::Tree;

    #[test]
    fn the_counters_are_read_as_linux_prints_them() {
        let stat =
            "  446216 784926 9550688 4382310 883461 322361 4960736 3612 0 1 6 7 8 9 10 11 12\n";
        let stat = parse_device(stat).expect("complete");
        assert_eq!((stat.read_ios, stat.read_bytes), (446_216, 9_550_688 * 512));
        assert_eq!(
            (stat.write_ios, stat.write_bytes),
            (883_461, 4_960_736 * 512)
        );
        assert_eq!(
            (stat.busy_ms, stat.queue_ms, stat.flush_ios),
            (1, Some(6), 11)
        );
        assert_eq!(parse_device("1 2 3"), None);
    }

    #[test]
    fn stack_ending_in_memory_reaches_no_disk() {
        let stack = |bottom| Stack {
            bottom,
            in_file: true,
            ..Stack::default()
        };
        let memory = [stack(Some(Vec::new()))];
        let none = read_disks(&memory).expect("known");
        assert_eq!(none, Counted::default());
        assert!(none.can_follow(&none.stat, true));
        assert!(bottom(&memory, none.stat).in_file);
        assert_eq!(read_disks(&[stack(None)]), None);
        // One disk that cannot be read makes the sum unknown.
        assert_eq!(read_disks(&[stack(Some(vec![(4095, 1_048_575)]))]), None);
    }

    #[test]
    fn several_targets_are_counted_together() {
        let on = |device: u32, bottom: Option<Vec<(u32, u32)>>| Stack {
            device: Some((4095, device)),
            bottom,
            ..Stack::default()
        };
        assert_eq!(read_devices(&[]), None);
        // An unreadable device makes the sum unknown, and so does a stack without a device.
        assert_eq!(read_devices(&[on(1, None)]), None);
        assert_eq!(read_devices(&[Stack::default()]), None);
        // A device next to a stack that ends in memory is its own bottom.
        assert_eq!(read_disks(&[on(1, Some(Vec::new())), on(2, None)]), None);
        let memory = [on(1, Some(Vec::new())), on(2, Some(Vec::new()))];
        let none = read_disks(&memory).expect("known");
        assert_eq!(none.stat, DeviceStat::default());
    }

    const HEAD: (u32, u32) = (259, 1);
    const PART: (u32, u32) = (259, 2);
    const ZERO: &str = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";

    fn file(tree: &Tree, name: &str, text: &str) {
        tree.files("devices", &[(name, text)]);
    }

    fn link(tree: &Tree, link: &str, device: &str) {
        tree.link(link, &format!("devices/{device}"));
    }

    fn bytes(tree: &Tree, number: (u32, u32)) -> Option<(u64, u64)> {
        let stat = read_device(tree.path(), number)?;
        Some((stat.read_bytes / 512, stat.write_bytes / 512))
    }

    /// A namespace with two controllers, another namespace and a partition, as Linux 6.1 shows them.
    #[test]
    fn multipath_namespace_is_counted_by_its_paths() {
        let fake = &Tree::empty();
        for (name, stat) in [
            ("nvme0n1", ZERO),
            ("nvme0n1/nvme0n1p1", ZERO),
            ("nvme0c0n1", "48 0 2088 13 297 0 3200 693 0 744 1479"),
            ("nvme0c1n1", "1 0 8 1 2 0 16 1 0 1 1"),
            ("nvme0c0n2", "9 0 9 9 9 0 9 9 0 9 9"),
            ("nvme1c0n1", "9 0 9 9 9 0 9 9 0 9 9"),
        ] {
            file(fake, &format!("{name}/stat"), stat);
            if !name.contains('/') {
                link(fake, &format!("block/{name}"), name);
            }
        }
        file(fake, "nvme0n1/nvme0n1p1/partition", "1");
        link(fake, "dev/block/259:1", "nvme0n1");
        link(fake, "dev/block/259:2", "nvme0n1/nvme0n1p1");
        assert_eq!(bytes(fake, HEAD), Some((2096, 3216)));
        assert_eq!(bytes(fake, PART), Some((2096, 3216)));
        // A kernel that counts at the head.
        file(
            fake,
            "nvme0n1/stat",
            "48 0 2000 13 297 0 3000 693 0 744 1479",
        );
        assert_eq!(bytes(fake, HEAD), Some((2000, 3000)));
        assert_eq!(bytes(fake, PART), Some((2000, 3000)));
        // A partition with counts of its own.
        file(fake, "nvme0n1/nvme0n1p1/stat", "1 0 8 1 2 0 16 1 0 1 1");
        assert_eq!(bytes(fake, PART), Some((8, 16)));
        // An unreadable path makes the sum unknown.
        file(fake, "nvme0n1/stat", ZERO);
        file(fake, "nvme0c1n1/stat", "");
        assert_eq!(bytes(fake, HEAD), None);
    }

    #[test]
    fn what_is_not_counted_is_not_zero() {
        let fake = &Tree::empty();
        for name in ["sda", "sda/sda1"] {
            file(
                fake,
                &format!("{name}/stat"),
                "48 0 2088 13 297 0 3200 693 0 744 1479",
            );
        }
        file(fake, "sda/sda1/partition", "1");
        file(fake, "sda/queue/iostats", "0");
        link(fake, "dev/block/259:1", "sda");
        link(fake, "dev/block/259:2", "sda/sda1");
        assert_eq!(bytes(fake, HEAD), Some((2088, 3200)));
        // With a request queue, the switch decides.
        file(fake, "sda/mq/0/nr_tags", "1");
        assert_eq!((bytes(fake, HEAD), bytes(fake, PART)), (None, None));
        file(fake, "sda/queue/iostats", "1");
        assert_eq!(bytes(fake, PART), Some((2088, 3200)));
    }

    #[test]
    fn a_zero_that_cannot_be_is_unknown() {
        let counted = |read_ios, is_silent| Counted {
            stat: DeviceStat {
                read_ios,
                ..DeviceStat::default()
            },
            is_silent,
        };
        let earlier = counted(5, false).stat;
        assert!(counted(5, false).can_follow(&earlier, true));
        // A path has gone, and its counts with it.
        assert!(!counted(4, false).can_follow(&earlier, false));
        // A device that never counted: used and unused, alone and with another one.
        assert!(!counted(0, true).can_follow(&DeviceStat::default(), true));
        assert!(counted(0, true).can_follow(&DeviceStat::default(), false));
        assert!(!counted(9, true).can_follow(&earlier, true));
    }

    #[test]
    fn devices_upon_each_other_have_no_sum() {
        let entries = std::fs::read_dir("/sys/dev/block").into_iter().flatten();
        let number = |entry: std::io::Result<std::fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let (major, minor) = name.split_once(':')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        let found: Vec<(u32, u32)> = entries.filter_map(number).take(2).collect();
        let [upper, lower] = found[..] else {
            return needs::skip(needs::Need::TwoBlockDevices, format!("{found:?}"));
        };
        let on = |device, below| Stack {
            device: Some(device),
            below,
            ..Stack::default()
        };
        let apart = [on(upper, Vec::new()), on(lower, Vec::new())];
        assert!(read_devices(&apart).is_some());
        let [_, lowest] = apart;
        assert_eq!(read_devices(&[on(upper, vec![lower]), lowest]), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}", fields: Vec<u64>) {
            let _ = parse_device(&text);
            let line = fields.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(parse_device(&line).is_some(), fields.len() >= 10);
        }

        #[test]
        fn what_is_added_can_be_taken_away(a in 0..1u64 << 60, b in 0..1u64 << 60) {
            let of = |n: u64| DeviceStat { read_ios: n, write_bytes: n / 2, busy_ms: n / 3, ..DeviceStat::default() };
            prop_assert_eq!(of(a).plus(of(b)).since(of(b)), of(a));
        }
    }
}
