//! Limits that control groups put on this process. The tightest limit on the way up to the root applies.
//! Sources: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ of Linux.

use std::fs;
use std::path::{Path, PathBuf};

use crate::device::Device;
use crate::text_of;
use iolab_storage::procfs::{ControlGroup, Hierarchy};
use iolab_storage::sysfs;
use iolab_workload::counters::Traffic;

/// A bound on the traffic with one device, per second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoLimit {
    /// Bounded quantity: reads or writes, in bytes or requests.
    pub what: Traffic,
    /// Bound on the quantity, per second.
    pub per_second: u64,
}

/// Control-group limits that apply to this process.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CgroupLimits {
    /// CPU quota, in CPUs: 1.5 is one and a half CPUs.
    pub cpus: Option<f64>,
    /// Memory limit, page cache included, bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that programs can still allocate, reclaimable page cache included, bytes. The group that leaves
    /// the least is not always the one with the tightest limit.
    pub memory_left_bytes: Option<u64>,
    /// Limits on traffic with the target's device.
    pub io: Vec<IoLimit>,
}

impl CgroupLimits {
    /// Reads the limits of this process from `proc` (`/proc`). `devices` are the target's device and all
    /// devices below it.
    pub fn read(proc: &Path, devices: &[(u32, u32)]) -> Self {
        let mut limits = Self::default();
        for folder in folders(proc) {
            limits.tighten(&folder, devices);
        }
        limits
    }

    /// Reads the limits on traffic with `device`. Control groups limit whole disks, not partitions.
    pub fn of_device(proc: &Path, device: Option<&Device>) -> Self {
        let stack = device.iter().flat_map(|device| device.stack());
        let disks: Vec<(u32, u32)> = stack.filter_map(|device| device.number).collect();
        Self::read(proc, &disks)
    }

    fn tighten(&mut self, folder: &Path, devices: &[(u32, u32)]) {
        let cpus = cpus_v2(folder).or_else(|| cpus_v1(folder));
        self.cpus = least(self.cpus, cpus);
        let memory = memory_limit(folder);
        self.memory_bytes = least(self.memory_bytes, memory);
        let left = memory.map(|limit| limit.saturating_sub(memory_held(folder)));
        self.memory_left_bytes = least(self.memory_left_bytes, left);
        for device in devices {
            for limit in io_v2(folder, *device)
                .into_iter()
                .chain(io_v1(folder, *device))
            {
                self.tighten_io(limit);
            }
        }
    }

    fn tighten_io(&mut self, limit: IoLimit) {
        match self.io.iter_mut().find(|known| known.what == limit.what) {
            Some(known) => known.per_second = known.per_second.min(limit.per_second),
            None => self.io.push(limit),
        }
    }
}

fn least<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) if b < a => Some(b),
        (None, b) => b,
        (a, _) => a,
    }
}

fn number(folder: &Path, file: &str) -> Option<u64> {
    sysfs::value(folder.join(file))
}

/// Memory limit of a group, bytes. A process beyond `memory.max` is killed; beyond `memory.high` it is put to
/// sleep.
fn memory_limit(folder: &Path) -> Option<u64> {
    ["memory.max", "memory.high", "memory.limit_in_bytes"]
        .iter()
        .filter_map(|file| number(folder, file))
        // Version 1 says "no limit" with a number near 2^63.
        .filter(|bytes| *bytes < 1 << 60)
        .min()
}

/// Memory that a group and its descendants cannot give back at once, bytes: everything but the page cache.
fn memory_held(folder: &Path) -> u64 {
    let used = ["memory.current", "memory.usage_in_bytes"]
        .iter()
        .find_map(|file| number(folder, file));
    let stat = text_of(folder.join("memory.stat")).unwrap_or_default();
    let value = |name: &str| {
        let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
        let line = lines.find(|(key, _)| *key == name)?;
        line.1.parse::<u64>().ok()
    };
    let cached = ["active_file", "inactive_file"].map(|name| {
        // Version 1 reports descendants separately, as totals.
        value(&format!("total_{name}"))
            .or_else(|| value(name))
            .unwrap_or(0)
    });
    used.unwrap_or(0)
        .saturating_sub(cached.iter().fold(0, |sum, part| sum.saturating_add(*part)))
}

