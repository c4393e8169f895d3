//! Events that the processor counts while a worker runs: `perf_event_open(2)`, bound to the worker's thread.
//!
//! A group is opened before the trial, reset and enabled right before the timed span and disabled right after
//! it; no call is made in between. The attributes are laid out as in Linux's `include/uapi/linux/perf_event.h`.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, ioctl, opcode};

use iolab_workload::counters::{Hardware, HardwareEvents, NoHardware};

/// One kind of event: `type` and `config` of its attributes.
type EventKind = (u32, u64);

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_TYPE_HW_CACHE: u32 = 3;

/// Misses of reads in one cache: `cache | op << 8 | result << 16`.
const fn read_misses(cache: u64) -> EventKind {
    (PERF_TYPE_HW_CACHE, cache | 1 << 16)
}

/// Hardware events in the order of [`HardwareEvents`]: core cycles, instructions, read misses of the last-level
/// cache and of the data TLB. Not the generic `cache-misses`, which means another cache on each make of
/// processor.
const HARDWARE: [EventKind; 4] = [
    (PERF_TYPE_HARDWARE, 0),
    (PERF_TYPE_HARDWARE, 1),
    read_misses(2),
    read_misses(3),
];

/// `struct perf_event_attr` in its first published version: it suffices, and every kernel knows it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_address: u64,
}

/// `PERF_ATTR_SIZE_VER0`.
const _: () = assert!(size_of::<Attributes>() == 64);

const READ_FORMAT: u64 = 1 | 2 | 8; // TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING, GROUP
const FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// Flag that applies a request to all events of the group.
const WHOLE_GROUP: usize = 1;
const ENABLE: Opcode = opcode::none(b'$', 0);
const DISABLE: Opcode = opcode::none(b'$', 1);
const RESET: Opcode = opcode::none(b'$', 3);

/// A bit of the attributes' bit field, which the kernel's compiler orders by endianness.
const fn bit(number: u32) -> u64 {
    if cfg!(target_endian = "big") {
        1 << (63 - number)
    } else {
        1 << number
    }
}

const DISABLED: u64 = bit(0);
const EXCLUDE_KERNEL: u64 = bit(5);
const EXCLUDE_HYPERVISOR: u64 = bit(6);

/// Events counted together, for the thread that opened them.
#[derive(Debug)]
pub struct EventGroup {
    leader: OwnedFd,
    /// Kept open, because an event counts only while it is open.
    _members: Vec<OwnedFd>,
    /// Index of each requested event among the group's values; `None` if it is not counted.
    places: Vec<Option<usize>>,
    user_only: bool,
}

impl EventGroup {
    /// Opens the hardware events for the calling thread, without starting to count.
    ///
    /// # Errors
    /// The reason why none of them can be counted.
    pub fn hardware() -> Result<Self, NoHardware> {
        Self::open(&HARDWARE)
    }

    /// Opens events, with kernel mode included where that is permitted.
    fn open(kinds: &[EventKind]) -> Result<Self, NoHardware> {
        match Self::open_with(kinds, 0) {
            Err(Errno::ACCESS | Errno::PERM) => {
                Self::open_with(kinds, EXCLUDE_KERNEL).map_err(reason)
            }
            opened => opened.map_err(reason),
        }
    }

    /// Opens events. Those that the processor does not count are left out, as long as one remains.
    fn open_with(kinds: &[EventKind], exclude: u64) -> Result<Self, Errno> {
        let mut open: Vec<OwnedFd> = Vec::with_capacity(kinds.len());
        let mut places = Vec::with_capacity(kinds.len());
        let mut first_failure = None;
        for kind in kinds {
            match open_event(*kind, exclude, open.first()) {
                Ok(event) => {
                    places.push(Some(open.len()));
                    open.push(event);
                }
                Err(errno) => {
                    places.push(None);
                    first_failure.get_or_insert(errno);
                }
            }
        }
        if open.is_empty() {
            return Err(first_failure.unwrap_or(Errno::NOENT));
        }
        let leader = open.remove(0);
        Ok(Self {
            leader,
            _members: open,
            places,
            user_only: exclude & EXCLUDE_KERNEL != 0,
        })
    }

