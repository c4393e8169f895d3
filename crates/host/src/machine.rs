//! The machine: its maker, its processor by name, whether a hypervisor runs below, limits set by its kernel.
//!
//! Memory: its size, the part that this process can use, and the use of huge pages by the kernel.
//!
//! Load of the machine by other processes: a short look at its counters while this process sleeps.

use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use std::{fmt, fs};

use crate::{cgroup, chosen, counters, text_of};
use iolab_storage::procfs::{self, CpuTicks, ProcessStat};
use iolab_storage::{Stack, sysfs};
use iolab_workload::table;

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
        Self {
            vendor: firmware("sys_vendor"),
            product: firmware("product_name").or_else(|| {
                let model = text_of(sys.join("firmware/devicetree/base/model"))?;
                Some(model.trim_end_matches('\0').to_owned())
            }),
            is_virtual: is_virtual(proc, sys),
            cpu_model: (!models.is_empty()).then(|| models.join(" + ")),
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

/// Models of the CPUs, each once: cores of ARM by their numbers, others by the kernel's name.
fn cpu_models(proc: &Path) -> Vec<String> {
    let text = text_of(proc.join("cpuinfo")).unwrap_or_default();
    let mut models: Vec<String> = Vec::new();
    for block in text.split("\n\n") {
        let field = |name: &str| {
            let mut lines = block.lines().filter_map(|line| line.split_once(':'));
            let (_, value) = lines.find(|(key, _)| key.trim() == name)?;
            Some(value.trim())
        };
        let number = |name: &str| u32::from_str_radix(field(name)?.strip_prefix("0x")?, 16).ok();
        let named = field("model name").map(str::to_owned);
        let core = || Some(core_name(number("CPU implementer")?, number("CPU part")?));
        // ARM kernels show a "model name" to 32-bit programs only, and it names no core.
        let name = core().or(named);
        models.extend(name.filter(|name| !models.contains(name)));
    }
    models
}

/// Who may not use io_uring (Documentation/admin-guide/sysctl/kernel.rst): 0 everyone may, 1 a group, 2 no one.
pub fn io_uring_disabled() -> Option<u64> {
    sysfs::value("/proc/sys/kernel/io_uring_disabled")
}

/// A number and its name.
type Named = (u32, &'static str);

/// Designers, each with its cores by part number.
const DESIGNERS: &[(Named, &[Named])] = &table! {
    ((0x41, "Arm"), &[
        (0xd03, "Cortex-A53"), (0xd04, "Cortex-A35"), (0xd05, "Cortex-A55"), (0xd07, "Cortex-A57"), (0xd08, "Cortex-A72"),
        (0xd09, "Cortex-A73"), (0xd0a, "Cortex-A75"), (0xd0b, "Cortex-A76"), (0xd0c, "Neoverse-N1"), (0xd0d, "Cortex-A77"),
        (0xd0e, "Cortex-A76AE"), (0xd40, "Neoverse-V1"), (0xd41, "Cortex-A78"), (0xd42, "Cortex-A78AE"), (0xd44, "Cortex-X1"),
        (0xd46, "Cortex-A510"), (0xd47, "Cortex-A710"), (0xd48, "Cortex-X2"), (0xd49, "Neoverse-N2"), (0xd4a, "Neoverse-E1"),
        (0xd4b, "Cortex-A78C"), (0xd4c, "Cortex-X1C"), (0xd4d, "Cortex-A715"), (0xd4e, "Cortex-X3"), (0xd4f, "Neoverse-V2"),
        (0xd80, "Cortex-A520"), (0xd81, "Cortex-A720"), (0xd82, "Cortex-X4"), (0xd83, "Neoverse-V3AE"), (0xd84, "Neoverse-V3"),
        (0xd85, "Cortex-X925"), (0xd87, "Cortex-A725"), (0xd8e, "Neoverse-N3")
    ]);
    ((0x42, "Broadcom"), &[(0x516, "ThunderX2")]);
    ((0x43, "Cavium"), &[
        (0x0a1, "ThunderX"), (0x0a2, "ThunderX-81xx"), (0x0a3, "ThunderX-83xx"), (0x0af, "ThunderX2"), (0x0b8, "ThunderX3")
    ]);
    ((0x46, "Fujitsu"), &[(0x001, "A64FX")]);
    ((0x48, "HiSilicon"), &[(0xd01, "TaiShan v110"), (0xd02, "TaiShan v120")]);
    ((0x4e, "NVIDIA"), &[(0x003, "Denver 2"), (0x004, "Carmel"), (0x010, "Olympus")]);
    ((0x50, "APM"), &[(0x000, "X-Gene")]);
    ((0x51, "Qualcomm"), &[
        (0x001, "Oryon"), (0x800, "Kryo 2xx Gold"), (0x801, "Kryo 2xx Silver"), (0x802, "Kryo 3xx Gold"),
        (0x803, "Kryo 3xx Silver"), (0x804, "Kryo 4xx Gold"), (0x805, "Kryo 4xx Silver"), (0xc00, "Falkor")
    ]);
    ((0x61, "Apple"), &[
        (0x022, "Icestorm (M1)"), (0x023, "Firestorm (M1)"), (0x024, "Icestorm (M1 Pro)"), (0x025, "Firestorm (M1 Pro)"),
        (0x028, "Icestorm (M1 Max)"), (0x029, "Firestorm (M1 Max)"), (0x032, "Blizzard (M2)"), (0x033, "Avalanche (M2)"),
        (0x034, "Blizzard (M2 Pro)"), (0x035, "Avalanche (M2 Pro)"), (0x038, "Blizzard (M2 Max)"), (0x039, "Avalanche (M2 Max)")
    ]);
    ((0x6d, "Microsoft"), &[(0xd49, "Azure Cobalt 100")]);
    ((0x70, "Phytium"), &[(0x662, "FTC662"), (0x663, "FTC663"), (0x862, "FTC862")]);
    ((0xc0, "Ampere"), &[(0xac3, "Ampere-1"), (0xac4, "Ampere-1A")]);
};

/// Name of a core. A core that is too new for this table keeps its numbers.
fn core_name(implementer: u32, part: u32) -> String {
    let designer = DESIGNERS
        .iter()
        .find(|((number, _), _)| *number == implementer);
    let Some(((_, designer), cores)) = designer else {
        return format!("ARM implementer {implementer:#04x}, part {part:#05x}");
    };
    match cores.iter().find(|(number, _)| *number == part) {
        Some((_, core)) => format!("{designer} {core}"),
        None => format!("{designer} part {part:#05x}"),
    }
}

/// Prefixes of firmware texts on virtual machines.
const NAMES: &[&str] = &[
    "Alibaba Cloud", "Amazon EC2", "Apple Virtualization", "BHYVE", "Bochs",
    "Google Compute Engine", "Hyper-V", "KVM", "KubeVirt", "OpenStack",
    "Oracle Corporation Virtual", "Parallels", "QEMU", "VMW", "VMware", "Virtual Machine",
    "VirtualBox", "Xen", "innotek GmbH",
];

fn is_virtual(proc: &Path, sys: &Path) -> Option<bool> {
    of_processor(proc)
        .or_else(|| sys.join("hypervisor/type").exists().then_some(true))
        .or_else(|| of_firmware(&sys.join("class/dmi/id"), &sys.join("firmware/dmi")))
        .or_else(|| of_device_tree(&sys.join("firmware/devicetree/base")))
}

/// The processor's own statement on x86-64; `None` on others.
fn of_processor(proc: &Path) -> Option<bool> {
    let text = text_of(proc.join("cpuinfo"))?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, flags) = lines.find(|(key, _)| key.trim() == "flags")?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// Verdict of the firmware, by its names and by its own statement, which only root may read. A bare-metal
/// machine of a cloud has the cloud's name and a product that ends in `metal`.
fn of_firmware(names: &Path, tables: &Path) -> Option<bool> {
    let product = text_of(names.join("product_name"))?;
    if product.ends_with(".metal") {
        return Some(false);
    }
    let others =
        ["sys_vendor", "board_vendor", "bios_vendor"].map(|file| text_of(names.join(file)));
    let mut texts = others.into_iter().flatten().chain([product]);
    if texts.any(|text| NAMES.iter().any(|name| text.starts_with(name))) {
        return Some(true);
    }
    // Type 0, byte 13h: bit 4 says that the table describes a virtual machine.
    let bios = fs::read(tables.join("entries/0-0/raw")).ok()?;
    bios.get(0x13).map(|byte| byte & 1 << 4 != 0)
}

/// Verdict of a device tree. A tree is written for a board; hypervisors add a node of their own, and QEMU's
/// tree names no board.
fn of_device_tree(root: &Path) -> Option<bool> {
    let compatible = text_of(root.join("compatible"))?;
    let is_dummy = compatible
        .split('\0')
        .any(|name| name == "linux,dummy-virt");
    let has = |node: &str| root.join(node).exists();
    let has_fw_cfg = fs::read_dir(root).is_ok_and(|nodes| {
        let mut nodes = nodes.flatten();
        nodes.any(|node| node.file_name().to_string_lossy().starts_with("fw-cfg"))
    });
    Some(is_dummy || has("hypervisor") || has_fw_cfg)
}

/// Memory that this process can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvailableMemory {
    /// Memory available without swapping, and without being killed for it, bytes.
    pub bytes: u64,
    /// Whether a control group allows less than the machine has.
    pub of_group: bool,
}

impl AvailableMemory {
    /// Reads the memory available; `None` where the system does not report it.
    pub fn read() -> Option<Self> {
        let machine = procfs::bytes("MemAvailable");
        let group = cgroup::CgroupLimits::read(Path::new("/proc"), &[]).memory_left_bytes;
        let of_group = group.is_some_and(|group| machine.is_none_or(|machine| group < machine));
        let bytes = if of_group { group } else { machine };
        bytes.map(|bytes| Self { bytes, of_group })
    }
}

impl fmt::Display for AvailableMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.of_group {
            true => "that the control group of this process leaves",
            false => "available",
        };
        write!(f, "{} MiB {whose}", self.bytes >> 20)
    }
}

