//! Search for other users of a target's bytes. It resolves the target down to the ranges of files and devices
//! that it stands on. From each range it goes up to everything else on an overlapping range.
//!
//! **Down.** A partition leads to its disk; a loop device to its file, which the driver names by device and
//! inode, with offset and length. A mapped device leads to the pieces of its table, or to all members if the
//! mapping is unknown; a thin volume to its pool. A device connected to an export of this machine (nvmet, LIO),
//! known by UUID, NGUID or NAA identifier, leads to the exported object. A file of an overlay leads to the file
//! in the upper layer.
//!
//! **Paths.** Two SCSI devices or NVMe namespaces are paths to one disk if they share a worldwide id (`naa`,
//! `eui`, `uuid`), or another WWID and the size. A SCSI disk without a WWID is identified by vendor, model and
//! serial number. Ids that are empty, blank, zero or without a serial number do not count.
//!
//! **Up.** A use is: a mount, swap, an export, a driver without a claim, a loop device, a mapped device, a
//! RAID, or a claim of the kernel (`O_EXCL` fails with `EBUSY`). Also a process that has it open for writing or
//! mapped, even through a device that sends commands to the disk; a process that serves a file system or block
//! device from it; and a layer of a mounted overlay. The search covers all visible mount namespaces,
//! `/proc/*/task/*/fd` and `/proc/*/maps`. Findings are checked again during one second, because udev opens
//! devices briefly. Then the device and its other paths are claimed with `O_EXCL` for the whole run.
//!
//! **Files.** The kernel grants a write lease (`F_SETLEASE`) only for a file that is not open anywhere else. A
//! client of NFSv4 or SMB gets one only with a delegation or oplock. Without one, a refused lease proves
//! nothing; then processes, locks, loop devices, swap and exports are searched by every number and handle that
//! mounts of the same server give the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use iolab_workload::{Error, Result};

use super::errno::{self, reason};
use super::path_lookup::NamedObject;
use super::signature::{self, Site};
use super::sysfs::Number;

mod disk_ids;
mod exports;
mod files;
mod inventory;
mod mapper;
mod openers;
mod overlay_aliases;
mod sharers;
mod signatures;
mod storage_graph;

pub(super) use disk_ids::lasting_id;
use exports::Export;
pub(super) use files::check_directory;
use inventory::Inventory;
pub(super) use inventory::open_node;
pub use mapper::mapped_kinds;
pub(super) use mapper::{PoolSpace, mapped_table, stores_nothing};
use openers::{How, Look, Unseen, Wanted};
pub(super) use overlay_aliases::file_handle;
use sharers::Sharer;
pub(super) use sharers::{Image, Pool, Supply, below_device, below_file};
use storage_graph::{Below, FileId, Node, Way};

/// Time to wait for a temporary user: udev and others open devices and files briefly.
pub(super) const TIMEOUT: Duration = Duration::from_secs(1);
/// Pause between two checks; the kernel has no event for this.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

const SEE_DEVICES: &str =
    "see `lsblk` and `losetup -l`; stop that use first, or choose another target";
const SEE_PATHS: &str = "see `lsblk` and `grep . /sys/block/*/{,device/}wwid` (paths to one disk have one WWID); stop that use first, or choose another target";
const SEE_EXPORTS: &str = "see `nvmetcli ls`, `targetcli ls` and /sys/kernel/config; end that export, or choose another target";
const SEE_CLIENTS: &str = "disconnect it first (`nvme disconnect -d NAME`, `iscsiadm -m session` and `--logout`), or choose another target";
const SEE_OPENERS: &str = "see `fuser -v PATH`; stop that process, or choose another target";

/// Present users of storage, according to the kernel.
#[derive(Debug)]
pub(super) struct Users {
    inventory: Inventory,
    /// Whether the user is root. Root sees everything, so invisible parts are a reason to refuse; for an
    /// ordinary user they become a note.
    is_root: bool,
    notes: BTreeSet<String>,
}

/// Reason to refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    why: String,
    hint: &'static str,
    /// Whether the refusal may disappear in a moment.
    passing: bool,
}

type Checked<T = ()> = std::result::Result<T, Refusal>;

fn lasting(why: String, hint: &'static str) -> Refusal {
    Refusal {
        why,
        hint,
        passing: false,
    }
}

fn passing(why: String, hint: &'static str) -> Refusal {
    Refusal {
        why,
        hint,
        passing: true,
    }
}

/// Use of a device or file, in words, with the command that shows it, if not stated elsewhere.
struct Use {
    what: String,
    see: Option<&'static str>,
}

