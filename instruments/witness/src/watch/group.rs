//! Control group of a program: its traffic with each disk, whoever else used the disk (`io.stat` of version 2,
//! Documentation/admin-guide/cgroup-v2.rst of Linux).
//!
//! A program gets a group of its own where that changes nothing for it. This process must be in the root of the
//! hierarchy, which has no limits, and groups below must count I/O without dividing CPUs, memory or disks.
//! Elsewhere a new group would have other limits or another share. Then the program's present group gives the
//! most that it can have moved, or its exact traffic if nothing else is in the group.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::observed::{GroupHolds, GroupTraffic};
use iolab_storage::procfs::{ControlGroup, Hierarchy};
use iolab_storage::sysfs;
use rustix::fs::{FlockOperation, flock};

use super::Number;

/// Names of program groups, before the number of the observing process.
const PREFIX: &str = "iolab-witness-";
/// File with the processes of a group, and file with its counts.
const PROCESSES: &str = "cgroup.procs";
/// File with the counted traffic.
const TRAFFIC: &str = "io.stat";

/// Controllers under which a group without limits behaves like the root. With `memory` and `io` together, its
/// pages would have reclaim lists of their own, and its dirty pages a limit and write-back speed of their own.
const UNWEIGHTED: [&str; 2] = ["io", "pids"];
/// File that divides disks by weights of groups, by disk: a line of `8:0 enable=1 ...`.
const COST_MODEL: &str = "io.cost.qos";

/// A group's traffic per disk.
pub(super) type Traffic = BTreeMap<Number, GroupTraffic>;

/// A group whose traffic is counted.
pub(super) struct WitnessGroup {
    folder: PathBuf,
    /// Whether the group was made for the program and is removed afterwards.
    is_made: bool,
    /// Locked while this process lives, so that no other one removes the group.
    _lock: Option<File>,
    before: Traffic,
}

impl WitnessGroup {
    /// Group of a program that is started next; `None` where nothing is counted.
    pub(super) fn of_next() -> Option<Self> {
        let place = GroupFolder::of(Path::new("/proc"), "self")?;
        place
            .leaf(Path::new("/sys"), std::process::id())
            .or_else(|| place.shared())
    }

    /// Group of a process.
    pub(super) fn of(process: u32) -> Option<Self> {
        GroupFolder::of(Path::new("/proc"), &process.to_string())?.shared()
    }

    /// Makes a program begin in the group that was made for it.
    pub(super) fn hold(&self, command: &mut Command) -> io::Result<()> {
        if self.is_made {
            let file = OpenOptions::new()
                .write(true)
                .open(self.folder.join(PROCESSES))?;
            join_before_exec(command, file);
        }
        Ok(())
    }

    /// Traffic since the group was found, and whose it is; `own` are the observed processes that still run.
    pub(super) fn finish(self, own: &BTreeSet<u32>) -> Option<(GroupHolds, Traffic)> {
        let mut counted = traffic(&self.folder)?;
        for (disk, now) in &mut counted {
            let before = self.before.get(disk).copied().unwrap_or_default();
            now.read_bytes = now.read_bytes.saturating_sub(before.read_bytes);
            now.write_bytes = now.write_bytes.saturating_sub(before.write_bytes);
        }
        let holds = match self.is_made {
            true => GroupHolds::Program,
            false => match holds_others(&self.folder, own) {
                false => GroupHolds::ProgramAndObserver,
                true => GroupHolds::Others,
            },
        };
        Some((holds, counted))
    }
}

impl Drop for WitnessGroup {
    fn drop(&mut self) {
        if self.is_made {
            remove(&self.folder);
        }
    }
}

/// Folder of a process's group.
struct GroupFolder {
    folder: PathBuf,
    is_root: bool,
}

impl GroupFolder {
    /// Folder found by `proc` (`/proc`).
    fn of(proc: &Path, process: &str) -> Option<Self> {
        let mounts = fs::read(proc.join("self/mountinfo")).ok()?;
        let own = fs::read_to_string(proc.join(process).join("cgroup")).ok()?;
        let own = ControlGroup::parse(&own).find(|own| own.controllers.is_empty())?;
        let folder = own.folders(&Hierarchy::parse(&mounts)).into_iter().next()?;
        // Only the root of the machine has no limits, and no limit files.
        let is_root = own.path == "/" && !folder.join("cgroup.type").exists();
        Some(Self { folder, is_root })
    }

    /// Whether a group below the root counts I/O, and changes nothing else. With `cpu`, its processes would
    /// share one weight, where each process of the root has its own; the same holds for disks divided by
    /// weight.
    fn counts_only(&self, sys: &Path) -> bool {
        let enabled = fs::read_to_string(self.folder.join("cgroup.subtree_control"));
        let enabled = enabled.unwrap_or_default();
        let mut enabled = enabled.split_whitespace();
        self.is_root
            && enabled.clone().any(|one| one == "io")
            && enabled.all(|one| UNWEIGHTED.contains(&one))
            && !self.divides_disks(sys)
    }

