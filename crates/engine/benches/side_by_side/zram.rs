//! A zram device of our own: block storage in memory, the fastest there is without hardware.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Removed when dropped.
pub(crate) struct Zram {
    number: String,
    path: PathBuf,
}

impl Zram {
    /// Adds a device and fills it with incompressible data.
    pub(crate) fn create(size: u64) -> Result<Self, String> {
        // Reading hot_add makes a new device: one that is in use cannot be hit.
        let number =
            fs::read_to_string("/sys/class/zram-control/hot_add").map_err(|e| e.to_string())?;
        let number = number.trim().to_owned();
        let zram = Self {
            path: PathBuf::from(format!("/dev/zram{number}")),
            number,
        };
        zram.fill(size).map_err(|e| e.to_string())?;
        Ok(zram)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn fill(&self, size: u64) -> std::io::Result<()> {
        fs::write(
            format!("/sys/block/zram{}/disksize", self.number),
            size.to_string(),
        )?;
        let mut device = fs::OpenOptions::new().write(true).open(&self.path)?;
        let mut block = vec![0u8; 1 << 20];
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for _ in 0..size >> 20 {
            rng.fill_bytes(&mut block);
            device.write_all(&block)?;
        }
        device.sync_all()
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let remove = || {
            fs::write(format!("/sys/block/zram{}/reset", self.number), "1")
                .and_then(|()| fs::write("/sys/class/zram-control/hot_remove", &self.number))
        };
        // The kernel lets go of a closed ring's descriptor at leisure, without a notice.
        let mut removed = remove();
        for _ in 0..100 {
            if removed.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            removed = remove();
        }
        if let Err(error) = removed {
            println!("  zram{} could not be removed: {error}", self.number);
        }
    }
}
