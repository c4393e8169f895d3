//! Tests of the storage graph on fake kernels.

mod exports;
mod multipath;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use needs::Tree;
use proptest::prelude::*;

use super::storage_graph::{Device, Graph, Piece};
use super::*;

/// A fake kernel: sdq with partitions sdq1 and sdq2, loop devices, dm-7 and md9.
struct Fake(Tree);

const SDQ: Number = (259, 900);
const SDQ1: Number = (259, 901);
const SDQ2: Number = (259, 902);
const SDR: Number = (259, 910);
const SDR1: Number = (259, 911);
const LOOP1: Number = (7, 701);
const LOOP2: Number = (7, 702);
const DM: Number = (252, 7);
const MD: Number = (9, 9);
const IMAGE: FileId = FileId {
    dev: (8, 1),
    inode: 4711,
};

impl Fake {
    fn new() -> Self {
        let fake = Self(Tree::empty());
        fs::create_dir_all(fake.sys().join("dev/block")).unwrap();
        fake.device("sdq", SDQ, 8192);
        fake.partition("sdq/sdq1", SDQ1, 2048, 1024);
        fake.partition("sdq/sdq2", SDQ2, 4096, 4096);
        fs::create_dir_all(fake.proc().join("self")).unwrap();
        fake.mounts("");
        fake
    }

    fn sys(&self) -> PathBuf {
        self.0.path().join("sys")
    }

    fn proc(&self) -> PathBuf {
        self.0.path().join("proc")
    }

    fn folder(&self, device: &str) -> PathBuf {
        self.sys().join("devices").join(device)
    }

    fn device(&self, name: &str, (major, minor): Number, sectors: u64) {
        for folder in ["holders", "slaves"] {
            fs::create_dir_all(self.folder(name).join(folder)).unwrap();
        }
        let number = format!("{major}:{minor}");
        self.attribute(name, "dev", &number);
        self.attribute(name, "size", &sectors.to_string());
        let link = format!("sys/dev/block/{number}");
        self.0.link(&link, &format!("sys/devices/{name}"));
    }

    fn partition(&self, name: &str, number: Number, start: u64, sectors: u64) {
        self.device(name, number, sectors);
        self.attribute(name, "partition", "1");
        self.attribute(name, "start", &start.to_string());
    }

    fn loop_device(&self, name: &str, number: Number, sectors: u64, file: &str) {
        self.device(name, number, sectors);
        self.attribute(name, "loop/backing_file", file);
    }

    fn stack(&self, upper: &str, lower: &str) {
        let link = |from: &str, kind: &str, to: &str| {
            let name = Path::new(to).file_name().unwrap();
            symlink(self.folder(to), self.folder(from).join(kind).join(name)).unwrap();
        };
        link(lower, "holders", upper);
        link(upper, "slaves", lower);
    }

    fn attribute(&self, device: &str, name: &str, text: &str) {
        self.0
            .files(&format!("sys/devices/{device}"), &[(name, text)]);
    }

    /// Adds sdr, a second path to sdq, with the partition sdr1.
    fn second_path(&self) {
        self.device("sdr", SDR, 8192);
        self.partition("sdr/sdr1", SDR1, 2048, 1024);
        for device in ["sdq", "sdr"] {
            self.attribute(device, "device/wwid", "naa.5000c500a1b2c3d4");
        }
    }

    fn refusal(&self, number: Number) -> String {
        self.users(|_| 0).look_at_device(number).unwrap_err().why
    }

    fn mounts(&self, text: &str) {
        fs::write(self.proc().join("self/mountinfo"), text).unwrap();
    }

    /// Users with every loop device on the image, `offset` bytes from its start.
    fn users(&self, offset: impl Fn(Number) -> u64) -> Users {
        let ask = |number, _: &str| {
            Ok(inventory::Backing {
                node: Node::File(IMAGE),
                offset: offset(number),
            })
        };
        Users {
            inventory: Inventory::read_from(&self.proc(), &self.sys(), &ask).unwrap(),
            is_root: true,
            notes: BTreeSet::new(),
        }
    }

