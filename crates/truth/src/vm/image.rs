//! Kernel and root file system of the guests: built once by `vm/build.sh`, kept in the user's cache under the hash of what
//! they are built from.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use needs::Need;

use crate::cleanup::Cleanup;
use crate::system::{Made, Unmade, failed, needs_root, warn};

/// What the image is built from; a change of any of them makes a new one.
const INPUTS: &[&str] = &[
    include_str!("../../vm/build.sh"),
    include_str!("../../vm/init"),
    include_str!("../../vm/start"),
    include_str!("../../vm/modules.txt"),
    include_str!("../../vm/packages.txt"),
];

/// Programs that build an image and run a guest.
const PROGRAMS: &[&str] = &[
    "qemu-system-x86_64",
    "mmdebstrap",
    "mke2fs",
    "cpio",
    "busybox",
    "apt-get",
    "dpkg-deb",
    "xz",
];

/// A folder with `vmlinuz`, `initramfs.gz` and `root.img`.
#[derive(Debug, Clone)]
pub struct Image {
    folder: PathBuf,
}

impl Image {
    /// The image, with the kernel of a suite of Debian; it is built where it is not there yet.
    ///
    /// # Errors
    /// Missing without root, the programs, or a server of packages.
    pub fn of_suite(suite: &str) -> Made<Self> {
        needs_root()?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).exists());
        let lacking: Vec<&str> = PROGRAMS
            .iter()
            .copied()
            .filter(|name| !is_there(name))
            .collect();
        if !lacking.is_empty() {
            let why = format!("not installed: {}", lacking.join(", "));
            return Err(Unmade::Missing(Need::Vm, why));
        }
        let mut hash = DefaultHasher::new();
        (INPUTS, suite).hash(&mut hash);
        let cache = cache()?;
        let folder = cache.join(format!("vm-{suite}-{:016x}", hash.finish()));
        if !folder.join("initramfs.gz").exists() {
            build(&folder, suite)?;
        }
        Ok(Self { folder })
    }

    /// A file of it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

fn cache() -> Made<PathBuf> {
    let own = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let folder = own.filter(|own| own.is_absolute()).or(home);
    let why = || Unmade::Failed("neither XDG_CACHE_HOME nor HOME is set".to_owned());
    let folder = folder.ok_or_else(why)?.join("iolab-truth");
    std::fs::create_dir_all(&folder).map_err(failed(folder.display()))?;
    Ok(folder)
}

/// Builds beside the folder, and moves what is whole there.
fn build(folder: &Path, suite: &str) -> Made<()> {
    warn(&format!("builds a guest in {}, once", folder.display()));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("vm/build.sh");
    let place = tempfile::Builder::new()
        .prefix("new-")
        .tempdir_in(cache()?)
        .map_err(failed("a folder for the image"))?
        .keep();
    // Also when this process is killed: it is large.
    let keeper = Cleanup::new()?;
    keeper.remove(&place);
    let new = place.join("image");
    let done = Command::new(script)
        .arg(&new)
        .arg(suite)
        .stdin(Stdio::null())
        .output()
        .map_err(failed("build.sh"))?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr);
        let last = words.lines().rev().take(5).collect::<Vec<_>>();
        let last: Vec<&str> = last.into_iter().rev().collect();
        return Err(Unmade::Missing(
            Need::Vm,
            format!(
                "the image cannot be built (packages come from a server): {}",
                last.join("; ")
            ),
        ));
    }
    match std::fs::rename(&new, folder) {
        // Another process was faster.
        Err(_) if folder.join("initramfs.gz").exists() => Ok(()),
        done => done.map_err(failed(folder.display())),
    }
}
