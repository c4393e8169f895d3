//! Environment of a run as a list of facts: machine, kernel, file system and device. Unreadable facts are left
//! out.

use std::ffi::CStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use iolab_host::clock::Clock;
use iolab_storage::{LastingIdentity, Target, procfs, sysfs};
use iolab_workload::units::parse_size;

use iolab_host::device::Device;
use iolab_host::machine::{HugePages, Machine, io_uring_disabled, transparent_huge_pages};
use iolab_host::{cgroup, processor};
use iolab_record::digest;
use iolab_record::environment::{Cache, Environment, Holds, KEYS, Whole};

/// Reads the facts of this machine, of `target` and of `clock`.
pub fn capture(target: &Target, clock: &Clock) -> Environment {
    let mut list = program();
    list.put(&KEYS.clock_source, clock.source());
    list.put(&KEYS.clock_cost_ns, clock.cost_ns());
    list.put(&KEYS.clock_resolution_ns, clock.resolution_ns());
    this_machine(&mut list);
    list.extend(of_target(target));
    list
}

/// Reads the facts of this machine and of block devices, by their kernel names: the first counts as a run's
/// target, the others as further targets.
pub fn of_devices(names: &[&str]) -> Environment {
    let mut list = program();
    this_machine(&mut list);
    let sys = Path::new("/sys");
    for (place, name) in names.iter().enumerate() {
        let folder = sys.join("class/block").join(name.replace('/', "!"));
        let number = sysfs::device_number(&folder);
        let Some(device) = number.and_then(|number| Device::read(sys, number)) else {
            continue;
        };
        let mut own = Environment::default();
        put_device(&mut own, &device);
        match place {
            0 => list.extend(own),
            _ => list.put_target(place, own),
        }
    }
    list
}

/// Version and build of iolab.
fn program() -> Environment {
    let mut list = Environment::default();
    list.put(&KEYS.iolab_version, env!("CARGO_PKG_VERSION").to_owned());
    list.put(&KEYS.iolab_build, env!("IOLAB_BUILD").to_owned());
    list
}

fn this_machine(list: &mut Environment) {
    let cpu = Path::new("/sys/devices/system/cpu/cpu0");
    machine(list, cpu);
    caches(list, cpu);
    let reach = processor::reach();
    list.put(&KEYS.tlb_l1d_reach_bytes, reach.l1d);
    list.put(&KEYS.tlb_l2_reach_bytes, reach.l2);
    kernel(list);
}

/// Reads the facts of a target: its file system and its device.
pub fn of_target(target: &Target) -> Environment {
    let mut list = Environment::default();
    file_system(&mut list, target);
    let device = target.device();
    if let Some(device) = device.and_then(|number| Device::read(Path::new("/sys"), number)) {
        put_device(&mut list, &device);
        put_limits(&mut list, &device);
    }
    put_identity(&mut list, target.lasting_identity());
    list
}

/// Adds the identity of an existing target. It contains no serial number and no path, because run files are
/// published.
fn put_identity(list: &mut Environment, identity: LastingIdentity) {
    let LastingIdentity {
        file,
        file_bytes,
        device,
        partition,
    } = identity;
    let digest = |text: String| digest(text.bytes());
    list.put(&KEYS.target_file_id, file.map(digest));
    list.put(&KEYS.target_file_bytes, file_bytes);
    list.put(&KEYS.device_identity, device.map(digest));
    let partition = partition.map(|(start, bytes)| format!("{start}+{bytes}"));
    list.put(&KEYS.device_partition, partition);
}

fn machine(list: &mut Environment, cpu: &Path) {
    let name = rustix::system::uname();
    list.put(
        &KEYS.host_name,
        name.nodename().to_string_lossy().into_owned(),
    );
    let (proc, sys) = (Path::new("/proc"), Path::new("/sys"));
    let machine = Machine::read(proc, sys);
    list.put(&KEYS.machine_vendor, machine.vendor);
    list.put(&KEYS.machine_product, machine.product);
    list.put(&KEYS.machine_is_virtual, machine.is_virtual);
    list.put(&KEYS.cpu_model, machine.cpu_model);
    list.put(&KEYS.cpu_usable_count, processor::usable());
    list.put(&KEYS.cpu_governor, processor::governor(cpu));
    let khz = |bound: &str| sysfs::value(cpu.join(format!("cpufreq/scaling_{bound}_freq")));
    list.put(&KEYS.cpu_frequency_min_khz, khz("min"));
    list.put(&KEYS.cpu_frequency_max_khz, khz("max"));
    list.put(&KEYS.memory_bytes, procfs::bytes("MemTotal"));
    list.put(&KEYS.memory_available_bytes, procfs::bytes("MemAvailable"));
    list.put(&KEYS.page_bytes, procfs::page_size() as u64);
    list.put(&KEYS.huge_page_bytes, HugePages::of_kernel().bytes);
    list.put(&KEYS.transparent_huge_pages, transparent_huge_pages());
}

fn caches(list: &mut Environment, cpu: &Path) {
    let mut line = None;
    for index in 0..8 {
        let folder = cpu.join(format!("cache/index{index}"));
        let text = |name| sysfs::text_of(folder.join(name));
        let level = text("level").and_then(|text| text.parse().ok());
        let (Some(level), Some(kind), Some(size)) = (level, text("type"), text("size")) else {
            continue;
        };
        let holds = match kind.as_str() {
            "Data" => Holds::Data,
            "Instruction" => Holds::Instructions,
            _ => Holds::Both,
        };
        let key = KEYS.cache_bytes.of(Cache { level, holds });
        list.put(&key, parse_size(&size).ok());
        line = line.or_else(|| sysfs::value(folder.join("coherency_line_size")));
    }
    list.put(&KEYS.cache_line_bytes, line);
}

