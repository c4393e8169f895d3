//! State of the machine as a whole: waiting tasks, CPU time stolen by a hypervisor, sleep, and the time for
//! which this process was stopped.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use super::suspended_time;
use crate::pseudo_files::number_of;
use iolab_workload::counters::Pressure;
use rustix::time::{ClockId, clock_getres, clock_gettime};

use iolab_storage::procfs::{ControlGroup, CpuTicks, Hierarchy};

/// Most CPU groups whose frequency is read, so that the cost stays the same on a large machine.
const POLICIES_MAX: usize = 8;

/// Fewest kernel ticks between two readings that show for how long tasks waited. CPU time counts in whole ticks
/// that were not idle, and less than one tick is lost (`collect_percpu_times` in kernel/sched/psi.c of Linux).
/// Tasks that wait for a quarter of the time keep a CPU busy for one tick in four.
const TICKS_MIN: u32 = 4;

/// Reads all but the frequency, which takes longest on machines with many CPUs.
pub(super) fn read() -> Pressure {
    let stall = |what: &str| parse_stall(&read_to_string(format!("/proc/pressure/{what}")).ok()?);
    let stat = read_to_string("/proc/stat").ok();
    Pressure {
        cpu_stall_ns: stall("cpu"),
        io_stall_ns: stall("io"),
        memory_stall_ns: stall("memory"),
        steal_ns: stat.as_deref().and_then(parse_steal),
        interrupts: stat.as_deref().and_then(parse_interrupts),
        suspended_ns: Some(suspended_ns().saturating_add(suspended_time::stopped_ns())),
        throttled_ns: throttled_ns(),
        cpu_khz: None,
    }
}

/// The reading `now`, made `ago` after an earlier one. Waiting times are left out if the kernel loses them in
/// so short a span.
pub(super) fn known_after(ago: Duration, now: Pressure) -> Pressure {
    match ago < tick() * TICKS_MIN {
        false => now,
        true => Pressure {
            cpu_stall_ns: None,
            io_stall_ns: None,
            memory_stall_ns: None,
            ..now
        },
    }
}

/// Time between two kernel ticks: the step of its coarse clock.
fn tick() -> Duration {
    let step = clock_getres(ClockId::MonotonicCoarse);
    Duration::try_from(step).unwrap_or_default()
}

/// The reading with the present CPU frequency added.
pub(super) fn with_frequency(pressure: Pressure) -> Pressure {
    Pressure {
        cpu_khz: frequency_khz(),
        ..pressure
    }
}

/// Microseconds of stall in a line of Documentation/accounting/psi.rst: `some avg10=0.00 avg60=0.00 avg300=0.00
/// total=MICROSECONDS`.
fn parse_stall(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = line
        .split_whitespace()
        .find_map(|field| field.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1_000)
}

/// CPU time that the hypervisor gave to other machines so far, ns.
fn parse_steal(stat: &str) -> Option<u64> {
    let ticks = CpuTicks::parse(stat)?.steal?;
    ticks
        .checked_mul(1_000_000_000)?
        .checked_div(iolab_storage::kernel_units::clock_ticks_per_second())
}

/// Interrupts so far, by proc_stat(5): `intr TOTAL NUMBER...`, the total first, then a number for each source.
fn parse_interrupts(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("intr "))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Time that the machine slept since boot, ns: CLOCK_BOOTTIME counts it and CLOCK_MONOTONIC does not.
fn suspended_ns() -> u64 {
    let ns = |id| {
        let time = clock_gettime(id);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    let monotonic = ns(ClockId::Monotonic);
    u64::try_from(ns(ClockId::Boottime) - monotonic).unwrap_or(0)
}

/// Time for which CPU quotas of this process's control groups and their ancestors throttled it so far, ns;
/// `None` where none of them counts it.
fn throttled_ns() -> Option<u64> {
    /// Mounts read once: a mount made during a run does not matter here.
    static HIERARCHIES: LazyLock<Vec<Hierarchy>> = LazyLock::new(|| {
        let mounts = std::fs::read("/proc/self/mountinfo");
        mounts.map_or(Vec::new(), |mounts| Hierarchy::parse(&mounts))
    });
    let own = read_to_string("/proc/self/cgroup").ok()?;
    throttled_of(&HIERARCHIES, &own)
}

fn throttled_of(hierarchies: &[Hierarchy], own: &str) -> Option<u64> {
    let has_quota = |group: &ControlGroup<'_>| {
        group.controllers.is_empty() || group.controllers.contains(&"cpu")
    };
    let groups = ControlGroup::parse(own).filter(has_quota);
    let folders = groups.flat_map(|group| {
        let hierarchy = hierarchies.iter().find(|hierarchy| hierarchy.holds(&group));
        hierarchy.map_or(Vec::new(), |hierarchy| hierarchy.on_the_way_up(&group))
    });
    let counted = folders.filter_map(|folder| {
        let stat = read_to_string(folder.join("cpu.stat")).ok()?;
        parse_throttled(&stat)
    });
    counted.reduce(u64::saturating_add)
}

