//! The kernel's trace events around the timed span of a trial: requests in the block layer, and when threads
//! are woken and run.
//!
//! [`Tracer`] has its own instance of tracefs, so that other tracers are left alone. `tracing/decoder.rs` reads
//! buffers as pages, and events by the formats that the running kernel states; `tracing/event.rs` lists the
//! events.
//!
//! The analysis consists of pure functions. `tracing/device_requests.rs` turns events into requests of a
//! device, `tracing/join.rs` joins these with the requests of a trial, `tracing/syncs.rs` with its syncs.

mod decoder;
mod device_requests;
mod event;
pub mod join;
pub mod syncs;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{
    Access, AtFlags, CWD, Dir, Mode, OFlags, accessat, fstatfs, mkdirat, openat, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::clock::Clock;
use decoder::Decoder;
use event::{BEGAN_SOURCE, BLOCK_SOURCES, SYNC_CALL_SOURCES, SYNC_SOURCES, THREAD_SOURCES};
use iolab_storage::procfs::{has_first_pid_namespace, page_size};
use iolab_workload::{Error, Result};

pub use device_requests::{DeviceRequest, DiskRequest, SECTOR, disk_requests, of_events};
pub use event::{
    DiskNumber, Edge, Event, Step, ThreadMoment, TraceEventKind, TracedPlaces, TracedThreads,
    Transfer, kernel_number,
};
pub use join::TracedRequest;

/// Memory of the buffers of all CPUs, and of one CPU, bytes.
const BUFFERS_BYTES: u64 = 256 << 20;

const BUFFER_BYTES_MAX: u64 = 8 << 20;

const BUFFER_BYTES_MIN: u64 = 1 << 20;

/// Most bytes read in one trial. Then tracing ends, and the requests until then stand for the trial.
const READ_BYTES_MAX: usize = 128 << 20;

/// Fill level, in percent, from which a buffer is read within a trial. Short trials are read afterwards.
const READ_FROM_PERCENT: u32 = 50;

/// Names of trial threads, before their number.
pub const THREAD_NAMES: &str = "iolab-";

/// Whether this process can trace a program's use of disks.
///
/// # Errors
/// Of kind usage: why not.
pub fn check_programs() -> Result<()> {
    let all = BLOCK_SOURCES.iter().chain([&BEGAN_SOURCE]);
    Instance::check(all.map(|(path, _)| *path))
}

/// Whether this process can trace the requests of a trial.
///
/// # Errors
/// Of kind usage: why not.
pub fn check() -> Result<()> {
    let all = BLOCK_SOURCES.iter().chain(&THREAD_SOURCES);
    Instance::check(all.map(|(path, _)| *path))
}

/// Recorder of one trial's events. Dropping it removes its tracefs instance.
pub struct Tracer {
    /// Folders of the CPUs.
    cpus: Vec<String>,
    // Dropped before the instance, which the kernel keeps as long as they are open.
    buffers: Vec<File>,
    reading: Option<Reading>,
    decoder: Decoder,
    clock: Clock,
    instance: Instance,
}

/// Thread that empties buffers during a trial.
struct Reading {
    thread: JoinHandle<Captured>,
    end: OwnedFd,
}

/// Pages read from buffers.
#[derive(Default)]
struct Captured {
    /// Pages of each CPU, in time order.
    pages: Vec<Vec<u8>>,
    bytes: usize,
    /// Stamp up to which no event is missing, if there was no room for the rest.
    full_at: Option<u64>,
}

/// Recorded events of one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Events in time order.
    pub events: Vec<Event>,
    /// Number of events that the kernel had no room for.
    pub lost: u64,
    /// Stamp at which recording ended, if before the end of the trial.
    pub until: Option<u64>,
}

