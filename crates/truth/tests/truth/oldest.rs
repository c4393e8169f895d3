//! The oldest kernel that iolab is meant for, Linux 4.18, under QEMU's emulation: what it lacks is left out or refused with a reason, and
//! everything else is measured.
//!
//!     IOLAB_STATIC=target/x86_64-unknown-linux-gnu/release/iolab cargo test -p iolab-truth --test truth oldest::

use needs::Need;
use serde_json::Value;

use crate::bare::{Kernel, measured_truly};

/// Kernel of Ubuntu 18.04. It lacks io_uring, `pidfd_open`, `MADV_POPULATE_WRITE`, PSI, `cachestat` and the
/// alignment in `statx`.
const LINUX_4_18: Kernel = Kernel {
    package: "linux-image-unsigned-4.18.0-25-generic",
    suite: "bionic-updates",
    architecture: "amd64",
    need: Need::OldKernel,
};

/// Backends that support direct I/O there.
const DIRECT: &str = "sync,psync,pvsync2,libaio,pool";

/// Additional measurements of the guest, and requests that are refused.
const FURTHER: &str = r#"
echo "@@ kernel"; uname -r
measure verify write-random /mnt --set backend=libaio,psync --bs 4k --direct --verify
measure io_uring read-random /mnt --set backend=io_uring --bs 4k --direct
measure populated read-random /mnt --set buffer_init=populated --bs 4k --direct
iolab run in-flight /mnt --size 8M --time 100ms --budget 10s -o in.iolab >/tmp/log 2>&1; echo "@@ in-flight $?"; cat /tmp/log
"#;

#[test]
fn linux_4_18_is_measured_truly() {
    let Some(parts) = measured_truly(&LINUX_4_18, "IOLAB_STATIC", DIRECT, FURTHER) else {
        return;
    };
    assert!(parts["kernel"].starts_with("4.18."), "{}", parts["kernel"]);
    let doctor: Value = serde_json::from_str(&parts["doctor"]).expect("JSON");
    let findings = doctor["findings"].as_array().expect("a list");
    assert!(
        findings.iter().any(|finding| finding["rule"] == "pressure"),
        "{doctor:#}"
    );
    // Explicit requests of the user are refused.
    for done in ["in-flight 0", "io_uring 2", "populated 2"] {
        assert!(parts.contains_key(done), "{done}: {parts:#?}");
    }
    // Built-in settings of an experiment are left out, with a message.
    assert!(parts["in-flight 0"].contains("left out backend=io_uring"));
}
