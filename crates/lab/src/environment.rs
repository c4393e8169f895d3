//! What the run was measured on: machine, kernel, file system, device. Everything specific to Linux that the lab
//! reads stands here. What cannot be read is left out, never invented; the host's name is not recorded.

pub mod cgroup;
pub mod device;
pub mod link;
pub mod load;
pub mod processor;
mod tlb;
#[cfg(test)]
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use iolab_engine::clock::Clock;
use iolab_engine::target::Target;

use crate::units::parse_size;

/// Longest value kept: device models and kernel banners are short, anything longer is noise.
const VALUE_MAX: usize = 500;

/// Keys with their units, and values, in the order they are printed.
pub type Environment = Vec<(String, String)>;

/// Reads everything that can be read now.
pub fn capture(target: &Target, clock: &Clock) -> Environment {
    let mut list = List(Vec::new());
    list.put("iolab_version", Some(env!("CARGO_PKG_VERSION").to_owned()));
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    list.put("iolab_build", Some(profile.to_owned()));
    list.put("clock_source", Some(clock.source()));
    list.put("clock_cost_ns", Some(format!("{:.1}", clock.cost_ns())));
    machine(&mut list);
    caches(&mut list, Path::new("/sys/devices/system/cpu/cpu0"));
    let reach = tlb::reach();
    let text = |bytes: Option<u64>| bytes.map(|bytes| bytes.to_string());
    list.put("tlb_l1d_reach_bytes", text(reach.l1d));
    list.put("tlb_l2_reach_bytes", text(reach.l2));
    kernel(&mut list);
    file_system(&mut list, target);
    if let Some((major, minor)) = target.device() {
        device(
            &mut list,
            &PathBuf::from(format!("/sys/dev/block/{major}:{minor}")),
        );
        stack(&mut list, (major, minor));
    }
    list.0
}

/// Adds entries that are not read from the system.
pub(crate) fn add(environment: &mut Environment, entries: Vec<(String, String)>) {
    let mut list = List(std::mem::take(environment));
    for (key, value) in entries {
        list.put(&key, Some(value));
    }
    *environment = list.0;
}

/// Keys whose values change by themselves.
const PASSING: [&str; 3] = ["uptime_s", "memory_available_bytes", "clock_cost_ns"];

/// What differs between two environments: key, value in `a`, value in `b`; in the order of `a`, then of `b`. What
/// changes by itself, such as the uptime, is left out.
pub fn differences(
    a: &[(String, String)],
    b: &[(String, String)],
) -> Vec<(String, Option<String>, Option<String>)> {
    let value = |list: &[(String, String)], key: &str| {
        list.iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.clone())
    };
    let only_b = b.iter().filter(|(key, _)| value(a, key).is_none());
    a.iter()
        .chain(only_b)
        .filter(|(key, _)| !PASSING.contains(&key.as_str()))
        .map(|(key, _)| (key.clone(), value(a, key), value(b, key)))
        .filter(|(_, a, b)| a != b)
        .collect()
}

struct List(Environment);

impl List {
    fn put(&mut self, key: &str, value: Option<String>) {
        let Some(value) = value else { return };
        let value: String = value
            .trim()
            .chars()
            .filter(|c| !c.is_control())
            .take(VALUE_MAX)
            .collect();
        if !value.is_empty() {
            self.0.push((key.to_owned(), value));
        }
    }