fn kernel(list: &mut Environment) {
    let name = rustix::system::uname();
    let text = |part: &CStr| part.to_string_lossy().into_owned();
    list.put(&KEYS.kernel_release, text(name.release()));
    list.put(&KEYS.kernel_version, text(name.version()));
    list.put(&KEYS.architecture, text(name.machine()));
    let uptime =
        sysfs::text_of("/proc/uptime").and_then(|text| text.split('.').next()?.parse().ok());
    list.put::<Whole>(&KEYS.uptime_s, uptime);
    list.put(&KEYS.io_uring_disabled, io_uring_disabled());
}

fn file_system(list: &mut Environment, target: &Target) {
    if let Some(found) = target.filesystem() {
        list.put(&KEYS.file_system, found.kind);
        list.put(&KEYS.mount_point, found.mount_point.display().to_string());
        list.put(&KEYS.mount_options, found.mount_options);
        list.put(&KEYS.mount_source, found.source);
    }
    if let Ok(alignment) = target.direct_alignment() {
        list.put(&KEYS.direct_memory_alignment_bytes, alignment.memory);
        list.put(&KEYS.direct_offset_alignment_bytes, alignment.offset);
    }
}

/// Identity of a loop device's file: its path, and its inode if the path leads to it from here.
fn id_of_file(path: &str) -> String {
    let inode = std::fs::metadata(path).map(|found| found.ino());
    let inode = inode.map_or_else(|_| String::new(), |number| number.to_string());
    format!("{path} {inode}")
}

/// Adds the device: its identity, connection and layers; the queue of a partition is its disk's.
fn put_device(list: &mut Environment, device: &Device) {
    let kib = |bytes: Option<u64>| bytes.map(|bytes| bytes / 1024);
    list.put(&KEYS.device, device.name.clone());
    list.put(&KEYS.device_disk, device.disk.clone());
    let number = device.number;
    let number = number.map(|(major, minor)| format!("{major}:{minor}"));
    list.put(&KEYS.device_number, number);
    list.put(&KEYS.device_model, device.identity.model.clone());
    list.put(&KEYS.device_vendor, device.identity.vendor.clone());
    list.put(&KEYS.device_firmware, device.identity.firmware.clone());
    // Without serial numbers and paths of files, because run files are published.
    let of_file = || {
        device
            .backing
            .as_ref()
            .map(|backing| id_of_file(&backing.file))
    };
    let id = device.identity.id.clone().or_else(of_file);
    list.put(&KEYS.device_id, id.map(|id| digest(id.bytes())));
    list.put(&KEYS.device_removable, device.removable);
    list.put(&KEYS.device_rotational, device.rotational);
    list.put(&KEYS.device_write_cache, device.write_cache.clone());
    let counter = device.flush_counter();
    list.put(
        &KEYS.device_flush_counter,
        counter.map(|counter| counter.to_string()),
    );
    list.put(&KEYS.device_read_ahead_kib, kib(device.read_ahead_bytes));
    list.put(&KEYS.device_queues, device.queues as u64);
    list.put(&KEYS.device_requests_max, device.requests_max);
    list.put(&KEYS.device_request_max_kib, kib(device.request_max_bytes));
    list.put(&KEYS.device_segments_max, device.segments_max);
    list.put(&KEYS.device_logical_block_bytes, device.logical_block_bytes);
    list.put(
        &KEYS.device_physical_block_bytes,
        device.physical_block_bytes,
    );
    list.put(&KEYS.device_scheduler, device.scheduler.clone());
    list.put(&KEYS.device_bytes, device.bytes);
    list.put(&KEYS.device_transport, device.transport.to_string());
    let chain = (!device.below.is_empty()).then(|| device.chain());
    list.put(&KEYS.device_stack, chain);
    list.put(&KEYS.device_minimum_io_bytes, device.minimum_io_bytes);
    list.put(&KEYS.device_optimal_io_bytes, device.optimal_io_bytes);
    if let Some(link) = &device.link {
        list.put(&KEYS.device_link, link.now.clone());
        list.put(&KEYS.device_link_best, link.best.clone());
        list.put(&KEYS.device_link_mb_s, link.ceiling_mb_s);
    }
}

/// Adds the control-group limits on this process's traffic with the device.
fn put_limits(list: &mut Environment, device: &Device) {
    let limits = cgroup::CgroupLimits::of_device(Path::new("/proc"), Some(device));
    for limit in limits.io {
        list.put(KEYS.device_limit(limit.what), limit.per_second);
    }
}

#[cfg(test)]
mod tests {
    use iolab_storage::Need;

    use super::*;

    #[test]
    fn this_machine_is_described() {
        let directory = tempfile::tempdir().expect("a temporary folder");
        let need = Need::writing(1 << 20);
        let target = Target::open(directory.path(), &need).expect("a scratch file");
        let environment = capture(&target, &Clock::calibrate());
        let version = environment.get(&KEYS.iolab_version);
        assert_eq!(version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
        let release = environment.get(&KEYS.kernel_release);
        assert!(release.is_some_and(|text| !text.is_empty()));
        let memory = environment.get(&KEYS.memory_bytes);
        assert!(memory.is_some_and(|bytes| bytes > 1 << 20));
        assert!(environment.get(&KEYS.file_system).is_some());
        let mut keys: Vec<_> = environment.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), environment.iter().count(), "a key occurs twice");
    }
}
