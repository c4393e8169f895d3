//! 64-bit ARM: real kernels under QEMU's emulation, with pages of 4, 16 and 64 KiB, and what iolab says of the machine and measures
//! on it.
//!
//!     IOLAB_ARM64=target/aarch64-unknown-linux-gnu/release/iolab cargo test -p iolab-truth --test truth arm64::

use iolab_truth::Scene;
use needs::Need;
use serde_json::Value;

use crate::bare::{Kernel, carried_out, measured};
use crate::stage::alone;

/// Backends that take direct I/O.
const DIRECT: &str = "sync,psync,pvsync2,libaio,io_uring,pool";

/// What the guest carries out. Each part of its output has a heading.
const JOB: &str = r#"
short="--size 8M --time 100ms --set trials_min=3 --set trials_max=3"
# NAME WORDS...: a run, and its trials.
measure() {
  name=$1; shift
  iolab run "$@" $short -o $name.iolab >/tmp/log 2>&1 || { echo "@@ failed"; cat /tmp/log; exit 1; }
  echo "@@ $name"; iolab export $name.iolab --format jsonl
}
echo "@@ doctor"; iolab doctor /mnt --format json
measure direct read-random /mnt --set backend=DIRECT --bs 4k --direct
# One pass: the next is served by the page cache.
measure cold read-random /mnt --set backend=mmap,psync --bs 4k --buffered --set bytes=8M
measure hot read-random /mnt --set backend=psync --set cache=hot --bs 4k
measure huge read-random /mnt --set backend=psync --set buffer_init=huge --bs 4M --direct
measure verify write-random /mnt --set backend=libaio,io_uring --bs 4k --direct --verify
iolab study /mnt --suite glance --size 16M --budget 24s -o studied >/tmp/log 2>&1; echo "@@ study $?"; cat /tmp/log
echo "@@ studied"; for file in studied/*.iolab; do iolab export $file --format jsonl; done
echo "@@ left"; ls -A /mnt
"#;

const fn of_arm(package: &'static str, suite: &'static str) -> Kernel {
    Kernel {
        package,
        suite,
        architecture: "arm64",
        need: Need::Arm64,
    }
}

// Kernels and the size of their pages, bytes.

/// The kernel for clouds has NVMe and ext4 built in.
const PAGES_OF_4_KIB: (Kernel, u64) = (of_arm("linux-image-cloud-arm64", "bookworm"), 4 << 10);

const PAGES_OF_16_KIB: (Kernel, u64) = (of_arm("linux-image-arm64-16k", "trixie"), 16 << 10);

const PAGES_OF_64_KIB: (Kernel, u64) = (of_arm("linux-image-generic-64k", "resolute"), 64 << 10);

#[test]
fn an_arm_machine_is_told_of_and_measured_truly() {
    told_of_and_measured_truly(&PAGES_OF_4_KIB);
}

#[test]
fn pages_of_16_kib_are_told_of_and_measured_truly() {
    told_of_and_measured_truly(&PAGES_OF_16_KIB);
}

#[test]
fn pages_of_64_kib_are_told_of_and_measured_truly() {
    told_of_and_measured_truly(&PAGES_OF_64_KIB);
}

fn told_of_and_measured_truly((kernel, page): &(Kernel, u64)) {
    let _alone = alone();
    let scene = Scene::new().expect("a scene");
    let job = JOB.replace("DIRECT", DIRECT);
    let Some(parts) = carried_out(&scene, kernel, "IOLAB_ARM64", &job) else {
        return;
    };
    let doctor: Value = serde_json::from_str(&parts["doctor"]).expect("JSON");
    let machine = &doctor["environment"];
    let page_bytes = page.to_string();
    // What a table of one page with entries of 8 bytes maps.
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
    assert_eq!(doctor["must_fix"], 0, "{doctor:#}");

    let direct = measured(&parts["direct"]);
    for backend in DIRECT.split(',') {
        let own: Vec<_> = direct
            .iter()
            .filter(|row| row["backend"] == backend)
            .collect();
        assert!(own.len() >= 2, "{backend}: {}", parts["direct"]);
        for row in own {
            assert_eq!(row["ok"], true, "{row:#}");
            assert_eq!(row["served_by"], "device", "{row:#}");
        }
    }
    let cold = measured(&parts["cold"]);
    assert!(cold.iter().any(|row| row["backend"] == "mmap"));
    for row in cold.iter().chain(&measured(&parts["huge"])) {
        assert_eq!(row["ok"], true, "{row:#}");
        assert_eq!(row["served_by"], "device", "{row:#}");
    }
    let hot = measured(&parts["hot"]);
    assert!(!hot.is_empty());
    for row in hot {
        assert_eq!(row["served_by"], "page-cache", "{row:#}");
    }
    let verified = measured(&parts["verify"]);
    assert!(!verified.is_empty());
    for row in verified {
        assert_eq!(row["ok"], true, "{row:#}");
        assert_eq!(row["corrupted_blocks"], 0, "{row:#}");
        assert!(row["verified_blocks"].as_u64() > Some(0), "{row:#}");
    }
    let studied = measured(&parts["studied"]);
    assert!(studied.len() >= 12, "{}", parts["studied"]);
    assert!(studied.iter().all(|row| row["ok"] == true));
    assert!(parts.contains_key("study 0"), "{:?}", parts.keys());
    assert_eq!(parts["left"].trim(), "lost+found");
}
