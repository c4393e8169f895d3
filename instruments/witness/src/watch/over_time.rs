//! Traffic of devices and processes over time, in a fixed amount of memory.
//!
//! Traffic of all block devices of the machine: a program's own devices are known only afterwards.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{major, minor};
use rustix::time::{ClockId, clock_gettime};

use super::{Number, group};
use crate::observed::{Course, DiskTraffic, InFlight, Moment, ObservedDevice, TracedDisk};
use iolab_host::counters::{read_device, read_waits};
use iolab_storage::{Stack, sysfs};
use iolab_workload::counters::{DeviceStat, DeviceWaits, ProcessIo};

/// Most devices followed.
const DEVICES_MAX: usize = 16;

/// Longest and shortest time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

const LOOK_FIRST: Duration = Duration::from_millis(1);

/// Interval of looks as a fraction of the time so far, within these bounds: longer activity is seen, in a short
/// program too.
const LOOK_SHARE: u32 = 16;

/// Pause after a look, in multiples of the look's CPU time, once looks are that rare: observation takes less
/// than 1 % of a CPU.
const COST_SHARE: u32 = 200;

/// Pause after a look, in multiples of the look's CPU time, before that.
const FIRST_COST_SHARE: u32 = 30;

/// Schedule of looks.
pub(super) struct Pace {
    pub(super) began: Instant,
    pub(super) next: Instant,
}

impl Pace {
    pub(super) fn new(began: Instant) -> Self {
        Self { began, next: began }
    }

    /// Looks if it is time.
    pub(super) fn look(&mut self, look: impl FnOnce()) {
        if Instant::now() < self.next {
            return;
        }
        let before = cpu_time();
        look();
        let cost = cpu_time().saturating_sub(before);
        let pause = self.began.elapsed() / LOOK_SHARE;
        let pause = match pause >= LOOK_EVERY {
            true => LOOK_EVERY.max(cost * COST_SHARE),
            false => pause.max(LOOK_FIRST).max(cost * FIRST_COST_SHARE),
        };
        self.next = Instant::now() + pause;
    }
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// A followed device, with its counters at the end of the last moment.
struct Followed {
    number: Number,
    name: String,
    counted: DeviceStat,
}

/// Recorder of a course.
pub(super) struct Recorder {
    began: Instant,
    devices: Vec<Followed>,
    moments: Course,
    least_ns: u64,
    recorded_ns: u64,
    program: Option<ProcessIo>,
}

impl Recorder {
    /// Follows these devices, then others with a size as far as there is room: disks before what lies on them, those that carried most
    /// first.
    pub(super) fn new(
        began: Instant,
        first: impl IntoIterator<Item = Number>,
        all: &AllDevices,
    ) -> Self {
        let mut seen = BTreeSet::new();
        let mut used: Vec<(&Number, &Counted)> = all.sized().collect();
        used.sort_by_key(|(_, one)| {
            Reverse((
                one.is_disk,
                one.stat.read_bytes.saturating_add(one.stat.write_bytes),
            ))
        });
        let numbers = first
            .into_iter()
            .chain(used.into_iter().map(|(number, _)| *number));
        let devices = numbers
            .filter(|number| seen.insert(*number))
            .filter_map(|number| {
                let Counted { name, stat, .. } = all.devices.get(&number)?;
                Some(Followed {
                    number,
                    name: name.clone(),
                    counted: *stat,
                })
            });
        Self {
            began,
            devices: devices.take(DEVICES_MAX).collect(),
            moments: Course::default(),
            least_ns: LOOK_EVERY.as_nanos() as u64,
            recorded_ns: 0,
            program: None,
        }
    }

    /// Whether a moment has passed; a look slightly early counts.
    pub(super) fn is_due(&self) -> bool {
        let passed = (self.began.elapsed().as_nanos() as u64).saturating_sub(self.recorded_ns);
        passed >= self.least_ns - self.least_ns / 8
    }

    /// Ends a moment; `program` is the I/O of its processes so far.
    pub(super) fn record(&mut self, program: Option<ProcessIo>) {
        let now = self.began.elapsed().as_nanos() as u64;
        let devices = self.devices.iter_mut().map(|device| {
            let counted = read_device(Path::new("/sys"), device.number).unwrap_or(device.counted);
            let did = counted.since(device.counted);
            device.counted = counted;
            did
        });
        let devices = devices.collect();
        // Accounts of processes that are just ending are briefly nowhere.
        let before = self.program.unwrap_or_default();
        let program = program.map(|now| now.with(before, |a, b| a.max(b)));
        self.moments.moments.push(Moment {
            start_ns: self.recorded_ns,
            length_ns: now.saturating_sub(self.recorded_ns),
            program: program.map(|now| now.since(before)),
            devices,
        });
        self.program = program.or(self.program);
        self.recorded_ns = now;
        if self.moments.moments.len() == Course::MOMENTS_MAX {
            self.moments.halve();
            self.least_ns = self.least_ns.saturating_mul(2);
        }
    }

