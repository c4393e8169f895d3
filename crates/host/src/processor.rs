//! The processors: how many are usable, their frequency, and the kernel's defences against their flaws.
//! Sources: Documentation/admin-guide/pm/cpufreq.rst, cputopology.rst and hw-vuln/index.rst of Linux.

mod core_kinds;

use std::fs;
use std::path::Path;
use std::time::Instant;

pub use core_kinds::{CoreKind, core_kinds};

use crate::pseudo_files::text_of;

/// Description of the processors; properties that the system does not report are `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Processor {
    /// Number of CPUs that this process may use.
    pub usable: Option<u64>,
    /// Number of CPUs present.
    pub present: Option<u64>,
    /// Kinds of cores; empty where all are alike.
    pub kinds: Vec<CoreKind>,
    /// Frequency governor: `performance`, `powersave`, `schedutil`.
    pub governor: Option<String>,
    /// Whether the frequency may temporarily exceed the nominal one.
    pub boost: Option<bool>,
    /// Whether two CPUs share a core.
    pub smt: Option<bool>,
    /// Number of slow-downs by heat since boot.
    pub throttled: Option<u64>,
    /// Active mitigations, by the name of the flaw: `meltdown`, `PTI`.
    pub mitigations: Vec<(String, String)>,
    /// Measured time of the shortest system call, ns.
    pub system_call_ns: Option<f64>,
    /// Whether the machine runs on its battery.
    pub on_battery: Option<bool>,
}

impl Processor {
    /// Reads `proc` (`/proc`) and `sys` (`/sys`), and times a system call.
    pub fn read(proc: &Path, sys: &Path) -> Self {
        let cpus = sys.join("devices/system/cpu");
        let cpu0 = cpus.join("cpu0");
        Self {
            usable: usable(),
            present: text_of(cpus.join("present")).and_then(|text| count_of(&text)),
            kinds: core_kinds(proc, sys),
            governor: governor(&cpu0),
            boost: boost(&cpus),
            smt: text_of(cpus.join("smt/active")).map(|text| text == "1"),
            throttled: throttled(&cpus),
            mitigations: mitigations(&cpus.join("vulnerabilities")),
            system_call_ns: Some(system_call_ns()),
            on_battery: on_battery(&sys.join("class/power_supply")),
        }
    }
}

/// Number of CPUs that this process may use.
pub fn usable() -> Option<u64> {
    let count = std::thread::available_parallelism().ok()?;
    Some(count.get() as u64)
}

/// Frequency governor of a CPU, by its folder.
pub fn governor(cpu: &Path) -> Option<String> {
    text_of(cpu.join("cpufreq/scaling_governor"))
}

/// Number of CPUs in a list such as `0-3,8`.
fn count_of(list: &str) -> Option<u64> {
    list.split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .sum()
}

fn boost(cpus: &Path) -> Option<bool> {
    let off = text_of(cpus.join("intel_pstate/no_turbo")).map(|text| text == "0");
    off.or_else(|| text_of(cpus.join("cpufreq/boost")).map(|text| text == "1"))
}

/// Slow-downs by heat, the greatest count of a package; the cores of a package share one count.
fn throttled(cpus: &Path) -> Option<u64> {
    let counts = fs::read_dir(cpus).ok()?.filter_map(|entry| {
        text_of(
            entry
                .ok()?
                .path()
                .join("thermal_throttle/package_throttle_count"),
        )
    });
    counts.filter_map(|text| text.parse().ok()).max()
}

fn mitigations(folder: &Path) -> Vec<(String, String)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<(String, String)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let text = text_of(&path)?;
            let what = text.split_once("Mitigation:")?.1.trim().to_owned();
            Some((path.file_name()?.to_string_lossy().into_owned(), what))
        })
        .collect();
    found.sort();
    found
}

/// Time of a system call, ns: the smallest of several means, since disturbances only add time.
fn system_call_ns() -> f64 {
    const CALLS: u32 = 2_000;
    let round = || {
        let began = Instant::now();
        for _ in 0..CALLS {
            std::hint::black_box(rustix::process::getppid());
        }
        began.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..5).map(|_| round()).fold(f64::INFINITY, f64::min)
}

