//! Counters of mechanisms that may cause a difference shown by a run. They order the suspects, and prove nothing.

use iolab_workload::stages::{PerStage, Stage};

/// A counter that shows a mechanism at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Page faults of this process for each byte.
    PageFaults,
    /// I/Os of the device for each request.
    DeviceIos,
    /// The share of their time in which threads waited for a CPU that others used.
    CpuWait,
    /// Time in a stage of a traced request for each byte.
    Stage(Stage),
}

/// The indication of a counter for a mechanism, in the order in which suspects are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Sign {
    /// More was counted on the worse side.
    OnWorseSide,
    /// Unknown, or without a counter.
    #[default]
    Unknown,
    /// The worse side did not count more.
    NotThere,
}

/// The sign of each.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Signs {
    /// Sign of [`Counted::PageFaults`].
    pub page_faults: Sign,
    /// Sign of [`Counted::DeviceIos`].
    pub device_ios: Sign,
    /// Sign of [`Counted::CpuWait`].
    pub cpu_wait: Sign,
    /// Sign of each [`Counted::Stage`].
    pub stages: PerStage<Sign>,
}

impl Signs {
    /// The sign of a counter.
    pub fn of(&self, counted: Counted) -> Sign {
        match counted {
            Counted::PageFaults => self.page_faults,
            Counted::DeviceIos => self.device_ios,
            Counted::CpuWait => self.cpu_wait,
            Counted::Stage(stage) => self.stages[stage],
        }
    }
}
