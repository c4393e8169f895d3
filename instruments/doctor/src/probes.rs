//! Probes of the system's promises: direct I/O in both directions, and every backend. Only a scratch file is
//! ever written.
//!
//! Collection of the facts.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use super::TargetContent;
use super::facts::{Attempt, Direct, Facts, Space, TargetFacts, TimeStamps, Transfer};
use iolab_engine::trial::{self, check_trims};
use iolab_host::clock::Clock;
use iolab_host::device::Device;
use iolab_host::machine::{Load, Machine, io_uring_disabled, transparent_huge_pages};
use iolab_host::processor::Processor;
use iolab_host::system_control::SystemControl;
use iolab_host::{cgroup, chosen};
use iolab_plan::suite::Suite;
use iolab_storage::{Consent, Need, Size, Target, TargetKind, procfs};
use iolab_workload::counters::{DeviceStat, Hardware, NoHardware};
use iolab_workload::outcome::{Failure, Outcome};
use iolab_workload::region_state::Region;
use iolab_workload::trial::{Backend, CacheState, TrialLimit, TrialSpec};
use iolab_workload::{Error, Result};

/// Size of the direct I/O probe, bytes: enough that a page or two of other processes do not matter.
const DIRECT_BYTES: u64 = 4 << 20;

/// Size of the requests of the direct I/O probe, bytes.
const DIRECT_REQUEST: u64 = 256 << 10;

/// Time limit of the direct I/O probe.
const DIRECT_TIME: Duration = Duration::from_millis(500);

/// Size of a request to a backend, bytes.
const SMALL: u64 = 4096;

/// Probes of one target.
pub(super) struct Probes<'a> {
    pub(super) target: &'a Target,
    pub(super) clock: &'a Clock,
    /// Raised to end early.
    pub(super) stop: &'a AtomicBool,
    /// First byte and end of a written part of the target; `None` without one.
    pub(super) written: Option<(u64, u64)>,
}