    /// Whether kernel mode is missing from the counts, for lack of permission.
    pub fn is_user_only(&self) -> bool {
        self.user_only
    }

    /// Resets and starts the counts.
    pub fn start(&self) {
        self.control::<RESET>();
        self.control::<ENABLE>();
    }

    /// Stops counting.
    pub fn stop(&self) {
        self.control::<DISABLE>();
    }

    fn control<const REQUEST: Opcode>(&self) {
        // SAFETY: the three requests take an integer, which is a flag they know.
        let request = unsafe { IntegerSetter::<REQUEST>::new_usize(WHOLE_GROUP) };
        // SAFETY: the descriptor is a perf event's, and the requests touch no memory of ours.
        let done = unsafe { ioctl(self.leader.as_fd(), request) };
        // A group that could not be enabled has not run; reading it shows that.
        let _ = done;
    }

    /// Counts of the hardware events.
    pub fn events(&self) -> Hardware {
        match self.counts() {
            Ok(counts) => {
                let count = |index: usize| counts.get(index).copied().flatten();
                Hardware::Counted(HardwareEvents {
                    cycles: count(0),
                    instructions: count(1),
                    llc_misses: count(2),
                    dtlb_misses: count(3),
                })
            }
            Err(missing) => Hardware::Missing(missing),
        }
    }

    /// Count of each requested event.
    fn counts(&self) -> Result<Vec<Option<u64>>, NoHardware> {
        let mut words = [0u64; 3 + 2 * HARDWARE.len()];
        let mut bytes = [0u8; size_of::<[u64; 3 + 2 * HARDWARE.len()]>()];
        let length = rustix::io::read(&self.leader, &mut bytes).map_err(reason)?;
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        }
        let values = parse(&words[..length / 8]).ok_or(NoHardware::Busy)?;
        let value = |place: &Option<usize>| place.and_then(|place| values.get(place).copied());
        Ok(self.places.iter().map(value).collect())
    }
}

/// Parses `PERF_FORMAT_GROUP`: the number of values, the time enabled, the time running, the values. Counts of
/// a group that shared the counters with others are scaled to the whole time. `None` when it never ran.
fn parse(words: &[u64]) -> Option<Vec<u64>> {
    let [count, enabled, running, values @ ..] = words else {
        return None;
    };
    if *running == 0 {
        return None;
    }
    let scaled = |value: &u64| {
        let whole = u128::from(*value) * u128::from(*enabled) / u128::from(*running);
        u64::try_from(whole).unwrap_or(u64::MAX)
    };
    let values = values.get(..usize::try_from(*count).ok()?)?;
    Some(values.iter().map(scaled).collect())
}

fn open_event(
    (kind, config): EventKind,
    exclude: u64,
    leader: Option<&OwnedFd>,
) -> Result<OwnedFd, Errno> {
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        read_format: READ_FORMAT,
        // Members follow their leader.
        flags: exclude | EXCLUDE_HYPERVISOR | if leader.is_none() { DISABLED } else { 0 },
        ..Attributes::default()
    };
    let group = leader.map_or(-1, AsRawFd::as_raw_fd);
    let (this_thread, any_cpu): (libc::pid_t, libc::c_int) = (0, -1);
    // SAFETY: the attributes are valid for reads of the size they state, and the kernel keeps no reference to them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_cpu,
            group,
            FLAG_FD_CLOEXEC,
        )
    };
    if result < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
    }
    // SAFETY: the call succeeded, so that this is a descriptor of ours that no other code closes.
    Ok(unsafe { OwnedFd::from_raw_fd(result as libc::c_int) })
}

