//! Collection of the facts.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_host::clock::Clock;
use iolab_storage::{Consent, Need, Size, Target, TargetKind};
use iolab_workload::Result;
use rustix::process::{Resource, getrlimit};

use super::TargetContent;
use super::facts::{Direct, Facts, ProcessLimits, Space, TargetFacts, TimeStamps};
use super::probes::Probes;
use iolab_host::cgroup;
use iolab_host::device::Device;
use iolab_host::load::Load;
use iolab_host::machine::Machine;
use iolab_host::memory;
use iolab_host::processor::Processor;
use iolab_host::system_control::SystemControl;
use iolab_plan::suite::Suite;

/// Size of the scratch file for the probes, and the smallest useful one, bytes.
const SCRATCH: (u64, u64) = (8 << 20, 64 << 10);
/// Length of the look at other processes.
const LOOK: Duration = Duration::from_millis(200);
/// Seed of the scratch file's data.
const SEED: u64 = 1;

/// Need of an examination: a small scratch file in a directory, or the whole of an existing target.
pub(super) fn need(named: &Path) -> Need {
    let (most, least) = if named.is_dir() {
        SCRATCH
    } else if named
        .metadata()
        .is_ok_and(|data| data.len() > 0 || is_device(&data))
    {
        (Size::ENTIRE, 1)
    } else {
        // If it is unusable, opening it reports that.
        SCRATCH
    };
    Need {
        size: Size::AtMost { most, least },
        write: named.is_dir(),
        consent: Consent::No,
        beside: Default::default(),
        lends: false,
    }
}

fn is_device(data: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    data.file_type().is_block_device() || data.file_type().is_char_device()
}

/// Every fact, probes included.
///
/// # Errors
/// The scratch file cannot be filled, or `stop` is raised meanwhile.
pub(super) fn everything(
    named: &Path,
    target: &Target,
    clock: &Clock,
    stop: &AtomicBool,
) -> Result<Facts> {
    target.fill(SEED, stop, &mut |_| {})?;
    let mut facts = quick(named, target, clock);
    facts.region_bytes = default_region();
    let probes = Probes {
        target,
        clock,
        stop,
        written: written(target, &facts),
    };
    if target.kind() != TargetKind::CharDevice {
        facts.direct = Some(probes.direct());
    }
    let is_direct = matches!(&facts.direct, Some(Direct::Tried { read: Ok(_), .. }));
    facts.backends = probes.backends(is_direct);
    if target.kind() != TargetKind::CharDevice {
        facts.trims = Some(probes.trims());
    }
    facts.hardware = probes.hardware();
    Ok(facts)
}

/// Facts available within a quarter of a second, without any I/O on the target except to find its written part.
pub(super) fn quick(named: &Path, target: &Target, clock: &Clock) -> Facts {
    let (proc, sys) = (Path::new("/proc"), Path::new("/sys"));
    let number = target.device();
    let device = number.and_then(|number| Device::read(sys, number));
    let machine = Machine::read(proc, sys);
    let existing = target.kind() != TargetKind::Scratch;
    Facts {
        place: TargetFacts {
            named: named.display().to_string(),
            kind: target.kind(),
            bytes: (existing && target.kind() != TargetKind::CharDevice).then(|| target.size()),
            is_memory: target.is_memory(),
        },
        file_system: target.filesystem(),
        layering: target.layering(),
        space: space(target),
        cgroup: cgroup::CgroupLimits::of_device(proc, device.as_ref()),
        device,
        content: TargetContent::of(target),
        clock: Some(TimeStamps::of(clock)),
        machine: machine.name(),
        is_virtual: machine.is_virtual,
        memory_bytes: memory::memory_bytes(),
        processor: Processor::read(proc, sys),
        huge_pages: memory::huge_pages_in_force(),
        limits: limits(),
        load: Some(Load::look(proc, target.stack(), LOOK)),
        other_control: SystemControl::of_others(),
        ..Facts::default()
    }
}

/// First byte and end of the bytes that probes may read as written.
pub(super) fn written(target: &Target, facts: &Facts) -> Option<(u64, u64)> {
    match &facts.content {
        Some(content) => content.written,
        None => Some((0, target.size())),
    }
}

fn space(target: &Target) -> Option<Space> {
    let is_file = matches!(target.kind(), TargetKind::Scratch | TargetKind::File);
    let vfs = rustix::fs::fstatvfs(target.file())
        .ok()
        .filter(|_| is_file)?;
    Some(Space {
        total: vfs.f_blocks.saturating_mul(vfs.f_frsize),
        free: vfs.f_bavail.saturating_mul(vfs.f_frsize),
        room: target.room().unwrap_or(0),
    })
}

fn limits() -> ProcessLimits {
    // Root may lock any amount of memory.
    let is_root = rustix::process::geteuid().is_root();
    ProcessLimits {
        open_files: getrlimit(Resource::Nofile).current,
        locked_bytes: getrlimit(Resource::Memlock).current.filter(|_| !is_root),
    }
}

/// The largest region among the experiments that `iolab study` runs by default, bytes.
fn default_region() -> u64 {
    let Ok(suite) = Suite::find("quick") else {
        return 0;
    };
    let regions = suite.experiments.iter().filter_map(|e| e.base().ok());
    regions.map(|spec| spec.trial.region).max().unwrap_or(0)
}