    /// Whether any disk is divided by weights of groups: by the scheduler BFQ, or the kernel's cost model.
    fn divides_disks(&self, sys: &Path) -> bool {
        let disks = sysfs::paths_in(sys.join("block")).into_iter();
        let mut schedulers =
            disks.filter_map(|disk| fs::read_to_string(disk.join("queue/scheduler")).ok());
        let costs = fs::read_to_string(self.folder.join(COST_MODEL)).unwrap_or_default();
        schedulers.any(|scheduler| scheduler.contains("[bfq]")) || costs.contains("enable=1")
    }

    /// A new group below the root, where that changes nothing. Groups left by killed processes are removed.
    fn leaf(&self, sys: &Path, process: u32) -> Option<WitnessGroup> {
        if !self.counts_only(sys) {
            return None;
        }
        remove_leftovers(&self.folder);
        let folder = self.folder.join(format!("{PREFIX}{process}"));
        fs::create_dir(&folder).ok()?;
        let group = WitnessGroup {
            _lock: locked(&folder),
            folder,
            is_made: true,
            before: Traffic::new(),
        };
        // A group that does not count is useless, and removed.
        traffic(&group.folder).map(|_| group)
    }

    /// The present group. The root's group counts the whole machine.
    fn shared(self) -> Option<WitnessGroup> {
        if self.is_root {
            return None;
        }
        Some(WitnessGroup {
            before: traffic(&self.folder)?,
            folder: self.folder,
            is_made: false,
            _lock: None,
        })
    }
}