impl Tracer {
    /// Prepares to trace these places. Nothing is recorded yet.
    ///
    /// # Errors
    /// Of kind usage: the kernel refuses.
    pub fn new(places: &TracedPlaces, clock: &Clock) -> Result<Self> {
        let instance = Instance::new()?;
        let cpus = instance.cpus()?;
        let share = BUFFERS_BYTES / cpus.len().max(1) as u64;
        let buffer = share.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        instance.write("tracing_on", "0")?;
        let stamps = clock.trace_clock().ok_or_else(|| {
            Error::usage(
                "the kernel's trace events have no time stamps that can be compared with iolab's",
            )
            .hint("on this kind of CPU, leave out trace=true")
        })?;
        instance.write("trace_clock", stamps)?;
        instance.write("options/overwrite", "0")?;
        instance.write("buffer_size_kb", &(buffer >> 10).to_string())?;
        instance.write("buffer_percent", &READ_FROM_PERCENT.to_string())?;
        let mut decoder = Decoder::default();
        let of_syncs = SYNC_SOURCES.into_iter().chain(SYNC_CALL_SOURCES);
        let of_syncs = of_syncs.filter(|(path, _)| has_event(&instance.tracefs, path));
        let of_threads = THREAD_SOURCES.into_iter().chain([BEGAN_SOURCE]);
        for source in BLOCK_SOURCES.into_iter().chain(of_threads).chain(of_syncs) {
            let (path, kind) = source;
            let Some(filter) = kind.filter(places) else {
                continue;
            };
            let events = format!("events/{path}");
            decoder.add(source, &instance.read(&format!("{events}/format"))?)?;
            instance.write(&format!("{events}/filter"), &filter)?;
            instance.write(&format!("{events}/enable"), "1")?;
        }
        Ok(Self {
            cpus,
            buffers: Vec::new(),
            reading: None,
            decoder,
            clock: clock.clone(),
            instance,
        })
    }

    /// Starts recording. To be called when the trial's threads have their own descriptor tables: a thread that
    /// shared the buffers would keep the instance until it ends.
    ///
    /// # Errors
    /// Of kind failed: the kernel refuses.
    pub fn start(&mut self) -> Result<()> {
        let failed = |error: io::Error| Error::failed(format!("tracing cannot begin: {error}"));
        let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| failed(errno.into()))?;
        let opened = self.cpus.iter().map(|cpu| self.instance.open_buffer(cpu));
        self.buffers = opened.collect::<Result<_>>()?;
        let buffers = self.buffers.iter().map(File::try_clone);
        let buffers: Vec<File> = buffers.collect::<io::Result<_>>().map_err(failed)?;
        let (ended, clock) = (end.try_clone().map_err(failed)?, self.clock.clone());
        let switch = self.instance.open_switch()?;
        let thread = thread::Builder::new()
            .name("tracing".to_owned())
            .spawn(move || empty_until(&buffers, &ended, &switch, &clock))
            .map_err(failed)?;
        self.reading = Some(Reading { thread, end });
        self.instance.write("tracing_on", "1")
    }

    /// Ends the recording and keeps the recorded events.
    pub fn stop(&self) {
        // If the switch cannot be written any more, recording continues longer than requested.
        let _ = self.instance.write("tracing_on", "0");
    }

    /// Recorded events of the places and of these threads.
    ///
    /// # Errors
    /// Of kind failed: buffers cannot be read.
    pub fn finish(mut self, threads: &[u32]) -> Result<Recording> {
        let mut captured = match self.reading.take() {
            Some(reading) => reading.end(),
            None => Captured::default(),
        };
        captured.pages.resize(self.buffers.len(), Vec::new());
        for (buffer, pages) in self.buffers.iter().zip(&mut captured.pages) {
            // Reads everything, so that no event is missing before the stamp at which recording ended. The
            // kernel's buffers limit the amount.
            read_pages(buffer, pages, BUFFER_BYTES_MAX as usize);
        }
        let mut events = Vec::new();
        for pages in std::mem::take(&mut captured.pages) {
            self.decoder
                .decode(&pages, page_size(), threads, &mut events);
        }
        events.sort_by_key(|event| event.at);
        Ok(Recording {
            events,
            lost: self.instance.lost()?,
            until: captured.full_at,
        })
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.stop();
        if let Some(reading) = self.reading.take() {
            reading.end();
        }
    }
}

impl Reading {
    fn end(self) -> Captured {
        // The counter of an eventfd has room for the only write.
        let _ = rustix::io::write(&self.end, &1u64.to_ne_bytes());
        self.thread.join().unwrap_or_default()
    }
}

