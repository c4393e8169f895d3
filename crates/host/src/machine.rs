//! The machine: its maker, its processor by name, whether a hypervisor runs below, limits set by its kernel.

mod arm_cores;
mod virtualization;

use std::path::Path;

use iolab_workload::cpus::Cpus;

use crate::pseudo_files::{number_of, text_of};

/// Names of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Machine {
    /// Maker, as the firmware states it.
    pub vendor: Option<String>,
    /// Product name that the firmware states, or the model in a device tree: `Raspberry Pi 4 Model B`.
    pub product: Option<String>,
    /// Whether a hypervisor runs below; `None` without evidence either way.
    pub is_virtual: Option<bool>,
    /// Processor name. Cores of several kinds are all named, with ` + ` between them.
    pub cpu_model: Option<String>,
}

impl Machine {
    /// Reads `proc` (`/proc`) and `sys` (`/sys`).
    pub fn read(proc: &Path, sys: &Path) -> Self {
        let firmware = |file: &str| text_of(sys.join("class/dmi/id").join(file));
        let models = cpu_models(proc);
        let mut names: Vec<&str> = models.iter().map(|(_, name)| &**name).collect();
        names.dedup();
        Self {
            vendor: firmware("sys_vendor"),
            product: firmware("product_name").or_else(|| {
                let model = text_of(sys.join("firmware/devicetree/base/model"))?;
                Some(model.trim_end_matches('\0').to_owned())
            }),
            is_virtual: virtualization::is_virtual(proc, sys),
            cpu_model: (!names.is_empty()).then(|| names.join(" + ")),
        }
    }

    /// Maker and product in one text.
    pub fn name(&self) -> Option<String> {
        let product = self.product.clone()?;
        Some(match &self.vendor {
            Some(vendor) if !product.starts_with(vendor.as_str()) => format!("{vendor} {product}"),
            _ => product,
        })
    }
}

/// Models of processors or cores by name, each with its CPUs; empty where the system does not name them.
pub(crate) fn cpu_models(proc: &Path) -> Vec<(Cpus, String)> {
    let text = text_of(proc.join("cpuinfo")).unwrap_or_default();
    let mut models: Vec<(Cpus, String)> = Vec::new();
    for block in text.split("\n\n") {
        let field = |name: &str| {
            let mut lines = block.lines().filter_map(|line| line.split_once(':'));
            let (_, value) = lines.find(|(key, _)| key.trim() == name)?;
            Some(value.trim())
        };
        let number = |name: &str| u32::from_str_radix(field(name)?.strip_prefix("0x")?, 16).ok();
        let named = field("model name").map(str::to_owned);
        let core = || {
            Some(arm_cores::name(
                number("CPU implementer")?,
                number("CPU part")?,
            ))
        };
        // ARM kernels show a "model name" to 32-bit programs only, and it names no core.
        let Some(name) = core().or(named) else {
            continue;
        };
        let cpu = Cpus::new(field("processor").and_then(|text| text.parse().ok()));
        match models.iter_mut().find(|(_, known)| *known == name) {
            Some((cpus, _)) => *cpus = cpus.plus(&cpu),
            None => models.push((cpu, name)),
        }
    }
    models
}

/// Who may not use io_uring (Documentation/admin-guide/sysctl/kernel.rst): 0 everyone may, 1 a group, 2 no one.
pub fn io_uring_disabled() -> Option<u64> {
    number_of("/proc/sys/kernel/io_uring_disabled")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::Tree;

    fn read(tree: &Tree) -> Machine {
        Machine::read(&tree.path().join("proc"), &tree.path().join("sys"))
    }

    fn arm_core(cpu: u32, part: &str) -> String {
        format!(
            "processor\t: {cpu}\nBogoMIPS\t: 48.00\nFeatures\t: fp asimd cpuid\nCPU implementer\t: 0x41\n\
             CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: {part}\nCPU revision\t: 0\n\n"
        )
    }

    #[test]
    fn arm_board_is_named_by_cores_and_devicetree() {
        let tree = Tree::new();
        let cpuinfo: String = (0..6)
            .map(|cpu| arm_core(cpu, if cpu < 4 { "0xd05" } else { "0xd0b" }))
            .collect();
        tree.files("proc", &[("cpuinfo", &cpuinfo)]);
        tree.files(
            "sys/firmware/devicetree/base",
            &[
                ("model", "Radxa ROCK 5B\0"),
                ("compatible", "radxa,rock-5b\0"),
            ],
        );
        let machine = read(&tree);
        assert_eq!(
            machine.cpu_model.as_deref(),
            Some("Arm Cortex-A55 + Arm Cortex-A76")
        );
        assert_eq!(machine.name().as_deref(), Some("Radxa ROCK 5B"));
        assert_eq!(machine.is_virtual, Some(false));
        let models = cpu_models(&tree.path().join("proc"));
        let cpus: Vec<String> = models.iter().map(|(cpus, _)| cpus.to_string()).collect();
        assert_eq!(cpus, ["0-3", "4-5"]);
    }

    #[test]
    fn pc_is_named_by_its_firmware() {
        let tree = Tree::new();
        let cpu = |n| format!("processor\t: {n}\nmodel name\t: X 9\nflags\t\t: fpu hypervisor\n\n");
        tree.files("proc", &[("cpuinfo", &(cpu(0) + &cpu(1)))]);
        tree.files(
            "sys/class/dmi/id",
            &[("sys_vendor", "ACME"), ("product_name", "ACME Box")],
        );
        let machine = read(&tree);
        assert_eq!(machine.cpu_model.as_deref(), Some("X 9"));
        assert_eq!(machine.name().as_deref(), Some("ACME Box"));
        assert_eq!(machine.is_virtual, Some(true));
        assert_eq!(read(&Tree::new()), Machine::default());
    }
}
