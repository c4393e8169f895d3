//! Accounts of ending tasks from the kernel (Documentation/accounting/taskstats.rst of Linux), for root only.
//! They include tasks that no parent waits for: children of a process that ignores their ends.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use iolab_host::counters::{Account, plus};
use iolab_workload::counters::ProcessIo;
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::time::{ClockId, clock_gettime};

/// Room for unread records, bytes: enough for some ten thousand tasks.
const BUFFER: libc::c_int = 8 << 20;
/// Most accounts kept, 48 MiB. Accounts of the whole machine arrive for as long as the program runs.
const KEPT_MAX: usize = 1 << 19;
/// Bytes of netlink's header, and of that header followed by the one of generic netlink.
const NETLINK: usize = 16;
/// Position of a message's type in its header, and the type of an answer (NLMSG_ERROR).
const MESSAGE_TYPE: usize = 4;
const ANSWER: u16 = 2;
const HEADERS: usize = NETLINK + 4;
/// Constants of linux/genetlink.h.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Constants of linux/taskstats.h.
const GET: u8 = 1;
const REGISTER_CPUS: u16 = 3;
const OF_TASK: u16 = 4;
const STATS: u16 = 3;
/// Version of `struct taskstats` with the longest and shortest delays in its middle (Linux 6.14); version 16
/// moved them to its end.
const OTHER_VERSION: u16 = 15;

/// Account of an ended task, without its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) task: u32,
    /// Process that the task was a thread of; `None` before Linux 5.17.
    pub(super) process: Option<u32>,
    pub(super) parent: u32,
    pub(super) io: ProcessIo,
    pub(super) cancelled_write_bytes: u64,
    /// Time from start to end, ns.
    lived_ns: u64,
    /// Bounds of the moment of its end, ns since boot.
    ended_ns: (u64, u64),
    name: [u8; 16],
}

impl Exit {
    /// Whether this task can have begun before another one ended.
    fn can_precede_end_of(&self, other: &Self) -> bool {
        self.ended_ns.0.saturating_sub(self.lived_ns) <= other.ended_ns.1
    }

    /// Whether the task had ended by a moment, ns since boot.
    pub(super) fn had_ended_by(&self, moment_ns: u64) -> bool {
        self.ended_ns.1 < moment_ns
    }

    /// Whether the task is the main one of its process. Its end frees the number of the process.
    fn is_main(&self) -> bool {
        self.process.is_none_or(|process| process == self.task)
    }

    /// Name of the task.
    pub(super) fn name(&self) -> String {
        let name = self.name.split(|byte| *byte == 0).next();
        String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
    }
}

/// Receiver of the accounts of all ending tasks of the machine.
pub(super) struct Exits {
    socket: OwnedFd,
    received: Received,
}

/// Accounts received, up to a number.
struct Received {
    exits: Vec<Exit>,
    most: usize,
    /// Whether no account is missing.
    is_complete: bool,
    /// Moment up to which all ended tasks have been received, ns since boot.
    taken_ns: u64,
}

impl Received {
    fn at_most(most: usize) -> Self {
        Self {
            exits: Vec::new(),
            most,
            is_complete: true,
            taken_ns: boot_ns(),
        }
    }

    fn add(&mut self, exit: Exit) {
        if self.exits.len() == self.most {
            self.lose();
        }
        if self.is_complete {
            self.exits.push(exit);
        }
    }

    /// Takes the account out of a message.
    fn read(&mut self, message: &[u8]) {
        match exit(message) {
            Message::Exit(exit) => self.add(Exit {
                ended_ns: (self.taken_ns, boot_ns()),
                ..exit
            }),
            Message::OtherVersion => self.lose(),
            Message::Other => {}
        }
    }

    /// Gives up: without the missing accounts the others are useless.
    fn lose(&mut self) {
        self.is_complete = false;
        self.exits = Vec::new();
    }

    fn all(&self) -> Option<&[Exit]> {
        self.is_complete.then_some(&self.exits)
    }
}

