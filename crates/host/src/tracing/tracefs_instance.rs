//! A private instance of tracefs: made, used, removed.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{
    Access, AtFlags, CWD, Dir, Mode, OFlags, accessat, fstatfs, mkdirat, openat, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use iolab_storage::procfs::has_first_pid_namespace;
use iolab_workload::{Error, Result};

/// Usual mount points of tracefs.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// `TRACEFS_MAGIC` of linux/magic.h.
const TRACEFS: u64 = 0x7472_6163;
/// Names of iolab's instances, before the number of the process.
const PREFIX: &str = "iolab-";
/// Number of instances that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// An instance, removed when dropped.
pub(super) struct Instance {
    tracefs: OwnedFd,
    folder: OwnedFd,
    path: String,
}

impl Instance {
    /// Whether instances can be made, and the kernel has these events. Events name threads by their numbers in the
    /// first PID namespace; in another namespace those numbers mean other programs.
    pub(super) fn check<'a>(events: impl IntoIterator<Item = &'a str>) -> Result<()> {
        if !has_first_pid_namespace(Path::new("/proc")) {
            return Err(Error::usage(
                "cannot record trace events: in this PID namespace (a container) threads have other numbers than in the events",
            )
            .hint("run iolab in the PID namespace of the host (--pid=host), or measure without trace events"));
        }
        let tracefs = tracefs()?;
        accessat(
            &tracefs,
            "instances",
            Access::WRITE_OK | Access::EXEC_OK,
            AtFlags::EACCESS,
        )
        .map_err(|errno| refused("tracefs cannot be written", errno))?;
        for event in events {
            accessat(
                &tracefs,
                format!("events/{event}"),
                Access::EXISTS,
                AtFlags::empty(),
            )
            .map_err(|_| {
                Error::usage(format!(
                    "cannot record trace events: this kernel has no {event}"
                ))
                .hint(
                    "it needs Linux 6.5 with CONFIG_BLK_DEV_IO_TRACE; measure without trace events",
                )
            })?;
        }
        Ok(())
    }

    /// Whether the kernel has an event.
    pub(super) fn knows(&self, event: &str) -> bool {
        accessat(
            &self.tracefs,
            format!("events/{event}"),
            Access::EXISTS,
            AtFlags::empty(),
        )
        .is_ok()
    }

    /// Makes an instance. Instances left by killed processes are removed.
    pub(super) fn new() -> Result<Self> {
        let tracefs = tracefs()?;
        remove_leftovers(&tracefs);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = format!("instances/{PREFIX}{}-{number}", std::process::id());
        let make = || mkdirat(&tracefs, &path, Mode::RWXU);
        make()
            // Left by a killed process of the same number.
            .or_else(|errno| match errno {
                Errno::EXIST => unlinkat(&tracefs, &path, AtFlags::REMOVEDIR).and_then(|()| make()),
                other => Err(other),
            })
            .map_err(|errno| refused("an instance of tracefs cannot be made", errno))?;
        let folder = openat(
            &tracefs,
            &path,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|errno| {
            // The next run removes an instance that stays.
            let _ = unlinkat(&tracefs, &path, AtFlags::REMOVEDIR);
            refused("the instance of tracefs cannot be opened", errno)
        })?;
        Ok(Self {
            tracefs,
            folder,
            path,
        })
    }

    /// Writes a file of the instance.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<()> {
        let file = self.open(name, OFlags::WRONLY | OFlags::TRUNC)?;
        rustix::io::write(&file, text.as_bytes())
            .map(|_| ())
            .map_err(|errno| refused(&format!("tracefs refuses '{text}' in {name}"), errno))
    }

    /// Text in a file of the instance.
    pub(super) fn read(&self, name: &str) -> Result<String> {
        let mut text = String::new();
        self.open(name, OFlags::RDONLY)?
            .read_to_string(&mut text)
            .map_err(|error| Error::failed(format!("{name} of tracefs cannot be read: {error}")))?;
        Ok(text)
    }

    /// Folder of each CPU's buffer.
    pub(super) fn cpus(&self) -> Result<Vec<String>> {
        let folder = self.open("per_cpu", OFlags::RDONLY | OFlags::DIRECTORY)?;
        let entries = Dir::read_from(&folder)
            .map_err(|errno| refused("per_cpu of tracefs cannot be read", errno))?;
        let names = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        let mut cpus: Vec<String> = names.filter(|name| name.starts_with("cpu")).collect();
        cpus.sort();
        Ok(cpus)
    }

    /// Buffer of a CPU for non-blocking reads.
    pub(super) fn open_buffer(&self, cpu: &str) -> Result<File> {
        self.open(
            &format!("per_cpu/{cpu}/trace_pipe_raw"),
            OFlags::RDONLY | OFlags::NONBLOCK,
        )
    }

    /// Switch that turns recording on and off.
    pub(super) fn open_switch(&self) -> Result<File> {
        self.open("tracing_on", OFlags::WRONLY)
    }

    /// Number of events that there was no room for.
    pub(super) fn lost(&self) -> Result<u64> {
        let mut sum = 0;
        for cpu in self.cpus()? {
            sum += lost_of(&self.read(&format!("per_cpu/{cpu}/stats"))?);
        }
        Ok(sum)
    }

    fn open(&self, name: &str, flags: OFlags) -> Result<File> {
        openat(&self.folder, name, flags | OFlags::CLOEXEC, Mode::empty())
            .map(File::from)
            .map_err(|errno| refused(&format!("{name} of tracefs cannot be opened"), errno))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The next run removes an instance that stays.
        let _ = unlinkat(&self.tracefs, &self.path, AtFlags::REMOVEDIR);
    }
}

