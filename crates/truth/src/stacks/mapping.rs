//! Kernel drivers between a device and those above it: device mapper, RAID, logical volumes, network block
//! devices.

use std::ops::Range;
use std::path::PathBuf;

use crate::files::MIB;

/// A device over all of another one, which its driver claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapping {
    /// dm-linear, all but 1 MiB at either end.
    Linear,
    /// dm-crypt without a header: formats on it cannot be seen from below.
    Crypt,
    /// The only logical volume of a separate volume group.
    Volume,
    /// A RAID 1 of one member with metadata 0.90, which is at the end.
    RaidEarly,
    /// A RAID 1 of one member with metadata 1.0, which is at the end.
    RaidEnd,
    /// A RAID 1 of one member with metadata 1.2, which is near the start.
    RaidStart,
    /// A mapped device over one path (dm-multipath).
    Path,
    /// The only thin volume of a separate pool, with blocks anywhere in the pool.
    Thin,
    /// A snapshot of blank bytes, to which the device mapper copies writes, into a separate store.
    Snapshot,
    /// A network block device, served by a process of this machine.
    Served,
}

/// Smallest device that another one is put on, bytes.
pub const OVER_MIN: u64 = 24 * MIB;

/// Bytes at the start of a device for the metadata of a pool.
const POOL_METADATA: u64 = 4 * MIB;

/// Commands to make and end a mapping.
#[derive(Debug)]
pub struct Recipe {
    /// Path of the resulting device.
    pub device: PathBuf,
    /// Commands that make it.
    pub make: Vec<Vec<String>>,
    /// Command that ends it, and keeps its data.
    pub end: Vec<String>,
}

impl Mapping {
    /// All kinds.
    pub const ALL: &[Self] = &[
        Self::Linear,
        Self::Crypt,
        Self::Volume,
        Self::RaidEarly,
        Self::RaidEnd,
        Self::RaidStart,
        Self::Path,
        Self::Thin,
        Self::Snapshot,
        Self::Served,
    ];

    /// Bytes of a lower device of this length that the mapping shows.
    pub fn data(self, bytes: u64) -> Range<u64> {
        let whole = bytes / MIB * MIB;
        match self {
            Self::Linear | Self::Volume => MIB..whole - MIB,
            Self::Crypt | Self::Path | Self::Served => 0..bytes,
            Self::Thin => POOL_METADATA..whole,
            // The store after it has room for all of it, and for its index.
            Self::Snapshot => 0..whole / MIB / 3 * MIB,
            Self::RaidEarly | Self::RaidEnd => 0..whole - 4 * MIB,
            Self::RaidStart => MIB..whole - 4 * MIB,
        }
    }

    /// Ranges to which the driver itself writes at any time while the device exists.
    pub fn metadata(self, bytes: u64) -> Vec<Range<u64>> {
        let data = self.data(bytes);
        match self {
            Self::Linear | Self::Crypt | Self::Path => Vec::new(),
            // Writes to the device go there.
            Self::Thin | Self::Snapshot | Self::Served => std::iter::once(0..bytes).collect(),
            Self::Volume | Self::RaidEarly | Self::RaidEnd | Self::RaidStart => {
                vec![0..data.start, data.end..bytes]
            }
        }
    }

