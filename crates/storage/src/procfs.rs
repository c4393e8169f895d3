//! Parts of `/proc` that several crates read: CPU time, control groups of this process, whether its process
//! numbers are the host's, and the identity of a process beyond its number.

use std::path::{Path, PathBuf};
use std::str::SplitWhitespace;

use crate::mounts;

/// Whether this process sees the kernel's own process and thread numbers: it lives in the first PID namespace.
/// False if that is unknown.
pub fn has_first_pid_namespace(proc: &Path) -> bool {
    /// `PROC_PID_INIT_INO` of linux/proc_ns.h.
    const FIRST: &str = "pid:[4026531836]";
    std::fs::read_link(proc.join("self/ns/pid")).is_ok_and(|own| own == Path::new(FIRST))
}

/// Id of this boot of the machine; `None` where the kernel does not report it.
pub fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim_end().to_owned())
}

/// Start of a process or thread, in ticks since boot, from its `stat` (field 22 of proc_pid_stat(5)).
pub fn started_ticks(stat: &str) -> Option<u64> {
    after_name(stat)?.nth(19)?.parse().ok()
}

/// Whether a process has ended and waits for its parent to collect it, from its `stat` (field 3 of
/// proc_pid_stat(5)).
pub fn has_ended(stat: &str) -> bool {
    after_name(stat).is_some_and(|mut fields| matches!(fields.next(), Some("Z" | "X")))
}

/// Fields of a `stat` after the name, which stands in parentheses and may contain some itself; the first one is
/// the state.
fn after_name(stat: &str) -> Option<SplitWhitespace<'_>> {
    Some(stat.get(stat.rfind(')')? + 1..)?.split_whitespace())
}

/// CPU time of all CPUs together since boot, clock ticks (proc_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTicks {
    /// Time in user mode, in the kernel and in interrupts.
    pub busy: u64,
    /// Time that the hypervisor gave to others; `None` where the kernel does not count it.
    pub steal: Option<u64>,
}

impl CpuTicks {
    /// Parses the text of `/proc/stat`.
    pub fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> = line
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        let [
            user,
            nice,
            system,
            _idle,
            _iowait,
            irq,
            softirq,
            ref rest @ ..,
        ] = fields[..]
        else {
            return None;
        };
        Some(Self {
            busy: [nice, system, irq, softirq]
                .into_iter()
                .fold(user, u64::saturating_add),
            steal: rest.first().copied(),
        })
    }
}

/// A control group of this process (cgroups(7)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlGroup<'a> {
    /// Controllers; empty for version 2.
    pub controllers: Vec<&'a str>,
    /// Path in the hierarchy.
    pub path: &'a str,
}

impl<'a> ControlGroup<'a> {
    /// Parses the text of `/proc/self/cgroup`.
    pub fn parse(text: &'a str) -> impl Iterator<Item = Self> {
        text.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            Some(Self {
                controllers: controllers
                    .split(',')
                    .filter(|name| !name.is_empty())
                    .collect(),
                path,
            })
        })
    }
}

/// A mounted hierarchy of control groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Mounted part of the hierarchy.
    pub root: PathBuf,
    /// Mount point.
    pub mount: PathBuf,
    /// Mount options of version 1, which name the controllers; `None` for version 2.
    options: Option<String>,
}

impl Hierarchy {
    /// Parses the content of `/proc/self/mountinfo`.
    pub fn parse(mountinfo: &[u8]) -> Vec<Self> {
        let mounts = mounts::parse(mountinfo).into_iter();
        mounts
            .filter_map(|mount| {
                let options = match mount.fs.kind.as_str() {
                    "cgroup2" => None,
                    "cgroup" => Some(mount.fs.mount_options),
                    _ => return None,
                };
                Some(Self {
                    root: mount.root,
                    mount: Path::new(&mount.fs.mount_point).to_owned(),
                    options,
                })
            })
            .collect()
    }

    /// Folder of a group of this hierarchy and the folders of its ancestors, up to the mount. The tightest of
    /// their limits applies to a process. A container sees only a part of the hierarchy, but may see its place
    /// in the whole.
    pub fn on_the_way_up(&self, group: &ControlGroup<'_>) -> Vec<PathBuf> {
        let path = Path::new(group.path);
        let inside = path.strip_prefix(&self.root).unwrap_or(path);
        let folder = self.mount.join(inside.strip_prefix("/").unwrap_or(inside));
        let own = if folder.is_dir() {
            &folder
        } else {
            &self.mount
        };
        own.ancestors()
            .take_while(|folder| folder.starts_with(&self.mount))
            .map(Path::to_owned)
            .collect()
    }

    /// Whether a group belongs to this hierarchy.
    pub fn holds(&self, group: &ControlGroup<'_>) -> bool {
        match &self.options {
            None => group.controllers.is_empty(),
            Some(options) => options
                .split(',')
                .any(|option| group.controllers.contains(&option)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAT: &str =
        "cpu  74608 2520 24433 1117073 6176 4054 3 50 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1 2\n";

    #[test]
    fn cpu_time_is_read_as_linux_prints_it() {
        let ticks = CpuTicks::parse(STAT).expect("a line of all CPUs");
        assert_eq!(ticks.busy, 74608 + 2520 + 24433 + 4054 + 3);
        assert_eq!(ticks.steal, Some(50));
        // A kernel that does not count steal time.
        let old = CpuTicks::parse("cpu  1 2 3 4 5 6 7\n").expect("seven numbers");
        assert_eq!((old.busy, old.steal), (1 + 2 + 3 + 6 + 7, None));
        assert_eq!(CpuTicks::parse("cpu  1 2 3\n"), None);
    }

    #[test]
    fn groups_of_both_versions_find_their_hierarchy() {
        let mounts = b"30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
            31 24 0:27 /box /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
        let found = Hierarchy::parse(mounts);
        let groups: Vec<_> =
            ControlGroup::parse("0::/user\n4:cpu,cpuacct:/box/a\n7:pids:/\n").collect();
        let of = |group: &ControlGroup<'_>| found.iter().position(|one| one.holds(group));
        assert_eq!(
            groups.iter().map(of).collect::<Vec<_>>(),
            [Some(0), Some(1), None]
        );
        assert_eq!(found[1].root, Path::new("/box"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = (CpuTicks::parse(&text), Hierarchy::parse(text.as_bytes()));
            let _ = ControlGroup::parse(&text).count();
        }
    }
}
