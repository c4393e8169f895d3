//! What the reader of a cell must know.

use std::fmt;

/// Something about a cell that its reader must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// The page cache served some or all of it.
    PageCache,
    /// Its tool cannot carry it out, or has failed to.
    Gap,
    /// It read what was never written.
    Hole,
    /// No storage was involved.
    NotStorage,
    /// The device carried more than 5 % beyond what was iolab's own.
    OtherTraffic,
    /// The kernel fetched more than 5 % beyond what was read.
    ReadAhead,
    /// Its trials fall into groups by how many pieces a request reached the device in, and their responses with them.
    RequestsSplit,
    /// Writing out what was left in the page cache took more than 5 % of the timed span.
    WriteBackOwed,
    /// Others took CPU time: the hypervisor, or programs beside iolab.
    CpuContended,
    /// The machine slept during a trial.
    Suspended,
    /// iolab or the CPU, not the storage, may have set the number.
    ToolBound,
    /// A time stamp costs more than 1 % of the median request.
    ClockCost,
    /// Fewer requests were made than the rate asks for.
    RateNotHeld,
    /// Fewer than half of the requests asked for at once were in service at once.
    Serialised,
    /// Above a ceiling, without a reason for it.
    ExceedsCeiling,
    /// Too few trials for an interval, or fewer than the experiment asks for.
    FewTrials,
    /// Data that was read back was not as it was written.
    VerifyFailed,
    /// A trial failed.
    Errors,
    /// The kernel cut transfers short.
    ShortTransfers,
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Flag::PageCache => "page cache",
            Flag::Gap => "gap",
            Flag::Hole => "hole",
            Flag::NotStorage => "not storage",
            Flag::OtherTraffic => "other traffic",
            Flag::ReadAhead => "read-ahead",
            Flag::RequestsSplit => "requests split",
            Flag::WriteBackOwed => "write-back owed",
            Flag::CpuContended => "cpu contended",
            Flag::Suspended => "suspended",
            Flag::ToolBound => "tool-bound",
            Flag::ClockCost => "clock cost",
            Flag::RateNotHeld => "rate not held",
            Flag::Serialised => "serialised",
            Flag::ExceedsCeiling => "exceeds ceiling",
            Flag::FewTrials => "few trials",
            Flag::VerifyFailed => "verify failed",
            Flag::Errors => "errors",
            Flag::ShortTransfers => "short transfers",
        })
    }
}
