//! Temperature of drives, by their sensors (hwmon: drivers `nvme` and `drivetemp`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::device::temperature_input;

/// Temperature sensors of some disks, found once. A reading makes the kernel ask the drive (SMART log or SCT
/// status), NVMe drives at most once a second.
#[derive(Debug, Clone, Default)]
pub struct Thermometer {
    inputs: Vec<PathBuf>,
}

impl Thermometer {
    /// Sensors of these disks, as far as they have any.
    pub(crate) fn of(sys: &Path, disks: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let inputs = disks.into_iter();
        let mut inputs: Vec<PathBuf> = inputs
            .filter_map(|disk| temperature_input(sys, disk))
            .collect();
        inputs.sort_unstable();
        inputs.dedup();
        Self { inputs }
    }

    /// Whether there is a sensor.
    pub fn has_sensors(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// Temperature of the hottest disk, thousandths of a degree Celsius; `None` without a sensor, and below
    /// zero.
    pub fn read(&self) -> Option<u64> {
        let readings = self.inputs.iter().filter_map(|input| {
            let text = fs::read_to_string(input).ok()?;
            text.trim().parse::<u64>().ok()
        });
        readings.max()
    }
}
