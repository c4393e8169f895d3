//! Input of the rules: plain values, so that a test can describe any machine.

use iolab_storage::{FileSystem, Layering, TargetKind};
use iolab_workload::counters::NoHardware;

use super::target_content::TargetContent;
use iolab_host::cgroup;
use iolab_host::clock::Clock;
use iolab_host::device::Device;
use iolab_host::load::Load;
use iolab_host::processor::Processor;
use iolab_host::system_control::OtherControl;

/// All known facts about a target and the machine. Unknown facts are `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// The target itself.
    pub place: TargetFacts,
    /// File system of the target.
    pub file_system: Option<FileSystem>,
    /// Position of the target in an overlay; `None` if it does not lie in one.
    pub layering: Option<Layering>,
    /// Space on that file system.
    pub space: Option<Space>,
    /// Block device of the target.
    pub device: Option<Device>,
    /// Content of an existing file or device.
    pub content: Option<TargetContent>,
    /// Result of a probe of direct I/O; `None` when it was not tried.
    pub direct: Option<Direct>,
    /// Results of the backends that were tried, with variants such as `io_uring with sqpoll`.
    pub backends: Vec<(String, Attempt)>,
    /// Whether the target can be trimmed; `None` when it was not tried.
    pub trims: Option<Attempt>,
    /// Events that the processor counts; `None` when it was not tried.
    pub hardware: Option<Result<(), NoHardware>>,
    /// Clock of the process.
    pub clock: Option<TimeStamps>,
    /// Name of the machine: maker and product.
    pub machine: Option<String>,
    /// Whether a hypervisor runs below.
    pub is_virtual: Option<bool>,
    /// Memory of the machine, bytes.
    pub memory_bytes: Option<u64>,
    /// Processors of the machine.
    pub processor: Processor,
    /// State of transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// Limits by control groups.
    pub cgroup: cgroup::CgroupLimits,
    /// Limits of this process.
    pub limits: ProcessLimits,
    /// Load by other processes right now; `None` when it was not checked.
    pub load: Option<Load>,
    /// Another iolab that changes kernel settings.
    pub other_control: Option<OtherControl>,
    /// Region of the experiments in question, bytes.
    pub region_bytes: u64,
}

/// Clock that times requests.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimeStamps {
    /// Name of the clock, with the reason for its choice.
    pub source: String,
    /// Whether a stamp reads the processor's counter, without a system call.
    pub is_counter: bool,
    /// Cost of one stamp, ns.
    pub cost_ns: f64,
    /// Resolution of stamps, ns.
    pub resolution_ns: f64,
}

impl TimeStamps {
    /// Properties of a clock.
    pub(super) fn of(clock: &Clock) -> Self {
        Self {
            source: clock.source(),
            is_counter: clock.is_counter(),
            cost_ns: clock.cost_ns(),
            resolution_ns: clock.resolution_ns(),
        }
    }
}

/// The target itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFacts {
    /// Path as the user named it.
    pub named: String,
    /// Kind of target; [`TargetKind::Scratch`] represents a directory.
    pub kind: TargetKind,
    /// Size of an existing file or device, bytes.
    pub bytes: Option<u64>,
    /// Whether the target is in memory: tmpfs or similar, or a character device.
    pub is_memory: bool,
}

impl Default for TargetFacts {
    fn default() -> Self {
        Self {
            named: String::new(),
            kind: TargetKind::Scratch,
            bytes: None,
            is_memory: false,
        }
    }
}

impl TargetFacts {
    /// Kind in words: `directory`, `file`, `block-device`, `char-device`.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            TargetKind::Scratch => "directory",
            TargetKind::File => "file",
            TargetKind::BlockDevice => "block-device",
            TargetKind::CharDevice => "char-device",
        }
    }
}

/// Space on a file system, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Whole size, bytes.
    pub total: u64,
    /// Space available to an ordinary user, bytes.
    pub free: u64,
    /// Part of it that new files may take, a reserve for the system left out, bytes.
    pub room: u64,
}

/// Result of a probe of direct I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Direct {
    /// The target refuses it, with the reason.
    Refused(String),
    /// The target accepts it; these are the transfers tried.
    Tried {
        /// Alignment of offset and length, bytes.
        alignment: u64,
        /// Second read of the same bytes, or the reason why it was not tried.
        read: Result<Transfer, String>,
        /// Write, or the reason why it was not tried; `None` for an existing target, which is not written here.
        write: Option<Result<Transfer, String>>,
    },
}

/// Kernel's counts of a transfer with `O_DIRECT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfer {
    /// Bytes transferred.
    pub bytes: u64,
    /// Bytes to or from storage by the process's own account.
    pub process_bytes: Option<u64>,
    /// Bytes counted by the block device meanwhile, for all processes.
    pub device_bytes: Option<u64>,
    /// Bytes counted by the disks below a stacked device.
    pub disk_bytes: Option<u64>,
    /// Bytes of the range in the page cache before, after the request to drop them.
    pub cached_before_bytes: Option<u64>,
    /// Bytes of the range in the page cache afterwards.
    pub cached_bytes: Option<u64>,
}

/// Result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// Success, possibly with a remark.
    Works(Option<String>),
    /// Failure, with the reason and possibly a remedy.
    Fails(String, Option<String>),
}

/// Limits of this process (getrlimit(2)); `None` for unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessLimits {
    /// Number of open files.
    pub open_files: Option<u64>,
    /// Locked memory, bytes.
    pub locked_bytes: Option<u64>,
}
