//! Disks in virtual time, as the engine sees them: requests, completions, and the trait of a disk that is computed.

/// A point in virtual time, or a length of it, in nanoseconds.
pub type Ns = u64;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Data from the model to the host.
    Read,
    /// Data from the host to the model.
    Write,
    /// Completes when everything written before is on the medium. Has no range.
    Flush,
    /// Discards the data of the range.
    Trim,
}

impl Op {
    /// Name of the operation in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Trim => "trim",
        }
    }
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Number of bytes. A model works in whole blocks: a range that covers part of one takes all of it.
    pub len: u64,
}

impl Request {
    fn new(op: Op, offset: u64, len: u64) -> Self {
        Self { op, offset, len }
    }

    /// A read of `len` bytes at `offset`.
    pub fn read(offset: u64, len: u64) -> Self {
        Self::new(Op::Read, offset, len)
    }

    /// A write of `len` bytes at `offset`.
    pub fn write(offset: u64, len: u64) -> Self {
        Self::new(Op::Write, offset, len)
    }

    /// A flush.
    pub fn flush() -> Self {
        Self::new(Op::Flush, 0, 0)
    }

    /// A trim of `len` bytes at `offset`.
    pub fn trim(offset: u64, len: u64) -> Self {
        Self::new(Op::Trim, offset, len)
    }

    /// Whether the range lies within `capacity` bytes.
    pub fn fits(&self, capacity: u64) -> bool {
        self.op == Op::Flush
            || self
                .offset
                .checked_add(self.len)
                .is_some_and(|end| end <= capacity)
    }
}

/// How a model served a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServedFrom {
    /// Served from a buffer.
    Hit,
    /// Partly from a buffer, or the medium was already delivering it.
    Partial,
    /// Served from the medium.
    Miss,
    /// A write that completed when its data was in a buffer.
    Buffered,
    /// A flush or a trim.
    Control,
    /// The range is outside the model; nothing was done.
    Refused,
}

impl ServedFrom {
    /// Name of the way of serving in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Partial => "partial",
            Self::Miss => "miss",
            Self::Buffered => "buffered",
            Self::Control => "control",
            Self::Refused => "refused",
        }
    }
}

/// The end of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag that the request was submitted with.
    pub tag: u64,
    /// When it completed.
    pub finished: Ns,
    /// How the request was served.
    pub served: ServedFrom,
}

/// A disk computed in virtual time.
///
/// A model has no clock: it does nothing between calls, and the same calls give the same results. Times passed to
/// `submit` and `advance` never decrease.
///
/// ```text
/// submit(now, tag, request)   the model takes the request at this time
/// next_event()                the next time at which something happens inside
/// advance(until, out)         everything up to and including that time happens; completions go to `out`, in order
/// ```
pub trait Model: Send {
    /// Size of the address space, bytes.
    fn capacity(&self) -> u64;

    /// Takes a request at `now`. A range outside the capacity completes at once as [`ServedFrom::Refused`].
    fn submit(&mut self, now: Ns, tag: u64, request: &Request);

    /// The time of the next change of state; `None` when no request is in progress.
    fn next_event(&self) -> Option<Ns>;

    /// Advances time up to and including `until`, and appends completions to `out` in order.
    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>);

    /// Advances time until all requests have completed; returns the time of the last event.
    fn drain(&mut self, out: &mut Vec<Completion>) -> Option<Ns> {
        let mut last = None;
        while let Some(at) = self.next_event() {
            self.advance(at, out);
            last = Some(at);
        }
        last
    }
}