/// Largest huge page that buffers of ordinary requests use by default, bytes. Kernels with pages of 64 KiB have
/// huge pages of 512 MiB, which take a tenth of a second to zero.
const BUFFER_PAGE_MAX: u64 = 64 << 20;

/// Sizes of the transparent huge pages of this kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HugePages {
    /// Memory that one second-level page-table entry maps, bytes: 2 MiB with pages of 4 KiB, 32 MiB with 16
    /// KiB, 512 MiB with 64 KiB.
    pub bytes: u64,
    /// Page size for buffers that must be contiguous in memory, bytes. `None` where the kernel has no small
    /// enough huge page, so that ordinary pages have to do.
    pub of_buffers: Option<u64>,
}

impl HugePages {
    /// Huge page sizes of the running kernel, read once.
    pub fn of_kernel() -> Self {
        static READ: LazyLock<HugePages> =
            LazyLock::new(|| HugePages::read(Path::new("/sys"), procfs::page_size() as u64));
        *READ
    }

    /// Reads `sys` (`/sys`) of a kernel with pages of `page` bytes (Documentation/admin-guide/mm/transhuge.rst
    /// of Linux). A huge page smaller than `bytes` needs a setting of its own (`hugepages-2048kB/enabled`).
    fn read(sys: &Path, page: u64) -> Self {
        let folder = sys.join("kernel/mm/transparent_hugepage");
        // A page table is one page of 8-byte entries.
        let bytes = sysfs::value(folder.join("hpage_pmd_size")).unwrap_or(page * page / 8);
        let smaller = [2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20]
            .into_iter()
            .filter(|size| *size < bytes)
            .find(|size| {
                let own = folder.join(format!("hugepages-{}kB/enabled", size >> 10));
                text_of(own).is_some_and(|text| chosen(&text) != "never")
            });
        Self {
            bytes,
            of_buffers: smaller.or(Some(bytes).filter(|bytes| *bytes <= BUFFER_PAGE_MAX)),
        }
    }
}

