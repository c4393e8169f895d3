//! Findings of the rules.

use iolab_doctor::{Attempt, Direct, Facts, TargetContent, Transfer, diagnose};
use iolab_host::cgroup::IoLimit;
use iolab_host::device::{Backing, Device, Transport};
use iolab_host::machine::Load;
use iolab_host::system_control::OtherControl;
use iolab_runner::preflight::{Finding, Severity};
use iolab_storage::{Layering, Layers, TargetKind};
use iolab_workload::counters::{NoHardware, Traffic};

use crate::cases::Cases;
use crate::machine::{GIB, MIB, PROBE, quiet, transfer};

/// Difference from the quiet machine.
type Change = (&'static str, fn(&mut Facts));

fn device(facts: &mut Facts) -> &mut Device {
    facts.device.as_mut().expect("a device")
}

fn content(facts: &mut Facts) -> &mut TargetContent {
    facts.content.as_mut().expect("content")
}

fn load(facts: &mut Facts) -> &mut Load {
    facts.load.as_mut().expect("a load")
}

fn layer(facts: &mut Facts, name: &str) {
    device(facts).layer = Some(name.to_owned());
}

fn file_system(facts: &mut Facts, kind: &str, options: &str) {
    let own = facts.file_system.as_mut().expect("a file system");
    (own.kind, own.mount_options) = (kind.to_owned(), options.to_owned());
}

/// Puts a device below another one of this name.
fn put_below(facts: &mut Facts, name: &str, transport: Transport) {
    let below = std::mem::take(device(facts));
    *device(facts) = Device {
        name: name.to_owned(),
        disk: name.to_owned(),
        transport,
        below: vec![below],
        ..Device::default()
    };
}

/// Lets the device be a file.
fn back(facts: &mut Facts, direct: Option<bool>, in_memory: bool) {
    device(facts).name = "loop3".to_owned();
    device(facts).backing = Some(Backing {
        file: "/a.img".to_owned(),
        direct,
        in_memory,
    });
}

/// 60 MiB of the file are holes, or only reserved.
fn empty(facts: &mut Facts, allocated: u64) {
    content(facts).empty_bytes = 60 * MIB;
    content(facts).allocated_bytes = Some(allocated);
}

fn probe(facts: &mut Facts, read: Transfer) {
    facts.direct = Some(Direct::Tried {
        alignment: 512,
        read: Ok(read),
        write: None,
    });
}

/// A probe of an empty page cache.
fn counted(facts: &mut Facts, counts: [Option<u64>; 3], after: Option<u64>) {
    probe(facts, transfer(counts, Some(0), after));
}

fn overlay(facts: &mut Facts, kind: TargetKind, holder: Option<&str>, lower: usize) {
    facts.place.kind = kind;
    facts.layering = Some(Layering {
        layers: Some(Layers {
            upper: Some("/up".into()),
            lower: (0..lower).map(|n| format!("/low{n}").into()).collect(),
        }),
        holder: holder.map(Into::into),
    });
}

const TARGET: &[Change] = &[
    ("a scratch folder", |f| f.place.kind = TargetKind::Scratch),
    ("memory", |f| {
        file_system(f, "tmpfs", "rw");
        f.place.is_memory = true;
    }),
    ("a memory layer of an overlay", |f| {
        overlay(f, TargetKind::Scratch, Some("/up/f"), 1);
        f.place.is_memory = true;
    }),
    ("nfs4", |f| file_system(f, "nfs4", "")),
    ("virtiofs", |f| file_system(f, "virtiofs", "")),
    ("fuse.sshfs", |f| file_system(f, "fuse.sshfs", "")),
    ("zfs", |f| file_system(f, "zfs", "")),
    ("xfs", |f| file_system(f, "xfs", "")),
    ("options that count", |f| {
        file_system(f, "ext4", "rw,sync,barrier=0,discard,noatime");
    }),
    ("options that only look alike", |f| {
        file_system(f, "ext4", "rw,nosync,async,relatime");
    }),
    ("little free space", |f| {
        f.space.as_mut().expect("space").free = 5 * GIB
    }),
    ("less free space than a scratch file takes", |f| {
        f.place.kind = TargetKind::Scratch;
        f.space.as_mut().expect("space").free = GIB / 2;
        f.file_system.as_mut().expect("a file system").mount_point = "/it's; rm".into();
    }),
    ("an overlay with scratch files", |f| {
        overlay(f, TargetKind::Scratch, Some("/up/f"), 2);
    }),
    ("a file of the upper layer", |f| {
        overlay(f, TargetKind::File, Some("/up/f"), 20)
    }),
    ("a file of a lower layer", |f| {
        overlay(f, TargetKind::File, Some("/low0/f"), 1)
    }),
    ("a layer out of reach", |f| {
        overlay(f, TargetKind::File, None, 1)
    }),
    ("layers that cannot be seen", |f| {
        f.layering = Some(Layering::default())
    }),
];

const CACHE: &[Change] = &[
    ("no direct I/O", |f| {
        f.direct = Some(Direct::Refused("no O_DIRECT".to_owned()))
    }),
    ("no direct I/O, and a region beyond memory", |f| {
        f.direct = Some(Direct::Refused("no O_DIRECT".to_owned()));
        f.cgroup.memory_bytes = Some(GIB / 2);
    }),
    ("no direct I/O in memory", |f| {
        f.direct = Some(Direct::Refused("no O_DIRECT".to_owned()));
        f.place.is_memory = true;
    }),
    ("a small file", |f| f.place.bytes = Some(64 * MIB)),
    ("a virtual machine", |f| {
        f.is_virtual = Some(true);
        f.machine = Some("Some Cloud".to_owned());
    }),
    // A loop device lies on the device of its file.
    ("a loop device of a virtual machine", |f| {
        f.is_virtual = Some(true);
        put_below(f, "loop3", Transport::Loop);
    }),
    ("memory of a virtual machine", |f| {
        f.is_virtual = Some(true);
        f.place.is_memory = true;
    }),
];

const DATA: &[Change] = &[
    ("holes", |f| empty(f, 40 * MIB)),
    ("reserved space", |f| empty(f, 100 * MIB)),
    ("a small hole", |f| content(f).empty_bytes = 4096),
    // The whole file is copied, however little of it is measured.
    ("holes of a file that just fits", |f| {
        empty(f, 40 * MIB);
        content(f).length = Some(45 * GIB);
    }),
    ("holes of a file without room for a copy", |f| {
        empty(f, 40 * MIB);
        content(f).length = Some(45 * GIB + 1);
    }),
    ("holes of a file of unknown length", |f| {
        empty(f, 40 * MIB);
        content(f).length = None;
    }),
    ("holes on a full disk", |f| {
        empty(f, 40 * MIB);
        content(f).length = Some(10 << 40);
        f.space.as_mut().expect("space").room = 10 * MIB;
    }),
    ("holes of a scratch file", |f| {
        empty(f, 40 * MIB);
        f.place.kind = TargetKind::Scratch;
    }),
    ("zeros", |f| content(f).zero_blocks = Some((64, 64))),
    ("compressed extents", |f| content(f).compressed_bytes = MIB),
    ("a compressed attribute", |f| {
        content(f).set_compressed = true
    }),
    ("a compressing mount", |f| {
        file_system(f, "btrfs", "rw,compress=zstd:3,ssd")
    }),
    ("an encrypted file", |f| content(f).set_encrypted = true),
];

const DEVICE: &[Change] = &[
    ("zram", |f| device(f).transport = Transport::Zram),
    ("no iostats", |f| device(f).counts_traffic = Some(false)),
    ("a file through the page cache", |f| {
        back(f, Some(false), false)
    }),
    ("a file with direct I/O", |f| back(f, Some(true), false)),
    // Direct I/O on a file in memory ends in memory.
    ("a file in memory", |f| back(f, Some(false), true)),
    ("a file in memory with direct I/O", |f| {
        back(f, Some(true), true)
    }),
    ("a file in memory, maybe with direct I/O", |f| {
        back(f, None, true)
    }),
    ("a slow link", |f| {
        let link = device(f).link.as_mut().expect("a link");
        link.best = Some(link.now.clone());
        (link.now, link.ceiling_mb_s) = ("8.0 GT/s x2".to_owned(), Some(1969.2));
    }),
    ("bfq", |f| device(f).scheduler = Some("bfq".to_owned())),
    ("a misaligned partition", |f| {
        device(f).misaligned_bytes = Some(512)
    }),
    ("heat", |f| device(f).temperature = Some((81.0, 80.0))),
    ("encryption", |f| layer(f, "crypt")),
    // A device that stores nothing has no durable writes, and takes no direct I/O.
    ("nothing stored", |f| layer(f, "zero")),
    ("a linear layer", |f| layer(f, "linear")),
    ("a volatile cache", |f| {
        device(f).write_cache = Some("write back".to_owned())
    }),
    ("platters", |f| {
        (device(f).transport, device(f).rotational) = (Transport::Sata, Some(true));
    }),
    ("platters of a virtual disk", |f| {
        (device(f).transport, device(f).rotational) = (Transport::Sata, Some(true));
        f.is_virtual = Some(true);
    }),
    ("a device-mapper layer", |f| {
        put_below(f, "dm-0", Transport::DeviceMapper);
        layer(f, "crypt");
    }),
];

const DIRECT: &[Change] = &[
    ("more from the device", |f| {
        counted(f, [Some(PROBE), Some(PROBE * 2), None], Some(4096));
    }),
    ("an account of the process alone", |f| {
        counted(f, [Some(PROBE), None, None], None)
    }),
    ("counters of the device alone", |f| {
        counted(f, [None, Some(PROBE), None], None)
    }),
    ("pages left in the cache", |f| {
        counted(f, [Some(PROBE), Some(PROBE), None], Some(PROBE));
    }),
    ("served from a cache", |f| {
        counted(f, [Some(0), Some(0), None], Some(0))
    }),
    ("served from a cache but for a page", |f| {
        counted(f, [Some(0), Some(4096), None], None)
    }),
    // Pages of another reader prove nothing.
    ("pages from before", |f| {
        probe(
            f,
            transfer([Some(PROBE), Some(PROBE), None], Some(PROBE), Some(PROBE)),
        );
    }),
    // A file system in memory: always in the page cache, and without counters.
    ("pages from before, and no bytes counted", |f| {
        probe(f, transfer([Some(0), None, None], Some(PROBE), Some(PROBE)));
    }),
    ("no counters", |f| counted(f, [None, None, None], None)),
    ("no device with counters", |f| {
        counted(f, [Some(0), None, None], Some(0))
    }),
    ("counters that differ", |f| {
        counted(f, [Some(0), Some(PROBE), None], Some(0))
    }),
    ("a half", |f| {
        counted(f, [Some(PROBE / 2), Some(PROBE / 2), None], Some(0))
    }),
    ("no reads of lower disks", |f| {
        counted(f, [Some(PROBE), Some(PROBE), Some(0)], Some(0))
    }),
    ("not tried", |f| {
        f.direct = Some(Direct::Tried {
            alignment: 512,
            read: Err("it is too small".to_owned()),
            write: Some(Err("it may not be written".to_owned())),
        });
    }),
    ("a file of btrfs", |f| {
        counted(f, [Some(0), Some(0), None], Some(0));
        file_system(f, "btrfs", "");
    }),
    ("a file in a folder of btrfs", |f| {
        counted(f, [Some(0), Some(0), None], Some(0));
        file_system(f, "btrfs", "");
        f.place.named = "/mnt/a b/data".to_owned();
    }),
    ("a folder of btrfs", |f| {
        counted(f, [Some(0), Some(0), None], Some(0));
        file_system(f, "btrfs", "");
        (f.place.named, f.place.kind) = ("/mnt".to_owned(), TargetKind::Scratch);
    }),
];

const MACHINE: &[Change] = &[
    ("no pressure", |f| load(f).memory_stall = None),
    ("a coarse counter", |f| {
        let clock = f.clock.as_mut().expect("a clock");
        (clock.source, clock.resolution_ns) = ("cntvct".to_owned(), 41.7);
    }),
    // A timer of 8 MHz.
    ("a coarser counter", |f| {
        f.clock.as_mut().expect("a clock").resolution_ns = 125.0
    }),
    ("another clock", |f| {
        let clock = f.clock.as_mut().expect("a clock");
        (clock.is_counter, clock.cost_ns, clock.resolution_ns) = (false, 30.0, 1.0);
        clock.source = "clock_monotonic_raw (no invariant counter)".to_owned();
    }),
    ("fewer CPUs", |f| f.processor.usable = Some(2)),
    ("fewer CPUs by a control group", |f| {
        f.processor.usable = Some(2);
        f.cgroup.cpus = Some(2.0);
    }),
    ("powersave", |f| {
        f.processor.governor = Some("powersave".to_owned())
    }),
    ("schedutil", |f| {
        f.processor.governor = Some("schedutil".to_owned())
    }),
    ("ondemand", |f| {
        f.processor.governor = Some("ondemand".to_owned())
    }),
    ("no events for this user", |f| {
        f.hardware = Some(Err(NoHardware::NotPermitted))
    }),
    ("no events", |f| {
        f.hardware = Some(Err(NoHardware::NotOffered))
    }),
    ("a control group", |f| {
        f.cgroup.cpus = Some(1.5);
        f.cgroup.memory_bytes = Some(2 * GIB);
        f.cgroup.io = [(Traffic::ReadBytes, 20_000_000), (Traffic::Writes, 120)]
            .map(|(what, per_second)| IoLimit { what, per_second })
            .into();
    }),
    ("low limits", |f| f.open_files = Some(256)),
    ("neighbours", |f| {
        load(f).cpus_busy = Some(3.8);
        load(f).busiest = Some(("cc1plus".to_owned(), 1.9));
        load(f).cpus_stolen = Some(0.2);
        load(f).memory_stall = Some(0.3);
        load(f).device_write_rate = Some(20e6);
        load(f).device_request_rate = Some(300.0);
    }),
    ("many small requests", |f| {
        load(f).device_read_rate = Some(400_000.0);
        load(f).device_request_rate = Some(100.0);
    }),
    ("kernel settings of another run", |f| {
        f.other_control = Some(OtherControl::Process(4711))
    }),
    ("kernel settings of a killed run", |f| {
        f.other_control = Some(OtherControl::Killed)
    }),
    ("a backend that fails", |f| {
        let why = Attempt::Fails("not permitted".to_owned(), Some("sudo sysctl x".to_owned()));
        f.backends.push(("io_uring".to_owned(), why));
    }),
    ("no trims", |f| {
        f.trims = Some(Attempt::Fails("no holes".to_owned(), None))
    }),
];

#[test]
fn a_quiet_machine_is_fine() {
    let findings = diagnose(&quiet());
    let told = findings.iter().map(|one| {
        assert_eq!(one.severity, Severity::Fine, "{one:?}");
        format!("{:?} {}: {}", one.topic, one.rule, one.what)
    });
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
    // Facts that tell nothing break no rule.
    assert!(
        diagnose(&Facts::default())
            .iter()
            .all(|one| !one.what.is_empty())
    );
}

#[test]
fn each_change_of_the_machine_is_told() {
    let usual = diagnose(&quiet());
    let subjects = [
        ("target", TARGET),
        ("cache", CACHE),
        ("data", DATA),
        ("device", DEVICE),
        ("direct", DIRECT),
        ("machine", MACHINE),
    ];
    for (subject, changes) in subjects {
        let mut told = Cases::default();
        for (name, change) in changes {
            let mut facts = quiet();
            change(&mut facts);
            let found = diagnose(&facts);
            let mut news = Vec::new();
            for one in found.iter().filter(|one| !usual.contains(one)) {
                let severity = match one.severity {
                    Severity::WorthKnowing => String::new(),
                    severity => format!("{severity:?} "),
                };
                news.push(format!("{severity}{}: {}", one.rule, one.what));
                news.extend(one.remedy.iter().map(|remedy| format!("  $ {remedy}")));
            }
            let is_there = |own: &Finding| {
                found
                    .iter()
                    .any(|one| one.rule == own.rule && one.topic == own.topic)
            };
            let lacks = usual.iter().filter(|own| !is_there(own));
            let lacks = lacks.map(|own| format!("{:?} {}", own.topic, own.rule));
            let lacks = lacks.collect::<Vec<_>>().join(", ");
            if !lacks.is_empty() {
                news.push(format!("without {lacks}"));
            }
            told.add(name, &news.join("\n"));
        }
        insta::assert_snapshot!(subject, told.text);
    }
}