    fn put_file(&mut self, key: &str, path: impl AsRef<Path>) {
        self.put(key, read(path));
    }
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The content of a file of `/proc` or `/sys` without the blanks around it; `None` where it is missing or empty.
fn text_of(path: impl AsRef<Path>) -> Option<String> {
    let text = read(path)?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The value behind `name :` or `name:` in a file of such lines.
fn field(path: &str, name: &str) -> Option<String> {
    let text = read(path)?;
    let line = text.lines().find(|line| {
        line.split_once(':')
            .is_some_and(|(key, _)| key.trim() == name)
    })?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn machine(list: &mut List) {
    list.put_file("machine_vendor", "/sys/class/dmi/id/sys_vendor");
    list.put_file("machine_product", "/sys/class/dmi/id/product_name");
    list.put(
        "machine_is_virtual",
        is_virtual().map(|yes| yes.to_string()),
    );
    list.put("cpu_model", field("/proc/cpuinfo", "model name"));
    let cores = std::thread::available_parallelism()
        .ok()
        .map(|n| n.to_string());
    list.put("cpu_usable_count", cores);
    let cpu = "/sys/devices/system/cpu/cpu0/cpufreq";
    list.put_file("cpu_governor", format!("{cpu}/scaling_governor"));
    list.put_file("cpu_frequency_min_khz", format!("{cpu}/scaling_min_freq"));
    list.put_file("cpu_frequency_max_khz", format!("{cpu}/scaling_max_freq"));
    list.put("memory_bytes", meminfo_bytes("MemTotal"));
    list.put("memory_available_bytes", meminfo_bytes("MemAvailable"));
    list.put("page_bytes", Some(rustix::param::page_size().to_string()));
    list.put("huge_page_bytes", meminfo_bytes("Hugepagesize"));
    list.put_file(
        "transparent_huge_pages",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    );
}

/// Whether a hypervisor lies below, as the processor says.
pub(crate) fn is_virtual() -> Option<bool> {
    let flags = field("/proc/cpuinfo", "flags")?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// Maker and product of the machine, as its firmware calls them.
pub(crate) fn machine_name() -> Option<String> {
    let id = Path::new("/sys/class/dmi/id");
    let product = text_of(id.join("product_name"))?;
    Some(match text_of(id.join("sys_vendor")) {
        Some(vendor) if !product.starts_with(&vendor) => format!("{vendor} {product}"),
        _ => product,
    })
}

/// The setting in force in a file that lists all and puts that one in brackets.
pub(crate) fn setting_in_force(path: &str) -> Option<String> {
    text_of(path).map(|text| chosen(&text))
}

/// All memory of the machine, bytes.
pub(crate) fn memory_bytes() -> Option<u64> {
    meminfo_bytes("MemTotal")?.parse().ok()
}

/// Memory that this process can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvailableMemory {
    /// Without swapping, and without being killed for it; bytes.
    pub bytes: u64,
    /// Whether a control group leaves less than the machine has.
    pub of_group: bool,
}

impl AvailableMemory {
    /// Reads it; `None` where the system does not say.
    pub fn read() -> Option<Self> {
        let machine = meminfo_bytes("MemAvailable").and_then(|bytes| bytes.parse().ok());
        let group = cgroup::Limits::read(Path::new("/proc"), &[]).memory_left_bytes;
        let of_group = group.is_some_and(|group| machine.is_none_or(|machine| group < machine));
        let bytes = if of_group { group } else { machine };
        bytes.map(|bytes| Self { bytes, of_group })
    }
}

impl std::fmt::Display for AvailableMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whose = match self.of_group {
            true => "that the control group of this process leaves",
            false => "available",
        };
        write!(f, "{} MiB {whose}", self.bytes >> 20)
    }
}

/// A line of `/proc/meminfo`, whose unit kB means 1024 bytes.
fn meminfo_bytes(name: &str) -> Option<String> {
    let kib: u64 = field("/proc/meminfo", name)?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    kib.checked_mul(1024).map(|bytes| bytes.to_string())
}

fn caches(list: &mut List, cpu: &Path) {
    let mut line = None;
    for index in 0..8 {
        let folder = cpu.join(format!("cache/index{index}"));
        let text = |name| read(folder.join(name)).map(|text| text.trim().to_owned());
        let (Some(level), Some(kind), Some(size)) = (text("level"), text("type"), text("size"))
        else {
            continue;
        };
        let suffix = match kind.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        let bytes = parse_size(&size).ok().map(|bytes| bytes.to_string());
        list.put(&format!("cache_l{level}{suffix}_bytes"), bytes);
        line = line.or_else(|| text("coherency_line_size"));
    }
    list.put("cache_line_bytes", line);
}

fn kernel(list: &mut List) {
    let name = rustix::system::uname();
    list.put(
        "kernel_release",
        Some(name.release().to_string_lossy().into_owned()),
    );
    list.put(
        "kernel_version",
        Some(name.version().to_string_lossy().into_owned()),
    );
    list.put(
        "architecture",
        Some(name.machine().to_string_lossy().into_owned()),
    );
    let uptime = read("/proc/uptime").and_then(|text| text.split('.').next().map(str::to_owned));
    list.put("uptime_s", uptime);
    list.put_file("io_uring_disabled", "/proc/sys/kernel/io_uring_disabled");
}

fn file_system(list: &mut List, target: &Target) {
    if let Some(found) = target.filesystem() {
        list.put("file_system", Some(found.kind));
        list.put("mount_point", Some(found.mount_point.display().to_string()));
        list.put("mount_options", Some(found.mount_options));
        list.put("mount_source", Some(found.source));
    }
    if let Ok(alignment) = target.direct_alignment() {
        list.put(
            "direct_memory_alignment_bytes",
            Some(alignment.memory.to_string()),
        );
        list.put(
            "direct_offset_alignment_bytes",
            Some(alignment.offset.to_string()),
        );
    }
}

/// `link` is the entry of `/sys/dev/block`; a partition's queue is that of its disk.
fn device(list: &mut List, link: &Path) {
    let Ok(folder) = fs::canonicalize(link) else {
        return;
    };
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    list.put("device", name(&folder));
    let disk = if folder.join("partition").exists() {
        folder.parent().unwrap_or(&folder).to_owned()
    } else {
        folder
    };
    list.put("device_disk", name(&disk));
    for (key, file) in [
        ("device_model", "device/model"),
        ("device_vendor", "device/vendor"),
        ("device_firmware", "device/firmware_rev"),
        ("device_removable", "removable"),
        ("device_rotational", "queue/rotational"),
        ("device_write_cache", "queue/write_cache"),
        ("device_read_ahead_kib", "queue/read_ahead_kb"),
        ("device_requests_max", "queue/nr_requests"),
        ("device_request_max_kib", "queue/max_sectors_kb"),
        ("device_segments_max", "queue/max_segments"),
        ("device_logical_block_bytes", "queue/logical_block_size"),
        ("device_physical_block_bytes", "queue/physical_block_size"),
    ] {
        list.put_file(key, disk.join(file));
    }
    list.put(
        "device_scheduler",
        read(disk.join("queue/scheduler")).map(|text| chosen(&text)),
    );
    let sectors: Option<u64> = read(disk.join("size")).and_then(|text| text.trim().parse().ok());
    let bytes = sectors.and_then(|count| count.checked_mul(512));
    list.put("device_bytes", bytes.map(|bytes| bytes.to_string()));
}

/// How the device is connected, and what it is made of.
fn stack(list: &mut List, number: (u32, u32)) {
    let Some(device) = device::Device::read(Path::new("/sys"), number) else {
        return;
    };
    list.put("device_transport", Some(device.transport.to_string()));
    list.put(
        "device_stack",
        Some(device.chain()).filter(|_| !device.below.is_empty()),
    );
    let bytes = device.optimal_io_bytes.map(|bytes| bytes.to_string());
    list.put("device_optimal_io_bytes", bytes);
    if let Some(link) = &device.link {
        list.put("device_link", Some(link.now.clone()));
        list.put("device_link_best", Some(link.best.clone()));
        let ceiling = link.ceiling_mb_s.map(|mb_s| format!("{mb_s:.1}"));
        list.put("device_link_mb_s", ceiling);
    }
}

/// The entry in brackets of a list such as `none [mq-deadline] kyber`; the whole text when there is none.
fn chosen(text: &str) -> String {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(name, _)| name).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use iolab_engine::target::{Consent, Need, Size};