/// The reason why an event cannot be counted (perf_event_open(2), ERRORS).
fn reason(errno: Errno) -> NoHardware {
    match errno {
        Errno::ACCESS | Errno::PERM => NoHardware::NotPermitted,
        Errno::BUSY => NoHardware::Busy,
        Errno::NOSYS => NoHardware::NoKernelSupport,
        // ENOENT, EOPNOTSUPP and ENODEV; EINVAL for a combination that the processor does not have.
        _ => NoHardware::NotOffered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    const PERF_TYPE_SOFTWARE: u32 = 1;
    const TASK_CLOCK: EventKind = (PERF_TYPE_SOFTWARE, 1);
    const PAGE_FAULTS: EventKind = (PERF_TYPE_SOFTWARE, 2);
    /// An event number that no kernel has.
    const NO_SUCH_EVENT: EventKind = (PERF_TYPE_SOFTWARE, 9_999);

    /// Touches pages from the kernel, not from an allocator, which may return touched ones.
    fn touch_fresh_pages(count: u64) {
        let length = count as usize * 4096;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address; every write lies within the mapping, which is unmapped once.
        unsafe {
            let start = mmap_anonymous(std::ptr::null_mut(), length, access, MapFlags::PRIVATE)
                .expect("memory");
            for at in (0..length).step_by(4096) {
                start.byte_add(at).cast::<u8>().write_volatile(1);
            }
            munmap(start, length).expect("unmapped");
        }
    }

    /// The kernel's software events, which take the same path as hardware events.
    fn software(kinds: &[EventKind]) -> Option<EventGroup> {
        match EventGroup::open(kinds) {
            Ok(group) => Some(group),
            Err(missing) => {
                needs::skip(needs::Need::Perf, missing);
                None
            }
        }
    }

    #[test]
    fn events_are_counted_between_start_and_stop_only() {
        let Some(group) = software(&[TASK_CLOCK, NO_SUCH_EVENT, PAGE_FAULTS]) else {
            return;
        };
        touch_fresh_pages(5_000);
        group.start();
        touch_fresh_pages(1_000);
        group.stop();
        touch_fresh_pages(5_000);
        let counts = group.counts().expect("it ran");
        assert!(counts[0].is_some_and(|ns| ns > 0), "{counts:?}");
        assert_eq!(counts[1], None);
        // Huge pages take fewer faults.
        assert!(
            counts[2].is_some_and(|faults| (2..4_000).contains(&faults)),
            "{counts:?}"
        );
    }

    #[test]
    fn each_start_counts_from_zero() {
        let Some(group) = software(&[PAGE_FAULTS, TASK_CLOCK]) else {
            return;
        };
        group.start();
        touch_fresh_pages(2_000);
        group.stop();
        let first = group.counts().expect("it ran")[0];
        group.start();
        group.stop();
        let second = group.counts().expect("it ran")[0];
        assert!(second < first, "{first:?} then {second:?}");
    }

    #[test]
    fn counts_are_scaled_to_the_time_enabled() {
        assert_eq!(parse(&[2, 100, 100, 7, 9]), Some(vec![7, 9]));
        assert_eq!(parse(&[1, 100, 25, 7]), Some(vec![28]));
        assert_eq!(
            parse(&[1, u64::MAX, 1, u64::MAX]),
            Some(vec![u64::MAX]),
            "no overflow"
        );
        for broken in [&[][..], &[1, 100, 0, 7], &[3, 1, 1, 7], &[1, 1]] {
            assert_eq!(parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn every_errno_has_its_reason() {
        for (errno, expected) in [
            (Errno::NOENT, NoHardware::NotOffered),
            (Errno::OPNOTSUPP, NoHardware::NotOffered),
            (Errno::NODEV, NoHardware::NotOffered),
            (Errno::INVAL, NoHardware::NotOffered),
            (Errno::ACCESS, NoHardware::NotPermitted),
            (Errno::PERM, NoHardware::NotPermitted),
            (Errno::BUSY, NoHardware::Busy),
            (Errno::NOSYS, NoHardware::NoKernelSupport),
        ] {
            assert_eq!(reason(errno), expected, "{errno}");
        }
    }
}
