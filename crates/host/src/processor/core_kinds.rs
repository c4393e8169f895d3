//! Kinds of cores: processors with fast and with economical cores (big.LITTLE, hybrid).
//! Sources: Documentation/scheduler/sched-capacity.rst and Documentation/ABI/testing/sysfs-devices-system-cpu of Linux.

use std::fmt;
use std::path::Path;

use iolab_workload::cpus::Cpus;

use crate::machine::cpu_models;
use crate::pseudo_files::{number_of, text_of};

/// Cores of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreKind {
    /// CPUs of this kind.
    pub cpus: Cpus,
    /// Model name, where the kinds differ in it.
    pub model: Option<String>,
    /// Scheduler capacity: work per time, 1024 for the fastest cores.
    pub capacity: Option<u64>,
    /// Size of a first-level data cache as the kernel writes it: `32K`.
    pub l1d: Option<String>,
    /// Highest frequency, kHz.
    pub frequency_max_khz: Option<u64>,
    /// Frequency governor.
    pub governor: Option<String>,
}

/// Kinds of cores below `sys`, by their first CPU; empty where all are alike. Cores of the same model and
/// capacity are of one kind, whatever frequency each reaches.
pub fn core_kinds(proc: &Path, sys: &Path) -> Vec<CoreKind> {
    let models = cpu_models(proc);
    let folder = sys.join("devices/system/cpu");
    let online: Option<Cpus> = text_of(folder.join("online")).and_then(|list| list.parse().ok());
    let mut kinds: Vec<CoreKind> = Vec::new();
    for cpu in online.unwrap_or_default().numbers() {
        let own = folder.join(format!("cpu{cpu}"));
        let is_of = |(cpus, _): &&(Cpus, String)| cpus.numbers().contains(cpu);
        let kind = CoreKind {
            cpus: Cpus::new([*cpu]),
            model: models.iter().find(is_of).map(|(_, name)| name.clone()),
            capacity: number_of(own.join("cpu_capacity")),
            l1d: text_of(own.join("cache/index0/size")),
            frequency_max_khz: number_of(own.join("cpufreq/cpuinfo_max_freq")),
            governor: super::governor(&own),
        };
        let alike = |known: &&mut CoreKind| {
            (&known.model, known.capacity, &known.l1d) == (&kind.model, kind.capacity, &kind.l1d)
        };
        match kinds.iter_mut().find(alike) {
            Some(known) => {
                known.cpus = known.cpus.plus(&kind.cpus);
                known.frequency_max_khz = known.frequency_max_khz.max(kind.frequency_max_khz);
            }
            None => kinds.push(kind),
        }
    }
    match kinds.len() {
        0 | 1 => Vec::new(),
        _ => kinds,
    }
}

/// One line: `0-3 Arm Cortex-A55, capacity 446, up to 1800000 kHz, schedutil`.
impl fmt::Display for CoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cpus)?;
        if let Some(model) = &self.model {
            write!(f, " {model}")?;
        }
        if let Some(capacity) = self.capacity {
            write!(f, ", capacity {capacity}")?;
        }
        if let Some(size) = &self.l1d {
            write!(f, ", L1d {size}")?;
        }
        if let Some(khz) = self.frequency_max_khz {
            write!(f, ", up to {khz} kHz")?;
        }
        match &self.governor {
            Some(governor) => write!(f, ", {governor}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::Tree;

    fn kinds(tree: &Tree) -> Vec<String> {
        let kinds = core_kinds(&tree.path().join("proc"), &tree.path().join("sys"));
        kinds.iter().map(CoreKind::to_string).collect()
    }

    #[test]
    fn fast_and_economical_cores_are_of_two_kinds() {
        let tree = Tree::empty();
        tree.files("sys/devices/system/cpu", &[("online", "0-3")]);
        let mut cpuinfo = String::new();
        for (cpu, part, capacity, khz) in [
            (0, "0xd05", "446", "1800000"),
            (1, "0xd05", "446", "1800000"),
            (2, "0xd0b", "1024", "2256000"),
            (3, "0xd0b", "1024", "2304000"),
        ] {
            cpuinfo += &format!("processor : {cpu}\nCPU implementer : 0x41\nCPU part : {part}\n\n");
            tree.files(
                &format!("sys/devices/system/cpu/cpu{cpu}"),
                &[
                    ("cpu_capacity", capacity),
                    ("cpufreq/cpuinfo_max_freq", khz),
                    ("cpufreq/scaling_governor", "schedutil"),
                ],
            );
        }
        tree.files("proc", &[("cpuinfo", &cpuinfo)]);
        assert_eq!(
            kinds(&tree),
            [
                "0-1 Arm Cortex-A55, capacity 446, up to 1800000 kHz, schedutil",
                "2-3 Arm Cortex-A76, capacity 1024, up to 2304000 kHz, schedutil"
            ]
        );
    }

    #[test]
    fn cores_of_one_name_differ_by_caches() {
        let tree = Tree::empty();
        tree.files("sys/devices/system/cpu", &[("online", "0-2")]);
        for (cpu, size) in [(0, "48K"), (1, "48K"), (2, "32K")] {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index0");
            tree.files(&folder, &[("size", size)]);
        }
        assert_eq!(kinds(&tree), ["0-1, L1d 48K", "2, L1d 32K"]);
    }

    #[test]
    fn cores_that_are_alike_have_no_kinds() {
        let tree = Tree::empty();
        tree.files("sys/devices/system/cpu", &[("online", "0-1")]);
        assert!(kinds(&tree).is_empty());
    }
}
