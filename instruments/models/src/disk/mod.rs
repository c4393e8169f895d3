//! A hard disk with heads, platters, a segmented buffer and a queue.
//!
//! The drive: commands, the queue, and the next action of the heads.
//!
//! A request that arrives while the heads are idle or reading ahead is served at once. One that arrives while
//! they are busy waits in the queue. When the heads start on a request, all its times are computed. Only the
//! choice between waiting requests needs an event.
//!
//! Requests that wait for the heads.

mod layout;
mod media_stream;
mod segments;
mod transfer;

use crate::definition::parts::{Buffer, Bus, DiskDefinition, Overhead, Policy, WriteBack};
use crate::{Done, earlier, from_ms};
use iolab_workload::virtual_disk::{Completion, Model, Ns, Op, Request, ServedFrom};
use layout::Timetable;
use media_stream::{Arrival, Stream, Writing};
use segments::{Segments, WriteCache};

pub use layout::{Arm, Head, Layout, Run, SectorPosition};

/// Number of requests to choose from, oldest first, where the definition gives no depth.
const WINDOW: usize = 128;

/// Consecutive writes that reach the medium after the host has their completions.
#[derive(Clone, Copy, Debug)]
struct Behind {
    segment: usize,
    /// First block, and one past the last.
    first: u64,
    end: u64,
    /// When the heads started, and when the last block will be on the medium.
    from: Ns,
    until: Ns,
}

impl Behind {
    /// Time at which a segment of `size` blocks has room for the last block, because the rest of the writes has
    /// reached the medium by then. Assumes constant progress between start and end.
    fn room(&self, size: u64) -> Ns {
        let before = (self.end - self.first).saturating_sub(size);
        if before == 0 {
            0
        } else {
            let part = u128::from(self.until - self.from) * u128::from(before);
            self.from + (part / u128::from(self.end - self.first)) as Ns
        }
    }
}

/// A hard disk.
#[derive(Clone, Debug)]
pub struct Drive {
    block: u64,
    layout: Layout,
    arm: Arm,
    overhead: Overhead,
    buffer: Buffer,
    line: Bus,
    policy: Policy,
    window: usize,
    patience: Ns,
    segments: Segments,
    bus: Timetable,
    /// Position of the heads when they are not reading ahead.
    head: Head,
    /// The heads start nothing else before this time.
    busy_until: Ns,
    stream: Option<Stream>,
    behind: Option<Behind>,
    last_was_write: bool,
    queue: Vec<Job>,
    cache: WriteCache,
    done: Done,
}

