//! Clock and processors.
//!
//! Load by other processes right now, which would be measured too.
//!
//! Limits on this process: control groups, open files.

use super::{Facts, Said, fine, must_fix, shell_word, worth_knowing};
use iolab_host::device::Device;
use iolab_host::machine::Load;
use iolab_host::system_control::OtherControl;
use iolab_workload::counters::NoHardware;
use iolab_workload::units::{format_bytes, format_ns, format_percent, significant};

/// Cost or resolution of a stamp above which it shows in the latency of fast requests, ns.
const STAMP_DEAR_NS: f64 = 100.0;

/// Reports the clock that times requests.
pub(super) fn clock(facts: &Facts) -> Option<Said> {
    let clock = facts.clock.as_ref()?;
    let what = format!(
        "requests are timed by {}; one stamp takes {}, resolution {}",
        clock.source,
        format_ns(clock.cost_ns),
        format_ns(clock.resolution_ns)
    );
    let is_fine = clock.is_counter && clock.cost_ns.max(clock.resolution_ns) <= STAMP_DEAR_NS;
    Some(if is_fine {
        fine(what)
    } else {
        let finding = worth_knowing(format!(
            "{what}: cells with requests that are not much longer are flagged"
        ));
        finding.remedy("cat /sys/devices/system/clocksource/clocksource0/current_clocksource")
    })
}

/// Reports the number of usable CPUs.
pub(super) fn count(facts: &Facts) -> Option<Said> {
    let processor = &facts.processor;
    let usable = processor.usable?;
    Some(match processor.present {
        // A separate rule reports the quota of a control group.
        Some(present) if usable < present && facts.cgroup.cpus.is_none() => worth_knowing(format!("{usable} of {present} CPUs may be used (affinity or cpuset): more threads than that share them"))
        .remedy("taskset -pc $$"),
        _ => {
            let noun = if usable == 1 { "CPU" } else { "CPUs" };
            fine(format!("{usable} {noun} may be used"))
        }
    })
}

/// Reports frequencies that follow the load.
pub(super) fn frequency(facts: &Facts) -> Option<Said> {
    let processor = &facts.processor;
    Some(match processor.governor.as_deref() {
        None if facts.is_virtual == Some(true) => fine("the host controls the CPU frequency; this guest cannot see it"),
        None => return None,
        Some("performance") => fine("the governor is performance"),
        Some(governor) => worth_knowing(format!("the governor is {governor}: waiting for a device lets the frequency drop, which lengthens short requests"))
        .remedy("sudo cpupower frequency-set -g performance"),
    })
}

/// Reports the use of huge pages for buffers.
pub(super) fn huge_pages(facts: &Facts) -> Option<Said> {
    let meaning = match facts.huge_pages.as_deref() {
        Some("always") => "always: large buffers get them unless buffer_init=nohuge",
        Some("madvise") => "madvise: buffers of direct I/O get them",
        Some("never") => "never: buffer_init=huge changes nothing",
        _ => return None,
    };
    Some(fine(format!("transparent huge pages are set to {meaning}")))
}

/// Reports whether the processor counts its events.
pub(super) fn events(facts: &Facts) -> Option<Said> {
    let reason = match facts.hardware {
        None => return None,
        Some(Ok(())) => {
            return Some(fine("cycles, instructions and cache misses can be counted"));
        }
        Some(Err(reason)) => reason,
    };
    let (why, remedy) = match reason {
        NoHardware::NotPermitted => (
            "the kernel does not let this user",
            Some("sudo sysctl kernel.perf_event_paranoid=1"),
        ),
        NoHardware::Busy => ("another program holds the counters", None),
        NoHardware::NoKernelSupport => ("the kernel was built without perf events", None),
        NoHardware::NotOffered | NoHardware::NotAsked => {
            ("the processor, or the hypervisor below, offers none", None)
        }
    };
    let what = format!("cycles and cache misses cannot be counted: {why}");
    let finding = worth_knowing(what);
    Some(match remedy {
        Some(command) => finding.remedy(command),
        None => finding,
    })
}

/// Reports missing pressure stall information, without which waits of the whole machine are unknown.
pub(super) fn pressure(facts: &Facts) -> Option<Said> {
    let is_told = |load: &Load| load.memory_stall.is_some();
    match facts.load.as_ref().map(is_told) {
        None | Some(true) => None,
        Some(false) => Some(worth_knowing(
            "the kernel does not report how long tasks wait for CPUs, I/O and memory (PSI): only waits and preemptions of iolab's own threads show a disturbance; psi=1 on the kernel's command line turns it on, if the kernel has it",
        )),
    }
}

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
    .remedy(format!("sudo iotop -obP -n 3    # or: iostat -x {} 1 3", shell_word(name))))
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

/// Descriptors needed by a run with many workers.
const OPEN_FILES: u64 = 1024;

/// Command that finds the origin of a limit; removing the limit is its owner's decision.
const OF_UNIT: &str =
    "systemctl status $$    # names the unit that bears the limit; run outside of it, or raise it";

/// Reports a quota of CPU time.
pub(super) fn cpu_time(facts: &Facts) -> Option<Said> {
    let cpus = facts.cgroup.cpus?;
    Some(worth_knowing(format!("a control group limits CPU time to {} CPUs: beyond it all threads stop until the next period, which shows as slow requests", significant(cpus)))
    .remedy(OF_UNIT))
}

/// Reports a limit on memory, which includes the page cache.
pub(super) fn memory_limit(facts: &Facts) -> Option<Said> {
    let limit = facts.cgroup.memory_bytes;
    let limit = limit.filter(|limit| facts.memory_bytes.is_none_or(|all| *limit < all))?;
    Some(worth_knowing(format!(
        "a control group limits memory to {}, page cache included: buffered I/O slows down when that is full",
        format_bytes(limit as f64)
    )))
}

/// Reports a limit on the traffic with the device.
pub(super) fn traffic(facts: &Facts) -> Option<Said> {
    let io = &facts.cgroup.io;
    if io.is_empty() {
        return None;
    }
    let limits = io.iter().map(|limit| limit.what.format(limit.per_second));
    let limits: Vec<String> = limits.collect();
    Some(must_fix(format!(
            "a control group limits the traffic with the device: {}; longer loads cannot exceed that",
            limits.join(", ")
        ))
    .remedy(OF_UNIT))
}

/// Reports a low limit on open files.
pub(super) fn open_files(facts: &Facts) -> Option<Said> {
    let files = facts.open_files?;
    let what = format!("{files} files may be open");
    Some(if files < OPEN_FILES {
        worth_knowing(format!("{what}: too few for many threads"))
            .remedy(format!("ulimit -n {OPEN_FILES}"))
    } else {
        fine(what)
    })
}
