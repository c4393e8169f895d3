//! Kinds of claims about an observed program.

use iolab_analysis::claim::Standing;
use iolab_analysis::claim::kind::{Kind, Labels, Role, kinds};

const SERVED: &str = "I/O accounts of its processes, counters of the devices, and the page cache";
const fn served(head: &'static str) -> Kind {
    Kind::new("served-by", Role::Answer, SERVED).says(head, SERVED_LABELS)
}
const fn unknown(head: &'static str) -> Kind {
    Kind::new("served-by", Role::Nothing, SERVED).says(head, SERVED_LABELS)
}
const SERVED_LABELS: Labels = &[
    (Standing::Own, "From {device}"),
    (Standing::Holes, "From holes of its files instead, at most"),
    (Standing::Piped, "From its own pipes instead, at most"),
    (Standing::Carried, "Storage carried for it"),
    (Standing::CarriedAtLeast, "Storage carried for it at least"),
    (Standing::Sent, "Sent to storage"),
    (Standing::Owed, "Had still to be written back"),
    (Standing::Discarded, "Discarded unwritten, apart from that"),
];
const OF_ALL: &str = "counters of the devices, of all processes";
const SYNCS: Kind = Kind::new(
    "syncs",
    Role::Answer,
    "trace events of the kernel, of syncs that file systems got from its threads",
);
const TRACED: Labels = &[
    (Standing::MedianOf, "Timed"),
    (Standing::Flushed, "With a cache flush of the disk within"),
    (
        Standing::Uncached,
        "On a disk without a volatile cache that needs a flush",
    ),
    (Standing::Traced, "Traced only for the first"),
    (Standing::Lost, "Missing, syncs perhaps among them"),
];
const NO_USE: Kind = Kind::new("other-use", Role::Detail, OF_OTHERS);
const USE: Kind = Kind::new("other-use", Role::Weakness, OF_OTHERS);
const USES: Labels = &[
    (Standing::Read, "Read"),
    (Standing::Written, "Written"),
    (
        Standing::WrittenBySystem,
        "Written, by them or the file system",
    ),
    (
        Standing::DirtyBefore,
        "Dirty before the observation, at most",
    ),
];
const NO_KNOWN_USE: Kind = Kind::new("other-use", Role::Nothing, OF_OTHERS);
const OF_OTHERS: &str = "counters of the devices without the share of the program";
const RATES: Labels = &[
    (Standing::Rate, "Reported"),
    (Standing::RateAtMost, "Carried at most"),
];
const MORE: Kind = Kind::new(
    "more-than-devices",
    Role::Answer,
    "report of the program; the most that devices carried in all of its time",
);
const MOST: Kind = Kind::new(
    "most-io",
    Role::Explanation,
    "I/O accounts of other processes, which name no device",
);
const ENDED: Labels = &[(Standing::Ended, "Ended")];

