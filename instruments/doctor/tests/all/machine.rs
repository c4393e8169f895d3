//! A quiet machine of which everything is known.

use iolab_doctor::{
    Attempt, Direct, Facts, Space, TargetContent, TargetFacts, TimeStamps, Transfer,
};
use iolab_host::cgroup::CgroupLimits;
use iolab_host::device::{Device, DeviceLink, Transport};
use iolab_host::machine::Load;
use iolab_host::processor::Processor;
use iolab_storage::{FileSystem, TargetKind};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;
/// Bytes of a probe of direct I/O.
pub(crate) const PROBE: u64 = 4 << 20;

/// A file on an ordinary drive of a server.
pub(crate) fn quiet() -> Facts {
    Facts {
        place: TargetFacts {
            named: "data".to_owned(),
            kind: TargetKind::File,
            bytes: Some(4 * GIB),
            is_memory: false,
        },
        file_system: Some(FileSystem {
            kind: "ext4".to_owned(),
            mount_point: "/mnt/the disk".into(),
            mount_options: "rw,relatime".to_owned(),
            source: "/dev/nvme0n1p1".to_owned(),
        }),
        space: Some(Space {
            total: 100 * GIB,
            free: 50 * GIB,
            room: 45 * GIB,
        }),
        device: Some(Device {
            name: "nvme0n1p1".to_owned(),
            disk: "nvme0n1".to_owned(),
            transport: Transport::Nvme,
            rotational: Some(false),
            write_cache: Some("write through".to_owned()),
            scheduler: Some("none".to_owned()),
            misaligned_bytes: Some(0),
            counts_traffic: Some(true),
            link: Some(DeviceLink {
                now: "16.0 GT/s x4".to_owned(),
                best: None,
                ceiling_mb_s: Some(7876.9),
            }),
            temperature: Some((40.0, 80.0)),
            ..Device::default()
        }),
        content: Some(TargetContent {
            looked_bytes: 100 * MIB,
            length: Some(100 * MIB),
            allocated_bytes: Some(100 * MIB),
            zero_blocks: Some((64, 3)),
            ..TargetContent::default()
        }),
        direct: Some(Direct::Tried {
            alignment: 512,
            read: Ok(transfer([Some(PROBE), Some(PROBE), None], Some(0), Some(0))),
            write: None,
        }),
        backends: vec![
            ("psync".to_owned(), Attempt::Works(None)),
            ("libaio".to_owned(), Attempt::Works(None)),
        ],
        trims: Some(Attempt::Works(None)),
        hardware: Some(Ok(())),
        clock: Some(TimeStamps {
            source: "tsc".to_owned(),
            is_counter: true,
            cost_ns: 11.0,
            resolution_ns: 0.4,
        }),
        machine: None,
        is_virtual: Some(false),
        memory_bytes: Some(16 * GIB),
        processor: Processor {
            usable: Some(8),
            present: Some(8),
            governor: Some("performance".to_owned()),
        },
        huge_pages: Some("madvise".to_owned()),
        cgroup: CgroupLimits {
            memory_bytes: Some(32 * GIB),
            ..CgroupLimits::default()
        },
        open_files: Some(20_000),
        load: Some(Load {
            cpus_busy: Some(0.1),
            cpus_stolen: Some(0.0),
            memory_stall: Some(0.0),
            device_read_rate: Some(0.0),
            device_write_rate: Some(20_000.0),
            device_request_rate: Some(5.0),
            ..Load::default()
        }),
        region_bytes: GIB,
        ..Facts::default()
    }
}

/// A probe of direct reads: what the process, the device and the disks below it counted, and what was in the page cache before
/// and after.
pub(crate) fn transfer(
    [process, device, disk]: [Option<u64>; 3],
    before: Option<u64>,
    after: Option<u64>,
) -> Transfer {
    Transfer {
        bytes: PROBE,
        process_bytes: process,
        device_bytes: device,
        disk_bytes: disk,
        cached_before_bytes: before,
        cached_bytes: after,
    }
}