impl Probes<'_> {
    /// Probe of direct I/O: reads the same bytes twice and keeps the counts of the second time, when a
    /// participating cache would answer. Then writes, into a scratch file.
    pub(super) fn direct(&self) -> Direct {
        let alignment = match self.target.direct_alignment() {
            Ok(alignment) => alignment.offset.max(1),
            Err(error) => return Direct::Refused(self.without_our_name(error.message())),
        };
        let read = match self.spec(alignment) {
            Err(why) => Err(why),
            Ok(spec) => self.transfer(&spec).and_then(|first| {
                self.transfer(&TrialSpec {
                    limit: TrialLimit {
                        bytes: Some(first.bytes.max(1)),
                        ..spec.limit
                    },
                    ..spec
                })
            }),
        };
        let write = match self.target.kind() {
            TargetKind::Scratch => Some(self.spec(alignment).and_then(|spec| {
                self.transfer(&TrialSpec {
                    read_percent: 0,
                    ..spec
                })
            })),
            _ => None,
        };
        Direct::Tried {
            alignment,
            read,
            write,
        }
    }

    /// A message about the scratch file, turned into one about the directory that the user named.
    fn without_our_name(&self, message: &str) -> String {
        match self.target.kind() {
            TargetKind::Scratch => message.replace(
                &self.target.path().display().to_string(),
                &format!("a file in {}", self.target.named().display()),
            ),
            _ => message.to_owned(),
        }
    }

    /// Trial of one pass over written bytes.
    fn spec(&self, alignment: u64) -> std::result::Result<TrialSpec, String> {
        let (first, end) = self
            .written
            .ok_or("it was never written, so reads would not reach a device")?;
        let offset = first.next_multiple_of(alignment);
        let room = end.min(self.target.size()).saturating_sub(offset);
        let bs = DIRECT_REQUEST.next_multiple_of(alignment);
        let bs = if room >= bs { bs } else { alignment };
        let region = room.min(DIRECT_BYTES.max(bs)) / bs * bs;
        if region == 0 {
            return Err(format!(
                "fewer bytes were written than its alignment, {alignment}"
            ));
        }
        Ok(TrialSpec {
            bs,
            offset,
            region,
            limit: TrialLimit {
                bytes: Some(region),
                time: Some(DIRECT_TIME),
            },
            ..TrialSpec::default()
        })
    }

    fn transfer(&self, spec: &TrialSpec) -> std::result::Result<Transfer, String> {
        let outcome = self.run(spec).map_err(|error| error.message().to_owned())?;
        let counters = &outcome.counters;
        let reads = spec.reads();
        let of = |stat: DeviceStat| match reads {
            true => stat.read_bytes,
            false => stat.write_bytes,
        };
        let Region { before, after, .. } = outcome.region;
        Ok(Transfer {
            bytes: outcome.bytes(),
            process_bytes: counters.process_io.map(|io| match reads {
                true => io.read_bytes,
                false => io.write_bytes,
            }),
            device_bytes: counters.device.map(of),
            disk_bytes: counters.bottom.map(|bottom| of(bottom.stat)),
            cached_before_bytes: before.map(|before| before.resident_bytes),
            cached_bytes: after.map(|after| after.resident_bytes),
        })
    }

    /// Every backend and the variants of `io_uring`, with one read each.
    pub(super) fn backends(&self, direct: bool) -> Vec<(String, Attempt)> {
        let backends = Backend::ALL.iter().copied();
        let mut found: Vec<(String, Attempt)> = backends
            .filter(|backend| *backend != Backend::Null)
            .map(|backend| {
                let attempt = self.attempt(&self.one_read(backend, direct));
                (backend.to_string(), attempt)
            })
            .collect();
        let works = |(name, attempt): &(String, Attempt)| {
            name == Backend::IoUring.name() && matches!(attempt, Attempt::Works(_))
        };
        if found.iter().any(works) {
            let polled = TrialSpec {
                sqpoll: true,
                ..self.one_read(Backend::IoUring, direct)
            };
            found.push(("io_uring with sqpoll".to_owned(), self.attempt(&polled)));
        }
        found
    }

    /// Whether the target can be trimmed, without a change of data.
    pub(super) fn trims(&self) -> Attempt {
        match check_trims(self.target) {
            Ok(()) => Attempt::Works(None),
            Err(error) => Attempt::Fails(self.without_our_name(error.message()), None),
        }
    }

    fn attempt(&self, spec: &TrialSpec) -> Attempt {
        match self.run(spec) {
            Ok(outcome) => {
                let note = outcome.effective.note;
                Attempt::Works((!note.is_empty()).then_some(note))
            }
            Err(error) => {
                let remedy = remedy(spec.backend, &error);
                Attempt::Fails(error.message().to_owned(), remedy)
            }
        }
    }

    /// Whether the processor counts its events, by one read.
    pub(super) fn hardware(&self) -> Option<std::result::Result<(), NoHardware>> {
        let spec = TrialSpec {
            hardware_counters: true,
            ..self.one_read(Backend::Psync, false)
        };
        match self.run(&spec).ok()?.counters.hardware {
            Hardware::Counted(_) => Some(Ok(())),
            Hardware::Missing(reason) => Some(Err(reason)),
        }
    }

    fn one_read(&self, backend: Backend, direct: bool) -> TrialSpec {
        let alignment = self
            .target
            .direct_alignment()
            .map_or(1, |a| a.offset.max(1));
        let bytes = SMALL.next_multiple_of(alignment);
        let fits = self.target.size() >= bytes;
        let is_direct = direct && fits && backend != Backend::Mmap;
        let bs = if fits {
            bytes
        } else {
            self.target.size().clamp(1, SMALL)
        };
        TrialSpec {
            backend,
            bs,
            region: bs,
            limit: TrialLimit {
                bytes: Some(bs),
                ..TrialLimit::default()
            },
            cache: if is_direct {
                CacheState::Direct
            } else {
                CacheState::Cold
            },
            ..TrialSpec::default()
        }
    }

    /// One trial; a failed request is an error here.
    fn run(&self, spec: &TrialSpec) -> std::result::Result<Outcome, Error> {
        let outcome = trial::run(spec, self.target, self.clock, self.stop)?;
        match &outcome.failure {
            Some(Failure::Request(request)) => {
                let reason = match request.errno {
                    0 => "unexpected end".to_owned(),
                    errno => std::io::Error::from_raw_os_error(errno).to_string(),
                };
                Err(Error::failed(format!(
                    "{} of {} bytes at offset {} failed: {reason}",
                    request.syscall, request.length, request.offset
                )))
            }
            _ => Ok(outcome),
        }
    }
}

