//! Guests that have nothing but a kernel, busybox and the program, and what the program says and measures there.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use iolab_truth::Scene;
use needs::Need;
use serde_json::Value;

/// A kernel of Debian or Ubuntu.
pub(crate) struct Kernel {
    pub(crate) package: &'static str,
    pub(crate) suite: &'static str,
    /// As packages name it.
    pub(crate) architecture: &'static str,
    /// What its guests need.
    pub(crate) need: Need,
}

/// Carries a shell script out in a guest with a static program, which a variable names: its output by headings ("@@ HEADING"); a skip
/// where there is none.
#[track_caller]
pub(crate) fn carried_out(
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

/// The folder with kernel, modules and busybox, made once.
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

/// The measured trials of a part, each with its column.
pub(crate) fn measured(text: &str) -> Vec<Value> {
    let rows = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    let rows: Vec<Value> = rows.collect();
    rows.into_iter()
        .filter(|row| row["warmup"] == false)
        .collect()
}
