//! Exports of the kernel to other machines: namespaces of NVMe over Fabrics (nvmet), backstores of SCSI targets
//! (LIO), and disks of USB gadgets. The kernel may use them without a claim; configfs lists them.
//!
//! Mounts visible to processes, each in a mount namespace and below a root.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat, major, minor};

use super::super::errno::{of_std, reason};
use super::super::sysfs;
use super::disk_ids::DiskId;
use super::storage_graph::{Below, FileId, Graph, Node, Piece, Way};
use super::{Checked, Refusal, Users, lasting};
use crate::mounts::Mount;
use crate::sysfs::{Number, number_of};

/// Exported devices and files.
#[derive(Debug, Default)]
pub(super) struct Exports {
    known: Vec<Export>,
    /// Reasons why there may be more.
    pub(super) unknown: Vec<Refusal>,
}

/// An exported device or file.
#[derive(Debug, Default)]
pub(super) struct Export {
    /// Exporter, in words.
    pub(super) by: String,
    nodes: Vec<Node>,
    /// Path of a file.
    path: PathBuf,
    /// Ids by which a client knows the disk that it gets.
    ids: BTreeSet<DiskId>,
    /// Whether the kernel keeps others from claiming an exported device.
    claims: bool,
    /// Devices of this machine that are connected to this export.
    clients: BTreeSet<Number>,
}

impl Export {
    /// Whether one of these devices is connected to it.
    pub(super) fn is_shown_as(&self, devices: &BTreeSet<Number>) -> bool {
        !self.clients.is_disjoint(devices)
    }
}

/// A part of the kernel that exports devices and files.
struct Exporter {
    name: &'static str,
    module: &'static str,
    /// Folder in configfs.
    folder: &'static str,
    read: fn(&mut Reader<'_>, &Path) -> std::io::Result<()>,
}

const EXPORTERS: [Exporter; 3] = [
    Exporter {
        name: "nvmet (NVMe over Fabrics)",
        module: "nvmet",
        folder: "nvmet",
        read: |reader, folder| reader.nvmet(folder),
    },
    Exporter {
        name: "LIO (SCSI targets)",
        module: "target_core_mod",
        folder: "target",
        read: |reader, folder| reader.lio(folder),
    },
    Exporter {
        name: "the USB gadget (mass storage)",
        module: "usb_f_mass_storage",
        folder: "usb_gadget",
        read: |reader, folder| reader.usb(folder),
    },
];

impl Exports {
    /// Reads the exports, wherever configfs is mounted.
    pub(super) fn read(sys: &Path, namespaces: &[Namespace]) -> Self {
        let mut reader = Reader {
            sys,
            namespaces,
            found: Self::default(),
        };
        let roots: Vec<PathBuf> = namespaces.iter().flat_map(roots).collect();
        for exporter in EXPORTERS {
            let folders = roots.iter().map(|root| root.join(exporter.folder));
            let folder = folders.into_iter().find(|folder| folder.is_dir());
            let read = match folder {
                Some(folder) => (exporter.read)(&mut reader, &folder),
                None if is_used(sys, exporter.module) => {
                    Err(std::io::Error::other("configfs is not mounted here"))
                }
                None => Ok(()),
            };
            if let Err(error) = read {
                let why = match error.raw_os_error() {
                    Some(_) => reason(of_std(&error)),
                    None => error.to_string(),
                };
                let why = format!("what {} exports cannot be seen: {why}", exporter.name);
                let hint = "run where configfs is mounted and can be read (`mount -t configfs none /sys/kernel/config`)";
                reader.found.unknown.push(lasting(why, hint));
            }
        }
        reader.found
    }

    /// Exports of a device or file.
    pub(super) fn of(&self, node: Node) -> impl Iterator<Item = &Export> {
        let known = self.known.iter();
        known.filter(move |export| export.nodes.contains(&node))
    }

