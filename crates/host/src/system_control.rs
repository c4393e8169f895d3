//! Kernel settings that trials change, of a target's devices and of memory. Each is restored after its trial;
//! changes left by a killed process are restored by the next one.

mod journal;

use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use iolab_workload::system_settings::{SystemSetting, SystemSettings};
use iolab_workload::{Error, Result, table};

use crate::device::Device;
use crate::{chosen, text_of};
use iolab_storage::sysfs;
use journal::{During, Journal, JournalEntry, Opened, other_control, put_back, restore};
pub use journal::{OtherControl, restore_own};

const PROC: &str = "/proc";
const SYS: &str = "/sys";
const JOURNAL: &str = "/run/iolab-system-settings";
const HUGE_PAGES: &str = "kernel/mm/transparent_hugepage/enabled";
/// Settings of each queue, with their files, and what a device without the file lacks.
const OF_QUEUES: [(SystemSetting, &str, &str); 2] = table! {
    (SystemSetting::RequestLimit, "max_sectors_kb", "a device has no limit of requests");
    (SystemSetting::NoMerges, "nomerges", "a device has no switch of merges");
};
/// Files of a queue that the kernel resets with a change of scheduler, besides the scheduler's own files.
const WITH_SCHEDULER: [&str; 2] = ["nr_requests", "wbt_lat_usec"];

/// The right to change kernel settings, which one process has at a time.
#[derive(Debug)]
pub struct SystemControl {
    sys: PathBuf,
    /// The journal; `None` once the right is given up.
    journal: RefCell<Option<Journal>>,
}

/// Changed settings, restored when this is dropped.
#[derive(Debug)]
pub struct Changed<'a> {
    control: &'a SystemControl,
    entries: Vec<JournalEntry>,
    adapted: Vec<String>,
}

impl SystemControl {
    /// Takes the right to change settings. Changes left by a killed run are restored first, and named.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): the user is not root, or another process has the
    /// right.
    pub fn take() -> Result<(Self, Vec<String>)> {
        if !rustix::process::geteuid().is_root() {
            return Err(
                Error::refused("settings of the kernel can be changed by root only")
                    .hint("run iolab as root, or leave --change-system out"),
            );
        }
        Self::at(Path::new(SYS), Path::new(JOURNAL))
    }

    fn at(sys: &Path, journal: &Path) -> Result<(Self, Vec<String>)> {
        let mut journal = match Journal::open(journal, true)? {
            Opened::Own(journal) => journal,
            Opened::Held => {
                return Err(Error::refused(format!(
                    "another iolab changes settings of the kernel now (it holds {})",
                    journal.display()
                ))
                .hint("wait until it has ended: only one may change them at a time"));
            }
            Opened::Absent => return Err(Error::failed("the journal does not exist")),
        };
        let restored = restore(sys, &mut journal)?;
        let control = Self {
            sys: sys.to_owned(),
            journal: RefCell::new(Some(journal)),
        };
        Ok((control, restored))
    }

    /// Restores and names the changes left by a killed run. Nothing happens without root, or while the process
    /// that made them is alive.
    ///
    /// # Errors
    /// A setting that cannot be restored. Of kind [`Refused`](iolab_workload::Kind::Refused): the file at the
    /// journal's path is not iolab's.
    pub fn restore_leftovers() -> Result<Vec<String>> {
        match rustix::process::geteuid().is_root() {
            true => Self::restore_at(Path::new(SYS), Path::new(JOURNAL)),
            false => Ok(Vec::new()),
        }
    }

    fn restore_at(sys: &Path, path: &Path) -> Result<Vec<String>> {
        let mut journal = match Journal::open(path, false)? {
            Opened::Own(journal) => journal,
            Opened::Absent | Opened::Held => return Ok(Vec::new()),
        };
        let restored = restore(sys, &mut journal)?;
        journal.remove();
        Ok(restored)
    }

    /// Another process that changes kernel settings. Any user can ask.
    pub fn of_others() -> Option<OtherControl> {
        let (proc, journal) = (Path::new(PROC), Path::new(JOURNAL));
        other_control(proc, journal, std::process::id())
    }