impl Exits {
    /// Starts receiving; `None` where this user may not, or the kernel has no such accounts.
    pub(super) fn watch() -> Option<Self> {
        let socket = netlink().ok()?;
        let mut buffer = [0; 4096];
        let name = attribute(FAMILY_NAME, b"TASKSTATS\0");
        ask(&socket, CONTROLLER, GET_FAMILY, 1, &name).ok()?;
        let length = read(&socket, &mut buffer).ok()?;
        let answer = attributes(buffer.get(HEADERS..length)?);
        let id = answer.into_iter().find(|(kind, _)| *kind == FAMILY_ID)?;
        let family = u16::from_ne_bytes(bytes_at(id.1, 0)?);
        let cpus = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok()?;
        let cpus = attribute(REGISTER_CPUS, format!("{}\0", cpus.trim()).as_bytes());
        // Requests an answer (NLM_F_ACK) that says whether it was allowed: an error number, 0 for none.
        ask(&socket, family, GET, 1 | 4, &cpus).ok()?;
        let mut received = Received::at_most(KEPT_MAX);
        // Tasks of other CPUs may end before the answer arrives.
        let error = loop {
            let length = read(&socket, &mut buffer).ok()?;
            let message = buffer.get(..length)?;
            if u16::from_ne_bytes(bytes_at(message, MESSAGE_TYPE)?) == ANSWER {
                break i32::from_ne_bytes(bytes_at(message, NETLINK)?);
            }
            received.read(message.get(HEADERS..).unwrap_or_default());
        };
        ioctl_fionbio(&socket, true).ok()?;
        (error == 0).then_some(Self { socket, received })
    }

    /// Takes pending messages.
    pub(super) fn take(&mut self) {
        let mut buffer = [0; 4096];
        loop {
            let now = boot_ns();
            match read(&self.socket, &mut buffer) {
                Ok(length) => {
                    let message = buffer.get(HEADERS..length);
                    self.received.read(message.unwrap_or_default());
                }
                // Messages came faster than they were read.
                Err(Errno::NOBUFS) => self.received.lose(),
                Err(_) => {
                    self.received.taken_ns = now;
                    return;
                }
            }
        }
    }

    /// Whether no account is missing so far.
    pub(super) fn is_complete(&self) -> bool {
        self.received.is_complete
    }

    /// Accounts of all ended tasks; `None` where some are missing.
    pub(super) fn all(&mut self) -> Option<&[Exit]> {
        self.take();
        self.received.all()
    }
}

/// Time since boot, ns: the reference of process starts in proc(5).
fn boot_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Accounts of these processes, their threads and all descendants, in the order of their ends. A child ends
/// before or after its parent, so the family is known only when all have ended. Numbers are reused: a task
/// belongs to the process that had the number when the task ended.
pub(super) fn family(exits: &[Exit], roots: &BTreeSet<u32>) -> Vec<Exit> {
    let mut mains: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, exit) in exits.iter().enumerate().filter(|(_, exit)| exit.is_main()) {
        mains.entry(exit.task).or_default().push(place);
    }
    // End of the process that had a number when this task ended: the next one, or the last one where threads
    // outlive the main task.
    let owner = |number: u32, of: usize| {
        let all = mains.get(&number)?;
        let later = &all[all.partition_point(|place| *place < of)..];
        let next = later.first().copied();
        let next = next.filter(|place| exits[*place].can_precede_end_of(&exits[of]));
        let last = all[..all.len() - later.len()].last().copied();
        next.or_else(|| last.filter(|place| exits[of].can_precede_end_of(&exits[*place])))
    };
    let mut below: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut is_member = vec![false; exits.len()];
    let mut next = Vec::new();
    for (place, exit) in exits.iter().enumerate() {
        let numbers = [Some(exit.task), exit.process, Some(exit.parent)];
        if numbers
            .into_iter()
            .flatten()
            .any(|one| roots.contains(&one))
        {
            next.push(place);
        }
        let above = [exit.process, Some(exit.parent)].into_iter().flatten();
        for owner in above.filter_map(|number| owner(number, place)) {
            below.entry(owner).or_default().push(place);
        }
    }
    while let Some(place) = next.pop() {
        if !std::mem::replace(&mut is_member[place], true) {
            next.extend(below.get(&place).into_iter().flatten());
        }
    }
    let members = exits.iter().zip(is_member);
    members
        .filter_map(|(exit, is_member)| is_member.then_some(*exit))
        .collect()
}

