//! Rings, and their registrations.

use io_uring::IoUring;

use super::{LOCKED_MEMORY, refused};
use crate::buffer::Registration;
use iolab_workload::Result;
use iolab_workload::outcome::RingFlag;
use iolab_workload::trial::TrialSpec;

/// Idle time after which the kernel's polling thread of SQPOLL goes to sleep, ms.
const SQPOLL_IDLE_MS: u32 = 1_000;

/// A ring with its registrations.
pub(crate) struct Ring {
    pub(super) ring: IoUring,
    pub(super) flags: Vec<RingFlag>,
    /// Whether buffers are registered.
    pub(super) has_buffers: bool,
}

impl Drop for Ring {
    fn drop(&mut self) {
        // A ring is torn down by the kernel at leisure; until then the memory would count as locked.
        if self.has_buffers {
            let _ = self.ring.submitter().unregister_buffers();
        }
    }
}

/// The ring in the best mode the kernel takes. If it has no memory for one, the buffers of the trial are not to be registered.
pub(super) fn build(spec: &TrialSpec, registration: &Registration) -> Result<Ring> {
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
                RingFlag::Sqpoll => builder.setup_sqpoll(SQPOLL_IDLE_MS),
                RingFlag::SingleIssuer => builder.setup_single_issuer(),
                RingFlag::DeferTaskrun => builder.setup_defer_taskrun(),
                RingFlag::CoopTaskrun => builder.setup_coop_taskrun(),
                RingFlag::Iopoll => builder.setup_iopoll(),
                // Done by iolab alone, without a flag for the kernel.
                RingFlag::Spin => &mut builder,
            };
        }
        match builder.build(spec.depth) {
            Ok(ring) => {
                return Ok(Ring {
                    ring,
                    flags,
                    has_buffers: false,
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
    if error.raw_os_error() == Some(libc::ENOMEM) {
        registration.refuse(LOCKED_MEMORY.to_owned());
    }
    Err(refused(&error))
}
