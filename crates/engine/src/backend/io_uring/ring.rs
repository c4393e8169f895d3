//! Rings, and what stays registered with one from one trial to the next.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use io_uring::IoUring;

use super::{REGISTERS_BUFFERS, refused};
use crate::buffer::{Buffers, Slot};
use iolab_workload::outcome::RingFlag;
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

/// Idle time after which the kernel's polling thread of SQPOLL goes to sleep, ms.
const SQPOLL_IDLE_MS: u32 = 1_000;

/// The ring that a thread has left from its last trial.
pub(crate) type SpareRing = Rc<Cell<Option<Ring>>>;

/// A ring with what stays registered as long as it is there.
pub(crate) struct Ring {
    pub(super) ring: IoUring,
    pub(super) flags: Vec<RingFlag>,
    /// The buffers that are registered.
    pub(super) buffers: Option<Vec<BufferRange>>,
}

/// Start and length of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BufferRange(usize, usize);

impl BufferRange {
    pub(super) fn all(buffers: &Buffers) -> Vec<Self> {
        let ranges = buffers.home().iter().map(Slot::as_iovec);
        let ranges = ranges.map(|range| Self(range.iov_base.addr(), range.iov_len));
        ranges.collect()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // A ring is torn down by the kernel at leisure; until then the memory would count as locked.
        if self.buffers.is_some() {
            let _ = self.ring.submitter().unregister_buffers();
        }
    }
}

/// The ring in the best mode the kernel takes.
pub(super) fn build(spec: &TrialSpec) -> Result<Ring> {
    // With SQPOLL the kernel's thread issues and completes: task-run flags do not apply there.
    let modes: &[&[RingFlag]] = if spec.sqpoll {
        &[
            &[RingFlag::Sqpoll, RingFlag::SingleIssuer],
            &[RingFlag::Sqpoll],
        ]
    } else {
        &[
            &[RingFlag::SingleIssuer, RingFlag::DeferTaskrun],
            &[RingFlag::CoopTaskrun],
            &[],
        ]
    };
    let mut last = None;
    for mode in modes {
        let polled = spec.iopoll.then_some(RingFlag::Iopoll);
        let flags: Vec<RingFlag> = mode.iter().copied().chain(polled).collect();
        let mut builder = IoUring::builder();
        for flag in &flags {
            match flag {
                RingFlag::Sqpoll => {
                    if let Some(cpu) = spec.sqpoll_cpu {
                        builder.setup_sqpoll_cpu(cpu);
                    }
                    builder.setup_sqpoll(SQPOLL_IDLE_MS)
                }
                RingFlag::SingleIssuer => builder.setup_single_issuer(),
                RingFlag::DeferTaskrun => builder.setup_defer_taskrun(),
                RingFlag::CoopTaskrun => builder.setup_coop_taskrun(),
                RingFlag::Iopoll => builder.setup_iopoll(),
                // iolab's own doing, of which the kernel is not told.
                RingFlag::Spin => &mut builder,
            };
        }
        match builder.build(spec.depth) {
            Ok(ring) => {
                return Ok(Ring {
                    ring,
                    flags,
                    buffers: None,
                });
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = Some(error),
            Err(error) => {
                last = Some(error);
                break;
            }
        }
    }
    let error = last.expect("at least one mode was tried");
    if error.raw_os_error() == Some(libc::ENOMEM) && spec.registered {
        REGISTERS_BUFFERS.store(false, Ordering::Relaxed);
    }
    Err(match spec.sqpoll_cpu {
        Some(cpu) if error.raw_os_error() == Some(libc::EINVAL) => Error::usage(format!(
            "the polling thread of io_uring cannot run on CPU {cpu}: {error}"
        ))
        .hint("choose a CPU that is online and that this process may use, or sqpoll_cpu=none"),
        _ => refused(&error),
    })
}
