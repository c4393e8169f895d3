//! Flags in words.

use iolab_analysis::analysis::Flag;

/// Meaning of a flag for the numbers of several runs, without a full stop. Flags that are shown with each cell
/// have only their name.
pub(crate) fn in_words(flag: Flag) -> &'static str {
    match flag {
        Flag::PageCache => "bytes from the page cache",
        Flag::Mixed => "bytes only partly from the device",
        Flag::Gap => "not carried out by their tool",
        Flag::Hole => "reads of data that was never written",
        Flag::NotStorage => "bytes not served by storage",
        Flag::OtherTraffic => "other traffic on the device",
        Flag::ReadAhead => "read-ahead by the kernel",
        Flag::RequestsSplit => "requests split differently from trial to trial",
        Flag::WriteBackOwed => "writes left in the page cache",
        Flag::StorageCache => "writes left in a cache of the storage",
        Flag::CpuContended => "CPUs shared with others",
        Flag::CpuQuota => "held back by a CPU quota",
        Flag::IoLimit => "held at an I/O limit of the control group",
        Flag::Suspended => "the machine slept, or iolab was stopped",
        Flag::ToolBound => "limited by the CPU or by iolab",
        Flag::ClockCost => "time stamps above 1 % of a request",
        Flag::ClockResolution => "clock steps above 1 % of a request",
        Flag::RateNotHeld => "rate not held",
        Flag::ExceedsCeiling => "values above a ceiling",
        Flag::FewTrials => "too few trials",
        Flag::FewRequests => "too few requests for an interval",
        Flag::VerifyFailed => "wrong data was read back",
        Flag::Errors => "failed trials",
        Flag::FewInFlight | Flag::Serialised | Flag::ShortTransfers => flag.name(),
    }
}
