//! iolab-device-log: what NVMe drives count of themselves around each trial: bytes of hosts and of flash memory, throttling,
//! temperature.
//!
//! Files to begin with: `page.rs` for the log pages, `drive.rs` for the drive below a disk, `observer.rs` for the readings.

mod drive;
mod observer;
mod page;

use iolab_runner::DriveObserver;

/// An observer of NVMe drives, for one run.
pub fn observer() -> Box<dyn DriveObserver> {
    Box::new(observer::Observer::default())
}
