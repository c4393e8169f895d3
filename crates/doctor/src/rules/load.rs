//! Load by other processes right now, which would be measured too.

use super::{Facts, Said, fine, quoted, worth_knowing};
use iolab_host::device::Device;
use iolab_host::load::Load;
use iolab_host::system_control::OtherControl;
use iolab_workload::quantity::{format_percent, significant};

/// Share of the CPUs that others may use before it is reported.
const CPU_SHARE: f64 = 0.25;
/// Stolen time that is reported, in CPUs.
const STOLEN: f64 = 0.05;
/// Share of the time with a task waiting for memory that is reported.
const MEMORY_SHARE: f64 = 0.01;
/// Traffic on the device that is reported: bytes and requests per second.
const BYTE_RATE: f64 = 1e6;
const REQUEST_RATE: f64 = 50.0;

fn look(facts: &Facts) -> Option<&Load> {
    facts.load.as_ref()
}

/// Reports other processes that use the CPUs.
pub(super) fn processors(facts: &Facts) -> Option<Said> {
    let busy = look(facts).and_then(|load| load.cpus_busy)?;
    let cpus = facts
        .processor
        .present
        .or(facts.processor.usable)
        .unwrap_or(1)
        .max(1);
    let share = |cpus_used: f64| format_percent((cpus_used / cpus as f64).min(1.0));
    if busy / (cpus as f64) < CPU_SHARE {
        return Some(fine(format!(
            "other programs use {} of the CPUs",
            share(busy)
        )));
    }
    let busiest = look(facts).and_then(|load| load.busiest.clone());
    let most = busiest.map_or(String::new(), |(name, cpus)| {
        format!(" (most: {name}, {})", share(cpus))
    });
    Some(
        worth_knowing(format!(
            "other programs use {} of the CPUs{most}: results will be slow and uneven",
            share(busy)
        ))
        .remedy("top -b -n 1 -o %CPU | head -20"),
    )
}

/// Reports CPU time that a hypervisor gives to others.
pub(super) fn stolen(facts: &Facts) -> Option<Said> {
    let stolen = look(facts)
        .and_then(|load| load.cpus_stolen)
        .filter(|s| *s >= STOLEN)?;
    Some(worth_knowing(format!(
        "the hypervisor gives {} CPUs' worth of this machine's time to other guests right now (steal)",
        significant(stolen)
    )))
}

/// Reports tasks that wait for memory.
pub(super) fn memory(facts: &Facts) -> Option<Said> {
    let stall = look(facts).and_then(|load| load.memory_stall);
    let share = stall.filter(|share| *share >= MEMORY_SHARE)?;
    Some(
        worth_knowing(format!(
            "memory is short: tasks wait for it {} of the time",
            format_percent(share)
        ))
        .remedy("free -m; cat /proc/pressure/memory"),
    )
}

/// Reports traffic on the device.
pub(super) fn device(facts: &Facts) -> Option<Said> {
    let load = look(facts)?;
    let (Some(read), Some(written), Some(requests)) = (
        load.device_read_rate, load.device_write_rate, load.device_request_rate,
    ) else {
        return None;
    };
    let disks = facts.device.as_ref().map(Device::stack).unwrap_or_default();
    let disk = disks.iter().find(|device| device.below.is_empty());
    let name = disk.map_or("the device", |device| device.disk.as_str());
    if read + written < BYTE_RATE && requests < REQUEST_RATE {
        return Some(fine(format!("no other process is using {name}")));
    }
    Some(worth_knowing(format!(
            "other programs use {name}: {} MB/s read, {} MB/s written, {requests:.0} requests per second",
            significant(read / 1e6),
            significant(written / 1e6)
        ))
    .remedy(format!("sudo iotop -obP -n 3    # or: iostat -x {} 1 3", quoted(name))))
}

/// Reports another iolab that changes kernel settings, or has left them changed.
pub(super) fn kernel_settings(facts: &Facts) -> Option<Said> {
    match facts.other_control {
        None => None,
        Some(OtherControl::Process(number)) => Some(worth_knowing(format!(
            "iolab process {number} changes kernel settings during its trials (--change-system), also for other programs"
        ))
        .remedy(format!("tail --pid={number} -f /dev/null    # waits until it has ended"))),
        Some(OtherControl::Killed) => Some(worth_knowing(
            "kernel settings that another iolab run changed (--change-system) are still in force: it was killed, or runs in another container",
        )
        .remedy("sudo iolab doctor    # restores them, if that run was killed")),
    }
}