    use super::*;

    #[test]
    fn the_scheduler_in_brackets_is_the_one_in_use() {
        assert_eq!(chosen("none [mq-deadline] kyber bfq\n"), "mq-deadline");
        assert_eq!(chosen("none\n"), "none");
        assert_eq!(chosen("[none\n"), "[none");
    }

    #[test]
    fn differences_name_what_one_side_lacks_and_leave_out_what_passes() {
        let list = |pairs: &[(&str, &str)]| -> Environment {
            let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            pairs.iter().map(own).collect()
        };
        let a = list(&[
            ("kernel", "6.1"),
            ("uptime_s", "5"),
            ("gone", "x"),
            ("same", "y"),
        ]);
        let b = list(&[
            ("same", "y"),
            ("new", "z"),
            ("kernel", "6.2"),
            ("uptime_s", "9"),
        ]);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            differences(&a, &b),
            [
                ("kernel".to_owned(), some("6.1"), some("6.2")),
                ("gone".to_owned(), some("x"), None),
                ("new".to_owned(), None, some("z")),
            ]
        );
        assert!(differences(&a, &a).is_empty());
    }

    #[test]
    fn values_are_plain_text_of_bounded_length() {
        let mut list = List(Vec::new());
        list.put("a", Some("  x\u{1b}[31my\n".to_owned()));
        list.put("b", Some(" \n".to_owned()));
        list.put("c", None);
        list.put("d", Some("z".repeat(9_999)));
        assert_eq!(list.0[0], ("a".to_owned(), "x[31my".to_owned()));
        assert_eq!(list.0.len(), 2);
        assert_eq!(list.0[1].1.len(), VALUE_MAX);
    }

    #[test]
    fn this_machine_is_described() {
        let directory = tempfile::tempdir().expect("a temporary folder");
        let need = Need {
            size: Size::Exactly(1 << 20),
            write: true,
            consent: Consent::No,
            beside: Default::default(),
        };
        let target = Target::open(directory.path(), &need).expect("a scratch file");
        let environment = capture(&target, &Clock::calibrate());
        let value = |key: &str| {
            environment
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!(value("iolab_version"), Some(env!("CARGO_PKG_VERSION")));
        assert!(value("kernel_release").is_some_and(|text| !text.is_empty()));
        assert!(
            value("memory_bytes")
                .and_then(|text| text.parse().ok())
                .is_some_and(|b: u64| b > 1 << 20)
        );
        assert!(value("file_system").is_some());
        let mut keys: Vec<_> = environment.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), environment.len(), "a key occurs twice");
    }
}
