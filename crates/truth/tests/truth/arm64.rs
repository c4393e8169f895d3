//! 64-bit ARM: real kernels under QEMU's emulation, with pages of 4, 16 and 64 KiB, and what iolab says of the machine and measures
//! on it.
//!
//!     IOLAB_ARM64=target/aarch64-unknown-linux-gnu/release/iolab cargo test -p iolab-truth --test truth arm64::

use needs::Need;
use serde_json::Value;

use crate::bare::{Kernel, assert_of_device, measured, measured_truly};

/// Backends that support direct I/O.
const DIRECT: &str = "sync,psync,pvsync2,libaio,io_uring,pool";

/// Additional measurements of the guest.
const FURTHER: &str = "
measure huge read-random /mnt --set backend=psync --set buffer_init=huge --bs 4M --direct
measure verify write-random /mnt --set backend=libaio,io_uring --bs 4k --direct --verify
";

const fn of_arm(package: &'static str, suite: &'static str) -> Kernel {
    Kernel {
        package,
        suite,
        architecture: "arm64",
        need: Need::Arm64,
    }
}

// Kernels with their page sizes, bytes.

/// The cloud kernel has NVMe and ext4 built in.
const PAGES_OF_4_KIB: (Kernel, u64) = (of_arm("linux-image-cloud-arm64", "bookworm"), 4 << 10);

const PAGES_OF_16_KIB: (Kernel, u64) = (of_arm("linux-image-arm64-16k", "trixie"), 16 << 10);

const PAGES_OF_64_KIB: (Kernel, u64) = (of_arm("linux-image-generic-64k", "resolute"), 64 << 10);

#[test]
fn arm_machine_is_described_and_measured_correctly() {
    told_of_and_measured_truly(&PAGES_OF_4_KIB);
}

#[test]
fn pages_of_16_kib_are_handled_correctly() {
    told_of_and_measured_truly(&PAGES_OF_16_KIB);
}

#[test]
fn pages_of_64_kib_are_handled_correctly() {
    told_of_and_measured_truly(&PAGES_OF_64_KIB);
}

fn told_of_and_measured_truly((kernel, page): &(Kernel, u64)) {
    let Some(parts) = measured_truly(kernel, "IOLAB_ARM64", DIRECT, FURTHER) else {
        return;
    };
    let doctor: Value = serde_json::from_str(&parts["doctor"]).expect("JSON");
    let machine = &doctor["environment"];
    let page_bytes = page.to_string();
    // Memory mapped by a table of one page with entries of 8 bytes.
    let huge_page = (page * page / 8).to_string();
    for (key, value) in [
        ("architecture", "aarch64"),
        ("clock_source", "cntvct"),
        ("cpu_model", "Arm Neoverse-N1"),
        ("machine_is_virtual", "true"),
        ("page_bytes", page_bytes.as_str()),
        ("huge_page_bytes", huge_page.as_str()),
    ] {
        assert_eq!(machine[key], value, "{key}: {machine:#}");
    }
    // QEMU's generic timer runs at 62.5 MHz.
    assert_eq!(machine["clock_resolution_ns"], "16.0", "{machine:#}");
    assert!(parts.contains_key("huge 0"), "{parts:#?}");
    assert_of_device(&measured(&parts["huge"]));
}
