//! The transfer of a request: when its data moves, and when it completes.

use crate::definition::parts::{ReadAhead, WriteBack};

use super::super::from_ms;
use super::layout::Head;
use super::media_stream::{Arrival, Stream};
use super::segments::Match;
use super::{Behind, Drive, Job};
use iolab_workload::virtual_disk::{Ns, ServedFrom};

impl Drive {
    /// Advances the segment that read-ahead fills to `now`; removes read-ahead that has ended.
    pub(super) fn follow_stream(&mut self, now: Ns) {
        if let Some(stream) = &mut self.stream {
            stream.follow(now, &self.arm, &self.layout);
            self.segments.grow(stream.segment, stream.end_at(now));
            if !stream.active(now) {
                (self.head, _) = stream.stop(now, true, &self.arm, &self.layout);
                self.stream = None;
            }
        }
    }

    /// Stops read-ahead: returns the position of the heads, and when they can move.
    pub(super) fn stop_stream(&mut self, now: Ns) -> (Head, Ns) {
        self.follow_stream(now);
        let Some(mut stream) = self.stream.take() else {
            return (self.head, now);
        };
        let within = self.buffer.stop_within_sector;
        let (head, free) = stream.stop(now, within, &self.arm, &self.layout);
        self.segments.grow(stream.segment, stream.end_at(now));
        self.head = head;
        (head, free)
    }

    /// The block at which read-ahead after `first..end` ends, in a segment that starts at `start`.
    fn ahead_limit(&self, first: u64, end: u64, start: u64) -> u64 {
        let blocks = self.layout.blocks();
        if end >= blocks {
            return end;
        }
        let most = match self.buffer.read_ahead_most {
            0 if self.buffer.read_ahead_over_request => end + self.segments.size,
            0 => end.max(first + self.segments.size),
            most => end + most,
        };
        let limit = match self.buffer.read_ahead {
            ReadAhead::None => end,
            ReadAhead::Track => most.min(self.layout.track_end(end - 1)),
            ReadAhead::Segment => most,
            ReadAhead::NextTrack => {
                let track_end = self.layout.track_end(end - 1);
                if start.min(first) < self.layout.track_start(end - 1) && track_end < blocks {
                    self.layout.track_end(track_end)
                } else {
                    track_end
                }
            }
        };
        limit.clamp(end, blocks)
    }

    /// Number of blocks that must be in the buffer before a read of `blocks` takes the bus again.
    fn watermark(&self, blocks: u64) -> u64 {
        let held = blocks.min(self.segments.size);
        let needed = (held as f64 * self.buffer.read_watermark) as u64;
        needed.clamp(1, blocks)
    }

    /// A read that the buffer serves without the heads.
    pub(super) fn read_from_buffer(&mut self, job: &Job, now: Ns) {
        let times = &self.overhead;
        let length = from_ms(times.read_hit[self.after()])
            + from_ms(times.data_preparation)
            + (job.end - job.first) * from_ms(self.line.read_block_ms)
            + from_ms(times.read_complete);
        let at = self.bus.fit(now, length);
        self.bus.take(at, at + length);
        self.last_was_write = false;
        self.done.add(job.tag, at + length, ServedFrom::Hit);
    }

    /// Starts the heads for a read. Returns the segment that takes the data, and what it already held.
    fn fetch(&mut self, job: &Job, now: Ns, ready: Ns) -> (usize, Match) {
        self.follow_stream(now);
        let filling = self.filling();
        let (segment, found) = self.segments.for_read(job.first, job.end, filling);
        let held = self.segments.get(segment);
        let (start, held_to) = if found == Match::Nothing {
            (job.first, job.first)
        } else {
            (held.start, held.end)
        };
        let limit = self.ahead_limit(job.first, job.end, start);
        if found != Match::Nothing && filling.is_some_and(|filling| filling.0 == segment) {
            if let Some(stream) = &mut self.stream {
                stream.limit = stream.limit.max(limit);
            }
        } else {
            let (head, free) = self.stop_stream(now);
            let reads_on = match found {
                Match::Whole => self.buffer.read_ahead_after_hit && held_to < limit,
                Match::Front | Match::Nothing => true,
            };
            if reads_on {
                let on_arrival = self.buffer.read_on_arrival;
                let mut stream =
                    Stream::new(segment, held_to, limit, ready.max(free), head, on_arrival);
                if found == Match::Nothing {
                    let mut from = job.first;
                    if self.buffer.keep_passing && self.arm.follows_rotation() {
                        let track = self.layout.track_start(job.first);
                        from -= stream.passing_before(track, &self.arm, &self.layout);
                    }
                    self.segments.fill(segment, from, job.first);
                }
                self.stream = Some(stream);
            }
        }
        self.segments.touch(segment);
        (segment, found)
    }

