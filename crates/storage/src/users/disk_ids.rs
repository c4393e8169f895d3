//! Ids that identify a disk by any path: worldwide names (WWID) of SCSI disks, identifiers of NVMe namespaces.
//! Two devices with one id are two paths to one disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::storage_graph::{Below, Disk, Graph, Node, Piece};
use crate::sysfs::Number;

/// An id that no two disks share, as the kernel writes WWIDs: `naa.5000c500a1b2c3d4`, `eui.0025385b71b0aa12`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DiskId(String);

impl std::fmt::Display for DiskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl DiskId {
    /// Parses a WWID; `None` if it does not identify a disk, because it or its serial number is empty, blank or
    /// zero.
    fn of_wwid(text: &str) -> Option<Self> {
        let text = text.trim_end_matches(['\n', '\0']);
        let (kind, value) = text.split_once('.')?;
        let tells = match kind {
            "naa" | "eui" => return Self::of_digits(value, kind),
            "uuid" => return Self::of_uuid(value),
            "t10" => has_serial(value),
            // Vendor, serial number and model in hexadecimal, and the namespace.
            "nvme" => {
                let serial = value.split('-').nth(1).and_then(of_hex);
                serial.is_some_and(|serial| tells(&serial))
            }
            _ => tells(value),
        };
        tells.then(|| Self(text.trim_end().to_owned()))
    }

    /// Whether a registry assigns these ids, so that no two disks share one; others consist of vendor-chosen
    /// text.
    fn is_worldwide(&self) -> bool {
        ["naa.", "eui.", "uuid."]
            .iter()
            .any(|kind| self.0.starts_with(kind))
    }

    /// Parses an id of hexadecimal digits, however they are grouped.
    pub(super) fn of_digits(value: &str, kind: &str) -> Option<Self> {
        let digits: String = value.chars().filter(char::is_ascii_hexdigit).collect();
        tells(&digits).then(|| Self(format!("{kind}.{}", digits.to_ascii_lowercase())))
    }

    pub(super) fn of_uuid(value: &str) -> Option<Self> {
        tells(value).then(|| Self(format!("uuid.{}", value.trim().to_ascii_lowercase())))
    }

    /// Serial number of a SCSI disk, with vendor and model, from its page of vital product data 0x80.
    fn of_serial(vendor: &str, model: &str, page: &[u8]) -> Option<Self> {
        /// Bytes of page code and length.
        const HEADER: usize = 4;
        let serial = String::from_utf8_lossy(page.get(HEADER..)?);
        let serial = serial.trim_matches([' ', '\0']);
        let words = [vendor.trim(), model.trim(), serial];
        tells(serial).then(|| Self(format!("serial.{}", words.join(" "))))
    }
}

/// Whether an id is more than filler: blanks, zeros, or all bits set.
fn tells(id: &str) -> bool {
    let said = || id.chars().filter(char::is_ascii_alphanumeric);
    let is_all = |filler: char| said().all(|c| c.eq_ignore_ascii_case(&filler));
    said().next().is_some() && !is_all('0') && !is_all('f')
}

/// Whether an id of the form `t10.` has a serial number, which comes after vendor and model.
fn has_serial(value: &str) -> bool {
    /// Characters of vendor and model of a SCSI disk, and of an ATA disk that is shown as one.
    const SCSI: usize = 8 + 16;
    const ATA: usize = 8 + 40;
    let is_ata = value.starts_with("ATA ");
    match value.get(if is_ata { ATA } else { SCSI }..) {
        Some(serial) => tells(serial),
        // Too short for a model: all of it is chosen by the vendor.
        None => !is_ata && tells(value),
    }
}

/// Text encoded by hexadecimal digits.
fn of_hex(digits: &str) -> Option<String> {
    let bytes = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    let bytes: Option<Vec<u8>> = bytes.collect();
    Some(String::from_utf8_lossy(&bytes?).into_owned())
}

/// Ids of a disk, by its folder in sysfs.
pub(super) fn ids(dir: &Path) -> BTreeSet<DiskId> {
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    let wwid = |name: &str| DiskId::of_wwid(&text(name)?);
    // A namespace has up to four, and the WWID is one of them: another path may show another one.
    let digits = |name: &str| DiskId::of_digits(&text(name)?, "eui");
    let named = [
        wwid("device/wwid"),
        wwid("wwid"),
        digits("nguid"),
        digits("eui"),
        text("uuid").and_then(|uuid| DiskId::of_uuid(&uuid)),
    ];
    let mut ids: BTreeSet<DiskId> = named.into_iter().flatten().collect();
    if ids.is_empty() {
        let page = std::fs::read(dir.join("device/vpd_pg80"));
        let names = text("device/vendor").zip(text("device/model"));
        ids.extend(
            page.ok()
                .zip(names)
                .and_then(|(page, (vendor, model))| DiskId::of_serial(&vendor, &model, &page)),
        );
    }
    ids
}

/// An id that a disk or layer keeps over a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct LastingId {
    pub(in super::super) text: String,
    /// Whether a registry or the kernel ensures that no other one has it.
    pub(in super::super) is_worldwide: bool,
}