/// Reads buffers as they fill, until `ended` is signalled; the rest is read afterwards.
fn empty_until(buffers: &[File], ended: &OwnedFd, switch: &File, clock: &Clock) -> Captured {
    let mut captured = Captured {
        pages: vec![Vec::new(); buffers.len()],
        ..Captured::default()
    };
    loop {
        let mut waiting: Vec<PollFd<'_>> = buffers
            .iter()
            .map(|buffer| PollFd::new(buffer, PollFlags::IN))
            .collect();
        waiting.push(PollFd::new(ended, PollFlags::IN));
        match poll(&mut waiting, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return captured,
        }
        let ready: Vec<bool> = waiting.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[buffers.len()] {
            return captured;
        }
        for ((buffer, pages), _) in buffers
            .iter()
            .zip(&mut captured.pages)
            .zip(&ready)
            .filter(|(_, ready)| **ready)
        {
            let before = pages.len();
            read_pages(buffer, pages, BUFFER_BYTES_MIN as usize);
            captured.bytes += pages.len() - before;
        }
        if captured.bytes >= READ_BYTES_MAX {
            // Events between this stamp and the switch are ignored.
            captured.full_at = Some(clock.now());
            let _ = rustix::io::write(switch, b"0");
            return captured;
        }
    }
}

/// Appends the content of a buffer, about `most` bytes at most.
fn read_pages(mut buffer: &File, pages: &mut Vec<u8>, most: usize) {
    let mut page = vec![0; page_size()];
    let full = pages.len().saturating_add(most);
    while pages.len() < full {
        match buffer.read(&mut page) {
            Ok(0) => return,
            Ok(bytes) => pages.extend_from_slice(&page[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Empty: a non-blocking read returns nothing more.
            Err(_) => return,
        }
    }
}

/// Usual mount points of tracefs.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// `TRACEFS_MAGIC` of linux/magic.h.
const TRACEFS: u64 = 0x7472_6163;

/// Names of iolab's instances, before the number of the process.
const PREFIX: &str = "iolab-";

/// Number of instances that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Whether the kernel has an event.
fn has_event(tracefs: &OwnedFd, event: &str) -> bool {
    let path = format!("events/{event}");
    accessat(tracefs, path, Access::EXISTS, AtFlags::empty()).is_ok()
}

/// An instance, removed when dropped.
struct Instance {
    tracefs: OwnedFd,
    folder: OwnedFd,
    path: String,
}

impl Instance {
    /// Whether instances can be made, and the kernel has these events. Events name threads by their numbers in the
    /// first PID namespace; in another namespace those numbers mean other programs.
    fn check<'a>(events: impl IntoIterator<Item = &'a str>) -> Result<()> {
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
            if !has_event(&tracefs, event) {
                return Err(Error::usage(format!(
                    "cannot record trace events: this kernel has no {event}"
                ))
                .hint(
                    "it needs Linux 6.5 with CONFIG_BLK_DEV_IO_TRACE; measure without trace events",
                ));
            }
        }
        Ok(())
    }

    /// Makes an instance. Instances left by killed processes are removed.
    fn new() -> Result<Self> {
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
    fn write(&self, name: &str, text: &str) -> Result<()> {
        let file = self.open(name, OFlags::WRONLY | OFlags::TRUNC)?;
        rustix::io::write(&file, text.as_bytes())
            .map(|_| ())
            .map_err(|errno| refused(&format!("tracefs refuses '{text}' in {name}"), errno))
    }

    /// Text in a file of the instance.
    fn read(&self, name: &str) -> Result<String> {
        let mut text = String::new();
        self.open(name, OFlags::RDONLY)?
            .read_to_string(&mut text)
            .map_err(|error| Error::failed(format!("{name} of tracefs cannot be read: {error}")))?;
        Ok(text)
    }

    /// Folder of each CPU's buffer.
    fn cpus(&self) -> Result<Vec<String>> {
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
    fn open_buffer(&self, cpu: &str) -> Result<File> {
        self.open(
            &format!("per_cpu/{cpu}/trace_pipe_raw"),
            OFlags::RDONLY | OFlags::NONBLOCK,
        )
    }

    /// Switch that turns recording on and off.
    fn open_switch(&self) -> Result<File> {
        self.open("tracing_on", OFlags::WRONLY)
    }

    /// Number of events that there was no room for.
    fn lost(&self) -> Result<u64> {
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
    use iolab_workload::Kind;

    #[test]
    fn an_ordinary_user_is_refused_with_the_reason() {
        let Some(checked) = needs::ordinary_user(|_| check()) else {
            return;
        };
        let error = checked.expect_err("it needs root");
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        assert!(error.remedy().is_some());
    }

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