impl Drive {
    /// The drive of a definition.
    ///
    /// # Errors
    ///
    /// The reason why the definition makes no disk, in words.
    pub fn new(definition: &DiskDefinition) -> Result<Self, String> {
        let layout = Layout::new(&definition.geometry)?;
        let arm = Arm::new(&definition.mechanics, layout.cylinders())?;
        let bytes = layout.blocks().checked_mul(definition.block);
        if definition.block == 0 || bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
            return Err(format!(
                "{} blocks of {} bytes: a disk has 1 byte to 8 EiB",
                layout.blocks(),
                definition.block
            ));
        }
        let buffer = definition.buffer.clone();
        Ok(Self {
            block: definition.block,
            layout,
            arm,
            overhead: definition.overhead.clone(),
            segments: Segments::new(&buffer),
            buffer,
            line: definition.bus.clone(),
            policy: definition.queue.policy,
            window: if definition.queue.depth == 0 {
                WINDOW
            } else {
                definition.queue.depth as usize
            },
            patience: from_ms(definition.queue.patience_ms),
            bus: Timetable::default(),
            head: Head::default(),
            busy_until: 0,
            stream: None,
            behind: None,
            last_was_write: false,
            queue: Vec::new(),
            cache: WriteCache::new(definition.buffer.write_back_bytes),
            done: Done::default(),
        })
    }

    /// The placement of blocks.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Index of the costs that apply: after a read, or after a write.
    fn after(&self) -> usize {
        usize::from(self.last_was_write)
    }

    /// The transfer of `blocks` blocks to the medium.
    fn writing(&self, blocks: u64) -> Writing<'_> {
        let start = &self.buffer.write_start;
        let least = start
            .iter()
            .rfind(|step| step[0] <= blocks)
            .map_or(1, |step| step[1]);
        Writing {
            arm: &self.arm,
            layout: &self.layout,
            on_arrival: self.buffer.write_on_arrival,
            least,
        }
    }

    /// The time of the next event inside the drive.
    fn next_step(&self) -> Option<Ns> {
        let first = [self.queue.first(), self.cache.jobs.front()]
            .into_iter()
            .flatten()
            .map(|job| job.arrived)
            .min();
        let start = first.map(|arrived| self.busy_until.max(arrived));
        earlier(start, self.cache.next_end())
    }

    fn run(&mut self, until: Ns) {
        while let Some(at) = self.next_step().filter(|&at| at <= until) {
            if self.cache.next_end().is_some_and(|end| end <= at) {
                self.destaged(at);
                continue;
            }
            self.follow_stream(at);
            let Some(job) = self.choose(at) else {
                return;
            };
            match job.kind {
                Task::Read => self.read(&job, at, false),
                Task::Write => self.write(&job, at, false),
                Task::Destage => self.destage(&job, at),
            }
        }
    }

    /// Takes the next request: one that the host waits for, or an accepted write. The host has priority, unless it waits for room
    /// among the accepted writes.
    fn choose(&mut self, at: Ns) -> Option<Job> {
        if !self.queue.is_empty() && !self.cache.is_short() {
            let n = self.best(self.queue.iter().take(self.window), at)?;
            return Some(self.queue.remove(n));
        }
        let n = self.best(self.cache.jobs.iter().take(self.window), at);
        match n.and_then(|n| self.cache.take(n)) {
            Some(job) => Some(job),
            None => {
                let n = self.best(self.queue.iter().take(self.window), at)?;
                Some(self.queue.remove(n))
            }
        }
    }

    /// Index of the request that the policy chooses.
    fn best<'a>(&self, jobs: impl Iterator<Item = &'a Job> + Clone, at: Ns) -> Option<usize> {
        let first = jobs.clone().next()?;
        if self.policy == Policy::Fifo
            || self.patience > 0 && at.saturating_sub(first.arrived) > self.patience
        {
            return Some(0);
        }
        let streaming = jobs
            .clone()
            .enumerate()
            .filter(|(_, job)| self.is_streaming(job));
        if let Some((n, _)) = streaming.min_by_key(|(_, job)| job.first) {
            return Some(n);
        }
        let head = self.stream.as_ref().map_or(self.head, |stream| stream.head);
        let mut best = (Ns::MAX, 0);
        for (n, job) in jobs.enumerate() {
            let write = job.kind != Task::Read;
            let landed =
                at.max(job.ready) + self.arm.reposition(head, Head::from(job.place), write);
            // Computes the wait only where the head lands before the best candidate's time.
            if landed < best.0 {
                let there = landed + self.arm.wait(landed, job.place.angle);
                if there < best.0 {
                    best = (there, n);
                }
            }
        }
        Some(best.1)
    }

    /// The segment that read-ahead fills, and the block up to which it counts as present.
    fn filling(&self) -> Option<(usize, u64)> {
        let stream = self.stream.as_ref()?;
        let end = self.segments.get(stream.segment).end;
        let reach = match self.buffer.almost_hits {
            false => end,
            true => end.max(stream.limit),
        };
        Some((stream.segment, reach))
    }

    /// Whether a read needs no seek, because read-ahead has its first block or will have it next.
    fn is_streaming(&self, job: &Job) -> bool {
        job.kind == Task::Read
            && self.filling().is_some_and(|(segment, reach)| {
                self.segments.get(segment).start <= job.first && job.first < reach
            })
    }

    /// Whether heads and queue are idle when a request arrives at `now`.
    fn idle(&self, now: Ns) -> bool {
        self.queue.is_empty() && self.cache.jobs.is_empty() && now >= self.busy_until
    }

    fn submit_read(&mut self, mut job: Job) {
        let now = job.arrived;
        if self.buffer.write_back == WriteBack::Cache && self.cache.holds(job.first, job.end) {
            return self.read_from_buffer(&job, now);
        }
        if self.idle(now) {
            return self.read(&job, now, true);
        }
        let command = from_ms(self.overhead.read_miss[self.after()]);
        let length = command + from_ms(self.overhead.read_disconnect[self.after()]);
        let at = self.bus.fit(now, length);
        self.bus.take(at, at + length);
        job.ready = at + command;
        self.queue.push(job);
    }

    fn submit_write(&mut self, mut job: Job) {
        let now = job.arrived;
        let fast = self.buffer.write_back != WriteBack::Off;
        if self.buffer.write_back == WriteBack::Cache {
            if let Some(job) = self.cache.hold(job, (job.end - job.first) * self.block) {
                self.accept(job, now);
            }
            return;
        }
        if self.idle(now) {
            return self.write(&job, now, true);
        }
        if fast && self.joins(&job, now) {
            return self.join(&job, now);
        }
        let after = self.after();
        let (command, leave) = if fast {
            (
                from_ms(self.overhead.write_hit[after]),
                from_ms(self.overhead.write_disconnect),
            )
        } else {
            (from_ms(self.overhead.write_miss[after]), 0)
        };
        let at = self.bus.fit(now, command + leave);
        self.bus.take(at, at + command + leave);
        job.ready = at + command;
        self.queue.push(job);
    }

    /// Whether a write continues the one being written to the medium.
    fn joins(&self, job: &Job, now: Ns) -> bool {
        let alone = self.buffer.write_back == WriteBack::One || self.queue.is_empty();
        let continues = self
            .behind
            .is_some_and(|behind| behind.until > now && behind.end == job.first);
        alone && continues
    }

    /// Accepts a write into the buffer; it reaches the medium later.
    fn accept(&mut self, mut job: Job, now: Ns) {
        let blocks = job.end - job.first;
        let command = from_ms(self.overhead.write_hit[self.after()])
            + from_ms(self.overhead.data_preparation);
        let length = command + blocks * from_ms(self.line.write_block_ms);
        let at = self.bus.fit(now, length);
        let end = at + length + from_ms(self.overhead.write_complete);
        self.bus.take(at, end);
        self.last_was_write = true;
        self.done.add(job.tag, end, ServedFrom::Buffered);
        (job.kind, job.ready) = (Task::Destage, end);
        self.cache.accept(job, blocks * self.block);
    }

    /// Writes an accepted write to the medium.
    fn destage(&mut self, job: &Job, now: Ns) {
        let (head, free) = self.stop_stream(now);
        let at = free.max(job.ready);
        let there = Arrival {
            start: job.ready,
            block: 0,
        };
        let (end, head) = self
            .writing(job.end - job.first)
            .write(job.first, job.end, at, 0, head, there);
        let segment = self.segments.for_write(job.first, job.end, None);
        self.segments.hold_write(segment, job.first, job.end, false);
        self.head = head;
        self.busy_until = end;
        self.cache
            .start(job, (job.end - job.first) * self.block, end);
    }

    /// Handles a write that has reached the medium: flushes may complete, and waiting writes may be accepted.
    fn destaged(&mut self, at: Ns) {
        for tag in self.cache.finish() {
            self.done.add(
                tag,
                at + from_ms(self.overhead.write_complete),
                ServedFrom::Control,
            );
        }
        let block = self.block;
        while let Some(job) = self.cache.release(|job| (job.end - job.first) * block) {
            self.accept(job, at);
        }
    }

    fn submit_flush(&mut self, now: Ns, tag: u64) {
        if !self.cache.flush(tag) {
            let written = self.behind.map_or(now, |behind| behind.until.max(now));
            self.done.add(
                tag,
                written + from_ms(self.overhead.write_complete),
                ServedFrom::Control,
            );
        }
    }
}

