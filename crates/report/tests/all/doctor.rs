//! Text of the doctor about a made-up machine, reviewed before it was accepted.

use iolab_doctor::{
    Attempt, Diagnosis, Direct, Facts, ProcessLimits, Severity, Space, TargetContent, TargetFacts,
    TimeStamps, Transfer, diagnose,
};
use iolab_host::cgroup::{self, IoLimit};
use iolab_host::device::Device;
use iolab_host::device_link::DeviceLink;
use iolab_host::device_link::Transport;
use iolab_host::load::Load;
use iolab_host::processor::Processor;
use iolab_record::environment::{Environment, KEYS};
use iolab_report::doctor;
use iolab_storage::{FileSystem, TargetKind};
use iolab_workload::counters::NoHardware;
use iolab_workload::counters::Traffic;
use serde_json::Value;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn disk() -> Device {
    Device {
        name: "nvme0n1p2".to_owned(),
        disk: "nvme0n1".to_owned(),
        model: Some("Fast Disk 1000".to_owned()),
        transport: Transport::Nvme,
        bytes: Some(931 * GIB),
        rotational: Some(false),
        write_cache: Some("write back".to_owned()),
        scheduler: Some("none".to_owned()),
        requests_max: Some(1023),
        request_max_bytes: Some(512 << 10),
        logical_block_bytes: Some(512),
        physical_block_bytes: Some(512),
        misaligned_bytes: Some(0),
        counts_traffic: Some(true),
        link: Some(DeviceLink {
            now: "8.0 GT/s x2".to_owned(),
            best: "16.0 GT/s x4".to_owned(),
            ceiling_mb_s: Some(1969.2),
        }),
        temperature: Some((44.0, 82.0)),
        ..Device::default()
    }
}

fn encrypted_disk() -> Device {
    Device {
        name: "dm-0".to_owned(),
        disk: "dm-0".to_owned(),
        transport: Transport::DeviceMapper,
        layer: Some("crypt".to_owned()),
        bytes: Some(900 * GIB),
        below: vec![disk()],
        ..Device::default()
    }
}

fn processor() -> Processor {
    Processor {
        usable: Some(8),
        present: Some(8),
        kinds: Vec::new(),
        governor: Some("powersave".to_owned()),
        boost: Some(true),
        smt: Some(true),
        throttled: Some(0),
        mitigations: vec![("mds".to_owned(), "Clear CPU buffers".to_owned())],
        system_call_ns: Some(310.0),
        on_battery: Some(true),
    }
}

/// A laptop with a sparse file on an encrypted disk, during a compilation.
fn laptop() -> Facts {
    Facts {
        place: TargetFacts {
            named: "/home/me/my data".to_owned(),
            kind: TargetKind::File,
            bytes: Some(2 * GIB),
            is_memory: false,
        },
        file_system: Some(FileSystem {
            kind: "ext4".to_owned(),
            mount_point: "/home".into(),
            mount_options: "rw,relatime".to_owned(),
            source: "/dev/mapper/home".to_owned(),
        }),
        layering: None,
        space: Some(Space {
            total: 900 * GIB,
            free: 40 * GIB,
            room: 40 * GIB,
        }),
        device: Some(encrypted_disk()),
        content: Some(TargetContent {
            looked_bytes: 2 * GIB,
            empty_bytes: GIB / 2,
            allocated_bytes: Some(3 * GIB / 2),
            written: Some((0, GIB)),
            ..TargetContent::default()
        }),
        direct: Some(Direct::Tried {
            alignment: 512,
            read: Ok(Transfer {
                bytes: 4 * MIB,
                process_bytes: Some(4 * MIB),
                device_bytes: Some(4 * MIB),
                disk_bytes: Some(4 * MIB),
                cached_before_bytes: Some(0),
                cached_bytes: Some(0),
            }),
            write: None,
        }),
        backends: vec![
            ("psync".to_owned(), Attempt::Works(None)),
            ("libaio".to_owned(), Attempt::Works(None)),
            (
                "io_uring".to_owned(),
                Attempt::Fails(
                    "io_uring cannot be set up: operation not permitted".to_owned(),
                    Some("sudo sysctl kernel.io_uring_disabled=0".to_owned()),
                ),
            ),
        ],
        trims: Some(Attempt::Works(None)),
        hardware: Some(Err(NoHardware::NotPermitted)),
        clock: Some(TimeStamps {
            source: "tsc".to_owned(),
            is_counter: true,
            cost_ns: 11.2,
            resolution_ns: 0.4,
        }),
        machine: Some("Maker Laptop 14".to_owned()),
        is_virtual: Some(false),
        memory_bytes: Some(16 * GIB),
        processor: processor(),
        huge_pages: Some("madvise".to_owned()),
        cgroup: cgroup::CgroupLimits {
            cpus: None,
            memory_bytes: None,
            memory_left_bytes: None,
            io: vec![IoLimit {
                what: Traffic::ReadBytes,
                per_second: 200_000_000,
            }],
        },
        limits: ProcessLimits {
            open_files: Some(1024),
            locked_bytes: Some(8 * MIB),
        },
        load: Some(Load {
            cpus_busy: Some(3.4),
            cpus_stolen: Some(0.0),
            busiest: Some(("cc1plus".to_owned(), 0.97)),
            memory_stall: Some(0.0),
            device_read_rate: Some(0.0),
            device_write_rate: Some(12_300.0),
            device_request_rate: Some(3.0),
        }),
        other_control: None,
        region_bytes: GIB,
    }
}