/// Id of a disk or layer, by its folder in sysfs: WWID, the UUID of device mapper or md, or serial number;
/// `None` if none of them identifies it.
pub(in super::super) fn lasting_id(dir: &Path) -> Option<LastingId> {
    let text = |name: &&str| std::fs::read_to_string(dir.join(name)).ok();
    let first = |names: [&str; 2]| {
        let mut texts = names.iter().filter_map(text);
        texts.find(|text| tells(text.trim_start_matches("0x")))
    };
    // With trailing blanks, which represent a missing serial number.
    let wwid = |name: &&str| DiskId::of_wwid(&text(name)?);
    if let Some(id) = ["device/wwid", "wwid"].iter().find_map(wwid) {
        return Some(LastingId {
            text: id.to_string(),
            is_worldwide: id.is_worldwide(),
        });
    }
    let of_layer = first(["dm/uuid", "md/uuid"]);
    let is_worldwide = of_layer.is_some();
    let id = of_layer.or_else(|| first(["device/serial", "serial"]))?;
    // All namespaces of an NVMe disk share its serial number.
    let namespace = text(&"nsid").unwrap_or_default();
    Some(LastingId {
        text: format!("{} {}", id.trim(), namespace.trim()),
        is_worldwide,
    })
}

/// Joins devices that share an id into one disk, if they have the same size or the id is worldwide. A disk that
/// has grown shows its new size only on rescanned paths.
pub(super) fn join(graph: &mut Graph, ids: BTreeMap<Number, BTreeSet<DiskId>>) {
    let mut groups: Vec<Paths> = Vec::new();
    for (number, ids) in ids.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        let Some(bytes) = graph.devices.get(&number).map(|device| device.bytes) else {
            continue;
        };
        let mut own = Paths {
            ids,
            shared: None,
            devices: vec![(number, bytes)],
        };
        let is_same = |other: &mut Paths| {
            let has_that_size = other.devices.iter().any(|(_, other)| *other == bytes);
            let mut common = own.ids.intersection(&other.ids);
            common.any(|id| has_that_size || id.is_worldwide())
        };
        let same: Vec<Paths> = groups.extract_if(.., is_same).collect();
        same.into_iter().for_each(|other| own.take(other));
        groups.push(own);
    }
    for Paths {
        ids: _,
        shared,
        devices,
    } in groups
    {
        let Some(id) = shared else { continue };
        let below = Node::Disk(graph.disks.len());
        graph.disks.push(Disk {
            name: id.to_string(),
            bytes: devices.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0),
        });
        for (number, length) in devices {
            if let Some(device) = graph.devices.get_mut(&number) {
                device.below = Below::Path(Piece::whole(length, below, 0));
            }
        }
    }
}

/// Devices that are paths to one disk.
struct Paths {
    ids: BTreeSet<DiskId>,
    /// An id shared by several of them.
    shared: Option<DiskId>,
    /// Each with its size, bytes.
    devices: Vec<(Number, u64)>,
}

impl Paths {
    fn take(&mut self, other: Self) {
        let common = self.ids.intersection(&other.ids).next().cloned();
        self.shared = other.shared.or(common);
        self.ids.extend(other.ids);
        self.devices.extend(other.devices);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wwid(text: &str) -> Option<String> {
        DiskId::of_wwid(text).map(|id| id.to_string())
    }

    /// Recorded on Linux 6.1 for disks of scsi_debug, QEMU and LIO.
    #[test]
    fn ids_are_read_as_linux_prints_them() {
        for text in [
            "naa.33333330000007d0",
            "uuid.1b4e28ba-2fa1-11d2-883f-0016d3cca427",
            "nvme.1b36-616263-51454d55204e564d65204374726c-00000001",
            "t10.ATA     QEMU HARDDISK                           QM00003",
            "t10.Linux   scsi_debug      2000",
            "t10.LIO-ORG a:7",
            "iqn.2003-01.org.linux-iscsi.vm1:sn.8a1,L,0x0001",
        ] {
            assert_eq!(wwid(&format!("{text}\n")).as_deref(), Some(text));
        }
        // The same 16 bytes as a WWID and as the attribute nguid.
        let nguid = DiskId::of_digits("00253858-1234-abCD-0000-000000000001\n", "eui");
        assert_eq!(
            nguid,
            DiskId::of_wwid("eui.002538581234abcd0000000000000001")
        );
        let eui = DiskId::of_digits("52 54 00 00 00 00 00 01\n", "eui");
        assert_eq!(eui, DiskId::of_wwid("eui.5254000000000001\n"));
        let page = b"\0\x80\0\x08    abc1";
        let serial = DiskId::of_serial("QEMU    \n", "QEMU HARDDISK   \n", page);
        assert_eq!(
            serial,
            Some(DiskId("serial.QEMU QEMU HARDDISK abc1".to_owned()))
        );
    }

    #[test]
    fn empty_blank_or_zero_text_identifies_nothing() {
        for text in [
            "",
            "\n",
            "naa.",
            "naa.0000000000000000",
            "eui.ffffffffffffffff",
            "eui.00000000000000000000000000000000",
            "uuid.00000000-0000-0000-0000-000000000000",
            // A vendor and a model, and no serial number or one of zeros.
            "nvme.1b36--51454d55204e564d65204374726c-00000001",
            "nvme.1b36-20202020-51454d55204e564d65204374726c-00000001",
            "nvme.1b36-303030-51454d55204e564d65204374726c-00000001",
            "t10.ATA     QEMU HARDDISK                           ",
            "t10.ATA     QEMU HARDDISK",
            "t10.ATA     QEMU HARDDISK                           00000000",
            "t10.Generic Flash Disk      ",
            "t10.        ",
        ] {
            assert_eq!(wwid(text), None, "{text:?}");
        }
        assert_eq!(DiskId::of_digits("00 00 00 00 00 00 00 00\n", "eui"), None);
        let blank = b"\0\x80\0\x04    ";
        assert_eq!(DiskId::of_serial("A", "B", blank), None);
        assert_eq!(DiskId::of_serial("A", "B", b"\0"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_is_none(text in ".{0,80}", kind in "(naa|eui|uuid|t10|nvme|)") {
            let _ = (wwid(&text), wwid(&format!("{kind}.{text}")));
        }
    }
}
