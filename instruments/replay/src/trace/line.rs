//! A line of a trace, as all formats yield it.

/// A request as a line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) device: &'a str,
    /// Time stamp, in units of the format, times [`SCALE`](super::number::SCALE).
    pub(super) stamp: u128,
    pub(super) writes: bool,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) took: Taken,
}

/// End of a request, as far as its line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Unknown,
    /// Time in service, in units of the format, times [`SCALE`](super::number::SCALE).
    Time(u128),
    /// Requests in flight at its arrival, with itself.
    Depth(u32),
}

/// The request of a line, or what the line is instead.
pub(super) type Parsed<'a> = Result<Option<Line<'a>>, String>;

/// Whether an operation of this name writes; `None` for unknown names.
pub(super) fn writes(name: &str) -> Option<bool> {
    let is = |names: [&str; 2]| names.iter().any(|one| name.eq_ignore_ascii_case(one));
    match (is(["r", "read"]), is(["w", "write"])) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    }
}
