//! Guests with only a kernel, busybox and the program, and the program's output and measurements there.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use iolab_truth::Scene;
use needs::Need;
use serde_json::Value;

use crate::stage::alone;

/// A kernel of Debian or Ubuntu.
pub(crate) struct Kernel {
    pub(crate) package: &'static str,
    pub(crate) suite: &'static str,
    /// Architecture name in packages.
    pub(crate) architecture: &'static str,
    /// Requirement of its guests.
    pub(crate) need: Need,
}

/// First script of a guest. Each part of its output has a heading; the heading of a command has its exit code.
const BEGIN: &str = r#"
short="--size 8M --time 100ms --set trials_min=3 --set trials_max=3"
# NAME WORDS...: a run, what it says, and its trials.
measure() {
  name=$1; shift
  iolab run "$@" $short -o $name.iolab >/tmp/log 2>&1; echo "@@ $name $?"; cat /tmp/log
  echo "@@ $name"; [ ! -e $name.iolab ] || iolab export $name.iolab --format jsonl
}
echo "@@ doctor"; iolab doctor /mnt --format json
measure direct read-random /mnt --set backend=DIRECT --bs 4k --direct
# One pass: the next is served by the page cache.
measure cold read-random /mnt --set backend=mmap,psync --bs 4k --buffered --set bytes=8M
measure hot read-random /mnt --set backend=psync --set cache=hot --bs 4k
"#;

/// Last script of a guest.
const END: &str = r#"
iolab study /mnt --suite glance --size 16M --budget 24s -o studied >/tmp/log 2>&1; echo "@@ study $?"; cat /tmp/log
echo "@@ studied"; for file in studied/*.iolab; do iolab export $file --format jsonl; done
echo "@@ left"; ls -A /mnt
"#;

/// Lets a guest measure the standard set, with the backends that support direct I/O there, and the additional
/// script's measurements, which include verified writes as `verify`. Output by headings; a skip without a
/// guest.
#[track_caller]
pub(crate) fn measured_truly(
    kernel: &Kernel,
    variable: &str,
    direct_backends: &str,
    further: &str,
) -> Option<BTreeMap<String, String>> {
    let _alone = alone();
    let scene = Scene::new().expect("a scene");
    let begin = BEGIN.replace("DIRECT", direct_backends);
    let job = format!("{begin}{further}{END}");
    let parts = carried_out(&scene, kernel, variable, &job)?;
    let doctor: Value = serde_json::from_str(&parts["doctor"]).expect("JSON");
    assert_eq!(doctor["must_fix"], 0, "{doctor:#}");
    for done in ["direct 0", "cold 0", "hot 0", "verify 0", "study 0"] {
        assert!(parts.contains_key(done), "{done}: {parts:#?}");
    }
    let direct = measured(&parts["direct"]);
    for backend in direct_backends.split(',') {
        let own = direct.iter().filter(|row| row["backend"] == backend);
        assert!(own.count() >= 2, "{backend}: {}", parts["direct"]);
    }
    let cold = measured(&parts["cold"]);
    assert!(cold.iter().any(|row| row["backend"] == "mmap"));
    assert_of_device(&direct);
    assert_of_device(&cold);
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
    Some(parts)
}

/// Compares trials with a device that serves all of their requests.
#[track_caller]
pub(crate) fn assert_of_device(trials: &[Value]) {
    for row in trials {
        assert_eq!(row["ok"], true, "{row:#}");
        assert_eq!(row["served_by"], "device", "{row:#}");
    }
}

/// Runs a shell script in a guest with a static program named by a variable. Output by headings ("@@ HEADING");
/// a skip without a guest.
#[track_caller]
fn carried_out(
    scene: &Scene,
    kernel: &Kernel,
    variable: &str,
    job_text: &str,
) -> Option<BTreeMap<String, String>> {
    let Some(iolab) = std::env::var_os(variable) else {
        needs::skip(kernel.need, format!("{variable} is not set"));
        return None;
    };
    needs::tool(kernel.need)?;
    let iolab = std::fs::canonicalize(iolab).expect("the program that is named");
    let guest = match guest(kernel) {
        Ok(guest) => guest,
        Err(why) => {
            needs::skip(kernel.need, why);
            return None;
        }
    };
    let job = scene.folder().join("job");
    std::fs::write(&job, job_text).expect("a job");
    let done = script(&[
        OsStr::new("boot"),
        guest.as_os_str(),
        OsStr::new(kernel.architecture),
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

/// Folder with kernel, modules and busybox, made once.
fn guest(kernel: &Kernel) -> Result<PathBuf, String> {
    let home = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")));
    let folder = home.ok_or("no HOME")?.join("iolab-truth");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let made = folder.join(format!("{}-{}", kernel.architecture, kernel.suite));
    if !made.join("busybox").exists() {
        let _ = std::fs::remove_dir_all(&made);
        let done = script(&[
            OsStr::new("make"),
            made.as_os_str(),
            OsStr::new(kernel.architecture),
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
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("vm/bare.sh");
    let mut script = Command::new(script);
    script.args(words).stdin(Stdio::null());
    script.output().expect("the script starts")
}

/// Measured trials of a part, each with its columns.
pub(crate) fn measured(text: &str) -> Vec<Value> {
    let rows = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    let rows: Vec<Value> = rows.collect();
    rows.into_iter()
        .filter(|row| row["warmup"] == false)
        .collect()
}