    /// All moments of these devices; if none of these was followed, of all devices with traffic.
    pub(super) fn finish(mut self, program: Option<ProcessIo>, names: &[String]) -> Course {
        self.record(program);
        let mut course = self.moments;
        let carried = |n: usize| {
            let mut moments = course.moments.iter();
            moments.any(|moment| {
                let did = moment.devices[n];
                did.read_ios + did.write_ios + did.flush_ios > 0
            })
        };
        let all: Vec<usize> = (0..self.devices.len()).collect();
        let is_named = |n: &usize| names.contains(&self.devices[*n].name);
        let named: Vec<usize> = all.iter().copied().filter(is_named).collect();
        let kept: Vec<usize> = match named.is_empty() {
            false => named,
            true => all.into_iter().filter(|n| carried(*n)).collect(),
        };
        for moment in &mut course.moments {
            moment.devices = kept.iter().map(|n| moment.devices[*n]).collect();
        }
        let names = kept.iter().map(|n| self.devices[*n].name.clone());
        course.devices = names.collect();
        course
    }
}

/// Default read-ahead, bytes.
const READ_AHEAD: u64 = 128 << 10;

/// Counters of all block devices.
#[derive(Debug, Default)]
pub(super) struct AllDevices {
    devices: BTreeMap<Number, Counted>,
}

#[derive(Debug)]
struct Counted {
    name: String,
    stat: DeviceStat,
    waits: Option<DeviceWaits>,
    /// Whether the device is a whole one that lies on no other one.
    is_disk: bool,
    /// Whether the device has a request queue; other devices take bios directly.
    has_requests: bool,
    in_flight: InFlight,
}

impl AllDevices {
    pub(super) fn read() -> Self {
        let sys = Path::new("/sys");
        let links = sysfs::paths_in(sys.join("dev/block")).into_iter();
        let devices = links.filter_map(|link| {
            let number = sysfs::parse_number(link.file_name()?.to_str()?)?;
            let folder = std::fs::canonicalize(link).ok()?;
            let is_part = folder.join("partition").exists();
            let below = sysfs::linked_devices(&folder.join("slaves")).unwrap_or_default();
            let counted = Counted {
                name: sysfs::name_of(&folder),
                // Read before the counters: requests that end in between count as in flight.
                in_flight: in_flight(&folder),
                stat: read_device(sys, number)?,
                waits: read_waits(sys, number),
                is_disk: !is_part && below.is_empty(),
                has_requests: sysfs::has_requests(&folder),
            };
            Some((number, counted))
        });
        Self {
            devices: devices.collect(),
        }
    }

    /// Traffic of a device since an earlier reading. For a device that appeared in between, all of its traffic.
    fn traffic(&self, earlier: &Self, number: Number) -> Option<DeviceStat> {
        let now = self.devices.get(&number)?.stat;
        let before = earlier.devices.get(&number).map(|counted| counted.stat);
        Some(now.since(before.unwrap_or_default()))
    }

    /// Requests in flight at this reading; none for a device that was not there.
    fn in_flight(&self, number: &Number) -> InFlight {
        let counted = self.devices.get(number);
        counted.map_or(InFlight::NONE, |counted| counted.in_flight)
    }

    fn waits(&self, earlier: &Self, number: Number) -> Option<DeviceWaits> {
        let before = earlier
            .devices
            .get(&number)
            .and_then(|counted| counted.waits);
        let now = self.devices.get(&number)?.waits?;
        Some(now.since(before.unwrap_or_default()))
    }

    /// Bytes assumed to be fetched per page fault with I/O: a window of the greatest read-ahead of a device,
    /// and the next one once its pages are used (`filemap_fault` of mm/filemap.c). Code is not used in order;
    /// for data used in order, the kernel fetches window after window without further faults.
    pub(super) fn fault_bytes(&self) -> u64 {
        let read_ahead = self.devices.keys().filter_map(|(major, minor)| {
            let queue = format!("/sys/dev/block/{major}:{minor}/queue/read_ahead_kb");
            Some(sysfs::value(Path::new(&queue))? << 10)
        });
        2 * read_ahead.max().unwrap_or(READ_AHEAD)
    }

    /// Devices with a size.
    fn sized(&self) -> impl Iterator<Item = (&Number, &Counted)> {
        self.devices.iter().filter(|((major, minor), _)| {
            let size = Path::new("/sys/dev/block").join(format!("{major}:{minor}/size"));
            sysfs::value(&size) > Some(0)
        })
    }

    /// Disks with a size, each with whether it has a request queue.
    pub(super) fn disks(&self) -> Vec<(Number, bool)> {
        let disks = self.sized().filter(|(_, counted)| counted.is_disk);
        disks
            .map(|(number, counted)| (*number, counted.has_requests))
            .collect()
    }

