//! Kernel drivers that use a block device without a claim on it, from sysfs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::device::Number;
use super::super::sysfs;

/// Devices that drivers use without a claim, each with the user in words.
pub(super) fn read(sys: &Path) -> BTreeMap<Number, String> {
    let flash = folders(&sys.join("class/ubi")).filter_map(|folder| flash(&folder));
    let xen = folders(&sys.join("bus/xen-backend/devices")).filter_map(|folder| xen(&folder));
    let exports = folders(&sys.join("class/rnbd-server/ctl/devices"));
    let exports = exports.filter_map(|folder| {
        let number = sysfs::device_number(&folder.join("block_dev"))?;
        Some((number, "exported by rnbd-server".to_owned()))
    });
    flash.chain(xen).chain(exports).collect()
}

fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Block device of flash memory below UBI volumes (Documentation/ABI/stable/sysfs-class-ubi of Linux).
fn flash(folder: &Path) -> Option<(Number, String)> {
    /// `MTD_BLOCK_MAJOR` of linux/mtd/mtd.h.
    const MTD_BLOCK: u32 = 31;
    let number = u32::try_from(sysfs::value(&folder.join("mtd_num"))?).ok()?;
    let user = format!("in use by the volumes of {}", sysfs::name_of(folder));
    Some(((MTD_BLOCK, number), user))
}

/// Device used as a disk of a Xen virtual machine, in hexadecimal (drivers/block/xen-blkback/xenbus.c of
/// Linux).
fn xen(folder: &Path) -> Option<(Number, String)> {
    let text = std::fs::read_to_string(folder.join("physical_device")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let user = format!(
        "in use by a virtual machine of Xen ({})",
        sysfs::name_of(folder)
    );
    Some(((number(major)?, number(minor)?), user))
}

#[cfg(test)]
mod tests {
    use needs::Tree;

    use super::*;

    #[test]
    fn users_are_read_as_the_kernel_names_them() {
        let sys = Tree::empty();
        assert!(read(sys.path()).is_empty());
        let xen = "bus/xen-backend/devices";
        sys.files("class/ubi", &[("ubi0/mtd_num", "2"), ("version", "1")]);
        sys.files(xen, &[("vbd-1-51712/physical_device", "fd:1a")]);
        sys.files(xen, &[("vif-1-0/state", "4")]);
        let rnbd = "class/rnbd-server/ctl/devices/x/block_dev";
        sys.files(rnbd, &[("dev", "8:16")]);
        let found = read(sys.path());
        let found: Vec<(Number, &str)> = found.iter().map(|(n, user)| (*n, &**user)).collect();
        assert_eq!(
            found,
            [
                ((8, 16), "exported by rnbd-server"),
                ((31, 2), "in use by the volumes of ubi0"),
                (
                    (253, 26),
                    "in use by a virtual machine of Xen (vbd-1-51712)"
                ),
            ]
        );
    }
}
