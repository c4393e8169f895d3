//! Detection of a hypervisor below. An x86-64 processor reports it itself; elsewhere firmware and device tree
//! have to.
//! Sources: SMBIOS 3.x (DSP0134) 7.1.2, Documentation/ABI/stable/sysfs-hypervisor-xen of Linux, and the names that
//! hypervisors and clouds give their machines, as systemd's `detect-virt` has them.

use std::fs;
use std::path::Path;

use crate::pseudo_files::text_of;

/// Prefixes of firmware texts on virtual machines.
const NAMES: &[&str] = &[
    "Alibaba Cloud", "Amazon EC2", "Apple Virtualization", "BHYVE", "Bochs",
    "Google Compute Engine", "Hyper-V", "KVM", "KubeVirt", "OpenStack",
    "Oracle Corporation Virtual", "Parallels", "QEMU", "VMW", "VMware", "Virtual Machine",
    "VirtualBox", "Xen", "innotek GmbH",
];

pub(super) fn is_virtual(proc: &Path, sys: &Path) -> Option<bool> {
    of_processor(proc)
        .or_else(|| sys.join("hypervisor/type").exists().then_some(true))
        .or_else(|| of_firmware(&sys.join("class/dmi/id"), &sys.join("firmware/dmi")))
        .or_else(|| of_device_tree(&sys.join("firmware/devicetree/base")))
}

/// The processor's own statement on x86-64; `None` on others.
fn of_processor(proc: &Path) -> Option<bool> {
    let text = text_of(proc.join("cpuinfo"))?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, flags) = lines.find(|(key, _)| key.trim() == "flags")?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// Verdict of the firmware, by its names and by its own statement, which only root may read. A bare-metal
/// machine of a cloud has the cloud's name and a product that ends in `metal`.
fn of_firmware(names: &Path, tables: &Path) -> Option<bool> {
    let product = text_of(names.join("product_name"))?;
    if product.ends_with(".metal") {
        return Some(false);
    }
    let others =
        ["sys_vendor", "board_vendor", "bios_vendor"].map(|file| text_of(names.join(file)));
    let mut texts = others.into_iter().flatten().chain([product]);
    if texts.any(|text| NAMES.iter().any(|name| text.starts_with(name))) {
        return Some(true);
    }
    // Type 0, byte 13h: bit 4 says that the table describes a virtual machine.
    let bios = fs::read(tables.join("entries/0-0/raw")).ok()?;
    bios.get(0x13).map(|byte| byte & 1 << 4 != 0)
}

/// Verdict of a device tree. A tree is written for a board; hypervisors add a node of their own, and QEMU's
/// tree names no board.
fn of_device_tree(root: &Path) -> Option<bool> {
    let compatible = text_of(root.join("compatible"))?;
    let is_dummy = compatible
        .split('\0')
        .any(|name| name == "linux,dummy-virt");
    let has = |node: &str| root.join(node).exists();
    let has_fw_cfg = fs::read_dir(root).is_ok_and(|nodes| {
        let mut nodes = nodes.flatten();
        nodes.any(|node| node.file_name().to_string_lossy().starts_with("fw-cfg"))
    });
    Some(is_dummy || has("hypervisor") || has_fw_cfg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_sysfs::Tree;

    fn with(files: &[(&str, &str)]) -> Option<bool> {
        let tree = Tree::new();
        tree.files("sys", files);
        tree.files("proc", &[("cpuinfo", "processor\t: 0\nFeatures\t: fp")]);
        is_virtual(&tree.path().join("proc"), &tree.path().join("sys"))
    }

    #[test]
    fn firmware_names_the_clouds_and_their_bare_machines() {
        let dmi = |vendor, product| {
            with(&[
                ("class/dmi/id/sys_vendor", vendor),
                ("class/dmi/id/product_name", product),
            ])
        };
        assert_eq!(dmi("Amazon EC2", "m6g.large"), Some(true));
        assert_eq!(dmi("Amazon EC2", "m6g.metal"), Some(false));
        assert_eq!(dmi("Microsoft Corporation", "Virtual Machine"), Some(true));
        assert_eq!(dmi("QEMU", "KVM Virtual Machine"), Some(true));
        // Names of a server do not rule out a hypervisor.
        assert_eq!(dmi("GIGABYTE", "R272-P30-JG"), None);
    }

    #[test]
    fn firmware_that_can_be_read_says_it_itself() {
        let of = |byte: char| {
            let table = "\u{1}".repeat(0x13) + &byte.to_string();
            with(&[
                ("class/dmi/id/product_name", "R272-P30-JG"),
                ("firmware/dmi/entries/0-0/raw", &table),
            ])
        };
        assert_eq!(of('\u{1d}'), Some(true));
        assert_eq!(of('\u{d}'), Some(false));
    }

    #[test]
    fn device_tree_belongs_to_board_or_hypervisor() {
        let root = |more: &[(&'static str, &'static str)]| {
            let mut files = vec![("firmware/devicetree/base/compatible", "a,board\0a,soc\0")];
            files.extend(more);
            with(&files)
        };
        assert_eq!(root(&[]), Some(false));
        let base = "firmware/devicetree/base/";
        assert_eq!(
            root(&[(
                "firmware/devicetree/base/hypervisor/compatible",
                "linux,kvm"
            )]),
            Some(true)
        );
        assert_eq!(
            root(&[("firmware/devicetree/base/fw-cfg@9020000/reg", "x")]),
            Some(true)
        );
        let dummy = format!("{base}compatible");
        assert_eq!(with(&[(&dummy, "linux,dummy-virt\0")]), Some(true));
        assert_eq!(with(&[("hypervisor/type", "xen")]), Some(true));
        assert_eq!(with(&[]), None);
    }
}