fn diagnosis() -> Diagnosis {
    let facts = laptop();
    let mut environment = Environment::default();
    environment.put(&KEYS.memory_bytes, 16 << 30);
    Diagnosis {
        target: facts.place.named.clone(),
        kind: facts.place.kind_name(),
        findings: diagnose(&facts),
        environment,
    }
}

#[test]
fn text_fits_eighty_columns() {
    insta::assert_snapshot!(doctor::text(&diagnosis(), 80, false));
}

#[test]
fn lines_keep_to_the_width_but_for_commands() {
    for width in [40, 60, 80, 100, 200] {
        let text = doctor::text(&diagnosis(), width, false);
        assert!(!text.contains('\x1b'));
        let wide = |line: &&str| line.chars().count() > usize::from(width);
        let long: Vec<&str> = text.lines().filter(wide).collect();
        assert!(
            long.iter().all(|line| line.trim_start().starts_with("$ ")),
            "{width}: {long:?}"
        );
    }
}

#[test]
fn colours_only_mark_the_severity() {
    let plain = doctor::text(&diagnosis(), 80, false);
    let coloured = doctor::text(&diagnosis(), 80, true);
    let mut stripped = coloured.clone();
    for code in ["\x1b[32m", "\x1b[33m", "\x1b[1;31m", "\x1b[0m"] {
        stripped = stripped.replace(code, "");
    }
    assert_ne!(coloured, plain);
    assert_eq!(stripped, plain);
}

#[test]
fn names_that_drive_a_terminal_are_shown_harmless() {
    let mut diagnosis = diagnosis();
    diagnosis.target = "a\x1b[2Jb".to_owned();
    diagnosis.findings[0].what = "file\x1b]0;x\x07".to_owned();
    diagnosis.findings[0].remedy = Some("rm \x1b[1m".to_owned());
    assert!(!doctor::text(&diagnosis, 80, false).contains('\x1b'));
}

#[test]
fn json_holds_every_finding() {
    let diagnosis = diagnosis();
    let mut bytes = Vec::new();
    doctor::json(&diagnosis, &mut bytes).expect("written");
    let value: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(value["schema"], 1);
    assert_eq!(
        (&value["target"], &value["kind"]),
        (&"/home/me/my data".into(), &"file".into())
    );
    let findings = value["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), diagnosis.findings.len());
    assert_eq!(value["must_fix"], diagnosis.count(Severity::MustFix));
    let empty = findings
        .iter()
        .find(|f| f["rule"] == "empty")
        .expect("there");
    assert_eq!(
        (&empty["topic"], &empty["severity"]),
        (&"data".into(), &"must-fix".into())
    );
    insta::assert_snapshot!(empty["remedy"].as_str().expect("a command"), @"iolab study /home/me    # measures a scratch file that fits, written in full");
    assert_eq!(value["environment"]["memory_bytes"], "17179869184");
}