    /// Name that `--destroy-data=` takes for the signature left below after its end.
    pub fn signature(self) -> Option<&'static str> {
        match self {
            Self::Linear
            | Self::Crypt
            | Self::Path
            | Self::Thin
            | Self::Snapshot
            | Self::Served => None,
            Self::Volume => Some("lvm2"),
            Self::RaidEarly | Self::RaidEnd | Self::RaidStart => Some("mdraid"),
        }
    }

    /// Whether the kernel hides the position of its bytes below while it exists.
    pub fn has_own_bytes(self) -> bool {
        matches!(self, Self::Thin | Self::Snapshot | Self::Served)
    }

    /// Whether its content cannot be recognised after its end.
    pub fn hides(self) -> bool {
        matches!(self, Self::Crypt | Self::Thin | Self::Snapshot)
    }

    /// Whether the kernel itself knows partitions on it; otherwise each is a mapped device, as made by
    /// kpartx(8).
    pub fn has_kernel_partitions(self) -> bool {
        match self {
            Self::RaidEarly | Self::RaidEnd | Self::RaidStart | Self::Served => true,
            Self::Linear
            | Self::Crypt
            | Self::Volume
            | Self::Path
            | Self::Thin
            | Self::Snapshot => false,
        }
    }

    /// Recipe for a device of this length; `number` makes its name unique.
    pub fn recipe(self, number: usize, below: &str, bytes: u64) -> Recipe {
        let data = self.data(bytes);
        let length = (data.end - data.start) / 512;
        let layer = |table: &str| mapped(&format!("layer{number}"), table);
        match self {
            Self::Linear => layer(&linear(below, &data)),
            Self::Crypt => {
                let key = "0123456789abcdef".repeat(4);
                layer(&format!(
                    "0 {length} crypt aes-xts-plain64 {key} 0 {below} 0"
                ))
            }
            Self::Volume => volume(number, below, &data),
            Self::Path => layer(&format!(
                "0 {length} multipath 2 queue_mode bio 0 1 1 round-robin 0 1 1 {below} 100"
            )),
            Self::Thin => over_two(
                number,
                below,
                [("meta", 0..data.start), ("data", data)],
                |[meta, inner], name| {
                    let pool = format!("{name}-pool");
                    // Blocks of 64 KiB.
                    let on_both = format!("0 {length} thin-pool {meta} {inner} 128 0");
                    let of_pool = format!("0 {length} thin {} 0", mapped_at(&pool));
                    let make = vec![
                        created(&pool, &on_both),
                        words(&["dmsetup", "message", &pool, "0", "create_thin 0"]),
                        created(name, &of_pool),
                    ];
                    (make, vec![pool])
                },
            ),
            Self::Snapshot => over_two(
                number,
                below,
                [("store", data.end..bytes / MIB * MIB), ("origin", data)],
                |[store, origin], name| {
                    // Chunks of 4 KiB, which a reboot would find again.
                    let table = format!("0 {length} snapshot {origin} {store} P 8");
                    (vec![created(name, &table)], Vec::new())
                },
            ),
            Self::Served => served(number, below),
            Self::RaidEarly => raid(number, below, &data, "0.90"),
            Self::RaidEnd => raid(number, below, &data, "1.0"),
            Self::RaidStart => raid(number, below, &data, "1.2"),
        }
    }
}

/// The only logical volume, of all `data`, of a separate volume group.
fn volume(number: usize, below: &str, data: &Range<u64>) -> Recipe {
    // Another loop device over the same bytes is not a second volume.
    let only = ["--devices", below];
    let group = format!("group{number}");
    let size = format!("{}m", (data.end - data.start) / MIB);
    let tool = |name: &str, rest: &[&str]| words(&[&[name], &only[..], rest].concat());
    let made = [
        "--yes", "--zero", "n", "--wipesignatures", "n", "--name", "v",
    ];
    Recipe {
        device: format!("/dev/mapper/{group}-v").into(),
        make: vec![
            tool(
                "pvcreate",
                &["--quiet", "--yes", "--dataalignment", "1m", below],
            ),
            tool(
                "vgcreate",
                &["--quiet", "--physicalextentsize", "1m", &group, below],
            ),
            tool(
                "lvcreate",
                &[&made[..], &["--size", &size, &group]].concat(),
            ),
        ],
        end: tool("vgchange", &["--quiet", "--activate", "n", &group]),
    }
}

/// A RAID 1 of one member with metadata of this version, which shows the member's bytes `data`.
fn raid(number: usize, below: &str, data: &Range<u64>, version: &str) -> Recipe {
    let device = format!("/dev/md{}", 100 + number);
    let size = format!("--size={}", (data.end - data.start) >> 10);
    let metadata = format!("--metadata={version}");
    let mut make = words(&[
        "mdadm", "--create", &device, "--quiet", "--run", "--force", "--level=1",
        "--raid-devices=1", "--bitmap=none", &metadata, &size,
    ]);
    // Metadata at the end leaves no choice.
    if data.start > 0 {
        make.push(format!("--data-offset={}", data.start >> 10));
    }
    make.push(below.to_owned());
    Recipe {
        end: words(&["mdadm", "--stop", "--quiet", &device]),
        device: device.into(),
        make: vec![make],
    }
}