kinds! {
/// Program that moved nothing of note.
pub(super) static NOTHING_OF_NOTE: Kind = Kind::new(
    "nothing-of-note",
    Role::Answer,
    "I/O accounts of its processes",
)
.says("storage carried less than {0} for it", &[]);
/// Bytes of a program from a device.
pub(super) static FROM_DEVICE: Kind = served("{part} of {asked} that it read came from {source}");
/// Bytes of a program from a device and from the page cache.
pub(super) static FROM_DEVICE_AND_CACHE: Kind =
    served("{part} of {asked} that it read came from {source}, and the rest from the page cache");
/// Bytes of a program from a device, as far as page faults did not fetch them.
pub(super) static FROM_DEVICE_PERHAPS: Kind =
    unknown("{part} of {asked} that it read came from {source}: {reason}");
/// Bytes of a program from the page cache.
pub(super) static FROM_CACHE: Kind = served("all of {asked} that it read came from the page cache");
/// Bytes of a program from holes of files.
pub(super) static FROM_HOLES: Kind =
    served("{asked} that it read lie in holes, which read as zeros without any storage");
/// Bytes of a program from memory.
pub(super) static FROM_MEMORY: Kind =
    served("{asked} that it read came from memory, not from storage");
/// Bytes of a program from a file server.
pub(super) static FROM_SERVER: Kind =
    served("a file server over the network served {asked} that it read");
/// Bytes of a program from a file server and from the page cache.
pub(super) static FROM_SERVER_AND_CACHE: Kind = served(
    "{part} of {asked} that it read came over the network from a file server, and the rest from the page cache",
);
/// Bytes of a program with an unknown source.
pub(super) static FROM_UNKNOWN: Kind =
    unknown("where {asked} that it read came from is unknown: {reason}");
/// Bytes of a program on a device.
pub(super) static TO_DEVICE: Kind =
    served("{part} of {asked} that it sent to storage reached {device}");
/// Bytes of a program of which a part may still be in the page cache, or in a file below the device.
pub(super) static TO_DEVICE_IN_PART: [Kind; 2] = [
    served("{part} of {asked} that it sent to storage had reached {device} at its end"),
    served(
        "{part} of {asked} that it sent to storage had reached the disks below {device} at its end",
    ),
];
/// Bytes of a program in memory.
pub(super) static TO_MEMORY: Kind = served("{asked} that it wrote went to memory, not to storage");
/// Bytes of a program on a file server.
pub(super) static TO_SERVER: Kind =
    served("{asked} that it wrote went to a file server over the network");
/// Bytes of a program of which a part may not be on the file server yet.
pub(super) static TO_SERVER_IN_PART: Kind =
    served("{part} of {asked} that it wrote had gone over the network to a file server at its end");
/// Bytes of a program with an unknown destination.
pub(super) static TO_UNKNOWN: Kind = unknown("where its writes went is unknown: {reason}");
/// Flushes of a write cache while a program wrote.
pub(super) static CACHE_FLUSHES: Kind = Kind::new("cache-flushes", Role::Detail, OF_ALL)
    .says("{device} completed {0}, of all processes", &[]);
/// Syncs of a program, with their times or without.
pub(super) static TRACED_SYNCS: [Kind; 2] = [
    SYNCS.says("the median of its {0} took {1}", TRACED),
    SYNCS.says("file systems received {0} from it", TRACED),
];
/// No traffic of other processes.
pub(super) static NO_OTHER_USE: Kind = NO_USE.says("nothing else used {device}", &[]);
/// Traffic of other processes that is not of note.
pub(super) static LITTLE_OTHER_USE: Kind =
    NO_USE.says("others read and wrote at most {0} in all on {device}", &[]);
/// Traffic of other processes: certain, or not.
pub(super) static OTHER_USE: [Kind; 2] = [
    USE.says("other processes used {device}", USES),
    USE.says("others may have used {device}", USES),
];
/// Traffic of other processes that is unknown, because the program's part is, or all of it.
pub(super) static UNKNOWN_USE: [Kind; 2] = [
    NO_KNOWN_USE.says("whether others used {device} is unknown: the program's own part of its traffic is not known", &[]),
    NO_KNOWN_USE.says("whether others used {device} is unknown: its traffic is not counted", &[]),
];
/// Report of more bytes read, or written, than devices can have carried.
pub(super) static OVERSTATED: [Kind; 2] = [
    MORE.says(
        "{tool} says that it read {0}, of which {device} carried at most {1}",
        RATES,
    ),
    MORE.says(
        "{tool} says that it wrote {0}, of which {device} carried at most {1}",
        RATES,
    ),
];
/// Load of a device that was observed without a program.
pub(super) static DEVICE_LOAD: Kind = Kind::new("device-load", Role::Answer, OF_ALL).says(
    "{device} over {0}",
    &[
        (Standing::Read, "Reads, with their mean time"),
        (Standing::Written, "Writes, with their mean time"),
        (Standing::InFlight, "In flight on average"),
        (
            Standing::Busy,
            "Busy, which at 100 % does not limit a device that serves requests in parallel",
        ),
    ],
);
/// Load of a device that does not count.
pub(super) static UNKNOWN_LOAD: Kind = Kind::new("device-load", Role::Nothing, OF_ALL)
    .says("{device}: its traffic is not counted", &[]);
/// Processes of one name that did most I/O meanwhile, and others.
pub(super) static MOST_IO: [Kind; 2] = [
    MOST.says(
        "Most I/O on any disk: {program} ({0}, PID {pid}) read {1}, wrote {2}",
        ENDED,
    ),
    MOST.says(
        "{program} ({0}, PID {pid}) read {1}, wrote {2}, on any disk",
        ENDED,
    ),
];
}