/// Throttled time, ns. Version 2 (Documentation/admin-guide/cgroup-v2.rst of Linux) has `throttled_usec
/// MICROSECONDS` where there is a quota, version 1 (scheduler/sched-bwc.rst) `throttled_time NANOSECONDS`.
fn parse_throttled(text: &str) -> Option<u64> {
    let value = |name: &str| {
        let fields = text.lines().filter_map(|line| line.split_once(' '));
        let (_, value) = fields.into_iter().find(|(key, _)| *key == name)?;
        value.parse::<u64>().ok()
    };
    match value("throttled_usec") {
        Some(microseconds) => microseconds.checked_mul(1_000),
        None => value("throttled_time"),
    }
}

/// Highest frequency that cpufreq reports, over CPU groups taken evenly from all. The CPUs of a group share one
/// frequency, each kind of core has its own groups, and the fast cores may come last
/// (Documentation/admin-guide/pm/cpufreq.rst of Linux: `policyX`).
fn frequency_khz() -> Option<u64> {
    static POLICIES: LazyLock<Vec<PathBuf>> =
        LazyLock::new(|| policies(Path::new("/sys/devices/system/cpu/cpufreq")));
    let khz = |policy: &PathBuf| number_of(policy.join("scaling_cur_freq"));
    POLICIES.iter().filter_map(khz).max()
}

/// The frequency policies in a folder, at most [`POLICIES_MAX`]; the last one is always among them.
fn policies(folder: &Path) -> Vec<PathBuf> {
    let names = read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = names
        .filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.strip_prefix("policy")?.parse().ok()
        })
        .collect();
    numbers.sort_unstable();
    let step = numbers.len().div_ceil(POLICIES_MAX).max(1);
    let chosen = numbers.iter().rev().step_by(step);
    chosen
        .map(|number| folder.join(format!("policy{number}")))
        .collect()
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
    fn frequencies_are_those_of_groups_evenly_among_all() {
        let chosen = |names: &[&str]| {
            let folder = tempfile::tempdir().unwrap();
            for name in names {
                std::fs::create_dir(folder.path().join(name)).unwrap();
            }
            let found = policies(folder.path()).into_iter();
            let names =
                found.map(|path| path.file_name().unwrap().to_owned().into_string().unwrap());
            names.collect::<Vec<_>>().join(" ")
        };
        // A board with two kinds of cores, in groups of four.
        assert_eq!(chosen(&["policy0", "policy4", "boost"]), "policy4 policy0");
        let many: Vec<String> = (0..24).map(|number| format!("policy{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            chosen(&many),
            "policy23 policy20 policy17 policy14 policy11 policy8 policy5 policy2"
        );
        assert_eq!(chosen(&[]), "");
    }

    #[test]
    fn interrupts_are_read_as_linux_prints_them() {
        let stat = "cpu  1 2 3\nintr 130582 0 9 0 5\nctxt 249441\n";
        assert_eq!(parse_interrupts(stat), Some(130_582));
        assert_eq!(parse_interrupts("ctxt 249441\n"), None);
    }

    #[test]
    fn throttling_is_read_as_linux_prints_it() {
        let stat = "usage_usec 5\nuser_usec 3\nnr_throttled 2\nthrottled_usec 1234\n";
        assert_eq!(parse_throttled(stat), Some(1_234_000));
        assert_eq!(parse_throttled("usage_usec 5\nsystem_usec 2\n"), None);
        assert_eq!(parse_throttled("throttled_usec x\n"), None);
        let stat = "nr_periods 9\nnr_throttled 2\nthrottled_time 1234567\n";
        assert_eq!(parse_throttled(stat), Some(1_234_567));
    }

    #[test]
    fn throttled_time_adds_up_over_all_ancestor_groups() {
        let tree = tempfile::tempdir().expect("a folder");
        let own = tree.path().join("cpu/slice/run");
        std::fs::create_dir_all(&own).expect("made");
        let mount = tree.path().join("cpu");
        let mounts = format!(
            "30 24 0:26 / {} rw - cgroup cgroup rw,cpu\n",
            mount.display()
        );
        let found = Hierarchy::parse(mounts.as_bytes());
        let groups = "4:cpu:/slice/run\n7:pids:/slice/run\n";
        assert_eq!(throttled_of(&found, groups), None);
        for (folder, stat) in [
            (&own, "throttled_time 5\n"),
            (&mount.join("slice"), "throttled_time 70\n"),
        ] {
            std::fs::write(folder.join("cpu.stat"), stat).expect("written");
        }
        assert_eq!(throttled_of(&found, groups), Some(75));
        assert_eq!(throttled_of(&found, "7:pids:/slice/run\n"), None);
    }

    #[test]
    fn waiting_is_not_known_of_a_few_ticks() {
        // The kernel has 100 to 1000 ticks a second.
        let tick = tick();
        assert!(
            (Duration::from_millis(1)..=Duration::from_millis(10)).contains(&tick),
            "{tick:?}"
        );
        let counted = Pressure {
            cpu_stall_ns: Some(1),
            io_stall_ns: Some(2),
            memory_stall_ns: Some(3),
            steal_ns: Some(4),
            ..Pressure::default()
        };
        assert_eq!(known_after(tick * TICKS_MIN, counted), counted);
        let steal_only = Pressure {
            steal_ns: Some(4),
            ..Pressure::default()
        };
        let short = tick * TICKS_MIN - Duration::from_nanos(1);
        assert_eq!(known_after(short, counted), steal_only);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}", total: u64) {
            let _ = (parse_stall(&text), parse_throttled(&text));
            let _ = parse_stall(&format!("some total={total}"));
        }
    }
}