/// Script that serves a device as the network block device `x` at this port. It waits until the server listens,
/// possibly in the background, or has ended. The server's process number is then in `OWN.pid`.
pub fn serve_nbd(own: &str, port: usize, device: &str) -> String {
    let listens = format!(":{port:04X} 00000000:0000 0A");
    format!(
        "rm -f {own}.pid; printf '[generic]\nuser=root\ngroup=root\nlistenaddr=127.0.0.1\nport={port}\n[x]\nexportname={device}\n' >{own}.conf &&
        nbd-server -C {own}.conf -p {own}.pid && until [ -s {own}.pid ]; do sleep .1; done &&
        until grep -q '{listens}' /proc/net/tcp; do kill -0 $(cat {own}.pid) || exit 1; sleep .1; done"
    )
}

/// A network block device over all of it, served by a process of this machine.
fn served(number: usize, below: &str) -> Recipe {
    let device = format!("/dev/nbd{number}");
    let (port, own) = (10_810 + number, format!("/tmp/nbd{number}"));
    let connect = ["nbd-client", "-N", "x", "127.0.0.1"];
    Recipe {
        make: vec![
            words(&["sh", "-c", &serve_nbd(&own, port, below)]),
            words(&[&connect[..], &[&port.to_string(), &device]].concat()),
        ],
        end: words(&[
            "sh",
            "-c",
            &format!(
                "partx --delete {device} 2>/dev/null; nbd-client -d {device} && kill $(cat {own}.pid)"
            ),
        ]),
        device: device.into(),
    }
}

/// A mapped device over two others, each a part of the device below. The head of the first, which may hold a
/// driver's index, is cleared. The closure gets the paths of the two and its own name, and returns the command
/// to make it and further removals.
fn over_two(
    number: usize,
    below: &str,
    parts: [(&str, Range<u64>); 2],
    top: impl FnOnce([String; 2], &str) -> (Vec<Vec<String>>, Vec<String>),
) -> Recipe {
    let name = format!("layer{number}");
    let inner = parts.each_ref().map(|(part, _)| format!("{name}-{part}"));
    let mut make: Vec<Vec<String>> = inner
        .iter()
        .zip(parts)
        .map(|(inner, (_, part))| created(inner, &linear(below, &part)))
        .collect();
    let paths = inner.each_ref().map(|inner| mapped_at(inner));
    let head = format!("of={}", paths[0]);
    let clear = ["dd", "status=none", "if=/dev/zero", "bs=4k", "count=1"];
    make.push(words(&[&clear[..], &[&head]].concat()));
    let (last, between) = top(paths, &name);
    make.extend(last);
    let mut end = words(&["dmsetup", "remove", &name]);
    end.extend(between.into_iter().chain(inner));
    Recipe {
        device: mapped_at(&name).into(),
        make,
        end,
    }
}

/// Recipe of a mapped device.
pub(super) fn mapped(name: &str, table: &str) -> Recipe {
    Recipe {
        device: mapped_at(name).into(),
        make: vec![created(name, table)],
        end: words(&["dmsetup", "remove", name]),
    }
}

/// Table of a mapped device that is a part of another one.
pub(super) fn linear(below: &str, part: &Range<u64>) -> String {
    let (from, length) = (part.start / 512, (part.end - part.start) / 512);
    format!("0 {length} linear {below} {from}")
}

/// Command that makes a mapped device.
fn created(name: &str, table: &str) -> Vec<String> {
    words(&["dmsetup", "create", name, "--table", table])
}

/// Path of a mapped device.
fn mapped_at(name: &str) -> String {
    format!("/dev/mapper/{name}")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