/// `cpu.max`: `QUOTA PERIOD`, or `max PERIOD`.
fn cpus_v2(folder: &Path) -> Option<f64> {
    let text = text_of(folder.join("cpu.max"))?;
    let (quota, period) = text.split_once(' ')?;
    share(quota.parse().ok()?, period.parse().ok()?)
}

fn cpus_v1(folder: &Path) -> Option<f64> {
    // A quota of -1, no number here, means no quota.
    let number = |file| number(folder, file).map(|number| number as f64);
    share(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
}

fn share(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Limits in `io.max`: one line per device, `8:16 rbps=2097152 wbps=max riops=max wiops=120`.
fn io_v2(folder: &Path, device: (u32, u32)) -> Vec<IoLimit> {
    let line = line_of(folder, "io.max", device).unwrap_or_default();
    line.split_whitespace()
        .filter_map(|field| {
            let (name, value) = field.split_once('=')?;
            Some(IoLimit {
                what: name.parse().ok()?,
                per_second: value.parse().ok()?,
            })
        })
        .collect()
}

/// Limits in `blkio.throttle.*_device`: one line per device, `8:16 2097152`.
fn io_v1(folder: &Path, device: (u32, u32)) -> Vec<IoLimit> {
    const FILES: [(Traffic, &str); 4] = [
        (Traffic::ReadBytes, "blkio.throttle.read_bps_device"),
        (Traffic::WriteBytes, "blkio.throttle.write_bps_device"),
        (Traffic::Reads, "blkio.throttle.read_iops_device"),
        (Traffic::Writes, "blkio.throttle.write_iops_device"),
    ];
    let limits = FILES.into_iter().filter_map(|(what, file)| {
        let per_second = line_of(folder, file, device)?.trim().parse().ok()?;
        Some(IoLimit { what, per_second })
    });
    limits.collect()
}

/// Rest of the line of a device.
fn line_of(folder: &Path, file: &str, (major, minor): (u32, u32)) -> Option<String> {
    let (text, device) = (text_of(folder.join(file))?, format!("{major}:{minor} "));
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(&device).map(str::to_owned))
}

/// Folders of this process's control groups, each with its ancestors.
fn folders(proc: &Path) -> Vec<PathBuf> {
    let (Ok(mounts), Ok(own)) = (
        fs::read(proc.join("self/mountinfo")),
        fs::read_to_string(proc.join("self/cgroup")),
    ) else {
        return Vec::new();
    };
    let hierarchies = Hierarchy::parse(&mounts);
    let groups = ControlGroup::parse(&own);
    groups.flat_map(|own| own.folders(&hierarchies)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::Tree;

    const DISK: (u32, u32) = (8, 16);

    /// A fake machine whose control groups are mounted at `cgroup` in the tree.
    fn machine(mountinfo: &str, own: &str) -> Tree {
        let tree = Tree::empty();
        let mounts = mountinfo.replace("ROOT", &tree.path().display().to_string());
        tree.files("proc/self", &[("mountinfo", &mounts), ("cgroup", own)]);
        tree
    }

    fn limits(tree: &Tree) -> CgroupLimits {
        CgroupLimits::read(&tree.path().join("proc"), &[DISK])
    }

    #[test]
    fn the_tightest_limit_on_the_way_up_applies() {
        let tree = machine(
            "30 23 0:26 / ROOT/cgroup rw - cgroup2 cgroup2 rw,nsdelegate",
            "0::/user/run",
        );
        tree.file("cgroup/user/cpu.max", "150000 100000");
        tree.file("cgroup/user/memory.max", "max");
        tree.file("cgroup/user/memory.high", "1073741824");
        tree.file(
            "cgroup/user/io.max",
            "8:0 rbps=1\n8:16 rbps=2097152 wbps=max riops=max wiops=120",
        );
        tree.file("cgroup/user/run/cpu.max", "max 100000");
        tree.file("cgroup/user/run/memory.max", "2147483648");
        tree.file(
            "cgroup/user/run/io.max",
            "8:16 rbps=4194304 wbps=max riops=max wiops=max",
        );
        let limits = limits(&tree);
        assert_eq!(limits.cpus, Some(1.5));
        assert_eq!(limits.memory_bytes, Some(1 << 30));
        let io: Vec<_> = limits.io.iter().map(|l| (l.what, l.per_second)).collect();
        assert_eq!(io, [(Traffic::ReadBytes, 2 << 20), (Traffic::Writes, 120)]);
    }

    #[test]
    fn version_1_values_for_no_limit_are_recognised() {
        let tree = machine(
            "33 31 0:29 / ROOT/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             34 31 0:32 / ROOT/cgroup/memory rw - cgroup cgroup rw,memory\n\
             35 31 0:35 / ROOT/cgroup/blkio rw - cgroup cgroup rw,blkio",
            "9:memory:/m\n8:blkio:/\n2:cpu,cpuacct:/c\n0::/",
        );
        tree.file("cgroup/cpu/c/cpu.cfs_quota_us", "-1");
        tree.file("cgroup/cpu/c/cpu.cfs_period_us", "100000");
        tree.file(
            "cgroup/memory/m/memory.limit_in_bytes",
            "9223372036854771712",
        );
        tree.file(
            "cgroup/blkio/blkio.throttle.read_bps_device",
            "8:0 5\n8:16 1000000",
        );
        let found = limits(&tree);
        assert_eq!((found.cpus, found.memory_bytes), (None, None));
        assert_eq!(
            found.io,
            [IoLimit {
                what: Traffic::ReadBytes,
                per_second: 1_000_000
            }]
        );
        tree.file("cgroup/cpu/c/cpu.cfs_quota_us", "50000");
        tree.file("cgroup/memory/memory.limit_in_bytes", "4096");
        let found = limits(&tree);
        assert_eq!((found.cpus, found.memory_bytes), (Some(0.5), Some(4096)));
    }

    #[test]
    fn container_limits_are_found_below_its_own_root() {
        let tree = machine(
            "30 23 0:26 /docker/ab ROOT/cgroup rw - cgroup2 cgroup rw",
            "0::/docker/ab/child",
        );
        tree.files("cgroup/child", &[("cpu.max", "20000 10000")]);
        assert_eq!(limits(&tree).cpus, Some(2.0));
        // With an unknown place, the container's own root still has limits.
        let tree = machine(
            "30 23 0:26 / ROOT/cgroup rw - cgroup2 cgroup rw",
            "0::/elsewhere",
        );
        tree.files("cgroup", &[("cpu.max", "30000 10000")]);
        assert_eq!(limits(&tree).cpus, Some(3.0));
    }

    #[test]
    fn the_fullest_group_decides_the_memory_left() {
        let tree = machine(
            "30 23 0:26 / ROOT/cgroup rw - cgroup2 cgroup2 rw\n\
             34 31 0:32 / ROOT/v1 rw - cgroup cgroup rw,memory",
            "4:memory:/m\n0::/user/run",
        );
        tree.file("cgroup/user/memory.max", "1000000");
        tree.file("cgroup/user/memory.current", "900000");
        tree.file(
            "cgroup/user/memory.stat",
            "anon 600000\nactive_file 100000\ninactive_file 200000",
        );
        tree.file("cgroup/user/run/memory.max", "500000");
        tree.file("cgroup/user/run/memory.current", "50000");
        let found = limits(&tree);
        assert_eq!(found.memory_bytes, Some(500_000));
        assert_eq!(found.memory_left_bytes, Some(400_000));
        tree.file("v1/m/memory.limit_in_bytes", "2000000");
        tree.file("v1/m/memory.usage_in_bytes", "1900000");
        tree.file(
            "v1/m/memory.stat",
            "active_file 1\ninactive_file 2\ntotal_active_file 100000\ntotal_inactive_file 0",
        );
        assert_eq!(limits(&tree).memory_left_bytes, Some(200_000));
    }
}
