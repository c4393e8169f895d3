//! The least that a measuring loop must do: one `pread`, one time stamp, one histogram entry; or one `read` and nothing
//! else.

#![allow(unsafe_code)] // own descriptors

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use iolab_host::clock::Clock;
use iolab_host::counters;
use iolab_storage::Stack;
use iolab_workload::histogram::new_latency_histogram;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::Reached;

const BS: usize = 4096;
/// I/O size of the loop without a stamp, bytes.
pub(crate) const SMALL: usize = 8;

/// Runs a loop as iolab runs a worker: on its own thread, with descriptors of its own. With shared ones the kernel counts
/// a reference to the file at each call. The loop returns the number of its requests.
fn as_a_worker(path: &Path, clock: &Clock, run: impl FnOnce(&File) -> u64 + Send) -> Reached {
    let own = || {
        // SAFETY: the thread owns no descriptor yet, and uses none of another thread from here on.
        unsafe { unshare_unsafe(UnshareFlags::FILES) }.expect("own descriptors");
        let file = File::open(path).expect("the file opens");
        let before = counters::snapshot(&[Stack::default()]);
        let start = clock.now();
        let requests = run(&file) as f64;
        let elapsed = clock.ns_between(start, clock.now());
        let ago = Duration::from_nanos(elapsed);
        let usage = counters::since(&before, ago, &[Stack::default()]).usage;
        Reached {
            iops: requests * 1e9 / elapsed as f64,
            user_ns: usage.user_ns as f64 / requests,
        }
    };
    thread::scope(|scope| scope.spawn(own).join().expect("the loop ends"))
}

/// Reads the file's first `size` bytes in order, again and again, `requests` times.
pub(crate) fn read(path: &Path, size: u64, requests: u64, clock: &Clock) -> Reached {
    // On a page, as O_DIRECT needs it and as iolab and fio have it. The kernel's copy is up to 8 % faster to the 16th byte of a page,
    // where an allocator puts a buffer of this size.
    let mut memory = vec![1u8; 2 * BS];
    let page = memory.as_ptr().align_offset(BS);
    let buffer = &mut memory[page..page + BS];
    let mut latency = new_latency_histogram();
    let reached = as_a_worker(path, clock, |file| {
        let (mut stamp, mut offset) = (clock.now(), 0);
        for _ in 0..requests {
            let count =
                rustix::io::pread(file, &mut *buffer, offset).expect("the file is readable");
            assert_eq!(count, BS);
            let now = clock.now();
            latency.saturating_record(clock.ns_between(stamp, now));
            stamp = now;
            offset = if offset + (BS as u64) < size {
                offset + BS as u64
            } else {
                0
            };
        }
        requests
    });
    assert_eq!(latency.len(), requests);
    reached
}

/// Reads the file from its start to its end in small pieces, once, with nothing between two calls.
pub(crate) fn read_small(path: &Path, clock: &Clock) -> Reached {
    as_a_worker(path, clock, |file| {
        let mut buffer = [1u8; SMALL];
        let mut requests = 0;
        while rustix::io::read(file, &mut buffer).expect("the file is readable") == SMALL {
            requests += 1;
        }
        requests
    })
}
