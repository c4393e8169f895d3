//! What the machine as a whole went through: tasks that had to wait, CPU time that a hypervisor took, sleep.

use std::fs::read_to_string;

use iolab_spec::counters::Pressure;
use rustix::time::{ClockId, clock_gettime};

use iolab_target::procfs::{ControlGroup, CpuTicks};

/// Most CPUs whose frequency is looked at, so that the cost stays the same on a large machine.
const CPUS_MAX: usize = 8;

/// Reads everything now but the frequency, which takes longest where there are many CPUs.
pub(super) fn read() -> Pressure {
    let stall = |what: &str| parse_stall(&read_to_string(format!("/proc/pressure/{what}")).ok()?);
    Pressure {
        cpu_stall_ns: stall("cpu"),
        io_stall_ns: stall("io"),
        memory_stall_ns: stall("memory"),
        steal_ns: steal_ns(),
        suspended_ns: Some(suspended_ns()),
        throttled_ns: throttled_ns(),
        cpu_khz: None,
    }
}

/// The same with the frequency of now.
pub(super) fn with_frequency(pressure: Pressure) -> Pressure {
    Pressure {
        cpu_khz: frequency_khz(),
        ..pressure
    }
}

/// Documentation/accounting/psi.rst of Linux: `some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS`.
fn parse_stall(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = line
        .split_whitespace()
        .find_map(|field| field.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1_000)
}

/// What the hypervisor gave to others so far.
fn steal_ns() -> Option<u64> {
    let ticks = CpuTicks::parse(&read_to_string("/proc/stat").ok()?)?.steal?;
    ticks
        .checked_mul(1_000_000_000)?
        .checked_div(rustix::param::clock_ticks_per_second())
}

/// Time that the machine slept since it was started: what CLOCK_BOOTTIME counts and CLOCK_MONOTONIC does not.
fn suspended_ns() -> u64 {
    let ns = |id| {
        let time = clock_gettime(id);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    let monotonic = ns(ClockId::Monotonic);
    u64::try_from(ns(ClockId::Boottime) - monotonic).unwrap_or(0)
}

/// What the control group of this process was held back by its CPU quota so far.
fn throttled_ns() -> Option<u64> {
    let own = read_to_string("/proc/self/cgroup").ok()?;
    let group = ControlGroup::parse(&own).find(|group| group.controllers.is_empty())?;
    parse_throttled(&read_to_string(format!("/sys/fs/cgroup{}/cpu.stat", group.path)).ok()?)
}

/// Documentation/admin-guide/cgroup-v2.rst of Linux: `throttled_usec MICROSECONDS`, where there is a quota.
fn parse_throttled(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let microseconds = lines.find_map(|line| line.strip_prefix("throttled_usec "))?;
    microseconds.parse::<u64>().ok()?.checked_mul(1_000)
}

/// The greatest frequency that cpufreq tells of up to [`CPUS_MAX`] CPUs.
fn frequency_khz() -> Option<u64> {
    let khz = |cpu: usize| -> Option<u64> {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        read_to_string(file).ok()?.trim().parse().ok()
    };
    // A machine without cpufreq has none on its first CPU either.
    let first = khz(0)?;
    (1..CPUS_MAX).map_while(khz).chain([first]).max()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PSI: &str = "some avg10=1.53 avg60=0.87 avg300=0.73 total=1080279\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
    #[test]
    fn stalls_are_read_as_linux_prints_them() {
        assert_eq!(parse_stall(PSI), Some(1_080_279_000));
        assert_eq!(parse_stall("full avg10=0.00 total=7\n"), None);
        assert_eq!(parse_stall("some avg10=0.00 total=x\n"), None);
    }

    #[test]
    fn throttling_is_read_as_linux_prints_it() {
        let stat = "usage_usec 5\nuser_usec 3\nnr_throttled 2\nthrottled_usec 1234\n";
        assert_eq!(parse_throttled(stat), Some(1_234_000));
        assert_eq!(parse_throttled("usage_usec 5\nsystem_usec 2\n"), None);
        assert_eq!(parse_throttled("throttled_usec x\n"), None);
    }

    #[test]
    fn a_machine_that_runs_this_does_not_sleep() {
        let before = read();
        let spent = read().since(&before);
        assert!(
            spent.suspended_ns.is_some_and(|ns| ns < 1_000_000),
            "{spent:?}"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}", total: u64) {
            let _ = (parse_stall(&text), parse_throttled(&text));
            let _ = parse_stall(&format!("some total={total}"));
        }
    }
}