impl Users {
    /// Reads the kernel's devices and mounts ([`Inventory`]).
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused) when `/proc` or `/sys` cannot be read.
    pub(super) fn read() -> Result<Self> {
        Ok(Self {
            inventory: Inventory::read()?,
            is_root: rustix::process::geteuid().is_root(),
            notes: BTreeSet::new(),
        })
    }

    /// Notes to the user on parts that could not be examined.
    pub(super) fn into_notes(self) -> impl Iterator<Item = String> {
        self.notes.into_iter()
    }

    /// Whether a device is set read-only.
    pub(super) fn is_read_only(&self, number: Number) -> bool {
        let device = self.inventory.graph.devices.get(&number);
        device.is_some_and(|device| device.read_only)
    }

    /// Checks that no other process uses the bytes of a block device.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): the user of the device, the chain to it, and a
    /// remedy; or the part that cannot be examined.
    pub(super) fn check_device(&mut self, found: &NamedObject, number: Number) -> Result<()> {
        self.check(found, |users| users.look_at_device(number))
    }

    /// Looks again until what may disappear in a moment has done so.
    fn check(&mut self, found: &NamedObject, look: impl Fn(&mut Self) -> Checked) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match look(self) {
                Err(refusal) if refusal.passing && Instant::now() < deadline => {}
                done => return done.map_err(|refusal| refused(found, refusal)),
            }
            std::thread::sleep(PAUSE);
            self.inventory = Inventory::read()?;
        }
    }

    /// Claims the other paths to a device's bytes, which its own claim does not protect.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): one is claimed by now, or root cannot open it.
    pub(super) fn claim_other_paths(
        &mut self,
        found: &NamedObject,
        number: Number,
    ) -> Result<Vec<File>> {
        let mut claims = Vec::new();
        let others: Vec<Number> = self.inventory.graph.other_paths(number).collect();
        for other in others {
            let flags = OFlags::RDONLY | OFlags::EXCL;
            let name = &self.inventory.graph.devices[&other].name;
            let errno = match open_node(other, name, flags) {
                Ok(claim) => {
                    claims.push(claim);
                    continue;
                }
                // No I/O reaches the disk through a path that is down.
                Err(Errno::NXIO | Errno::NOMEDIUM) => continue,
                Err(errno) => errno,
            };
            let why = format!(
                "/dev/{name}, another path to it, cannot be claimed: {}",
                reason(errno)
            );
            if self.is_root || errno == Errno::BUSY {
                return Err(refused(found, lasting(why, SEE_PATHS)));
            }
            self.notes.insert(why);
        }
        Ok(claims)
    }

    fn look_at_device(&mut self, number: Number) -> Checked {
        let Some(device) = self.inventory.graph.devices.get(&number) else {
            return Err(lasting(
                format!(
                    "cannot tell whether it is in use: /sys does not show device {}:{}",
                    number.0, number.1
                ),
                "run where /sys shows the device",
            ));
        };
        let ways = self.ways(number);
        let own = devices(&ways);
        if let Some(held) = device.holders.first() {
            // A mount above is more informative than a layer in between.
            self.check_uses(&self.sharers(number, &ways), &own)?;
            let holder = self.inventory.name(Node::Device(*held));
            return Err(lasting(
                format!("{holder} stands on it and holds it"),
                SEE_DEVICES,
            ));
        }
        self.check_known()?;
        let mut wanted = Wanted::default();
        let mut chains = BTreeMap::new();
        // A known user of the target is reported before an unknown one.
        let mut unknown = Ok(());
        for file in self.files_below(number) {
            let seen = self.look_at_backing(number, &own, file, &mut wanted);
            unknown = unknown.and(seen);
        }
        if let Some(Use { what, see }) = self.use_of(Node::Device(number), &own) {
            return Err(lasting(format!("it is {what}"), see.unwrap_or(SEE_DEVICES)));
        }
        // Files below may have turned out to be the same.
        let ways = self.ways(number);
        self.note_own_exports(&ways, &own);
        for way in &ways {
            for (at, span) in way.iter().enumerate() {
                chains.insert(span.node, self.chain(way, at, &[]));
            }
        }
        let sharers = self.sharers(number, &ways);
        self.check_uses(&sharers, &own)?;
        for sharer in &sharers {
            self.look_at_sharer(sharer, &ways)?;
            chains.insert(Node::Device(sharer.number), sharer.chain.clone());
            wanted.devices.insert(sharer.number);
        }
        wanted.devices.insert(number);
        self.look_at_openers(&wanted, &chains, number)?;
        unknown?;
        self.check_exports()?;
        let below = self.devices_below_files(number);
        self.check_file_systems(below)
    }

    /// Refuses if a loop device does not report what it stands on: it may stand on the target.
    fn check_known(&mut self) -> Checked {
        let devices = self.inventory.graph.devices.values();
        let unknown = devices.filter_map(|device| match &device.below {
            Below::Unknown(why) => Some(why.clone()),
            _ => None,
        });
        for why in unknown.collect::<Vec<_>>() {
            let note = format!("{why}: only root can see whether it uses the target");
            let hint = "run where the nodes of the loop devices are in /dev, or detach that one (`losetup -d`)";
            self.cannot_tell(lasting(why, hint), note)?;
        }
        Ok(())
    }

    fn ways(&self, number: Number) -> Vec<Way> {
        let graph = &self.inventory.graph;
        graph.ways(graph.whole(number))
    }

    /// Files that a device stands on.
    fn files_below(&self, number: Number) -> BTreeSet<FileId> {
        let ways = self.ways(number);
        ways.iter()
            .filter_map(|way| way.last()?.node.file())
            .collect()
    }

    /// Use of a node: mounted, swapped to, or exported to others than the target, which stands on these
    /// devices.
    fn use_of(&self, node: Node, own: &BTreeSet<Number>) -> Option<Use> {
        let mounted = match node {
            Node::Device(number) => self.inventory.mounted(number),
            Node::File(file) => self.inventory.mounted_file(file),
            // A user of a disk uses one of its paths.
            Node::Disk(_) => None,
        };
        let swap = || {
            let swap = self.inventory.is_swap(node);
            swap.then(|| "used as swap".to_owned())
        };
        let unclaimed = || self.inventory.unclaimed.get(&node.device()?).cloned();
        let local = mounted.or_else(swap).or_else(unclaimed);
        let local = local.map(|what| Use { what, see: None });
        local.or_else(|| {
            let mut exports = self.inventory.exports.of(node);
            let Export { by, .. } = exports.find(|export| !export.is_shown_as(own))?;
            Some(Use {
                what: format!("exported by {by}"),
                see: Some(SEE_EXPORTS),
            })
        })
    }

    /// Refuses if another device that shares bytes with the target is mounted, swapped to, or exported.
    fn check_uses(&self, sharers: &[Sharer], own: &BTreeSet<Number>) -> Checked {
        let used = sharers.iter().find_map(|sharer| {
            let Use { what, see } = self.use_of(Node::Device(sharer.number), own)?;
            let why = format!("{}, {what}", sharer.chain);
            Some(lasting(why, see.unwrap_or(sharer.hint())))
        });
        used.map_or(Ok(()), Err)
    }

    fn look_at_sharer(&mut self, sharer: &Sharer, ways: &[Way]) -> Checked {
        let graph = &self.inventory.graph;
        let Sharer { number, chain, .. } = sharer;
        if !sharer.is_below && graph.is_loop(*number) {
            let holds = match self.first_signature(*number) {
                Some(name) => format!(" and holds {name}"),
                None => String::new(),
            };
            return Err(lasting(
                format!("{chain}, a loop device that is set up{holds}"),
                "detach it first (`losetup -d`), or choose another target",
            ));
        }
        if !sharer.is_below && graph.is_client(*number) {
            let why = format!("{chain}, which is connected to an export of this machine");
            return Err(lasting(why, SEE_CLIENTS));
        }
        let is_upon = !sharer.is_below && graph.is_stacked(*number);
        if is_upon && !sharer.shows_pool {
            let why = format!("{chain}, which holds it");
            return Err(lasting(why, sharer.hint()));
        }
        if sharer.is_mapped && !sharer.by_path && !is_upon {
            return Ok(());
        }
        let is_ours = |holder: &Number| {
            let node = Node::Device(*holder);
            ways.iter().flatten().any(|span| span.node == node)
        };
        let holders = &graph.devices[number].holders;
        if let Some(holder) = holders.iter().find(|holder| !is_ours(holder)) {
            let holder = self.inventory.name(Node::Device(*holder));
            let why = format!("{chain}, held by {holder}");
            return Err(lasting(why, sharer.hint()));
        }
        // Each partition claims its disk, and the target's own claim shows whether the whole disk is claimed.
        if sharer.by_partition {
            return Ok(());
        }
        match self.is_claimed(*number) {
            Ok(false) => Ok(()),
            Ok(true) => Err(passing(
                format!("{chain}, in use: the kernel holds a claim on it (O_EXCL: EBUSY)"),
                sharer.hint(),
            )),
            Err(errno) => self.cannot_look(
                &format!("{chain}, which cannot be opened: {}", reason(errno)),
                "run where /dev has all devices and they can be opened",
            ),
        }
    }

    fn cannot_look(&mut self, why: &str, hint: &'static str) -> Checked {
        let note = format!("only root can see whether anything uses {why}");
        self.cannot_tell(lasting(why.to_owned(), hint), note)
    }

    /// Refuses for root if something is not visible, or adds a note.
    fn cannot_tell(&mut self, refusal: Refusal, note: String) -> Checked {
        if self.is_root {
            let why = format!("cannot tell whether it is in use: {}", refusal.why);
            return Err(Refusal { why, ..refusal });
        }
        self.notes.insert(note);
        Ok(())
    }

    /// Whether the kernel holds a claim on a device: a mount in any namespace, swap, another device.
    fn is_claimed(&self, number: Number) -> std::result::Result<bool, Errno> {
        let claim = |number: Number| {
            let name = &self.inventory.graph.devices[&number].name;
            let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK;
            match open_node(number, name, flags) {
                Ok(_) => Ok(false),
                Err(Errno::BUSY) => Ok(true),
                Err(Errno::NXIO | Errno::NOMEDIUM) => Ok(false),
                Err(errno) => Err(errno),
            }
        };
        if !claim(number)? {
            return Ok(false);
        }
        // A claim on a partition keeps others from claiming the disk, and vice versa.
        let mut partitions = self.inventory.graph.partitions(number);
        Ok(!partitions.any(|(partition, _)| claim(partition) == Ok(true)))
    }

    /// Refuses if another process has it open for writing, or mapped.
    fn look_at_openers(
        &mut self,
        wanted: &Wanted,
        chains: &BTreeMap<Node, String>,
        target: Number,
    ) -> Checked {
        let look = openers::look(Path::new("/proc"), Path::new("/sys"), wanted);
        let user = look.openers.iter().find(|opener| opener.how != How::Reads);
        if let Some(user) = user {
            let chain = chains
                .get(&user.node)
                .filter(|_| user.node != Node::Device(target));
            let why = match chain {
                Some(chain) => format!("{chain}: {user}"),
                None => user.to_string(),
            };
            return Err(passing(why, SEE_OPENERS));
        }
        self.check_unseen()?;
        self.check_seen(&look)
    }

    /// If some processes are hidden, refuses for root, or adds a note.
    fn check_unseen(&mut self) -> Checked {
        let Some(unseen) = openers::unseen(Path::new("/proc")) else {
            return Ok(());
        };
        let (why, hint) = match unseen {
            Unseen::Namespaces => (
                "processes outside this PID namespace cannot be seen",
                "run in the PID namespace of the host (docker run --pid=host)",
            ),
            Unseen::Users => (
                "/proc hides the processes of other users (hidepid)",
                "run with the capability CAP_SYS_PTRACE, or mount /proc without hidepid",
            ),
        };
        self.cannot_tell(lasting(why.to_owned(), hint), why.to_owned())
    }

    /// If some processes hide their open files, refuses for root, or adds a note.
    fn check_seen(&mut self, look: &Look) -> Checked {
        let several = |count: usize| match count {
            1 => "1 process does".to_owned(),
            _ => format!("{count} processes do"),
        };
        if look.guarded > 0 {
            let who = several(look.guarded);
            self.notes
                .insert(format!("{who} not show open files, even to root"));
        }
        if look.closed == 0 {
            return Ok(());
        }
        let note = "only root can see whether processes of other users have the target open";
        let refusal = passing(
            format!("{} not show open files", several(look.closed)),
            "run with the capability CAP_SYS_PTRACE, or stop those processes",
        );
        self.cannot_tell(refusal, note.to_owned())
    }
}

/// Whether two block devices are paths to the same bytes of a disk.
pub(super) fn are_paths_to_same(a: Number, b: Number) -> bool {
    let inventory = Inventory::read();
    inventory.is_ok_and(|inventory| inventory.graph.are_paths_to_same(a, b))
}

/// Devices on these ways.
fn devices(ways: &[Way]) -> BTreeSet<Number> {
    let spans = ways.iter().flatten();
    spans.filter_map(|span| span.node.device()).collect()
}

fn in_layer(what: &str, overlay: &Path) -> Refusal {
    lasting(
        format!(
            "{what} lies in a layer of the overlay mounted at {}",
            overlay.display()
        ),
        "unmount the overlay first, or choose another target",
    )
}

/// Opens the object that a handle without access refers to.
fn opened(handle: impl AsFd, flags: OFlags) -> std::result::Result<File, Errno> {
    super::path_lookup::open_same(handle, Path::new(""), flags)
}

fn refused(found: &NamedObject, refusal: Refusal) -> Error {
    Error::refused(format!(
        "refusing to write to {}: {}",
        found.path.display(),
        refusal.why
    ))
    .hint(refusal.hint)
}

#[cfg(test)]
mod tests;