    /// Traffic of disks since an earlier reading, for disks with any, with the known part of the program.
    pub(super) fn disks_since(
        &self,
        earlier: &Self,
        of_group: Option<&group::Traffic>,
        traced: Option<&BTreeMap<Number, TracedDisk>>,
    ) -> Vec<DiskTraffic> {
        let disks = self.devices.iter().filter(|(_, counted)| counted.is_disk);
        let traffic = disks.filter_map(|(number, counted)| {
            let traffic = self.traffic(earlier, *number)?;
            let is_used = traffic.read_ios + traffic.write_ios + traffic.flush_ios > 0;
            is_used.then(|| DiskTraffic {
                name: counted.name.clone(),
                number: *number,
                traffic,
                of_group: of_group.map(|all| all.get(number).copied().unwrap_or_default()),
                traced: traced.map(|all| all.get(number).copied().unwrap_or_default()),
                in_flight: earlier.in_flight(number),
            })
        });
        traffic.collect()
    }

    /// Traffic of the top devices of these stacks, each once, with whether they were read, and written.
    pub(super) fn lie_on(
        &self,
        earlier: &Self,
        stacks: &[Stack],
        used: &BTreeMap<Number, (bool, bool)>,
    ) -> Vec<ObservedDevice> {
        let mut seen = BTreeSet::new();
        let devices = stacks.iter().filter_map(|stack| {
            let number = stack.device.filter(|number| seen.insert(*number))?;
            let name = |number: &Number| match self.devices.get(number) {
                Some(counted) => counted.name.clone(),
                None => format!("{}:{}", number.0, number.1),
            };
            let bottom = stack.bottom.as_deref();
            let (is_read, is_written) = used.get(&number).copied().unwrap_or_default();
            let sum = |disks: &[Number]| {
                let mut disks = disks.iter();
                disks.try_fold(DeviceStat::default(), |sum, disk| {
                    Some(sum.plus(self.traffic(earlier, *disk)?))
                })
            };
            Some(ObservedDevice {
                name: name(&number),
                disks: bottom.unwrap_or(&[number]).iter().map(name).collect(),
                traffic: self.traffic(earlier, number),
                waits: self.waits(earlier, number),
                below: bottom.and_then(sum),
                in_file: stack.in_file,
                passes_on: stack.passes_on,
                is_read,
                is_written,
                in_flight: earlier.in_flight(&number),
            })
        });
        devices.collect()
    }
}

/// Requests of a device in flight; all where the kernel does not say.
fn in_flight(folder: &Path) -> InFlight {
    let text = std::fs::read_to_string(folder.join("inflight"));
    let counts = text.unwrap_or_default();
    let mut counts = counts.split_ascii_whitespace().map(|count| count != "0");
    InFlight {
        reads: counts.next().unwrap_or(true),
        writes: counts.next().unwrap_or(true),
    }
}

/// Number of a block device by its kernel name (`vda`) or path.
pub(super) fn number_of(name: &Path) -> Option<Number> {
    if let Ok(metadata) = std::fs::metadata(name)
        && metadata.file_type().is_block_device()
    {
        return Some((major(metadata.rdev()), minor(metadata.rdev())));
    }
    let name = name
        .to_str()
        .filter(|name| !name.contains('/') && !name.starts_with('.'))?;
    sysfs::device_number(&Path::new("/sys/class/block").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rchar: u64) -> Option<ProcessIo> {
        Some(ProcessIo {
            rchar,
            ..ProcessIo::default()
        })
    }

    #[test]
    fn course_keeps_all_traffic_in_bounded_memory() {
        let mut recorder = Recorder::new(Instant::now(), [], &AllDevices::default());
        let looks = 3 * Course::MOMENTS_MAX as u64;
        for look in 1..=looks {
            // An account that is briefly missing takes nothing back.
            recorder.record(if look % 7 == 0 { of(0) } else { of(10 * look) });
        }
        assert!(recorder.least_ns >= 400_000_000);
        let course = recorder.finish(of(10 * looks), &[]);
        assert!(course.moments.len() < Course::MOMENTS_MAX);
        let sum: u64 = course
            .moments
            .iter()
            .flat_map(|one| one.program)
            .map(|io| io.rchar)
            .sum();
        assert_eq!(sum, 10 * looks);
        let mut end = 0;
        for moment in &course.moments {
            assert_eq!(moment.start_ns, end);
            end += moment.length_ns;
        }
    }

    #[test]
    fn looks_that_cost_much_are_rare() {
        let began = Instant::now() - Duration::from_secs(60);
        let mut pace = Pace::new(began);
        pace.look(|| {
            let before = cpu_time();
            while cpu_time() - before < Duration::from_millis(5) {}
        });
        assert!(pace.next > Instant::now() + Duration::from_millis(500));
        let next = pace.next;
        pace.look(|| unreachable!("it is too early"));
        assert_eq!(pace.next, next);
    }
}