/// All settings for huge pages, the active one in brackets.
pub fn transparent_huge_pages() -> Option<String> {
    text_of("/sys/kernel/mm/transparent_hugepage/enabled")
}

/// Load during the look.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Load {
    /// Busy CPUs: 1.5 is one and a half.
    pub cpus_busy: Option<f64>,
    /// CPU time that a hypervisor gave to others, in CPUs.
    pub cpus_stolen: Option<f64>,
    /// Process that used the most CPU time, and the number of CPUs.
    pub busiest: Option<(String, f64)>,
    /// Share of the time in which some task waited for memory.
    pub memory_stall: Option<f64>,
    /// Read rate of the target's device, bytes per second.
    pub device_read_rate: Option<f64>,
    /// Write rate of the target's device, bytes per second.
    pub device_write_rate: Option<f64>,
    /// Completed requests of the target's device, per second.
    pub device_request_rate: Option<f64>,
}

impl Load {
    /// Watches the machine and the target's devices for `span`.
    pub fn look(proc: &Path, stack: &Stack, span: Duration) -> Self {
        let stacks = std::slice::from_ref(stack);
        let (tasks_before, began) = (tasks(proc), Instant::now());
        let (busy_before, before) = (busy_ticks(proc), counters::snapshot(stacks));
        std::thread::sleep(span);
        let counters = counters::since(&before, began.elapsed(), stacks);
        let busy = busy_ticks(proc).zip(busy_before);
        let seconds = began.elapsed().as_secs_f64().max(1e-3);
        let per_second = procfs::clock_ticks_per_second() as f64;
        let cpus = |ticks: u64| ticks as f64 / per_second / seconds;
        let rate = |count: u64| count as f64 / seconds;
        let share = |ns: u64| (ns as f64 / 1e9 / seconds).min(1.0);
        // Whole disk where possible: traffic with its other partitions counts too.
        let device = counters.bottom.map(|b| b.stat).or(counters.device);
        let pressure = counters.pressure;
        Self {
            cpus_busy: busy.map(|(now, then)| cpus(now.saturating_sub(then))),
            cpus_stolen: pressure.steal_ns.map(|ns| ns as f64 / 1e9 / seconds),
            busiest: busiest(&tasks(proc), &tasks_before).map(|(name, ticks)| (name, cpus(ticks))),
            memory_stall: pressure.memory_stall_ns.map(share),
            device_read_rate: device.map(|d| rate(d.read_bytes)),
            device_write_rate: device.map(|d| rate(d.write_bytes)),
            device_request_rate: device.map(|d| rate(d.read_ios + d.write_ios)),
        }
    }
}