/// Makes a program join a group before it is executed; if that fails, it is not started.
fn join_before_exec(command: &mut Command, file: File) {
    let join = move || {
        // 0 means the process that writes it.
        rustix::io::write(file.as_fd(), b"0")?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes one system call, which signal-safety(7) allows, and allocates nothing.
    unsafe {
        command.pre_exec(join);
    }
}

/// Parses `io.stat`: a line for each disk, `254:0 rbytes=4096 wbytes=0 rios=1 ...`. A disk without traffic may
/// have no line, or no numbers.
fn traffic(folder: &Path) -> Option<Traffic> {
    let text = fs::read_to_string(folder.join(TRAFFIC)).ok()?;
    let lines = text.lines().filter_map(|line| {
        let (number, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut traffic = GroupTraffic::default();
        for field in rest.split_whitespace() {
            match field.split_once('=') {
                Some(("rbytes", bytes)) => traffic.read_bytes = bytes.parse().ok()?,
                Some(("wbytes", bytes)) => traffic.write_bytes = bytes.parse().ok()?,
                _ => {}
            }
        }
        Some((sysfs::parse_number(number)?, traffic))
    });
    Some(lines.collect())
}

/// Whether a group or its descendants hold a process other than this one and `own`; true where that cannot be
/// seen.
fn holds_others(folder: &Path, own: &BTreeSet<u32>) -> bool {
    let Ok(text) = fs::read_to_string(folder.join(PROCESSES)) else {
        return true;
    };
    let this = std::process::id();
    let is_other = |line: &str| {
        let process = line.parse::<u32>();
        // A process of another PID namespace shows as 0.
        process.map_or(true, |one| one != this && !own.contains(&one))
    };
    if text.lines().any(is_other) {
        return true;
    }
    let mut below = sysfs::paths_in(folder).into_iter();
    below.any(|path| path.is_dir() && holds_others(&path, own))
}

/// The folder, locked; `None` where another process has locked it, or it is gone.
fn locked(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(folder)
}

/// Removes a group; its remaining processes move to the parent group.
fn remove(folder: &Path) {
    let Some(above) = folder.parent() else {
        return;
    };
    let left = fs::read_to_string(folder.join(PROCESSES)).unwrap_or_default();
    if let Ok(mut to) = OpenOptions::new().write(true).open(above.join(PROCESSES)) {
        for process in left.lines() {
            // The process may have ended.
            let _ = to.write_all(process.as_bytes());
        }
    }
    // The next run removes a group that is still busy.
    let _ = fs::remove_dir(folder);
}

/// Removes groups of dead processes. The holder of a lock is alive, in whatever PID namespace; its number means
/// nothing here.
fn remove_leftovers(above: &Path) {
    for path in sysfs::paths_in(above) {
        let name = sysfs::name_of(&path);
        let process = name.strip_prefix(PREFIX);
        let is_one = process.is_some_and(|process| process.parse::<u32>().is_ok());
        let Some(_lock) = is_one.then(|| locked(&path)).flatten() else {
            continue;
        };
        remove(&path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::Tree;

    /// A fake machine with groups mounted at `cgroup` in the tree, and this process in one of them.
    fn machine(own: &str) -> Tree {
        let tree = Tree::empty();
        let mounts = format!(
            "30 23 0:26 / {}/cgroup rw - cgroup2 cgroup2 rw\n",
            tree.path().display()
        );
        let own = format!("4:memory:/m\n0::{own}\n");
        tree.files("proc/self", &[("mountinfo", &mounts), ("cgroup", &own)]);
        tree
    }

    fn place(tree: &Tree) -> GroupFolder {
        GroupFolder::of(&tree.path().join("proc"), "self").expect("a group")
    }

    #[test]
    fn exclusive_group_counts_only_the_program() {
        let tree = machine("/service");
        let this = std::process::id().to_string();
        tree.files(
            "cgroup/service",
            &[
                ("cgroup.type", "domain"),
                ("cgroup.procs", &format!("{this}\n7")),
                ("io.stat", "254:0 rbytes=100 wbytes=10 rios=1 wios=1\n8:0 "),
            ],
        );
        assert!(place(&tree).leaf(&tree.path().join("sys"), 1).is_none());
        let holds = |own: &[u32]| {
            let group = place(&tree).shared().expect("it counts");
            tree.files(
                "cgroup/service",
                &[("io.stat", "254:0 rbytes=4196 wbytes=10 rios=2 wios=1")],
            );
            let found = group.finish(&own.iter().copied().collect());
            tree.files(
                "cgroup/service",
                &[("io.stat", "254:0 rbytes=100 wbytes=10 rios=1 wios=1\n8:0 ")],
            );
            found
        };
        let traffic = GroupTraffic {
            read_bytes: 4096,
            write_bytes: 0,
        };
        let counted = Traffic::from([((254, 0), traffic)]);
        assert_eq!(
            holds(&[7]),
            Some((GroupHolds::ProgramAndObserver, counted.clone()))
        );
        assert_eq!(holds(&[]), Some((GroupHolds::Others, counted.clone())));
        tree.files("cgroup/service/below", &[("cgroup.procs", "9")]);
        assert_eq!(holds(&[7]), Some((GroupHolds::Others, counted)));
    }

    #[test]
    fn group_is_made_only_below_a_counting_root() {
        let tree = machine("/");
        let sys = tree.path().join("sys");
        let made = || place(&tree).counts_only(&sys);
        assert!(!made());
        let cases = [
            ("io", true),
            ("io pids", true),
            ("io memory pids", false),
            ("pids", false),
            ("cpu io memory", false),
        ];
        for (controllers, expected) in cases {
            tree.files("cgroup", &[("cgroup.subtree_control", controllers)]);
            assert_eq!(made(), expected, "{controllers}");
        }
        tree.files("cgroup", &[("cgroup.subtree_control", "io")]);
        for (scheduler, cost, expected) in [
            ("none [mq-deadline] bfq", "8:0 enable=0 ctrl=auto", true),
            ("none mq-deadline [bfq]", "", false),
            ("[none]", "8:0 enable=1 ctrl=user", false),
            ("[none]", "", true),
        ] {
            tree.files("sys/block/sdq/queue", &[("scheduler", scheduler)]);
            tree.files("cgroup", &[("io.cost.qos", cost)]);
            assert_eq!(made(), expected, "{scheduler}, {cost}");
        }
        // A new folder lacks the files that a kernel would make: it counts nothing, and is removed.
        assert!(place(&tree).leaf(&sys, 77).is_none());
        assert!(!tree.path().join("cgroup/iolab-witness-77").exists());
        assert!(place(&tree).shared().is_none());
    }

    #[test]
    fn only_empty_groups_of_dead_processes_are_removed() {
        let tree = machine("/");
        let folder = tree.path().join("cgroup");
        let names = ["iolab-witness-4194305", "iolab-witness-x", "other-4194305"];
        // Made by a process of another PID namespace, whose number may be in use here too.
        let alive = "iolab-witness-4194306";
        for name in names.into_iter().chain([alive]) {
            fs::create_dir_all(folder.join(name)).expect("a folder");
        }
        let lock = locked(&folder.join(alive)).expect("it is free");
        remove_leftovers(&folder);
        let left = |name: &str| folder.join(name).exists();
        assert!(left("iolab-witness-x") && left("other-4194305") && left(alive));
        assert!(!left("iolab-witness-4194305"));
        // Unlocked explicitly: a child that another test starts shares the lock between fork and exec.
        flock(&lock, FlockOperation::Unlock).expect("it is locked");
        remove_leftovers(&folder);
        assert!(!left(alive));
    }
}