    /// Changes these settings briefly for targets on these devices (major, minor). Returns the values that the
    /// kernel made of them, where they differ from the request: see [`Changed::adapted`].
    ///
    /// # Errors
    /// As [`SystemControl::change`] and [`Changed::restore`].
    pub fn try_out(
        &self,
        settings: &SystemSettings,
        devices: &[Option<(u32, u32)>],
    ) -> Result<Vec<String>> {
        let changed = self.change(settings, devices)?;
        let adapted = changed.adapted.clone();
        changed.restore()?;
        Ok(adapted)
    }

    /// Changes settings for targets on these devices (major, minor; `None` for a target on none), until the
    /// result is dropped.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting that the kernel or a device lacks or refuses;
    /// earlier changes are restored.
    pub fn change(
        &self,
        settings: &SystemSettings,
        devices: &[Option<(u32, u32)>],
    ) -> Result<Changed<'_>> {
        let entries = self.entries(settings, devices)?;
        let mut changed = Changed {
            control: self,
            entries,
            adapted: Vec::new(),
        };
        if changed.entries.is_empty() {
            return Ok(changed);
        }
        self.keep(&changed.entries)?;
        for entry in &mut changed.entries {
            let path = self.sys.join(&entry.path);
            let During::Asked(asked) = &entry.during else {
                continue;
            };
            put(&path, asked)?;
            if let Some(now) = current(&path) {
                changed.adapted.extend(adapted(&entry.path, asked, &now));
                entry.during = During::Read(now);
            }
        }
        // From here on a value that the kernel has rounded is distinguished from another program's change.
        self.keep(&changed.entries)?;
        Ok(changed)
    }

    fn keep(&self, entries: &[JournalEntry]) -> Result<()> {
        match &mut *self.journal.borrow_mut() {
            Some(journal) => journal.write(entries),
            None => Err(Error::failed("the journal is closed")),
        }
    }

    /// Files whose values differ from the request.
    fn entries(
        &self,
        settings: &SystemSettings,
        devices: &[Option<(u32, u32)>],
    ) -> Result<Vec<JournalEntry>> {
        let mut entries = Vec::new();
        if let Some(way) = settings.get(SystemSetting::HugePages) {
            let lacks = "this kernel has no transparent huge pages";
            self.add(&mut entries, HUGE_PAGES.into(), way.to_owned(), lacks)?;
        }
        if !settings.affects_devices() {
            return Ok(entries);
        }
        for device in devices {
            let device = device.and_then(|number| Device::read(&self.sys, number));
            let device = device.ok_or_else(|| {
                Error::usage(format!(
                    "system={settings}: a target lies on no block device that this machine knows"
                ))
                .hint("leave system out, or measure a target on a block device")
            })?;
            let queues = queues(&self.sys, &device);
            for queue in &queues {
                for (setting, file, lacks) in OF_QUEUES {
                    let Some(value) = settings.get(setting) else {
                        continue;
                    };
                    let value = match value {
                        "max" => text_of(self.sys.join(queue).join("max_hw_sectors_kb")),
                        value => Some(value.to_owned()),
                    };
                    let value = value.unwrap_or_default();
                    self.add(&mut entries, queue.join(file), value, lacks)?;
                }
            }
            if let Some(kib) = settings.get(SystemSetting::ReadAhead) {
                // Reads of a file system follow the device that it is mounted from.
                let queue = queues.first().cloned().unwrap_or_default();
                let path = queue.join("read_ahead_kb");
                let lacks = "the device has no read-ahead";
                self.add(&mut entries, path, kib.to_owned(), lacks)?;
            }
            if let Some(name) = settings.get(SystemSetting::Scheduler) {
                self.schedulers(&mut entries, &queues, name)?;
            }
        }
        Ok(entries)
    }

    /// Adds a file if its value differs.
    fn add(
        &self,
        entries: &mut Vec<JournalEntry>,
        path: PathBuf,
        during: String,
        lacks: &str,
    ) -> Result<()> {
        let before = current(&self.sys.join(&path)).ok_or_else(|| {
            Error::usage(format!(
                "{lacks}: {} is missing",
                self.sys.join(&path).display()
            ))
            .hint("leave it out of system")
        })?;
        // Two targets can share a disk.
        let is_known = entries.iter().any(|entry| entry.path == path);
        if before != during && !is_known {
            entries.push(JournalEntry {
                path,
                before,
                during: During::Asked(during),
            });
        }
        Ok(())
    }

    /// Adds the scheduler files of the queues that offer this scheduler, and the files that the kernel resets
    /// with them.
    fn schedulers(
        &self,
        entries: &mut Vec<JournalEntry>,
        queues: &[PathBuf],
        name: &str,
    ) -> Result<()> {
        let knows = |queue: &&PathBuf| {
            let list = text_of(self.sys.join(queue).join("scheduler")).unwrap_or_default();
            let mut words = list.split_whitespace();
            words.any(|word| word.trim_matches(['[', ']']) == name)
        };
        let known: Vec<&PathBuf> = queues.iter().filter(knows).collect();
        if known.is_empty() {
            return Err(
                Error::usage(format!("no device of the target has the scheduler {name}"))
                    .hint("cat /sys/block/DEVICE/queue/scheduler lists the schedulers of a device"),
            );
        }
        for queue in known {
            let count = entries.len();
            self.add(
                entries,
                queue.join("scheduler"),
                name.to_owned(),
                "the device has no scheduler",
            )?;
            if entries.len() == count {
                continue;
            }
            let own = fs::read_dir(self.sys.join(queue).join("iosched"));
            let own = own.into_iter().flatten().flatten().map(|file| {
                let name = file.file_name();
                Path::new("iosched").join(name)
            });
            // A change of the number of requests resets files of the scheduler.
            let reset = WITH_SCHEDULER.map(PathBuf::from).into_iter().chain(own);
            entries.extend(reset.filter_map(|file| {
                let path = queue.join(file);
                let before = current(&self.sys.join(&path))?;
                Some(JournalEntry {
                    path,
                    before,
                    during: During::Reset,
                })
            }));
        }
        Ok(())
    }
}