/// Summed I/O of tasks, and the bytes that will never be written.
pub(super) fn total(exits: &[Exit]) -> Account {
    let all = exits
        .iter()
        .map(|exit| (exit.io, exit.cancelled_write_bytes));
    all.fold(Account::default(), plus)
}

/// A socket of generic netlink.
fn netlink() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes no pointers.
    let number = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_GENERIC) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and no other code owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    // SAFETY: the pointer is to an int of the given size. Without the necessary right, the buffer keeps its
    // size.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            std::ptr::from_ref(&BUFFER).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
    Ok(socket)
}

/// Sends a request: `struct nlmsghdr`, `struct genlmsghdr`, an attribute.
fn ask(socket: &OwnedFd, family: u16, command: u8, flags: u16, attribute: &[u8]) -> io::Result<()> {
    let length = (HEADERS + attribute.len()) as u32;
    let mut message = Vec::with_capacity(length as usize);
    message.extend(length.to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    // Sequence number and port: one request at a time, and the kernel identifies the sender by the socket.
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(attribute);
    write(socket, &message)?;
    Ok(())
}

/// Encodes a `struct nlattr`: length, kind, value, padded to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Complete attributes of a message.
fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut all = Vec::new();
    while let (Some(length), Some(kind)) = (bytes_at(bytes, 0), bytes_at(bytes, 2)) {
        let length = usize::from(u16::from_ne_bytes(length));
        let Some(value) = bytes.get(4..length) else {
            break;
        };
        // The two highest bits are flags.
        all.push((u16::from_ne_bytes(kind) & 0x3fff, value));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    all
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// Content of a message.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    /// Account of an ended task.
    Exit(Exit),
    /// Account in a version with other field positions.
    OtherVersion,
    /// Anything else: the account of a whole process has no I/O.
    Other,
}

fn exit(message: &[u8]) -> Message {
    let Some((version, stats)) = stats_of_task(message) else {
        return Message::Other;
    };
    match version {
        OTHER_VERSION => Message::OtherVersion,
        _ => account(version, stats).map_or(Message::Other, Message::Exit),
    }
}

/// The `struct taskstats` of a task in a message, with its version.
fn stats_of_task(message: &[u8]) -> Option<(u16, &[u8])> {
    let all = attributes(message);
    let (_, task) = all.into_iter().find(|(kind, _)| *kind == OF_TASK)?;
    let (_, stats) = attributes(task)
        .into_iter()
        .find(|(kind, _)| *kind == STATS)?;
    Some((u16::from_ne_bytes(bytes_at(stats, 0)?), stats))
}

/// Parses a `struct taskstats`. Field positions are the same since version 3, except in [`OTHER_VERSION`]; the
/// number of the process came with version 12.
fn account(version: u16, stats: &[u8]) -> Option<Exit> {
    let short = |at| Some(u32::from_ne_bytes(bytes_at(stats, at)?));
    let long = |at| Some(u64::from_ne_bytes(bytes_at(stats, at)?));
    Some(Exit {
        task: short(128)?,
        process: short(368).filter(|_| version >= 12),
        name: bytes_at(stats, 80)?,
        parent: short(132)?,
        io: ProcessIo {
            rchar: long(216)?,
            wchar: long(224)?,
            syscr: long(232)?,
            syscw: long(240)?,
            read_bytes: long(248)?,
            write_bytes: long(256)?,
        },
        cancelled_write_bytes: long(264)?,
        lived_ns: long(144)?.saturating_mul(1000),
        ended_ns: (0, u64::MAX),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Account of a task that has read `rchar` bytes.
    pub(in super::super) fn of(task: u32, parent: u32, rchar: u64) -> Exit {
        Exit {
            task,
            process: None,
            parent,
            name: [0; 16],
            io: ProcessIo {
                rchar,
                ..ProcessIo::default()
            },
            cancelled_write_bytes: 1,
            lived_ns: u64::MAX,
            ended_ns: (0, u64::MAX),
        }
    }

    /// An account with its end, ns since boot.
    pub(in super::super) fn ended_at(exit: Exit, ended_ns: u64) -> Exit {
        Exit {
            ended_ns: (ended_ns, ended_ns),
            ..exit
        }
    }

    /// A child of the program gets the number of an ended stranger, and a stranger the number of an ended
    /// child.
    #[test]
    fn reused_numbers_are_kept_apart() {
        let at = |exit: Exit, began: u64, ended: u64| Exit {
            process: Some(exit.task),
            lived_ns: ended - began,
            ..ended_at(exit, ended)
        };
        let exits = [
            // A stranger with a child, both gone before the program's child gets the stranger's number.
            at(of(21, 20, 1), 10, 20),
            at(of(20, 3, 2), 5, 30),
            // A child of the program with a child of its own.
            at(of(31, 30, 4), 40, 50),
            at(of(20, 5, 8), 60, 70),
            at(of(30, 5, 16), 35, 80),
            // A stranger's child, whose parent has the number that the program's child had.
            at(of(41, 30, 32), 100, 110),
            at(of(30, 3, 64), 90, 120),
        ];
        let rchar = |exits: &[Exit]| total(exits).0.rchar;
        assert_eq!(rchar(&family(&exits, &BTreeSet::from([5]))), 4 + 8 + 16);
        // A thread that outlives the main one of its process, and has lived as long.
        let late = Exit {
            process: Some(20),
            ..at(of(22, 1, 128), 62, 75)
        };
        let exits = [exits[3], late];
        assert_eq!(rchar(&family(&exits, &BTreeSet::from([5]))), 8 + 128);
    }

    #[test]
    fn families_are_found_in_any_order_of_ends() {
        // 12 is a grandchild that ended first, 14 a thread of 10, 20 a stranger.
        let exits = [
            of(12, 11, 1),
            of(20, 3, 2),
            of(11, 10, 4),
            of(14, 5, 8),
            of(10, 5, 16),
        ];
        let (io, cancelled) = total(&family(&exits, &BTreeSet::from([5])));
        assert_eq!((io.rchar, cancelled), (29, 4));
        assert_eq!(family(&exits, &BTreeSet::from([99])), []);
        // An unseen thread belongs to its process.
        let thread = Exit {
            process: Some(10),
            ..of(77, 1, 32)
        };
        assert_eq!(family(&[thread], &BTreeSet::from([10])).len(), 1);
    }

    #[test]
    fn missing_accounts_free_memory_and_lose_the_sum() {
        let mut received = Received::at_most(2);
        received.add(of(11, 5, 1));
        received.add(of(12, 5, 2));
        let sum = |received: &Received| {
            let found = received.all().map(|all| family(all, &BTreeSet::from([5])));
            found.map(|own| total(&own).0.rchar)
        };
        assert_eq!(sum(&received), Some(3));
        // A stranger's account too: it may be a child of a task that is still to end.
        for task in 13..20 {
            received.add(of(task, 3, 4));
            assert_eq!((sum(&received), received.exits.capacity()), (None, 0));
        }
    }

    #[test]
    fn an_account_is_read_as_linux_sends_it() {
        let mut stats = vec![0; 416];
        stats[80..82].copy_from_slice(b"dd");
        for (at, value) in [
            (0, 13),
            (368, 76),
            (128, 77u64 | 5 << 32),
            (216, 1 << 20),
            (248, 4096),
            (264, 512),
        ] {
            stats[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let message = |stats: &[u8]| attribute(OF_TASK, &attribute(STATS, stats));
        let Message::Exit(found) = exit(&message(&stats)) else {
            panic!("it is whole");
        };
        assert_eq!((found.task, found.parent), (77, 5));
        assert_eq!((found.process, found.name().as_str()), (Some(76), "dd"));
        assert_eq!((found.io.rchar, found.io.read_bytes), (1 << 20, 4096));
        assert_eq!(found.cancelled_write_bytes, 512);
        assert_eq!(exit(&attribute(OF_TASK + 1, &stats)), Message::Other);
        // A message with other field positions cannot be skipped in a sum, so there is no sum.
        let mut received = Received::at_most(9);
        received.read(&message(&stats));
        stats[0] = 16;
        received.read(&message(&stats));
        assert_eq!(received.all().map(<[Exit]>::len), Some(2));
        stats[0] = 15;
        received.read(&message(&stats));
        assert_eq!(received.all(), None);
    }

    proptest! {
        #[test]
        fn any_message_is_read_or_refused(message: Vec<u8>) {
            let _ = exit(&message);
        }
    }
}