    /// Places devices that are connected to an export of this machine, recognised by their ids, above the
    /// exported objects. Returns the paths of files below them.
    pub(super) fn connect(
        &mut self,
        graph: &mut Graph,
        ids: &BTreeMap<Number, BTreeSet<DiskId>>,
    ) -> BTreeMap<FileId, PathBuf> {
        let mut paths = BTreeMap::new();
        for export in &mut self.known {
            for (&number, own) in ids {
                let is_itself = export.nodes.contains(&Node::Device(number));
                let is_client = !own.is_disjoint(&export.ids) && !is_itself;
                let device = graph.devices.get_mut(&number);
                let Some(device) = device.filter(|_| is_client) else {
                    continue;
                };
                let piece = |below: &Node| Piece::whole(device.bytes, *below, 0);
                // An ambiguous path, or an id of several exports, leaves several candidates: all are kept.
                let mut all: Vec<Piece> = export.nodes.iter().map(piece).collect();
                let mut all_claim = export.claims;
                if let Below::Export { pieces, claims } = &device.below {
                    all.extend(pieces);
                    all_claim &= claims;
                }
                if all.is_empty() {
                    continue;
                }
                device.below = Below::Export {
                    pieces: all,
                    claims: all_claim,
                };
                export.clients.insert(number);
                let files = export.nodes.iter().filter_map(|node| node.file());
                paths.extend(files.map(|file| (file, export.path.clone())));
            }
        }
        paths
    }
}

impl Users {
    /// Refuses if the kernel's exports are not visible: one may be the target.
    pub(super) fn check_exports(&mut self) -> Checked {
        for refusal in self.inventory.exports.unknown.clone() {
            let note = refusal.why.clone();
            self.cannot_tell(refusal, note)?;
        }
        Ok(())
    }

    /// Notes that the target is an export of this machine: other machines may be connected to it as well.
    pub(super) fn note_own_exports(&mut self, ways: &[Way], own: &BTreeSet<Number>) {
        for span in ways.iter().flatten() {
            let exports = self.inventory.exports.of(span.node);
            for Export { by, .. } in exports.filter(|export| export.is_shown_as(own)) {
                let name = self.inventory.name(span.node);
                self.notes.insert(format!(
                    "the target is connected to {name}, which this machine exports by {by}: whether other machines use it is not known"
                ));
            }
        }
    }
}

/// Mount points of configfs in a mount namespace: all show the same content.
fn roots(namespace: &Namespace) -> impl Iterator<Item = PathBuf> {
    let mounts = namespace.mounts.iter();
    let mounts = mounts.filter(|mount| mount.fs.kind == "configfs");
    mounts.map(|mount| rooted(&namespace.root, &mount.fs.mount_point))
}

/// Whether a module is loaded and has users other than modules: each object in its folder of configfs is one.
fn is_used(sys: &Path, module: &str) -> bool {
    let folder = sys.join("module").join(module);
    let holders = std::fs::read_dir(folder.join("holders")).map_or(0, Iterator::count);
    let users = sysfs::value(folder.join("refcnt"));
    // A built-in module has no such counter.
    folder.exists() && users.is_none_or(|users| users > holders as u64)
}

struct Reader<'a> {
    sys: &'a Path,
    namespaces: &'a [Namespace],
    found: Exports,
}

