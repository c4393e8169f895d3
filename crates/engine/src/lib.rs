//! iolab-engine: issues storage I/O and times it. It does not know experiments.
//!
//! Files to begin with: `trial.rs` prepares workers and starts them together (`trial/worker_thread.rs` is the life of one
//! worker). `worker.rs` is the hot loop (`worker/open_loop.rs` at a given rate). `request.rs` is the interface of all
//! backends, `backend.rs` the list of them (with `null`; the others are in `backend/`). `simulation.rs` runs a trial in virtual
//! time against a simulated disk, `verify/` reads back.
//!
//! **One backend interface.** A backend takes requests (`queue`) and returns completions (`complete`: submit the queued
//! requests, wait for at least N of them): the shape of io_uring and libaio. A synchronous backend has depth 1 and does the
//! call inside `complete`, or at once (`transfer`) if requests are not timed. Short transfers, `fsync` after each write,
//! errors and retries are handled once, in the worker. The worker is generic over the backend and over whether requests are
//! timed: each combination is a separate loop without a virtual call.
//!
//! **Memory of requests.** Each buffer has one `Slot`, a value that cannot be copied and without which no code touches the
//! buffer. The slot goes to the backend with the request and returns with the completion. Buffers are unmapped when all
//! slots are back. After a failure of the mechanism itself the worker waits up to a second (`settle`). If a slot stays away
//! the mapping stays too, since the kernel may still write into it.
//!
//! **The hot loop** allocates nothing, locks nothing, formats nothing, and calls the kernel only for the I/O. Slots,
//! completion list and histograms have their final size before the clock starts. One stamp may serve two purposes; the time
//! that this hides is part of `floor_ns`, which every run stores. Each worker has a descriptor table of its own
//! (`close_range(CLOSE_RANGE_UNSHARE)`, empty but for the standard streams; `unshare(CLONE_FILES)` on older kernels), which
//! saves an atomic reference count per call. Intervals of a series are differences of tallies: the loop compares its stamp
//! with the nearer of deadline and end of interval. The open loop is a separate loop around the same pieces.
//!
//! **Offsets.** `rand` is a keyed permutation with cycle walking: no table, each block once per pass. `zipf` draws a
//! rank by rejection-inversion and scatters ranks with the same permutation. Formulas and sources are in
//! docs/METHODS.md.
//!
//! A signal only raises a flag, which the loops read between completions. Everything unwinds in the ordinary way, and
//! dropping the target removes the scratch file.

#![allow(unsafe_code)] // system calls that no safe crate has

mod backend;
mod buffer;
pub mod list;
pub mod placement;
mod request;
pub mod request_tracer;
pub mod series;
pub mod simulation;
pub mod trial;
pub mod verify;
mod worker;

pub use backend::{MissingLevel, asynchronous, missing_levels};
