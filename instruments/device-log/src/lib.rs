//! iolab-device-log: what NVMe drives count of themselves around each trial: bytes of hosts and of flash memory, throttling,
//! temperature.
//!
//! Files to begin with: `page.rs` for the log pages, `drive.rs` for the drive below a disk, `lib.rs` for the readings before
//! and after each trial.

mod drive;
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use iolab_record::DriveLog;
use iolab_runner::DriveObserver;

use drive::{Controller, Drive};

/// An observer of NVMe drives, for one run.
pub fn observer() -> Box<dyn DriveObserver> {
    Box::new(Observer::default())
}

/// The drives of a run, each opened at its first trial, and their counts before the trial in flight.
#[derive(Default)]
struct Observer {
    /// Each drive by its controller; `None` if its log cannot be read, which is tried once.
    drives: BTreeMap<Controller, Option<Drive>>,
    before: Vec<(Controller, DriveLog)>,
}

impl DriveObserver for Observer {
    fn before(&mut self, disks: &BTreeSet<(u32, u32)>) {
        let of_disk = |disk: &(u32, u32)| Controller::of_disk(Path::new("/sys"), *disk);
        // Several namespaces may have one controller.
        let controllers: BTreeSet<Controller> = disks.iter().filter_map(of_disk).collect();
        let read = |controller: Controller| {
            let drive = self.drives.entry(controller.clone());
            let drive = drive.or_insert_with(|| Drive::open(Path::new("/dev"), &controller));
            let log = drive.as_ref()?.read()?;
            Some((controller, log))
        };
        self.before = controllers.into_iter().filter_map(read).collect();
    }

    fn after(&mut self) -> Vec<DriveLog> {
        let before = std::mem::take(&mut self.before).into_iter();
        let counted = before.filter_map(|(controller, before)| {
            let drive = self.drives.get(&controller)?.as_ref()?;
            Some(drive.read()?.since(&before))
        });
        counted.collect()
    }
}
