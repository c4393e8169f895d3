//! Disks in virtual time, as the engine sees them: requests, completions, and the trait of a disk that is computed.

use crate::names::named;

/// A point in virtual time, or a length of it, in nanoseconds.
pub type Ns = u64;

named! {
    /// The operation of a request.
    pub enum Op: "operation" {
        /// Data from the model to the host.
        Read = "read",
        /// Data from the host to the model.
        Write = "write",
        /// Completes when everything written before is on the medium. Has no range.
        Flush = "flush",
        /// Discards the data of the range.
        Trim = "trim",
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

named! {
    /// How a model served a request.
    #[derive(PartialOrd, Ord)]
    pub enum ServedFrom: "way of serving" {
        /// Served from a buffer.
        Hit = "hit",
        /// Partly from a buffer, or the medium was already delivering it.
        Partial = "partial",
        /// Served from the medium.
        Miss = "miss",
        /// A write that completed when its data was in a buffer.
        Buffered = "buffered",
        /// A flush or a trim.
        Control = "control",
        /// The range is outside the model; nothing was done.
        Refused = "refused",
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
}
