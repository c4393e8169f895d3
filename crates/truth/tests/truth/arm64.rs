//! 64-bit ARM: real kernels under QEMU's emulation, with pages of 4 and of 16 KiB, and what iolab says of the machine and measures
//! on it.
//!
//!     IOLAB_ARM64=target/aarch64-unknown-linux-gnu/release/iolab cargo test -p iolab-truth --test truth arm64::

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use iolab_truth::Scene;
use needs::Need;
use serde_json::Value;

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
measure cold read-random /mnt --set backend=mmap,psync --bs 4k --buffered
measure hot read-random /mnt --set backend=psync --set cache=hot --bs 4k
measure huge read-random /mnt --set backend=psync --set buffer_init=huge --bs 4M --direct
measure verify write-random /mnt --set backend=libaio,io_uring --bs 4k --direct --verify
iolab study /mnt --suite glance --size 16M --budget 24s -o studied >/tmp/log 2>&1; echo "@@ study $?"; cat /tmp/log
echo "@@ studied"; for file in studied/*.iolab; do iolab export $file --format jsonl; done
echo "@@ left"; ls -A /mnt
"#;

/// A kernel of Debian.
struct Kernel {
    package: &'static str,
    suite: &'static str,
    /// Size of its pages, bytes.
    page: u64,
}

/// The kernel for clouds has NVMe and ext4 built in.
const PAGES_OF_4_KIB: Kernel = Kernel {
    package: "linux-image-cloud-arm64",
    suite: "bookworm",
    page: 4 << 10,
};

const PAGES_OF_16_KIB: Kernel = Kernel {
    package: "linux-image-arm64-16k",
    suite: "trixie",
    page: 16 << 10,
};

/// The output of the guest by headings; a skip where there is none.
#[track_caller]
fn carried_out(scene: &Scene, kernel: &Kernel) -> Option<BTreeMap<String, String>> {
    let Some(iolab) = std::env::var_os("IOLAB_ARM64") else {
        needs::skip(Need::Arm64, "the variable is not set");
        return None;
    };
    needs::tool(Need::Arm64)?;
    let iolab = std::fs::canonicalize(iolab).expect("the program that is named");
    let guest = match guest(kernel) {
        Ok(guest) => guest,
        Err(why) => {
            needs::skip(Need::Arm64, why);
            return None;
        }
    };
    let job = scene.folder().join("job");
    std::fs::write(&job, JOB.replace("DIRECT", DIRECT)).expect("a job");
    let done = script(&[
        OsStr::new("boot"),
        guest.as_os_str(),
        iolab.as_os_str(),
        job.as_os_str(),
    ]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{text}\n{told}");
    let mut parts = BTreeMap::new();
    for part in text.split("@@ ").skip(1) {
        let (heading, body) = part.split_once('\n').unwrap_or((part, ""));
        parts.insert(heading.to_owned(), body.to_owned());
    }
    Some(parts)
}

/// The folder with kernel, modules and busybox, made once.
fn guest(kernel: &Kernel) -> Result<PathBuf, String> {
    let home = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")));
    let folder = home.ok_or("no HOME")?.join("iolab-truth");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let made = folder.join(format!("arm64-{}", kernel.suite));
    if !made.join("busybox").exists() {
        let _ = std::fs::remove_dir_all(&made);
        let done = script(&[
            OsStr::new("make"),
            made.as_os_str(),
            OsStr::new(kernel.package),
            OsStr::new(kernel.suite),
        ]);
        if !done.status.success() {
            let why = String::from_utf8_lossy(&done.stderr);
            return Err(format!("packages come from a server: {}", why.trim()));
        }
    }
    Ok(made)
}

fn script(words: &[&OsStr]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("vm/arm64.sh");
    let mut script = Command::new(script);
    script.args(words).stdin(Stdio::null());
    script.output().expect("the script starts")
}

/// The measured trials of a part, each with its column.
fn measured(text: &str) -> Vec<Value> {
    let rows = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    let rows: Vec<Value> = rows.collect();
    rows.into_iter()
        .filter(|row| row["warmup"] == false)
        .collect()
}

#[test]
fn an_arm_machine_is_told_of_and_measured_truly() {
    told_of_and_measured_truly(&PAGES_OF_4_KIB);
}

#[test]
fn pages_of_16_kib_are_told_of_and_measured_truly() {
    told_of_and_measured_truly(&PAGES_OF_16_KIB);
}

fn told_of_and_measured_truly(kernel: &Kernel) {
    let _alone = alone();
    let scene = Scene::new().expect("a scene");
    let Some(parts) = carried_out(&scene, kernel) else {
        return;
    };
    let doctor: Value = serde_json::from_str(&parts["doctor"]).expect("JSON");
    let machine = &doctor["environment"];
    let page = kernel.page.to_string();
    // What a table of one page with entries of 8 bytes maps.
    let huge_page = (kernel.page * kernel.page / 8).to_string();
    for (key, value) in [
        ("architecture", "aarch64"),
        ("clock_source", "cntvct"),
        ("cpu_model", "Arm Neoverse-N1"),
        ("machine_is_virtual", "true"),
        ("page_bytes", page.as_str()),
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