impl Model for Drive {
    fn capacity(&self) -> u64 {
        self.layout.blocks() * self.block
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        self.run(now);
        self.bus.forget(now);
        if !request.fits(self.capacity()) {
            return self.done.add(tag, now, ServedFrom::Refused);
        }
        match request.op {
            Op::Flush => return self.submit_flush(now, tag),
            Op::Trim => {
                return self.done.add(
                    tag,
                    now + from_ms(self.overhead.write_complete),
                    ServedFrom::Control,
                );
            }
            Op::Read | Op::Write if request.len == 0 => {
                return self.done.add(tag, now, ServedFrom::Control);
            }
            Op::Read | Op::Write => {}
        }
        let first = request.offset / self.block;
        let end = (request.offset + request.len).div_ceil(self.block);
        let kind = if request.op == Op::Read {
            Task::Read
        } else {
            Task::Write
        };
        let job = Job {
            kind,
            tag,
            first,
            end,
            arrived: now,
            ready: now,
            place: self.layout.place(first),
        };
        match kind {
            Task::Read => self.submit_read(job),
            Task::Write | Task::Destage => self.submit_write(job),
        }
    }

    fn next_event(&self) -> Option<Ns> {
        earlier(self.next_step(), self.done.next())
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.run(until);
        self.done.take(until, out);
    }
}

/// The task of the heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// A read that the host waits for.
    Read,
    /// A write that the host waits for.
    Write,
    /// A write that the buffer has accepted.
    Destage,
}

/// A request for the heads.
#[derive(Clone, Copy, Debug)]
struct Job {
    kind: Task,
    tag: u64,
    /// First block and one past the last.
    first: u64,
    end: u64,
    arrived: Ns,
    /// The time at which the command has been processed and the heads may start.
    ready: Ns,
    place: SectorPosition,
}
