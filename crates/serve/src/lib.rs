//! Modelled disks as files in real time, through FUSE, so that any tool can be graded on a disk whose truth is known.
//!
//! A request is computed in the model's virtual time when it arrives, and answered when the clock reaches the time of its
//! completion. [`Playback`] is that computation, without a clock; a timer thread carries it out. [`ServeStatistics`] says how late
//! the answers were.
//!
//! Files to begin with: `timer.rs` answers on time, `disk.rs` takes requests, `one_file.rs` the file system.

mod disk;
mod mount_folder;
pub mod one_file;
mod playback;
mod request_log;
mod serve_statistics;
mod serving;
mod timer;
mod virtual_speed;
mod wake_events;
mod written_content;

pub use mount_folder::MountFolder;
pub use playback::{Due, Playback};
pub use serve_statistics::{OpTally, Punctuality, ServeStatistics};
pub use serving::{Options, ServeReport, Serving};
pub use virtual_speed::Speed;
pub use wake_events::Wake;
pub use written_content::{Content, PAGE};