    /// When the blocks below `end` are in the buffer, `now` or later.
    fn in_buffer(&mut self, end: u64, now: Ns) -> Ns {
        match &mut self.stream {
            Some(stream) => stream.time_of(end, &self.arm, &self.layout).max(now),
            None => now,
        }
    }

    /// Serves a read that the heads start at `now`: directly with its command, or from the queue.
    pub(super) fn read(&mut self, job: &Job, now: Ns, direct: bool) {
        let after = self.after();
        let blocks = job.end - job.first;
        let miss = from_ms(self.overhead.read_miss[after]);
        let leave = from_ms(self.overhead.read_disconnect[after]);
        let reselect = from_ms(self.overhead.reselect);
        let preparation = from_ms(self.overhead.data_preparation);
        let ready = if direct {
            now + miss
        } else {
            now.max(job.ready)
        };
        let (segment, found) = self.fetch(job, now, ready);
        let mark = job.first + self.watermark(blocks);
        let enough = match found {
            Match::Whole => true,
            // The host gets the first part at once.
            Match::Front => self.segments.get(segment).end >= job.first,
            Match::Nothing => false,
        };
        let stays = self.line.never_disconnect;
        let (from, start) = if direct && (enough || stays) {
            let command = if found == Match::Nothing {
                miss
            } else {
                from_ms(self.overhead.read_hit[after])
            };
            let at = self.bus.fit(now, command);
            (at, at + command + preparation)
        } else if stays {
            (ready, ready + preparation)
        } else {
            let mut back = ready;
            if direct {
                let left = now + miss + leave;
                self.bus.take(now, left);
                back = left;
            }
            if found != Match::Whole {
                back = self.in_buffer(mark, back);
            }
            let back = self.bus.fit(back, reselect);
            (back, back + reselect + preparation)
        };
        let finish = self.send_data(job, start, after);
        let end = finish + from_ms(self.overhead.read_complete);
        self.bus.take(from, end);
        let read = if found == Match::Whole {
            now
        } else {
            self.in_buffer(job.end, now)
        };
        self.busy_until = match self.buffer.seek_before_completion {
            false => end,
            true => read,
        };
        self.last_was_write = false;
        let served = match found {
            Match::Whole => ServedFrom::Hit,
            Match::Front => ServedFrom::Partial,
            Match::Nothing => ServedFrom::Miss,
        };
        self.done.add(job.tag, end, served);
    }

    /// Sends a read's data to the host from `start` on; returns the end.
    fn send_data(&mut self, job: &Job, start: Ns, after: usize) -> Ns {
        let block = from_ms(self.line.read_block_ms);
        let leave = from_ms(self.overhead.read_disconnect[after]);
        let back = from_ms(self.overhead.reselect) + from_ms(self.overhead.data_preparation);
        let stays = self.line.hold_reads || self.line.never_disconnect || leave + back == 0;
        let watermark = self.watermark(job.end - job.first);
        let Some(stream) = &mut self.stream else {
            return start + (job.end - job.first) * block;
        };
        let (arm, layout) = (&self.arm, &self.layout);
        if stays {
            return stream.transfer(job.first, job.end, start, block, arm, layout);
        }
        // The drive sends what it has, leaves the bus when nothing is left, and returns at the watermark.
        let (mut at, mut next) = (start, job.first);
        loop {
            let have = if stream.time_of(job.end, arm, layout) <= at {
                job.end
            } else {
                stream.end_at(at).clamp(next, job.end)
            };
            at += (have - next) * block;
            next = have;
            if next == job.end {
                return at;
            }
            if stream.end_at(at) > next {
                continue;
            }
            let enough = stream.time_of((next + watermark).min(job.end), arm, layout);
            at = (at + leave).max(enough) + back;
        }
    }