impl Drop for SystemControl {
    fn drop(&mut self) {
        if let Some(mut journal) = self.journal.take() {
            // Unrestored entries stay in the journal, for the next run.
            if restore(&self.sys, &mut journal).is_ok() {
                journal.remove();
            }
        }
    }
}

impl Changed<'_> {
    /// Settings to which the kernel gave another value than requested: `read_ahead_kb of sda is 4 instead of
    /// 6`.
    pub fn adapted(&self) -> &[String] {
        &self.adapted
    }

    /// Restores the settings.
    ///
    /// # Errors
    /// A setting that cannot be restored; it stays in the journal, for the next run.
    pub fn restore(mut self) -> Result<()> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<()> {
        let entries = std::mem::take(&mut self.entries);
        if entries.is_empty() {
            return Ok(());
        }
        put_back(&self.control.sys, &entries)?;
        self.control.keep(&[])
    }
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        // The journal keeps failed entries.
        let _ = self.put_back();
    }
}

/// Queues of a device and of the devices below it, as paths below `/sys`, top first. Devices below the file of
/// a loop device belong to the file system and are left out.
fn queues(sys: &Path, device: &Device) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let own = device.number.and_then(|number| {
        let folder = sysfs::folder_of(sys, number)?;
        let root = fs::canonicalize(sys).ok()?;
        let below = folder.strip_prefix(root).ok()?;
        Some(below.join("queue"))
    });
    all.extend(own);
    if device.backing.is_none() {
        for below in &device.below {
            all.extend(queues(sys, below));
        }
    }
    all.dedup();
    all
}

/// The kernel's value, where it differs from the requested one. `path` is in a folder `queue`.
fn adapted(path: &Path, asked: &str, now: &str) -> Option<String> {
    let file = path.file_name()?.to_string_lossy();
    let disk = path.parent()?.parent()?.file_name()?.to_string_lossy();
    (asked != now).then(|| format!("{file} of {disk} is {now} instead of {asked}"))
}

/// Value of a file; for a list, the active entry.
fn current(path: &Path) -> Option<String> {
    text_of(path).map(|text| chosen(&text))
}

fn put(path: &Path, value: &str) -> Result<()> {
    let written = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|error| {
        Error::usage(format!(
            "the kernel refuses {value} in {}: {error}",
            path.display()
        ))
        .hint("choose another value, or leave it out of system")
    })
}

#[cfg(test)]
mod tests;