/// Whether the machine runs on battery: the mains supply is offline, or there is none and a battery discharges
/// (Documentation/ABI/testing/sysfs-class-power).
fn on_battery(folder: &Path) -> Option<bool> {
    let supplies: Vec<_> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    let of_type = |kind: &'static str| {
        let is_it =
            move |path: &&std::path::PathBuf| text_of(path.join("type")).is_some_and(|t| t == kind);
        supplies.iter().filter(is_it)
    };
    let mains: Vec<bool> = of_type("Mains")
        .filter_map(|path| text_of(path.join("online")))
        .map(|online| online == "1")
        .collect();
    if !mains.is_empty() {
        return Some(!mains.contains(&true));
    }
    // Mice and keyboards have batteries too, with the scope Device.
    let empties = |path: &std::path::PathBuf| {
        let of_device = text_of(path.join("scope")).is_some_and(|scope| scope == "Device");
        let status = text_of(path.join("status")).filter(|_| !of_device)?;
        Some(status == "Discharging")
    };
    of_type("Battery").filter_map(empties).reduce(|a, b| a || b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::Tree;

    #[test]
    fn a_laptop_is_described() {
        let tree = Tree::empty();
        tree.files(
            "devices/system/cpu",
            &[
                ("present", "0-3,8-9"),
                ("cpu0/cpufreq/scaling_governor", "powersave"),
                ("cpu0/thermal_throttle/package_throttle_count", "0"),
                ("cpu1/thermal_throttle/package_throttle_count", "12"),
                ("intel_pstate/no_turbo", "1"),
                ("smt/active", "1"),
                ("vulnerabilities/meltdown", "Mitigation: PTI"),
                (
                    "vulnerabilities/mds",
                    "Mitigation: Clear CPU buffers; SMT vulnerable",
                ),
                ("vulnerabilities/l1tf", "Not affected"),
                ("vulnerabilities/srso", "Vulnerable: Safe RET, no microcode"),
                (
                    "vulnerabilities/itlb_multihit",
                    "KVM: Mitigation: VMX disabled",
                ),
            ],
        );
        tree.file("class/power_supply/AC/type", "Mains");
        tree.file("class/power_supply/AC/online", "0");
        tree.file("class/power_supply/BAT0/type", "Battery");
        tree.file("class/power_supply/BAT0/status", "Charging");
        let processor = Processor::read(tree.path(), tree.path());
        assert_eq!(processor.present, Some(6));
        assert_eq!(processor.governor.as_deref(), Some("powersave"));
        assert_eq!(processor.boost, Some(false));
        assert_eq!(processor.smt, Some(true));
        assert_eq!(processor.throttled, Some(12));
        assert_eq!(processor.on_battery, Some(true));
        let names: Vec<_> = processor
            .mitigations
            .iter()
            .map(|(name, _)| &**name)
            .collect();
        assert_eq!(names, ["itlb_multihit", "mds", "meltdown"]);
        assert_eq!(processor.mitigations[2].1, "PTI");
        assert!(processor.system_call_ns.is_some_and(|ns| ns > 0.0));
    }

    #[test]
    fn a_battery_without_mains_tells_by_its_status() {
        let tree = Tree::empty();
        assert_eq!(on_battery(tree.path()), None);
        tree.file("mouse/type", "Battery");
        tree.file("mouse/scope", "Device");
        tree.file("mouse/status", "Discharging");
        assert_eq!(on_battery(tree.path()), None);
        tree.file("BAT0/type", "Battery");
        tree.file("BAT0/status", "Discharging");
        assert_eq!(on_battery(tree.path()), Some(true));
    }

    #[test]
    fn what_is_not_told_is_left_out() {
        let tree = Tree::empty();
        let processor = Processor::read(tree.path(), tree.path());
        assert_eq!(
            (processor.present, processor.boost, processor.smt),
            (None, None, None)
        );
        assert!(processor.mitigations.is_empty());
        assert_eq!(count_of("0-x"), None);
        assert_eq!(count_of("3-1"), None);
    }
}