/// Events that one CPU had no room for, by its statistics.
fn lost_of(stats: &str) -> u64 {
    let lost = stats.lines().filter_map(|line| line.split_once(':'));
    let lost =
        lost.filter(|(name, _)| ["overrun", "commit overrun", "dropped events"].contains(name));
    lost.filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

fn refused(what: &str, errno: Errno) -> Error {
    let hint = match errno {
        Errno::ACCESS | Errno::PERM => "run as root, or measure without trace events",
        _ => "measure without trace events",
    };
    Error::usage(format!("cannot record trace events: {what}: {errno}")).hint(hint)
}

/// Root of tracefs: its mount point, or a mount that only this process sees and that ends with it.
fn tracefs() -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for path in MOUNTED {
        if let Ok(folder) = openat(CWD, path, flags, Mode::empty())
            && fstatfs(&folder).is_ok_and(|stat| stat.f_type as u64 == TRACEFS)
        {
            return Ok(folder);
        }
    }
    let mount = || -> std::result::Result<OwnedFd, Errno> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        fsmount(
            &context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            MountAttrFlags::empty(),
        )
    };
    mount().map_err(|errno| refused("the kernel's trace events (tracefs) cannot be used", errno))
}

/// Removes instances of processes that are gone. The kernel keeps instances in use, even by processes that are
/// not visible here.
fn remove_leftovers(tracefs: &OwnedFd) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = openat(tracefs, "instances", flags, Mode::empty()) else {
        return;
    };
    let Ok(entries) = Dir::read_from(&folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().ok().and_then(process_of);
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = unlinkat(&folder, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Process that made the instance of this name.
fn process_of(name: &str) -> Option<u32> {
    let (process, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    number.parse::<u32>().ok()?;
    process.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_are_leftovers() {
        assert_eq!(process_of("iolab-17-0"), Some(17));
        for other in ["iolab-17", "iolab-x-0", "trace-17-0", "iolab-17-", ""] {
            assert_eq!(process_of(other), None, "{other}");
        }
    }

    #[test]
    fn all_that_was_lost_counts() {
        let stats = "entries: 5\noverrun: 1\ncommit overrun: 2\nbytes: 300\ndropped events: 4\nread events: 9\n";
        assert_eq!(lost_of(stats), 7);
    }
}
