//! Input of the rules: plain values, so that a test can describe any machine.
//!
//! Content of an existing file or device: written bytes, holes, zeros, and their storage by the file system.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags};

use iolab_host::cgroup;
use iolab_host::clock::Clock;
use iolab_host::counters::compressed_bytes;
use iolab_host::device::Device;
use iolab_host::machine::Load;
use iolab_host::processor::Processor;
use iolab_host::system_control::OtherControl;
use iolab_storage::{FileSystem, Layering, Target, TargetKind, next_data};
use iolab_workload::counters::NoHardware;

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
    /// Number of files that this process may open; `None` for unlimited.
    pub open_files: Option<u64>,
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

/// Number of blocks of a device that are read.
const SAMPLES: u64 = 64;

const SAMPLE_BYTES: usize = 4096;

/// Time limit of one look, which delays a run.
const TIME_MAX: Duration = Duration::from_millis(100);

/// Content of a target. Unknown properties are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TargetContent {
    /// Number of examined bytes.
    pub looked_bytes: u64,
    /// Examined bytes that were never written: holes, or space only reserved.
    pub empty_bytes: u64,
    /// Size of the whole file, bytes.
    pub length: Option<u64>,
    /// Storage that the file takes, bytes.
    pub allocated_bytes: Option<u64>,
    /// First byte and end of the longest written stretch; `None` without one.
    pub written: Option<(u64, u64)>,
    /// Blocks of a device that were read, and the number with only zeros.
    pub zero_blocks: Option<(u64, u64)>,
    /// Bytes of the file that are stored compressed, as far as the file system tells.
    pub compressed_bytes: u64,
    /// Whether the file or directory is set to be compressed.
    pub set_compressed: bool,
    /// Whether the file system encrypts it.
    pub set_encrypted: bool,
}

impl TargetContent {
    /// Examines a target; a scratch file shows how files are stored in its directory.
    pub(crate) fn of(target: &Target) -> Option<Self> {
        match target.kind() {
            TargetKind::CharDevice => None,
            TargetKind::BlockDevice => Some(of_device(target)),
            TargetKind::File | TargetKind::Scratch => Some(of_file(target)),
        }
    }
}

fn of_device(target: &Target) -> TargetContent {
    TargetContent {
        written: Some((0, target.size())),
        zero_blocks: zero_blocks(target),
        ..TargetContent::default()
    }
}

/// Reads blocks spread evenly over the device. An unreadable one ends the look: trials will report the reason.
fn zero_blocks(target: &Target) -> Option<(u64, u64)> {
    let blocks = target.size() / SAMPLE_BYTES as u64;
    let count = blocks.min(SAMPLES);
    let began = Instant::now();
    let mut buffer = [0; SAMPLE_BYTES];
    let (mut looked, mut zeros) = (0, 0);
    // Every eighth of them first, so that a slow device still shows all its parts.
    for sample in (0..8).flat_map(|first| (first..count).step_by(8)) {
        if began.elapsed() >= TIME_MAX {
            break;
        }
        // In the middle of each part: the first blocks are often written even if the rest is not.
        let block =
            (u128::from(blocks) * u128::from(2 * sample + 1) / u128::from(2 * count)) as u64;
        let at = block * SAMPLE_BYTES as u64;
        target.file().read_exact_at(&mut buffer, at).ok()?;
        looked += 1;
        zeros += u64::from(buffer.iter().all(|byte| *byte == 0));
    }
    (looked > 0).then_some((looked, zeros))
}

fn of_file(target: &Target) -> TargetContent {
    let file = target.file();
    let attributes = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::empty())
        .map_or(StatxAttributes::empty(), |statx| statx.stx_attributes);
    let unknown = TargetContent {
        written: Some((0, target.size())),
        ..TargetContent::default()
    };
    TargetContent {
        length: file.metadata().ok().map(|data| data.len()),
        allocated_bytes: file.metadata().ok().map(|data| data.blocks() * 512),
        compressed_bytes: compressed_bytes(file, target.size(), TIME_MAX).unwrap_or(0),
        set_compressed: attributes.contains(StatxAttributes::COMPRESSED),
        set_encrypted: attributes.contains(StatxAttributes::ENCRYPTED),
        ..written(target).unwrap_or(unknown)
    }
}

/// Bytes of a file that were looked at and bytes among them that were never written, by lseek(2), which counts reserved space as a
/// hole; and the longest written stretch. `None` where the file system does not report them.
fn written(target: &Target) -> Option<TargetContent> {
    let (file, end, began) = (target.file(), target.size(), Instant::now());
    let (mut looked, mut empty, mut longest) = (0, 0, None);
    let length = |(from, to): (u64, u64)| to - from;
    while looked < end && began.elapsed() < TIME_MAX {
        let data = next_data(file, looked, end)?;
        empty += data.start - looked;
        looked = data.end;
        let stretch = (data.start, data.end);
        if length(stretch) > longest.map_or(0, length) {
            longest = Some(stretch);
        }
    }
    Some(TargetContent {
        looked_bytes: looked,
        empty_bytes: empty,
        written: longest,
        ..TargetContent::default()
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use iolab_storage::{Need, Size};

    fn content(prepare: Prepare) -> TargetContent {
        let folder =
            tempfile::tempdir_in(needs::folder_on_disk().expect("a folder")).expect("a folder");
        let path = folder.path().join("file");
        let file = File::create(&path).expect("a file");
        prepare(&file);
        file.sync_all().expect("durable");
        let need = Need {
            size: Size::AtMost {
                most: Size::ENTIRE,
                least: 1,
            },
            ..Need::reading(1)
        };
        let target = Target::open(&path, &need).expect("opened");
        assert!(target.notes().is_empty());
        TargetContent::of(&target).expect("a file has content")
    }

    type Prepare = fn(&File);
    /// A file, how much of it is looked at and empty, and what is written.
    type Case = (Prepare, u64, u64, Option<(u64, u64)>);

    #[test]
    fn holes_are_measured() {
        const MIB: u64 = 1 << 20;
        let cases: [Case; 3] = [
            (
                |file| file.write_all_at(&[7; 100_000], 0).expect("written"),
                100_000,
                0,
                Some((0, 100_000)),
            ),
            (
                |file| {
                    file.set_len(3 * MIB).expect("sized");
                    file.write_all_at(&[7; 1 << 20], MIB).expect("written");
                    file.write_all_at(&[7; 4096], 0).expect("written");
                },
                3 * MIB,
                2 * MIB - 4096,
                Some((MIB, 2 * MIB)),
            ),
            // Never written.
            (|file| file.set_len(MIB).expect("sized"), MIB, MIB, None),
        ];
        for (prepare, looked, empty, written) in cases {
            let content = content(prepare);
            if content.empty_bytes == 0 && empty > 0 {
                return needs::skip(needs::Need::Holes, "a sparse file looks full");
            }
            assert_eq!((content.looked_bytes, content.empty_bytes), (looked, empty));
            assert_eq!(content.written, written);
        }
    }
}
