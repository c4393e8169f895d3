//! Tests.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use super::super::OneFile;
use super::*;
use needs::settings;

const LENGTH: u32 = 4096;

fn file(end: OwnedFd) -> File {
    end.into()
}

/// A ring with one request in flight that reads from a pipe without data.
struct Stuck {
    uring: Uring<OneFile>,
    buffers: Buffers,
    address: *const u8,
    pipe: File,
}

impl Stuck {
    fn new() -> Option<Self> {
        let spec = settings("depth=2 buffer_init=zeroed");
        let mut buffers = Buffers::new(&spec, 0).expect("two pages");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let opened = OneFile::new(file(reader.into()));
        let mut uring = match Uring::new(opened, &spec, &buffers) {
            Ok(uring) => uring,
            Err(error) => {
                needs::skip(needs::Need::IoUring, error);
                return None;
            }
        };
        let slot = buffers.take().expect("two slots");
        let address = slot.address(0, LENGTH).as_ptr();
        let request = Request {
            action: Action::Read,
            offset: 0,
            at: 0,
            len: LENGTH,
        };
        uring.queue(slot, request);
        let mut done = Vec::new();
        let looked = uring.complete_within(Duration::ZERO, &mut done);
        assert!(looked.is_ok() && done.is_empty(), "{looked:?} {done:?}");
        Some(Self {
            uring,
            buffers,
            address,
            pipe: file(writer.into()),
        })
    }
}

#[test]
fn buffer_memory_outlives_a_failing_ring() {
    let Some(mut stuck) = Stuck::new() else {
        return;
    };
    let nothing = File::open("/dev/null").expect("/dev/null");
    // SAFETY: the descriptor is the ring's own, which closes what it finds there; its memory stays mapped.
    let replaced = unsafe { libc::dup2(nothing.as_raw_fd(), stuck.uring.ring.as_raw_fd()) };
    assert!(replaced >= 0);
    let mut done = Vec::new();
    let failure = stuck.uring.complete(1, &mut done).expect_err("no ring");
    assert_eq!(failure.syscall, "io_uring_enter");
    stuck.uring.settle(Duration::from_secs(1), &mut done);
    assert!(done.is_empty(), "{done:?}");
    drop(stuck.uring);
    drop(stuck.buffers);
    // From here on the kernel may write into the buffer.
    stuck.pipe.write_all(&[7; 8]).ok();
    // SAFETY: the slot has not come back, so that its buffer is still mapped; the kernel alone may write to it.
    let first = unsafe { stuck.address.read_volatile() };
    assert!([0, 7].contains(&first), "{first}");
}

#[test]
fn settle_waits_for_requests_in_flight() {
    let Some(mut stuck) = Stuck::new() else {
        return;
    };
    let mut done = Vec::new();
    stuck.uring.settle(Duration::ZERO, &mut done);
    assert!(done.is_empty() && !stuck.uring.in_flight.is_empty());
    stuck.pipe.write_all(&[7; 8]).expect("room in the pipe");
    stuck.uring.settle(Duration::from_secs(60), &mut done);
    assert!(stuck.uring.in_flight.is_empty());
    let mut completion = done.pop().expect("the request");
    assert_eq!(completion.result, 8);
    assert_eq!(completion.slot.part(0, 8), [7; 8]);
}

const FOUND: Look = Look {
    found: true,
    lost_cpu: false,
};

const LOST: Look = Look {
    found: true,
    lost_cpu: true,
};

/// Number of the next `waits` waits that look first.
fn looks(spin: &mut SpinPolicy, waits: u32) -> usize {
    (0..waits).filter(|_| spin.allows()).count()
}

#[test]
fn looking_in_vain_stops_and_is_retried() {
    let mut spin = SpinPolicy::new(true);
    assert!(spin.allows());
    let in_vain = Look {
        found: false,
        lost_cpu: false,
    };
    (0..20).for_each(|_| spin.learn(in_vain));
    assert_eq!(looks(&mut spin, 640), 10);
    (0..8).for_each(|_| spin.learn(FOUND));
    assert_eq!(looks(&mut spin, 100), 100, "it pays again");
    assert_eq!(looks(&mut SpinPolicy::new(false), 100), 0);
}

/// A completion found after others had the CPU was not found by looking.
#[test]
fn looking_stops_when_it_loses_the_cpu() {
    let mut spin = SpinPolicy::new(true);
    spin.learn(LOST);
    assert_eq!(looks(&mut spin, 2048), 2);
    spin.learn(LOST);
    assert_eq!(looks(&mut spin, 32_768), 2);
    (0..8).for_each(|_| spin.learn(FOUND));
    assert_eq!(looks(&mut spin, 100), 100, "the others have gone");
    // If looking pays, one program that runs for a moment changes nothing.
    spin.learn(FOUND);
    (0..8).for_each(|_| spin.learn(FOUND));
    spin.learn(LOST);
    assert_eq!(looks(&mut spin, 100), 100);
}
