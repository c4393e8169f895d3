//! The segmented buffer: its contents, and the choice of a segment for a request.

/// One run of blocks in the buffer.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// First block; equal to `end` or above for an empty segment.
    pub(super) start: u64,
    /// One past the last block.
    pub(super) end: u64,
    /// Whether the segment's data came from the host.
    pub(super) written: bool,
    /// Time of the last use, as a counter.
    used: u64,
}

impl Segment {
    fn empty(&self) -> bool {
        self.start >= self.end
    }

    fn overlaps(&self, first: u64, end: u64) -> bool {
        !self.empty() && first < self.end && end > self.start
    }
}

/// How much of a read a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// The segment holds all of the read.
    Whole,
    /// The segment holds the front of the read.
    Front,
    /// The segment holds nothing of the read, and can be refilled.
    Nothing,
}

/// The settings that the choice depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) cache: bool,
    pub(super) read_written: bool,
    pub(super) write_segment: bool,
}

/// All segments.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    list: Vec<Segment>,
    size: u64,
    rules: Rules,
    uses: u64,
}

impl Segments {
    pub(super) fn new(count: u32, size: u64, rules: Rules) -> Self {
        let empty = Segment {
            start: 0,
            end: 0,
            written: false,
            used: 0,
        };
        Self {
            list: vec![empty; count.max(1) as usize],
            size: size.max(1),
            rules,
            uses: 0,
        }
    }

    pub(super) fn get(&self, segment: usize) -> &Segment {
        &self.list[segment]
    }

    /// Blocks of a segment.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Index of the first segment for reads; a segment for writes only is the first.
    fn for_reads(&self) -> usize {
        usize::from(self.rules.write_segment && self.list.len() > 1)
    }

    /// The segment that serves a read of `first..end`, and how much it holds. Prefers full hits over partial
    /// ones, and among equals those in data still being read. Empty segments come next, then the least recently
    /// used.
    ///
    /// `filling` is the segment that read-ahead fills, with the block up to which it counts as present.
    pub(super) fn for_read(
        &self,
        first: u64,
        end: u64,
        filling: Option<(usize, u64)>,
    ) -> (usize, Match) {
        let mut best = (self.for_reads(), Match::Nothing);
        let mut best_key = (0, u64::MAX);
        for (n, segment) in self.list.iter().enumerate().skip(self.for_reads()) {
            let reach = filling
                .filter(|filling| filling.0 == n)
                .map(|filling| filling.1);
            let active = reach.is_some();
            let coming = reach.is_some_and(|reach| first >= segment.end && first < reach);
            let usable = self.rules.cache && (self.rules.read_written || !segment.written);
            let holds = !segment.empty() && first >= segment.start && first < segment.end;
            let (worth, found) = if usable && holds && end <= segment.end {
                (8 + u32::from(active), Match::Whole)
            } else if usable && (holds || coming) {
                (4 + u32::from(active), Match::Front)
            } else if active {
                (1, Match::Nothing)
            } else {
                (if segment.empty() { 3 } else { 2 }, Match::Nothing)
            };
            let key = (worth, segment.used);
            if key.0 > best_key.0 || key.0 == best_key.0 && key.1 < best_key.1 {
                (best, best_key) = ((n, found), key);
            }
        }
        best
    }

    /// The segment that holds all of `first..end`; `None` for none.
    pub(super) fn whole(&self, first: u64, end: u64) -> Option<usize> {
        (self.rules.cache).then_some(())?;
        self.list
            .iter()
            .skip(self.for_reads())
            .position(|segment| {
                !segment.empty()
                    && first >= segment.start
                    && end <= segment.end
                    && (self.rules.read_written || !segment.written)
            })
            .map(|n| n + self.for_reads())
    }

    /// The segment for a write: one that it overwrites, else an empty one, else the least recently used.
    pub(super) fn for_write(&self, first: u64, end: u64, filling: Option<usize>) -> usize {
        if self.for_reads() > 0 {
            return 0;
        }
        let key = |n: usize| {
            let segment = &self.list[n];
            let worth = if filling == Some(n) {
                3
            } else if segment.overlaps(first, end) {
                0
            } else if segment.empty() {
                1
            } else {
                2
            };
            (worth, segment.used)
        };
        (0..self.list.len()).min_by_key(|&n| key(n)).unwrap_or(0)
    }

    /// Whether the segment was the last one used.
    pub(super) fn used_last(&self, segment: usize) -> bool {
        self.uses > 0 && self.list[segment].used == self.uses
    }

    pub(super) fn touch(&mut self, segment: usize) {
        self.uses += 1;
        self.list[segment].used = self.uses;
    }

    /// Refills a segment for a read from `start` on, with the data up to `end`.
    pub(super) fn fill(&mut self, segment: usize, start: u64, end: u64) {
        let segment = &mut self.list[segment];
        (segment.start, segment.end, segment.written) = (start, end, false);
    }

    /// Extends the segment to `end`; drops its oldest blocks when full.
    pub(super) fn grow(&mut self, segment: usize, end: u64) {
        let size = self.size;
        let segment = &mut self.list[segment];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(segment.end.saturating_sub(size));
    }

    /// Stores a write of `first..end`, appended to the segment's data (`join`) or replacing it. Invalidates the range in all
    /// other segments.
    pub(super) fn hold_write(&mut self, segment: usize, first: u64, end: u64, join: bool) {
        for (n, other) in self.list.iter_mut().enumerate() {
            if n != segment && other.overlaps(first, end) {
                (other.start, other.end) = (0, 0);
            }
        }
        let size = self.size;
        let held = &mut self.list[segment];
        if !join {
            held.start = first;
        }
        held.end = end;
        held.written = true;
        held.start = held.start.max(end.saturating_sub(size));
        self.touch(segment);
    }
}
