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

/// Everything known about a target and the machine. What is not known is `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// What is measured.
    pub place: TargetFacts,
    /// The file system it lies on.
    pub file_system: Option<FileSystem>,
    /// How the target lies in an overlay; `None` where it lies in none.
    pub layering: Option<Layering>,
    /// Room on that file system.
    pub space: Option<Space>,
    /// The block device it lies on.
    pub device: Option<Device>,
    /// What an existing file or device holds.
    pub content: Option<TargetContent>,
    /// Whether direct I/O goes where it should; `None` when it was not tried.
    pub direct: Option<Direct>,
    /// The backends that were tried, with variants such as `io_uring with sqpoll`.
    pub backends: Vec<(String, Attempt)>,
    /// Whether the target can be trimmed; `None` when it was not tried.
    pub trims: Option<Attempt>,
    /// Events that the processor counts; `None` when it was not tried.
    pub hardware: Option<Result<(), NoHardware>>,
    /// The clock.
    pub clock: Option<TimeStamps>,
    /// The machine, by the names it gives itself: maker and product.
    pub machine: Option<String>,
    /// Whether a hypervisor is below.
    pub is_virtual: Option<bool>,
    /// Memory of the machine, bytes.
    pub memory_bytes: Option<u64>,
    /// The processors.
    pub processor: Processor,
    /// The state of transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// What control groups allow.
    pub cgroup: cgroup::CgroupLimits,
    /// What this process may have.
    pub limits: ProcessLimits,
    /// Load by other processes right now; `None` when it was not checked.
    pub load: Option<Load>,
    /// Who changes settings of the kernel beside this process.
    pub other_control: Option<OtherControl>,
    /// The region of the experiments in question, bytes.
    pub region_bytes: u64,
}

/// The clock that times requests.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimeStamps {
    /// Which it is, and why.
    pub source: String,
    /// Whether a stamp reads the counter of the processor, without the kernel.
    pub is_counter: bool,
    /// What one stamp costs, ns.
    pub cost_ns: f64,
    /// The step in which stamps grow, ns.
    pub resolution_ns: f64,
}

impl TimeStamps {
    /// Those of a clock.
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
    /// As the user named it.
    pub named: String,
    /// What it is; [`TargetKind::Scratch`] stands for a directory.
    pub kind: TargetKind,
    /// Bytes of an existing file or device.
    pub bytes: Option<u64>,
    /// Whether it lies in memory: tmpfs or its like, or a character device.
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
    /// `directory`, `file`, `block-device`, `char-device`.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            TargetKind::Scratch => "directory",
            TargetKind::File => "file",
            TargetKind::BlockDevice => "block-device",
            TargetKind::CharDevice => "char-device",
        }
    }
}

/// Room on a file system, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub total: u64,
    /// Space left for an ordinary user, bytes.
    pub free: u64,
    /// What of this new files may take, so that the system keeps its reserve.
    pub room: u64,
}

/// What came of direct I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Direct {
    /// The target refuses it: why.
    Refused(String),
    /// It was accepted; what was transferred then.
    Tried {
        /// Alignment of offset and length, bytes.
        alignment: u64,
        /// Reading, the second time over the same bytes; or why it was not tried.
        read: Result<Transfer, String>,
        /// Writing, or why it was not tried; `None` for an existing target, into which iolab does not write here.
        write: Option<Result<Transfer, String>>,
    },
}

/// What the kernel counted over a transfer with `O_DIRECT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfer {
    /// Bytes transferred.
    pub bytes: u64,
    /// Bytes that the process's own account says reached storage.
    pub process_bytes: Option<u64>,
    /// Bytes that the block device counted meanwhile, for all processes.
    pub device_bytes: Option<u64>,
    /// Bytes that the disks below a stacked device counted.
    pub disk_bytes: Option<u64>,
    /// Bytes of the range that the page cache held before, when it had been told to drop them.
    pub cached_before_bytes: Option<u64>,
    /// Bytes of the range that it held afterwards.
    pub cached_bytes: Option<u64>,
}

/// Result of trying something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// It works; with a remark, when there is one.
    Works(Option<String>),
    /// It does not: why, and what may help.
    Fails(String, Option<String>),
}

/// Limits of this process (getrlimit(2)); `None` where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessLimits {
    /// Open files.
    pub open_files: Option<u64>,
    /// Locked memory, bytes.
    pub locked_bytes: Option<u64>,
}
