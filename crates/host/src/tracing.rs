//! The kernel's trace events around the timed span of a trial: requests in the block layer, and when threads
//! are woken and run.
//!
//! [`Tracer`] has its own instance of tracefs (`tracing/tracefs_instance.rs`), so that other tracers are left
//! alone. Buffers are read as pages (`tracing/ring_buffer_pages.rs`), events by the formats that the running
//! kernel states (`tracing/event_format.rs`, `tracing/decoder.rs`). `tracing/recorded_events.rs` lists the
//! events.
//!
//! The analysis consists of pure functions. `tracing/device_requests.rs` turns events into requests of a
//! device, `tracing/join.rs` joins these with the requests of a trial, `tracing/syncs.rs` with its syncs.
//! `tracing/program.rs` finds the requests of an observed program.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

use iolab_storage::kernel_units::page_size;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;

use crate::clock::Clock;
use decoder::Decoder;
use iolab_workload::{Error, Result};
use recorded_events::{
    BEGAN_SOURCE, BLOCK_SOURCES, SYNC_CALL_SOURCES, SYNC_SOURCES, THREAD_SOURCES,
};
use tracefs_instance::Instance;

mod decoder;
mod device_requests;
mod event;
pub mod join;
pub mod program;
mod recorded_events;
mod ring_buffer_pages;
pub mod syncs;
mod tracefs_instance;

pub use device_requests::{DiskRequest, disk_requests};
pub use event::{DiskNumber, Edge, Event, Step, TraceEventKind, Transfer, kernel_number};
pub use join::TracedRequest;
pub use recorded_events::{TracedPlaces, TracedThreads};

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
    Instance::check(all.map(|source| source.path))
}

/// Whether this process can trace the requests of a trial.
///
/// # Errors
/// Of kind usage: why not.
pub fn check() -> Result<()> {
    let all = BLOCK_SOURCES.iter().chain(&THREAD_SOURCES);
    Instance::check(all.map(|source| source.path))
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
        let of_syncs = of_syncs.filter(|source| instance.knows(source.path));
        let of_threads = THREAD_SOURCES.into_iter().chain([BEGAN_SOURCE]);
        for source in BLOCK_SOURCES.into_iter().chain(of_threads).chain(of_syncs) {
            let Some(filter) = source.filter(places) else {
                continue;
            };
            let events = format!("events/{}", source.path);
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

#[cfg(test)]
mod tests {
    use iolab_workload::Kind;

    use super::*;

    #[test]
    fn an_ordinary_user_is_refused_with_the_reason() {
        let Some(checked) = needs::ordinary_user(|_| check()) else {
            return;
        };
        let error = checked.expect_err("it needs root");
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        assert!(error.remedy().is_some());
    }
}