    /// Chains from a device to everything that shares bytes with it.
    fn chains(&self, number: Number) -> Vec<String> {
        let users = self.users(|_| 0);
        let sharers = users.sharers(number, &users.ways(number));
        sharers.into_iter().map(|sharer| sharer.chain).collect()
    }
}

/// A device that nothing holds.
fn unheld(number: Number, bytes: u64, below: Below) -> Device {
    Device {
        name: format!("d{}", number.1),
        bytes,
        below,
        holders: Vec::new(),
        read_only: false,
    }
}

#[test]
fn a_mounted_partition_is_named_with_its_chain() {
    let fake = Fake::new();
    fake.mounts("1 1 259:901 / /data rw - ext4 /dev/sdq1 rw\n");
    assert_eq!(fake.refusal(SDQ), "/dev/sdq <- /dev/sdq1, mounted at /data");
    let refusal = fake.users(|_| 0).look_at_device(SDQ1).unwrap_err();
    assert_eq!(refusal.why, "it is mounted at /data");
    assert!(!refusal.passing);
}

#[test]
fn stacked_devices_hold_what_they_stand_on() {
    let fake = Fake::new();
    fake.device("dm-7", DM, 512);
    fake.device("md9", MD, 512);
    fake.stack("dm-7", "sdq/sdq1");
    let why = "/dev/sdq <- /dev/sdq1 <- /dev/dm-7, which holds it";
    assert_eq!(fake.refusal(SDQ), why);
    assert_eq!(fake.refusal(SDQ1), "/dev/dm-7 stands on it and holds it");
    fake.stack("md9", "dm-7");
    // A cycle must not hang the walk.
    symlink(fake.folder("dm-7"), fake.folder("md9/holders/dm-7")).unwrap();
    symlink(fake.folder("md9"), fake.folder("dm-7/slaves/md9")).unwrap();
    assert!(fake.users(|_| 0).look_at_device(MD).is_err());
}

#[test]
fn loop_devices_meet_in_their_file() {
    let fake = Fake::new();
    fake.loop_device("loop701", LOOP1, 2048, "/images/im");
    fake.loop_device("loop702", LOOP2, 1024, "/images/im");
    let users = fake.users(|number| if number == LOOP2 { 512 << 10 } else { 0 });
    let sharers = users.sharers(LOOP2, &users.ways(LOOP2));
    let chains: Vec<&str> = sharers.iter().map(|sharer| sharer.chain.as_str()).collect();
    assert_eq!(
        chains,
        ["/dev/loop702 -> /images/im (bytes 512 KiB to 1 MiB) <- /dev/loop701"]
    );
    let apart = fake.users(|number| if number == LOOP2 { 1 << 20 } else { 0 });
    assert!(apart.sharers(LOOP2, &apart.ways(LOOP2)).is_empty());
}

#[test]
fn aliases_of_a_file_are_one() {
    let fake = Fake::new();
    fake.loop_device("loop701", LOOP1, 2048, "/merged/im");
    fake.loop_device("loop702", LOOP2, 2048, "/upper/im");
    let other = FileId {
        dev: (0, 50),
        inode: 1,
    };
    let ask = |number, _: &str| {
        Ok(inventory::Backing {
            node: Node::File(if number == LOOP1 { other } else { IMAGE }),
            offset: 0,
        })
    };
    let mut inventory = Inventory::read_from(&fake.proc(), &fake.sys(), &ask).unwrap();
    let meets = |inventory: &Inventory| {
        let graph = &inventory.graph;
        let ways = [LOOP1, LOOP2].map(|number| graph.ways(graph.whole(number)));
        graph.meeting(&ways[0][0], &ways[1][0])
    };
    assert_eq!(meets(&inventory), None);
    inventory.graph.unify(&[other, IMAGE], IMAGE);
    assert_eq!(meets(&inventory), Some((1, 1)));
}

#[test]
fn loop_device_on_an_unknown_file_is_refused() {
    let fake = Fake::new();
    fake.loop_device("loop701", LOOP1, 2048, "/no such folder/im");
    let ask = |_, _: &str| Err(Errno::NOENT);
    let mut users = Users {
        inventory: Inventory::read_from(&fake.proc(), &fake.sys(), &ask).unwrap(),
        is_root: true,
        notes: BTreeSet::new(),
    };
    let refusal = users.check_known().unwrap_err();
    insta::assert_snapshot!(refusal.why, @"cannot tell whether it is in use: /dev/loop701 stands on /no such folder/im, and does not tell more: No such file or directory (os error 2)");
    users.is_root = false;
    assert!(users.check_known().is_ok());
    assert_eq!(users.into_notes().count(), 1);
}