    /// Serves a write that the heads start at `now`: directly with its command, or from the queue.
    pub(super) fn write(&mut self, job: &Job, now: Ns, direct: bool) {
        let after = self.after();
        let blocks = job.end - job.first;
        let filling = self.stream.as_ref().map(|stream| stream.segment);
        let (head, free) = self.stop_stream(now);
        let segment = self.segments.for_write(job.first, job.end, filling);
        let fast = self.buffer.write_back != WriteBack::Off;
        let held = self.segments.get(segment);
        let continues = held.written && held.end == job.first;
        let after_a_write = held.written && self.segments.used_last(segment);
        let leaves = direct && !self.line.never_disconnect && after_a_write && !continues;
        let extra = self.overhead.extra_disconnect.filter(|_| leaves);
        let reselect = from_ms(self.overhead.reselect);
        let preparation = from_ms(self.overhead.data_preparation);
        let (from, start, ready) = if let Some(extra) = extra {
            let left = now + from_ms(extra.command + extra.disconnect);
            self.bus.take(now, left);
            let back = self.bus.fit(left + from_ms(extra.pause), reselect);
            let seek = now + from_ms(extra.command + extra.seek_delay);
            (back, back + reselect + preparation, seek)
        } else if direct {
            let command = from_ms(match fast {
                true => self.overhead.write_hit[after],
                false => self.overhead.write_miss[after],
            });
            let at = self.bus.fit(now, command);
            (at, at + command + preparation, at + command)
        } else {
            let at = self.bus.fit(now, reselect);
            (at, at + reselect + preparation, now.max(job.ready))
        };
        let block = from_ms(self.line.write_block_ms);
        let sent = start + blocks * block;
        let data = Arrival { start, block };
        let (written, head) = self.writing(job.end - job.first).write(
            job.first,
            job.end,
            ready.max(free),
            from_ms(self.overhead.write_seek_least),
            head,
            data,
        );
        self.head = head;
        self.segments.hold_write(segment, job.first, job.end, false);
        self.last_was_write = true;
        if fast {
            let behind = Behind {
                segment,
                first: job.first,
                end: job.end,
                from: ready.max(free),
                until: written,
            };
            let end =
                sent.max(behind.room(self.segments.size)) + from_ms(self.overhead.write_complete);
            self.bus.take(from, end);
            self.behind = Some(behind);
            self.busy_until = written.max(end);
            self.done.add(job.tag, end, ServedFrom::Buffered);
            return;
        }
        let (leave, reselect) = match extra {
            Some(extra) => (extra.disconnect_again, self.overhead.reselect_again),
            None => (self.overhead.write_disconnect, self.overhead.reselect),
        };
        let (left, reselect) = (sent + from_ms(leave), from_ms(reselect));
        let stays = self.line.never_disconnect;
        self.bus.take(from, left);
        let back = if stays {
            left.max(written)
        } else {
            self.bus.fit(left.max(written), reselect)
        };
        let end = back + reselect + from_ms(self.overhead.write_complete);
        self.bus.take(if stays { left } else { back }, end);
        self.busy_until = match self.buffer.seek_before_completion {
            false => end,
            true => written,
        };
        self.done.add(job.tag, end, ServedFrom::Miss);
    }

    /// Joins a write to the one being written to the medium that it continues.
    pub(super) fn join(&mut self, job: &Job, now: Ns) {
        let Some(behind) = self.behind else {
            return;
        };
        let command = from_ms(self.overhead.write_hit[self.after()]);
        let at = self.bus.fit(now, command);
        let start = at + command + from_ms(self.overhead.data_preparation);
        let block = from_ms(self.line.write_block_ms);
        let data = Arrival { start, block };
        let (written, head) = self
            .writing(job.end - job.first)
            .write(job.first, job.end, behind.until, 0, self.head, data);
        self.head = head;
        self.segments
            .hold_write(behind.segment, job.first, job.end, true);
        let behind = Behind {
            end: job.end,
            until: written,
            ..behind
        };
        let sent = start + (job.end - job.first) * block;
        let end = sent.max(behind.room(self.segments.size)) + from_ms(self.overhead.write_complete);
        self.bus.take(at, end);
        self.behind = Some(behind);
        self.busy_until = written.max(end);
        self.last_was_write = true;
        self.done.add(job.tag, end, ServedFrom::Buffered);
    }
}
