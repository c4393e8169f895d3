//! Parts of `/proc` that several crates read: CPU time, control groups of this process, whether its process
//! numbers are the host's, and the identity of a process beyond its number.
//!
//! Memory of the machine as a whole: `/proc/meminfo`, see proc_meminfo(5).
//!
//! Room for memory under limits (`ulimit -v`, `ulimit -d`).
//!
//! A failed allocation aborts the process, and an aborted run leaves its scratch file until the next one. So
//! the room is checked before anything is started.
//!
//! Units of the kernel's counts, from the C library. `rustix::param` reads them from `/proc/self/auxv` before
//! Linux 6.4, and panics where `/proc` is not mounted.

use std::path::{Path, PathBuf};
use std::sync::Once;

use rustix::process::{Resource, getrlimit};

use crate::{mounts, sysfs};
use iolab_workload::units::counted;
use iolab_workload::{Error, Result};

/// Whether this process sees the kernel's own process and thread numbers: it lives in the first PID namespace.
/// False if that is unknown.
pub fn has_first_pid_namespace(proc: &Path) -> bool {
    /// `PROC_PID_INIT_INO` of linux/proc_ns.h.
    const FIRST: &str = "pid:[4026531836]";
    std::fs::read_link(proc.join("self/ns/pid")).is_ok_and(|own| own == Path::new(FIRST))
}

/// Id of this boot of the machine; `None` where the kernel does not report it.
pub fn boot_id() -> Option<String> {
    sysfs::text_of("/proc/sys/kernel/random/boot_id")
}

/// Numbers of the processes in a folder such as `/proc`, or of the threads in one such as `/proc/1/task`.
pub fn numbers_in(folder: impl AsRef<Path>) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}

/// The `stat` of a process or thread (proc_pid_stat(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStat<'a> {
    /// Name of the process, field 2.
    pub name: &'a str,
    /// Fields from the state on, field 3.
    fields: Vec<&'a str>,
}

impl<'a> ProcessStat<'a> {
    /// Parses the text. The name stands in parentheses and may contain some itself.
    pub fn parse(stat: &'a str) -> Option<Self> {
        let (open, close) = (stat.find('(')?, stat.rfind(')')?);
        Some(Self {
            name: stat.get(open + 1..close)?,
            fields: stat.get(close + 1..)?.split_whitespace().collect(),
        })
    }

    /// Whether the process has ended and waits for its parent to collect it.
    pub fn has_ended(&self) -> bool {
        matches!(self.fields.first(), Some(&("Z" | "X")))
    }

    /// Number in a field, by the numbers of the manual page: 4 and higher.
    pub fn number(&self, field: usize) -> Option<u64> {
        self.fields.get(field.checked_sub(3)?)?.parse().ok()
    }
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

    /// Its folder and the folders of its ancestors, up to the mount; none where its hierarchy is not mounted.
    pub fn folders(&self, hierarchies: &[Hierarchy]) -> Vec<PathBuf> {
        let own = hierarchies.iter().find(|hierarchy| hierarchy.holds(self));
        own.map_or(Vec::new(), |hierarchy| hierarchy.on_the_way_up(self))
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
    fn on_the_way_up(&self, group: &ControlGroup<'_>) -> Vec<PathBuf> {
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
    fn holds(&self, group: &ControlGroup<'_>) -> bool {
        match &self.options {
            None => group.controllers.is_empty(),
            Some(options) => options
                .split(',')
                .any(|option| group.controllers.contains(&option)),
        }
    }
}

/// Value of one line, bytes: `MemTotal`, `MemAvailable`, `Hugepagesize`. `None` where the kernel does not
/// report it.
pub fn bytes(name: &str) -> Option<u64> {
    of(&std::fs::read_to_string("/proc/meminfo").ok()?, name)
}

/// Dirty bytes of the page cache; `None` where the kernel does not report them.
pub fn dirty_bytes() -> Option<u64> {
    Some(bytes("Dirty")?.saturating_add(bytes("Writeback")?))
}

/// Free reserved huge pages (hugetlb), bytes; `None` where the kernel does not report them.
pub fn free_huge_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let pages: u64 = value(&text, "HugePages_Free")?.parse().ok()?;
    pages.checked_mul(of(&text, "Hugepagesize")?)
}

/// Value in a text of `meminfo`, bytes; its unit kB means 1024 bytes.
fn of(text: &str, name: &str) -> Option<u64> {
    let kib = value(text, name)?.strip_suffix("kB")?.trim_end();
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(key, _)| *key == name)?;
    Some(value.trim())
}

