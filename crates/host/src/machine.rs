//! The machine: its maker, its processor by name, what its kernel allows.

use std::path::Path;

use crate::pseudo_files::{number_of, text_of};

/// The value of the first line `name : value` of `/proc/cpuinfo`.
pub fn processor_field(name: &str) -> Option<String> {
    let text = text_of("/proc/cpuinfo")?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned())
}

/// Whether a hypervisor lies below, as the processor says.
pub fn is_virtual() -> Option<bool> {
    let flags = processor_field("flags")?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// What the firmware calls the machine: a file of `/sys/class/dmi/id`.
pub fn firmware_text(file: &str) -> Option<String> {
    text_of(Path::new("/sys/class/dmi/id").join(file))
}

/// Maker and product of the machine, as its firmware calls them.
pub fn machine_name() -> Option<String> {
    let product = firmware_text("product_name")?;
    Some(match firmware_text("sys_vendor") {
        Some(vendor) if !product.starts_with(&vendor) => format!("{vendor} {product}"),
        _ => product,
    })
}

/// Who may not use io_uring (Documentation/admin-guide/sysctl/kernel.rst): 0 everyone may, 1 a group, 2 no one.
pub fn io_uring_disabled() -> Option<u64> {
    number_of("/proc/sys/kernel/io_uring_disabled")
}