impl Reader<'_> {
    fn nvmet(&mut self, folder: &Path) -> std::io::Result<()> {
        for subsystem in folders(&folder.join("subsystems"))? {
            let name = name(&subsystem);
            for namespace in folders(&subsystem.join("namespaces"))? {
                let number = self::name(&namespace);
                let by = format!("nvmet (subsystem {name}, namespace {number})");
                self.nvmet_device(by, &namespace)?;
            }
            // A whole controller, where the kernel supports that.
            let controller = subsystem.join("passthru");
            if controller.is_dir() {
                self.nvmet_device(format!("nvmet (subsystem {name})"), &controller)?;
            }
        }
        Ok(())
    }

    fn nvmet_device(&mut self, by: String, folder: &Path) -> std::io::Result<()> {
        if line(&folder.join("enable"))? != "0" {
            let path = line(&folder.join("device_path"))?;
            // A controller that is passed through has the ids of its own namespaces.
            let id = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
            let ids = [
                id("device_uuid").and_then(|uuid| DiskId::of_uuid(&uuid)),
                id("device_nguid").and_then(|nguid| DiskId::of_digits(&nguid, "eui")),
            ];
            let export = Export {
                by,
                ids: ids.into_iter().flatten().collect(),
                ..Export::default()
            };
            self.add(export, &[path]);
        }
        Ok(())
    }

    fn lio(&mut self, folder: &Path) -> std::io::Result<()> {
        for adapter in folders(&folder.join("core"))? {
            for store in folders(&adapter)? {
                // Next to adapters there are groups of ports.
                if !store.join("info").exists() || line(&store.join("enable"))? == "0" {
                    continue;
                }
                let info = std::fs::read_to_string(store.join("info"))?;
                let device = info_device(&info).map(Node::Device);
                let mut paths = vec![line(&store.join("udev_path"))?];
                paths.extend(info_file(&info).map(str::to_owned));
                let serial = std::fs::read_to_string(store.join("wwn/vpd_unit_serial"));
                let id = serial.ok().and_then(|serial| lio_id(&serial));
                let export = Export {
                    by: format!("LIO (backstore {}/{})", name(&adapter), name(&store)),
                    nodes: device.into_iter().collect(),
                    ids: id.into_iter().collect(),
                    claims: device.is_some(),
                    ..Export::default()
                };
                self.add(export, &paths);
            }
        }
        Ok(())
    }

    /// Disks that this machine provides to another one by USB; the kernel opens them without a claim as soon as
    /// they are named.
    fn usb(&mut self, folder: &Path) -> std::io::Result<()> {
        for gadget in folders(folder)? {
            for function in folders(&gadget.join("functions"))? {
                for unit in folders(&function)? {
                    let is_unit = name(&unit).starts_with("lun.");
                    let file = match is_unit {
                        true => line(&unit.join("file"))?,
                        false => continue,
                    };
                    if !file.is_empty() {
                        let export = Export {
                            by: format!("USB gadget {} ({})", name(&gadget), name(&function)),
                            ..Export::default()
                        };
                        self.add(export, &[file]);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds an export by its number, or by paths in every namespace where they exist.
    fn add(&mut self, mut export: Export, paths: &[String]) {
        let mut paths = paths.iter().filter(|path| !path.is_empty()).peekable();
        let first = paths.peek().copied();
        export.path = first.map(PathBuf::from).unwrap_or_default();
        for path in paths {
            for namespace in self.namespaces {
                for node in self.nodes_at(&rooted(&namespace.root, Path::new(path))) {
                    if !export.nodes.contains(&node) {
                        export.nodes.push(node);
                    }
                }
            }
        }
        if let (true, Some(path)) = (export.nodes.is_empty(), first) {
            let by = &export.by;
            let why = format!("{path} is exported by {by}, and leads nowhere from here");
            let hint = "run in the mount namespace where it was exported, or end that export";
            self.found.unknown.push(lasting(why, hint));
        }
        self.found.known.push(export);
    }

    fn nodes_at(&self, path: &Path) -> Vec<Node> {
        let Ok(stat) = rustix::fs::stat(path) else {
            return Vec::new();
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => vec![Node::File(FileId::of(&stat))],
            FileType::CharacterDevice => {
                let disks = self.disks_of((major(stat.st_rdev), minor(stat.st_rdev)));
                disks.into_iter().map(Node::Device).collect()
            }
            _ => number_of(&stat).map(Node::Device).into_iter().collect(),
        }
    }

    /// Block devices of an NVMe controller: their device folder is the controller, or a subsystem that has it.
    fn disks_of(&self, controller: Number) -> Vec<Number> {
        let link = format!("dev/char/{}:{}", controller.0, controller.1);
        let Ok(folder) = std::fs::canonicalize(self.sys.join(link)) else {
            return Vec::new();
        };
        let is_its = |disk: &PathBuf| {
            let device = std::fs::canonicalize(disk.join("device"));
            device.is_ok_and(|device| {
                let in_subsystem = std::fs::canonicalize(device.join(name(&folder)));
                device == folder || in_subsystem.is_ok_and(|other| other == folder)
            })
        };
        let disks = folders(&self.sys.join("block")).unwrap_or_default();
        let disks = disks.iter().filter(|disk| is_its(disk));
        disks
            .filter_map(|disk| sysfs::device_number(disk))
            .collect()
    }
}

/// Folders in a folder, and links to folders.
fn folders(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            all.push(path);
        }
    }
    Ok(all)
}

fn name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The one line of an attribute; empty if the attribute was never set.
fn line(path: &Path) -> std::io::Result<String> {
    let text = std::fs::read_to_string(path)?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// Id of the disk that a client of LIO gets, from the serial number of its backstore: the NAA identifier of
/// `spc_emulate_evpd_83` of Linux. It consists of the registered company, the first hexadecimal digits of the
/// serial number (`spc_parse_naa_6h_vendor_specific`), and zeros if there are fewer. A changed company is not
/// known here. Without a serial number there is no id.
fn lio_id(text: &str) -> Option<DiskId> {
    /// Number of serial-number digits in it.
    const DIGITS: usize = 25;
    let (_, serial) = text.split_once("Unit Serial Number:")?;
    if serial.trim().is_empty() {
        return None;
    }
    let digits = serial.chars().filter(char::is_ascii_hexdigit);
    let digits: String = digits.take(DIGITS).collect();
    DiskId::of_digits(&format!("6001405{digits:0<DIGITS$}"), "naa")
}

/// Device of an iblock backstore: `Major: 8 Minor: 0`.
fn info_device(info: &str) -> Option<Number> {
    let (_, numbers) = info.split_once("Major: ")?;
    let (major, rest) = numbers.split_once(" Minor: ")?;
    let minor = rest.split_whitespace().next()?;
    Some((major.trim().parse().ok()?, minor.parse().ok()?))
}

/// File of a fileio backstore: `File: /images/im  Size: 1048576`.
fn info_file(info: &str) -> Option<&str> {
    let (_, file) = info.split_once(" File: ")?;
    file.split_once("  Size: ").map(|(file, _)| file)
}

/// Mounts visible to some process.
#[derive(Debug)]
pub(super) struct Namespace {
    /// Path of its root from here.
    pub(super) root: PathBuf,
    /// A process in it, if that is another one than this.
    pub(super) process: Option<u32>,
    pub(super) mounts: Vec<Mount>,
}

impl Namespace {
    /// Object at the source of a mount, if the source is a path that means the same to every process.
    pub(super) fn source(&self, mount: &Mount) -> Option<Stat> {
        let source = Path::new(&mount.fs.source);
        let is_plain = source.is_absolute() && !source.starts_with("/proc");
        is_plain
            .then(|| rustix::fs::stat(rooted(&self.root, source)).ok())
            .flatten()
    }

    /// Mount point of the first matching mount, in words.
    pub(super) fn mounted(&self, is_it: impl Fn(&&Mount) -> bool) -> Option<String> {
        let mount = self.mounts.iter().find(is_it)?;
        let at = mount.fs.mount_point.display();
        Some(match self.process {
            None => format!("mounted at {at}"),
            Some(process) => {
                format!("mounted at {at} in the mount namespace of process {process}")
            }
        })
    }
}

/// Absolute path as seen from another root.
pub(super) fn rooted(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
