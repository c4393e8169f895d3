//! Accounts of tasks as the kernel hands them out when they end: Documentation/accounting/taskstats.rst of Linux. They hold what nobody
//! waits for: children of a process that ignores their ends. Only root gets them.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use iolab_workload::counters::ProcessIo;
use rustix::io::{Errno, ioctl_fionbio, read, write};

/// Room for records that were not read yet, bytes: those of some ten thousand tasks.
const BUFFER: libc::c_int = 8 << 20;
/// Most accounts that are kept: 48 MiB of them. Those of the whole machine come, for as long as the program runs.
const KEPT_MAX: usize = 1 << 19;
/// Bytes of netlink's header, and of it with that of generic netlink.
const NETLINK: usize = 16;
/// Where the type of a message stands in its header, and that of an answer (NLMSG_ERROR).
const MESSAGE_TYPE: usize = 4;
const ANSWER: u16 = 2;
const HEADERS: usize = NETLINK + 4;
/// Numbers of linux/genetlink.h.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Numbers of linux/taskstats.h.
const GET: u8 = 1;
const REGISTER_CPUS: u16 = 3;
const OF_TASK: u16 = 4;
const STATS: u16 = 3;
/// The version of `struct taskstats` that has the longest and shortest delays in its middle (Linux 6.14); 16 moved them to its end.
const OTHER_VERSION: u16 = 15;

/// The account of a task that has ended, without its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) task: u32,
    /// The process that it was a thread of; `None` before Linux 5.17.
    pub(super) process: Option<u32>,
    pub(super) parent: u32,
    pub(super) io: ProcessIo,
    pub(super) cancelled_write_bytes: u64,
    name: [u8; 16],
}

impl Exit {
    /// Its name.
    pub(super) fn name(&self) -> String {
        let name = self.name.split(|byte| *byte == 0).next();
        String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
    }
}

/// Receives the accounts of all tasks of the machine that end.
pub(super) struct Exits {
    socket: OwnedFd,
    received: Received,
}

/// The accounts that have come, up to a number.
struct Received {
    exits: Vec<Exit>,
    most: usize,
    /// Whether none is missing.
    is_complete: bool,
}

impl Received {
    fn at_most(most: usize) -> Self {
        Self {
            exits: Vec::new(),
            most,
            is_complete: true,
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
            Message::Exit(exit) => self.add(exit),
            Message::OtherVersion => self.lose(),
            Message::Other => {}
        }
    }

    /// Some are missing: the others are of no use without them.
    fn lose(&mut self) {
        self.is_complete = false;
        self.exits = Vec::new();
    }

    fn all(&self) -> Option<&[Exit]> {
        self.is_complete.then_some(&self.exits)
    }
}

impl Exits {
    /// Begins; `None` where this user may not, or the kernel has no such accounts.
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
        // With an answer (NLM_F_ACK) that says whether it was allowed: an error number, 0 for none.
        ask(&socket, family, GET, 1 | 4, &cpus).ok()?;
        let mut received = Received::at_most(KEPT_MAX);
        // Tasks of other CPUs may end before the answer comes.
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

    /// Takes what has come.
    pub(super) fn take(&mut self) {
        let mut buffer = [0; 4096];
        loop {
            match read(&self.socket, &mut buffer) {
                Ok(length) => {
                    let message = buffer.get(HEADERS..length);
                    self.received.read(message.unwrap_or_default());
                }
                // They came faster than they were read.
                Err(Errno::NOBUFS) => self.received.lose(),
                Err(_) => return,
            }
        }
    }

    /// Whether no account is missing so far.
    pub(super) fn is_complete(&self) -> bool {
        self.received.is_complete
    }

    /// The accounts of all tasks that have ended; `None` where some are missing.
    pub(super) fn all(&mut self) -> Option<&[Exit]> {
        self.take();
        self.received.all()
    }
}

/// Those of these processes, of their threads, and of all that descend from them. A child ends before its parent or after it: who
/// belongs to whom is known when all have ended.
pub(super) fn family(exits: &[Exit], mut family: BTreeSet<u32>) -> Vec<Exit> {
    let mut left: Vec<&Exit> = exits.iter().collect();
    let mut members = Vec::new();
    loop {
        let (own, rest): (Vec<&Exit>, Vec<&Exit>) = left.into_iter().partition(|exit| {
            let numbers = [Some(exit.task), exit.process, Some(exit.parent)];
            numbers
                .into_iter()
                .flatten()
                .any(|one| family.contains(&one))
        });
        if own.is_empty() {
            return members;
        }
        for exit in own {
            family.insert(exit.task);
            family.extend(exit.process);
            members.push(*exit);
        }
        left = rest;
    }
}

/// The I/O of tasks, with the bytes that never will be written.
pub(super) fn total(exits: &[Exit]) -> (ProcessIo, u64) {
    exits.iter().fold((ProcessIo::default(), 0), |sum, exit| {
        (sum.0.plus(exit.io), sum.1 + exit.cancelled_write_bytes)
    })
}

/// A socket of generic netlink.
fn netlink() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes no pointers.
    let number = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_GENERIC) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    // SAFETY: the pointer is to an int of the size that is told. Without the right to it, the buffer stays as it is.
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
    // Sequence number and port: one request at a time, and the kernel knows us by the socket.
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(attribute);
    write(socket, &message)?;
    Ok(())
}

/// `struct nlattr`: length, kind, value, filled up to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The attributes of a message, as far as they are whole.
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

/// What a message holds.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    /// The account of a task that has ended.
    Exit(Exit),
    /// Such an account, in a version whose fields stand in other places.
    OtherVersion,
    /// Something else: that of a whole process has no I/O.
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

/// Reads a `struct taskstats`. Its fields stand in the same places since version 3, but for [`OTHER_VERSION`]; that of the process came
/// with version 12.
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
    })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The account of a task that has read so many bytes.
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
        }
    }

    #[test]
    fn families_are_put_together_in_whatever_order_they_end() {
        // 12 is a grandchild that ended first, 14 a thread of 10, 20 a stranger.
        let exits = [
            of(12, 11, 1),
            of(20, 3, 2),
            of(11, 10, 4),
            of(14, 5, 8),
            of(10, 5, 16),
        ];
        let (io, cancelled) = total(&family(&exits, BTreeSet::from([5])));
        assert_eq!((io.rchar, cancelled), (29, 4));
        assert_eq!(family(&exits, BTreeSet::from([99])), []);
        // A thread that nobody has seen belongs to its process.
        let thread = Exit {
            process: Some(10),
            ..of(77, 1, 32)
        };
        assert_eq!(family(&[thread], BTreeSet::from([10])).len(), 1);
    }

    #[test]
    fn accounts_without_room_make_the_sum_unknown_and_take_no_memory() {
        let mut received = Received::at_most(2);
        received.add(of(11, 5, 1));
        received.add(of(12, 5, 2));
        let sum = |received: &Received| {
            let found = received.all().map(|all| family(all, BTreeSet::from([5])));
            found.map(|own| total(&own).0.rchar)
        };
        assert_eq!(sum(&received), Some(3));
        // A stranger's too: it may be a child of one that is still to end.
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
        // One whose fields stand elsewhere cannot be left out of a sum: no sum is told.
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
