//! The oldest kernel that iolab is meant for, Linux 4.18, under QEMU's emulation: what it lacks is left out or refused with a reason, and
//! everything else is measured.
//!
//!     IOLAB_STATIC=target/x86_64-unknown-linux-gnu/release/iolab cargo test -p iolab-truth --test truth oldest::

use iolab_truth::Scene;
use needs::Need;
use serde_json::Value;

use crate::bare::{Kernel, carried_out, measured};
use crate::stage::alone;

/// Ubuntu 18.04 had it. It lacks io_uring, `pidfd_open`, `MADV_POPULATE_WRITE`, PSI, `cachestat` and the alignment in `statx`.
const LINUX_4_18: Kernel = Kernel {
    package: "linux-image-unsigned-4.18.0-25-generic",
    suite: "bionic-updates",
    architecture: "amd64",
    need: Need::StaticBinary,
};

/// Backends that take direct I/O there.
const DIRECT: &str = "sync,psync,pvsync2,libaio,pool";

/// What the guest carries out. Each part of its output has a heading; that of a command has its exit code.
const JOB: &str = r#"
short="--size 8M --time 100ms --set trials_min=3 --set trials_max=3"
# NAME WORDS...: a run, what it says, and its trials.
measure() {
  name=$1; shift
  iolab run "$@" $short -o $name.iolab >/tmp/log 2>&1; echo "@@ $name $?"; cat /tmp/log
  echo "@@ $name"; [ ! -e $name.iolab ] || iolab export $name.iolab --format jsonl
}
echo "@@ kernel"; uname -r
echo "@@ doctor"; iolab doctor /mnt --format json
measure direct read-random /mnt --set backend=DIRECT --bs 4k --direct
measure cold read-random /mnt --set backend=mmap,psync --bs 4k --buffered --set bytes=8M
measure hot read-random /mnt --set backend=psync --set cache=hot --bs 4k
measure verify write-random /mnt --set backend=libaio,psync --bs 4k --direct --verify
measure io_uring read-random /mnt --set backend=io_uring --bs 4k --direct
measure populated read-random /mnt --set buffer_init=populated --bs 4k --direct
iolab run in-flight /mnt --size 8M --time 100ms --budget 10s -o in.iolab >/tmp/log 2>&1; echo "@@ in-flight $?"; cat /tmp/log
iolab study /mnt --suite glance --size 16M --budget 24s -o studied >/tmp/log 2>&1; echo "@@ study $?"; cat /tmp/log
echo "@@ studied"; for file in studied/*.iolab; do iolab export $file --format jsonl; done
echo "@@ left"; ls -A /mnt
"#;

#[test]
fn linux_4_18_is_measured_truly() {
    let _alone = alone();
    let scene = Scene::new().expect("a scene");
    let job = JOB.replace("DIRECT", DIRECT);
    let Some(parts) = carried_out(&scene, &LINUX_4_18, "IOLAB_STATIC", &job) else {
        return;
    };
    assert!(parts["kernel"].starts_with("4.18."), "{}", parts["kernel"]);
    let doctor: Value = serde_json::from_str(&parts["doctor"]).expect("JSON");
    assert_eq!(doctor["must_fix"], 0, "{doctor:#}");
    for done in [
        "direct 0",
        "cold 0",
        "hot 0",
        "verify 0",
        "in-flight 0",
        "study 0",
        // What the user named is refused.
        "io_uring 2",
        "populated 2",
    ] {
        assert!(parts.contains_key(done), "{done}: {parts:#?}");
    }
    // What an experiment has by itself is left out, and it says so.
    assert!(parts["in-flight 0"].contains("left out backend=io_uring"));

    let direct = measured(&parts["direct"]);
    for backend in DIRECT.split(',') {
        let own: Vec<_> = direct
            .iter()
            .filter(|row| row["backend"] == backend)
            .collect();
        assert!(own.len() >= 2, "{backend}: {}", parts["direct"]);
    }
    for row in direct.iter().chain(&measured(&parts["cold"])) {
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
    assert_eq!(parts["left"].trim(), "lost+found");
}
