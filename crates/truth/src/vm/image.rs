//! Kernel and root file system of the guests: built once by the scripts of `vm`, and kept in the user's cache
//! under the hash of their sources.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use needs::Need;

use crate::cleanup::Cleanup;
use crate::system::{Made, Unmade, failed, needs_root, warn};

/// A folder of the cache, with the script of `vm` that makes it and all its sources.
struct CachedPart {
    script: &'static str,
    inputs: &'static [&'static str],
}

/// Root file system, shared by all kernels.
const ROOT: CachedPart = CachedPart {
    script: "root.sh",
    inputs: &[
        include_str!("../../vm/root.sh"),
        include_str!("../../vm/start"),
        include_str!("../../vm/packages.txt"),
    ],
};

/// A kernel with its modules.
const KERNEL: CachedPart = CachedPart {
    script: "kernel.sh",
    inputs: &[
        include_str!("../../vm/kernel.sh"),
        include_str!("../../vm/init"),
        include_str!("../../vm/modules.txt"),
    ],
};

/// Programs that build an image and run a guest.
const PROGRAMS: &[&str] = &[
    "qemu-system-x86_64", "mmdebstrap", "mke2fs", "cpio", "busybox", "apt-get", "dpkg-deb", "xz",
];

/// A kernel, and the root file system of the guests.
#[derive(Debug, Clone)]
pub struct Image {
    root: PathBuf,
    kernel: PathBuf,
}

impl Image {
    /// Image with the kernel of a Debian suite; missing parts are built.
    ///
    /// # Errors
    /// Missing without root, the programs, or a package server.
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
        let root = ROOT.folder("root", &[])?;
        let kernel = KERNEL.folder(suite, &[OsStr::new(suite), root.as_os_str()])?;
        Ok(Self { root, kernel })
    }

    /// Root file system.
    pub fn root(&self) -> PathBuf {
        self.root.join("root.img")
    }

    /// File system with the modules of its kernel.
    pub fn modules(&self) -> PathBuf {
        self.kernel.join("modules.img")
    }

    /// Kernel.
    pub fn kernel(&self) -> PathBuf {
        self.kernel.join("vmlinuz")
    }

    /// Initial file system of the kernel.
    pub fn initramfs(&self) -> PathBuf {
        self.kernel.join("initramfs.gz")
    }
}

impl CachedPart {
    /// Folder in the cache, built by the script with these further arguments if it does not exist.
    fn folder(&self, name: &str, arguments: &[&OsStr]) -> Made<PathBuf> {
        let mut hash = DefaultHasher::new();
        self.inputs.hash(&mut hash);
        let folder = cache()?.join(format!("vm-{name}-{:016x}", hash.finish()));
        if !folder.exists() {
            self.build(&folder, arguments)?;
        }
        Ok(folder)
    }

    /// Builds next to the folder, and moves the complete result there.
    fn build(&self, folder: &Path, arguments: &[&OsStr]) -> Made<()> {
        warn(&format!("builds {}, once", folder.display()));
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("vm")
            .join(self.script);
        let place = tempfile::Builder::new()
            .prefix("new-")
            .tempdir_in(cache()?)
            .map_err(failed("a folder for the image"))?
            .keep();
        // Removed even when this process is killed, because it is large.
        let keeper = Cleanup::new()?;
        keeper.remove(&place);
        let new = place.join("image");
        let done = Command::new(&script)
            .arg(&new)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(failed(script.display()))?;
        if !done.status.success() {
            let words = String::from_utf8_lossy(&done.stderr);
            let last = words.lines().rev().take(5).collect::<Vec<_>>();
            let last: Vec<&str> = last.into_iter().rev().collect();
            return Err(Unmade::Missing(
                Need::Vm,
                format!(
                    "{} fails (packages come from a server): {}",
                    self.script,
                    last.join("; ")
                ),
            ));
        }
        match std::fs::rename(&new, folder) {
            // Another process was faster.
            Err(_) if folder.exists() => Ok(()),
            done => done.map_err(failed(folder.display())),
        }
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