/// CPU time of one process, clock ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    pid: u32,
    name: String,
    ticks: u64,
}

fn busy_ticks(proc: &Path) -> Option<u64> {
    Some(CpuTicks::parse(&fs::read_to_string(proc.join("stat")).ok()?)?.busy)
}

/// All processes but this one.
fn tasks(proc: &Path) -> Vec<Task> {
    let own = std::process::id();
    let others = procfs::numbers_in(proc)
        .into_iter()
        .filter(|pid| *pid != own);
    let tasks = others.filter_map(|pid| {
        let text = fs::read(proc.join(format!("{pid}/stat"))).ok()?;
        task(pid, &String::from_utf8_lossy(&text))
    });
    tasks.collect()
}

fn task(pid: u32, stat: &str) -> Option<Task> {
    let stat = ProcessStat::parse(stat)?;
    Some(Task {
        pid,
        name: stat.name.to_owned(),
        // Time in user mode and in the kernel.
        ticks: stat.number(14)?.saturating_add(stat.number(15)?),
    })
}

fn busiest(now: &[Task], then: &[Task]) -> Option<(String, u64)> {
    let used = now.iter().map(|task| {
        let before = then.iter().find(|other| other.pid == task.pid);
        let before = before.map_or(0, |other| other.ticks);
        (task, task.ticks.saturating_sub(before))
    });
    let (task, ticks) = used.max_by_key(|(_, ticks)| *ticks)?;
    (ticks > 0).then(|| (task.name.clone(), ticks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::Tree;

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
        let tree = Tree::empty();
        let cpuinfo: String = (0..6)
            .map(|cpu| arm_core(cpu, if cpu < 4 { "0xd05" } else { "0xd0b" }))
            .collect();
        tree.files("proc", &[("cpuinfo", &cpuinfo)]);
        tree.file("sys/firmware/devicetree/base/model", "Radxa ROCK 5B\0");
        tree.file("sys/firmware/devicetree/base/compatible", "radxa,rock-5b\0");
        let machine = read(&tree);
        assert_eq!(
            machine.cpu_model.as_deref(),
            Some("Arm Cortex-A55 + Arm Cortex-A76")
        );
        assert_eq!(machine.name().as_deref(), Some("Radxa ROCK 5B"));
        assert_eq!(machine.is_virtual, Some(false));
    }

    #[test]
    fn pc_is_named_by_its_firmware() {
        let tree = Tree::empty();
        let cpu = |n| format!("processor\t: {n}\nmodel name\t: X 9\nflags\t\t: fpu hypervisor\n\n");
        tree.files("proc", &[("cpuinfo", &(cpu(0) + &cpu(1)))]);
        tree.file("sys/class/dmi/id/sys_vendor", "ACME");
        tree.file("sys/class/dmi/id/product_name", "ACME Box");
        let machine = read(&tree);
        assert_eq!(machine.cpu_model.as_deref(), Some("X 9"));
        assert_eq!(machine.name().as_deref(), Some("ACME Box"));
        assert_eq!(machine.is_virtual, Some(true));
        assert_eq!(read(&Tree::empty()), Machine::default());
    }

    #[test]
    fn known_cores_have_names_unknown_ones_numbers() {
        assert_eq!(core_name(0x41, 0xd0c), "Arm Neoverse-N1");
        assert_eq!(core_name(0x41, 0xfff), "Arm part 0xfff");
        assert_eq!(core_name(0x07, 0x1), "ARM implementer 0x07, part 0x001");
    }

    fn with(files: &[(&str, &str)]) -> Option<bool> {
        let tree = Tree::empty();
        tree.files("sys", files);
        tree.files("proc", &[("cpuinfo", "processor\t: 0\nFeatures\t: fp")]);
        is_virtual(&tree.path().join("proc"), &tree.path().join("sys"))
    }

    #[test]
    fn firmware_names_the_clouds_and_their_bare_machines() {
        let dmi = |vendor, product| {
            with(&[
                ("class/dmi/id/sys_vendor", vendor),
                ("class/dmi/id/product_name", product),
            ])
        };
        assert_eq!(dmi("Amazon EC2", "m6g.large"), Some(true));
        assert_eq!(dmi("Amazon EC2", "m6g.metal"), Some(false));
        assert_eq!(dmi("Microsoft Corporation", "Virtual Machine"), Some(true));
        assert_eq!(dmi("QEMU", "KVM Virtual Machine"), Some(true));
        // Names of a server do not rule out a hypervisor.
        assert_eq!(dmi("GIGABYTE", "R272-P30-JG"), None);
    }

    #[test]
    fn firmware_that_can_be_read_says_it_itself() {
        let of = |byte: char| {
            let table = "\u{1}".repeat(0x13) + &byte.to_string();
            with(&[
                ("class/dmi/id/product_name", "R272-P30-JG"),
                ("firmware/dmi/entries/0-0/raw", &table),
            ])
        };
        assert_eq!(of('\u{1d}'), Some(true));
        assert_eq!(of('\u{d}'), Some(false));
    }

    #[test]
    fn device_tree_belongs_to_board_or_hypervisor() {
        let root = |more: &[(&'static str, &'static str)]| {
            let mut files = vec![("firmware/devicetree/base/compatible", "a,board\0a,soc\0")];
            files.extend(more);
            with(&files)
        };
        assert_eq!(root(&[]), Some(false));
        let base = "firmware/devicetree/base/";
        assert_eq!(
            root(&[(
                "firmware/devicetree/base/hypervisor/compatible",
                "linux,kvm"
            )]),
            Some(true)
        );
        assert_eq!(
            root(&[("firmware/devicetree/base/fw-cfg@9020000/reg", "x")]),
            Some(true)
        );
        let dummy = format!("{base}compatible");
        assert_eq!(with(&[(&dummy, "linux,dummy-virt\0")]), Some(true));
        assert_eq!(with(&[("hypervisor/type", "xen")]), Some(true));
        assert_eq!(with(&[]), None);
    }

    const ENABLED: &str = "kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";

    #[test]
    fn buffers_take_the_largest_allowed_huge_page() {
        let of = |page: u64, files: &[(&str, &str)]| {
            let tree = Tree::empty();
            tree.files("", files);
            let found = HugePages::read(tree.path(), page << 10);
            (found.bytes >> 20, found.of_buffers.map(|bytes| bytes >> 20))
        };
        assert_eq!(of(4, &[]), (2, Some(2)));
        assert_eq!(of(16, &[]), (32, Some(32)));
        assert_eq!(of(64, &[]), (512, None));
        let told = ("kernel/mm/transparent_hugepage/hpage_pmd_size", "536870912");
        assert_eq!(
            of(64, &[told, (ENABLED, "always inherit madvise [never]")]),
            (512, None)
        );
        assert_eq!(
            of(64, &[told, (ENABLED, "always inherit [madvise] never")]),
            (512, Some(2))
        );
    }

    #[test]
    fn a_process_is_read_as_linux_prints_it() {
        let line = "77 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0";
        let expected = Task {
            pid: 77,
            name: "a (b) c".to_owned(),
            ticks: 42,
        };
        assert_eq!(task(77, line), Some(expected));
        assert_eq!(task(77, "77 (x"), None);
    }

    #[test]
    fn busiest_process_is_counted_between_two_looks() {
        let of = |pid, name: &str, ticks| Task {
            pid,
            name: name.to_owned(),
            ticks,
        };
        let then = [of(1, "old", 9_000), of(2, "busy", 10)];
        let now = [of(1, "old", 9_001), of(2, "busy", 30), of(3, "new", 5)];
        assert_eq!(busiest(&now, &then), Some(("busy".to_owned(), 20)));
        assert_eq!(busiest(&then, &then), None);
    }
}