/// Memory of the process without workers, for filling, the run file and the analysis, bytes.
const PROCESS: u64 = 24 << 20;

/// Memory of a worker without its buffers, whose shortage is reported where they are made. A stack of 2 MiB
/// (the default of Rust's threads) and up to seven histograms of 270 KiB, bytes.
const WORKER: u64 = 4 << 20;

/// Part of [`WORKER`] that a worker touches: its histograms, and some pages of its stack, bytes.
const WORKER_TOUCHED: u64 = 2 << 20;

/// Each limit with the command that sets it and the field of `/proc/self/statm` that counts towards it
/// (proc(5)).
const LIMITS: [(Resource, &str, usize); 2] = [
    (Resource::As, "ulimit -v", 0),
    (Resource::Data, "ulimit -d", 5),
];

/// Memory that the process uses with this number of workers, without their buffers, bytes.
pub fn resident(workers: u32) -> u64 {
    PROCESS + u64::from(workers) * WORKER_TOUCHED
}

/// Checks that this process may allocate memory for this number of workers, and `besides` more bytes.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the limit that is too low, and how to raise it.
pub fn check(workers: u32, besides: u64) -> Result<()> {
    let need = PROCESS + u64::from(workers) * WORKER + besides;
    for (resource, command, field) in LIMITS {
        if let Some(limit) = getrlimit(resource).current {
            keep_to_one_arena();
            if let Some(used) = used(field)
                && limit.saturating_sub(used) < need
            {
                return Err(too_low(limit, used, need, command, workers));
            }
        }
    }
    Ok(())
}

/// Value of a field of `/proc/self/statm`, bytes; `None` without `/proc`.
fn used(field: usize) -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(field)?.parse().ok()?;
    pages.checked_mul(page_size() as u64)
}

fn too_low(limit: u64, used: u64, need: u64, command: &str, workers: u32) -> Error {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let what = match workers {
        0 => String::new(),
        _ => format!(" for {}", counted(workers, "thread")),
    };
    Error::usage(format!(
        "this process is limited to {} MiB of memory ({command}) and uses {} MiB: {} MiB more are needed{what}",
        mib(limit),
        mib(used),
        mib(need)
    ))
    .hint(match workers {
        0 => format!("raise it with `{command} unlimited`"),
        _ => format!("use fewer threads, or raise it with `{command} unlimited`"),
    })
}

/// Limits the allocator to one arena. The C library reserves 64 MiB of address space for each allocating
/// thread, which no limit has room for.
fn keep_to_one_arena() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(target_env = "gnu")]
        // SAFETY: sets a parameter of the allocator under its own lock; no memory of ours is passed.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    });
}

/// Size of a memory page, bytes.
pub fn page_size() -> usize {
    of_system(libc::_SC_PAGESIZE)
}

/// Clock ticks per second, the unit of CPU time in `/proc`.
pub fn clock_ticks_per_second() -> u64 {
    of_system(libc::_SC_CLK_TCK) as u64
}

fn of_system(name: libc::c_int) -> usize {
    // SAFETY: reads a constant of the system; no memory is passed.
    let value = unsafe { libc::sysconf(name) };
    usize::try_from(value).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use iolab_workload::Kind;

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

    #[test]
    fn lines_are_read_in_bytes() {
        let text = "MemTotal:       24576000 kB\nMemFree: 7 kB\nHugePages_Total:       3\n";
        assert_eq!(of(text, "MemTotal"), Some(24_576_000 * 1024));
        assert_eq!(of(text, "MemFree"), Some(7 * 1024));
        assert_eq!(of(text, "Mem"), None);
        // A count, not a size.
        assert_eq!(of(text, "HugePages_Total"), None);
        assert_eq!(value(text, "HugePages_Total"), Some("3"));
        assert_eq!(of("MemTotal: 99999999999999999999 kB", "MemTotal"), None);
    }

    #[test]
    fn what_is_used_is_known() {
        for (_, _, field) in LIMITS {
            assert!(used(field).expect("there is a /proc") > 100_000);
        }
        assert_eq!(used(7), None);
    }

    #[test]
    fn too_low_a_limit_is_reported_with_remedy() {
        let error = too_low(100 << 20, 60 << 20, 88 << 20, "ulimit -v", 16);
        assert_eq!(error.kind(), Kind::Usage);
        insta::assert_snapshot!(error, @r"
        this process is limited to 100 MiB of memory (ulimit -v) and uses 60 MiB: 88 MiB more are needed for 16 threads
          use fewer threads, or raise it with `ulimit -v unlimited`
        ");
    }
}