#[test]
fn missing_proc_or_sys_is_refused() {
    let fake = Fake::new();
    let empty = tempfile::tempdir().unwrap();
    let ask = |_, _: &str| Err(Errno::NOENT);
    for (proc, sys) in [(empty.path(), &*fake.sys()), (&*fake.proc(), empty.path())] {
        let error = Inventory::read_from(proc, sys, &ask).unwrap_err();
        assert_eq!(error.kind(), iolab_workload::Kind::Refused);
    }
}

/// A hidden device may be in use: its folder exists and is empty, as below a mount.
#[test]
fn device_hidden_in_sys_is_refused() {
    let ask = |_, _: &str| Err(Errno::NOENT);
    for (folder, hidden) in [("sdq", "size"), ("sdq/sdq1", "dev"), ("sdq/sdq1", "start")] {
        let fake = Fake::new();
        assert!(Inventory::read_from(&fake.proc(), &fake.sys(), &ask).is_ok());
        fs::remove_file(fake.folder(folder).join(hidden)).unwrap();
        let error = Inventory::read_from(&fake.proc(), &fake.sys(), &ask).unwrap_err();
        assert_eq!(
            error.kind(),
            iolab_workload::Kind::Refused,
            "{folder}/{hidden}"
        );
    }
    // A removed device has no link either.
    let fake = Fake::new();
    let (number, gone) = (format!("{}:{}", SDQ1.0, SDQ1.1), fake.folder("sdq/sdq1"));
    fs::remove_file(fake.sys().join("dev/block").join(number)).unwrap();
    fs::remove_dir_all(gone).unwrap();
    assert!(Inventory::read_from(&fake.proc(), &fake.sys(), &ask).is_ok());
}

/// Files with file system numbers that no mount shows may be on an overlay.
#[test]
fn possible_overlay_files_are_recognised() {
    let fake = Fake::new();
    let may_be = |mounts: &str, dev| {
        fake.mounts(mounts);
        let file = FileId { dev, inode: 1 };
        fake.users(|_| 0).inventory.may_be_overlaid(file)
    };
    let overlay = "40 1 0:50 / /m rw - overlay o rw,lowerdir=/l,upperdir=/u,workdir=/w\n";
    let tmpfs = "41 1 0:60 / /t rw - tmpfs t rw\n";
    let btrfs = "42 1 0:70 / /b rw - btrfs /dev/sdq rw\n";
    let all = [overlay, tmpfs, btrfs].concat();
    assert!(may_be(&all, (0, 50)));
    assert!(!may_be(&all, (0, 60)) && !may_be(&all, (8, 1)));
    // Layers on several file systems, and subvolumes, have their own numbers.
    assert!(may_be(&all, (0, 99)));
    assert!(!may_be(btrfs, (0, 99)));
    // A lazily unmounted overlay is shown nowhere.
    assert!(may_be(tmpfs, (0, 99)));
}

#[test]
fn swap_is_known_by_inode() {
    let fake = Fake::new();
    let disk = fake.0.path().join("a file");
    fs::write(&disk, "x").unwrap();
    let node = Node::File(FileId::of(&rustix::fs::stat(&disk).unwrap()));
    assert!(!fake.users(|_| 0).inventory.is_swap(node));
    let escaped = disk.display().to_string().replace(' ', "\\040");
    let swaps = format!("Filename\tType\tSize\tUsed\tPriority\n{escaped}  file\t8\t0\t-2\n");
    fs::write(fake.proc().join("swaps"), swaps).unwrap();
    assert!(fake.users(|_| 0).inventory.is_swap(node));
}

