//! iolab-replay: replays traces of block requests, and certifies how far the replay kept to the times of the trace.
//!
//! Files to begin with: `trace.rs` reads traces, `certificate.rs` judges a replay.

pub mod certificate;
pub mod trace;