/// A command that helps, if one is known.
fn remedy(backend: Backend, error: &Error) -> Option<String> {
    match backend {
        Backend::IoUring if io_uring_disabled().is_some_and(|who| who != 0) => {
            Some("sudo sysctl kernel.io_uring_disabled=0".to_owned())
        }
        // EAGAIN of io_setup(2): the limit is used up.
        Backend::Libaio if error.cause() == Some(std::io::ErrorKind::WouldBlock) => {
            Some("sudo sysctl fs.aio-max-nr=1048576".to_owned())
        }
        _ => None,
    }
}

/// Size of the scratch file for the probes, and the smallest useful one, bytes.
const SCRATCH: (u64, u64) = (8 << 20, 64 << 10);

/// Length of the look at other processes.
const LOOK: Duration = Duration::from_millis(200);

/// Seed of the scratch file's data.
const SEED: u64 = 1;

/// Need of an examination: a small scratch file in a directory, or the whole of an existing target.
pub(crate) fn need(named: &Path) -> Need {
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
pub(crate) fn everything(
    named: &Path,
    target: &Target,
    clock: &Clock,
    stop: &AtomicBool,
) -> Result<Facts> {
    target.fill(SEED, stop, &mut |_| {})?;
    let (mut facts, probes) = quick(named, target, clock, stop, true);
    facts.region_bytes = default_region();
    let is_direct = matches!(&facts.direct, Some(Direct::Tried { read: Ok(_), .. }));
    facts.backends = probes.backends(is_direct);
    if target.kind() != TargetKind::CharDevice {
        facts.trims = Some(probes.trims());
    }
    facts.hardware = probes.hardware();
    Ok(facts)
}

/// Facts available within a quarter of a second, and the probes of further facts. Does no I/O on the target except to find
/// its written part, and to try direct I/O if `direct` is set.
pub(crate) fn quick<'a>(
    named: &Path,
    target: &'a Target,
    clock: &'a Clock,
    stop: &'a AtomicBool,
    direct: bool,
) -> (Facts, Probes<'a>) {
    let (proc, sys) = (Path::new("/proc"), Path::new("/sys"));
    let number = target.device();
    let device = number.and_then(|number| Device::read(sys, number));
    let machine = Machine::read(proc, sys);
    let existing = target.kind() != TargetKind::Scratch;
    let content = TargetContent::of(target);
    let probes = Probes {
        target,
        clock,
        stop,
        written: match &content {
            Some(content) => content.written,
            None => Some((0, target.size())),
        },
    };
    let is_tried = direct && target.kind() != TargetKind::CharDevice;
    let facts = Facts {
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
        content,
        clock: Some(TimeStamps::of(clock)),
        machine: machine.name(),
        is_virtual: machine.is_virtual,
        memory_bytes: procfs::bytes("MemTotal"),
        processor: Processor::read(sys),
        huge_pages: transparent_huge_pages().map(|text| chosen(&text)),
        open_files: getrlimit(Resource::Nofile).current,
        load: Some(Load::look(proc, target.stack(), LOOK)),
        other_control: SystemControl::of_others(),
        direct: is_tried.then(|| probes.direct()),
        ..Facts::default()
    };
    (facts, probes)
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

/// The largest region among the experiments that `iolab study` runs by default, bytes.
fn default_region() -> u64 {
    let Ok(suite) = Suite::find("quick") else {
        return 0;
    };
    let regions = suite.experiments.iter().filter_map(|e| e.base().ok());
    regions.map(|spec| spec.trial.region).max().unwrap_or(0)
}