/// A pool on a disk, two thin volumes, a device that shows the pool, and one below it.
#[test]
fn volumes_of_one_pool_share_no_bytes() {
    const DISK: Number = (8, 0);
    const POOL: Number = (253, 0);
    const ONE: Number = (253, 1);
    const OTHER: Number = (253, 2);
    const SHOWN: Number = (253, 3);
    let all = |below| {
        Below::Mapped(vec![Piece {
            from: 0,
            length: 64,
            below: Node::Device(below),
            to: 0,
        }])
    };
    let devices = [
        (DISK, Below::Nothing),
        (POOL, Below::Spread(vec![DISK])),
        (ONE, Below::Thin(POOL)),
        (OTHER, Below::Thin(POOL)),
        (SHOWN, all(POOL)),
    ];
    let device = |(number, below): (Number, Below)| (number, unheld(number, 64, below));
    let graph = Graph {
        devices: devices.into_iter().map(device).collect(),
        disks: Vec::new(),
    };
    let met = |a: Number, b: Number| {
        let ways = |number| graph.ways(graph.whole(number));
        let [a, b] = [ways(a), ways(b)];
        graph.meeting(&a[0], &b[0]).is_some()
    };
    assert!(!met(ONE, OTHER) && !met(OTHER, ONE));
    assert!(met(ONE, ONE) && met(ONE, POOL) && met(ONE, DISK) && met(DISK, ONE));
    assert!(met(ONE, SHOWN) && met(SHOWN, OTHER));
    assert_eq!(graph.pool_of(ONE), Some(POOL));
    assert_eq!(graph.pool_of(SHOWN), None);
}

/// Random devices, each on ranges of the ones before it, with a table that maps each of their bytes to a byte
/// of the bottom.
fn stacks() -> impl Strategy<Value = (Graph, Vec<Vec<(usize, u64)>>)> {
    let device = (
        any::<prop::sample::Index>(),
        0u64..24,
        1u64..24,
        0u8..3,
        0u64..24,
    );
    (1usize..4, prop::collection::vec(device, 0..7)).prop_map(|(bottoms, above)| {
        let number = |index: usize| (300, index as u32);
        let mut graph = Graph::default();
        let mut tables: Vec<Vec<(usize, u64)>> = Vec::new();
        let mut add = |graph: &mut Graph, below, table: Vec<(usize, u64)>| {
            let number = number(tables.len());
            let device = unheld(number, table.len() as u64, below);
            graph.devices.insert(number, device);
            tables.push(table);
            tables.clone()
        };
        let mut all = Vec::new();
        for bottom in 0..bottoms {
            let table = (0..24).map(|byte| (bottom, byte)).collect();
            all = add(&mut graph, Below::Nothing, table);
        }
        for (lower, start, length, kind, second) in above {
            let lower = lower.index(all.len());
            let size = all[lower].len() as u64;
            let start = start % size;
            let length = length.min(size - start);
            let piece = |from, to, length| Piece {
                from,
                length,
                below: Node::Device(number(lower)),
                to,
            };
            let bytes = |start: u64, length: u64| {
                all[lower][start as usize..(start + length) as usize].to_vec()
            };
            let (below, table) = match kind {
                0 => (
                    Below::Partition(piece(0, start, length)),
                    bytes(start, length),
                ),
                1 => (Below::Loop(piece(0, start, length)), bytes(start, length)),
                _ => {
                    let second = second % size;
                    let pieces = vec![piece(0, start, length), piece(length, second, 1)];
                    (
                        Below::Mapped(pieces),
                        [bytes(start, length), bytes(second, 1)].concat(),
                    )
                }
            };
            all = add(&mut graph, below, table);
        }
        (graph, all)
    })
}

proptest! {
    /// Two devices share a byte of the disk below exactly where their mappings overlap.
    #[test]
    fn ways_meet_where_bytes_are_shared((graph, tables) in stacks()) {
        let ways = |index: usize| graph.ways(graph.whole((300, index as u32)));
        for a in 0..tables.len() {
            for b in 0..tables.len() {
                let shared = tables[a].iter().any(|byte| tables[b].contains(byte));
                let met = ways(a).iter().any(|way| {
                    ways(b).iter().any(|other| graph.meeting(way, other).is_some())
                });
                prop_assert_eq!(met, shared, "{} and {}", a, b);
            }
        }
    }
}
