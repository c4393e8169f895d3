//! Limits of a device, and other users of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use needs::Need;
use rustix::fs::OFlags;

use crate::cleanup::Cleanup;
use crate::system::{Made, Unmade, failed, lacks, needs_root};

/// A cgroup that limits the use of a device or of memory, removed by the cleanup process.
#[derive(Debug)]
pub struct CgroupLimit {
    folder: PathBuf,
}

impl CgroupLimit {
    /// Limits reads from and writes to a device, bytes per second.
    ///
    /// # Errors
    ///
    /// Not supported by the kernel, or not permitted.
    pub fn new(keeper: &Cleanup, device: &Path, bytes_per_s: u64) -> Made<Self> {
        needs_root()?;
        let number = number_of(device)?;
        let line = |rest: String| format!("{number} {rest}");
        match Hierarchy::find("io", "blkio")? {
            Hierarchy::One(root) => {
                let limit = Self::at(keeper, &root)?;
                limit.set(
                    "blkio.throttle.read_bps_device",
                    &line(bytes_per_s.to_string()),
                )?;
                limit.set(
                    "blkio.throttle.write_bps_device",
                    &line(bytes_per_s.to_string()),
                )?;
                Ok(limit)
            }
            Hierarchy::Two(root) => {
                let limit = Self::at(keeper, &root)?;
                limit.set(
                    "io.max",
                    &line(format!("rbps={bytes_per_s} wbps={bytes_per_s}")),
                )?;
                Ok(limit)
            }
        }
    }

    /// Limits writes to a device, per second.
    ///
    /// # Errors
    ///
    /// Not supported by the kernel, or not permitted.
    pub fn writes(keeper: &Cleanup, device: &Path, per_s: u64) -> Made<Self> {
        needs_root()?;
        let number = number_of(device)?;
        let (root, file, line) = match Hierarchy::find("io", "blkio")? {
            Hierarchy::One(root) => (
                root,
                "blkio.throttle.write_iops_device",
                format!("{number} {per_s}"),
            ),
            Hierarchy::Two(root) => (root, "io.max", format!("{number} wiops={per_s}")),
        };
        let limit = Self::at(keeper, &root)?;
        limit.set(file, &line)?;
        Ok(limit)
    }

    /// Limits the memory of processes, bytes.
    ///
    /// # Errors
    ///
    /// Not supported by the kernel, or not permitted.
    pub fn memory(keeper: &Cleanup, bytes: u64) -> Made<Self> {
        needs_root()?;
        let (root, file) = match Hierarchy::find("memory", "memory")? {
            Hierarchy::One(root) => (root, "memory.limit_in_bytes"),
            Hierarchy::Two(root) => (root, "memory.max"),
        };
        let limit = Self::at(keeper, &root)?;
        limit.set(file, &bytes.to_string())?;
        Ok(limit)
    }

    fn at(keeper: &Cleanup, root: &Path) -> Made<Self> {
        let folder = root.join(format!("iolab-truth-{}", std::process::id()));
        std::fs::create_dir(&folder).map_err(lacks(Need::Cgroup, folder.display()))?;
        keeper.finally(&["rmdir", &folder.display().to_string()]);
        Ok(Self { folder })
    }

    fn set(&self, name: &str, line: &str) -> Made<()> {
        let path = self.folder.join(name);
        std::fs::write(&path, line).map_err(lacks(Need::Cgroup, path.display()))
    }

    /// The file to which a process writes its id to be limited.
    pub fn entrance(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

/// `MAJOR:MINOR` of a device.
fn number_of(device: &Path) -> Made<String> {
    let number = rustix::fs::stat(device)
        .map_err(failed(device.display()))?
        .st_rdev;
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    Ok(format!("{major}:{minor}"))
}

/// The hierarchy with the controller.
enum Hierarchy {
    /// cgroup v1: the controller's own tree.
    One(PathBuf),
    /// cgroup v2 with the controller.
    Two(PathBuf),
}

impl Hierarchy {
    /// Finds a controller by its names in version 2 and in version 1.
    fn find(two: &str, one: &str) -> Made<Self> {
        let unified = Path::new("/sys/fs/cgroup");
        let controllers = std::fs::read_to_string(unified.join("cgroup.subtree_control"));
        if controllers.is_ok_and(|text| text.split_whitespace().any(|name| name == two)) {
            return Ok(Hierarchy::Two(unified.to_owned()));
        }
        let own = unified.join(one);
        if own.join("cgroup.procs").exists() {
            return Ok(Hierarchy::One(own));
        }
        Err(Unmade::Missing(
            Need::Cgroup,
            format!("no controller for {two}"),
        ))
    }
}

/// Another user of a device, which starts to read it on demand.
#[derive(Debug)]
pub struct Neighbour {
    noisy: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    read: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// Size of a neighbour's reads, bytes.
const SWALLOW: usize = 1 << 20;

impl Neighbour {
    /// A neighbour that does not read yet.
    ///
    /// # Errors
    ///
    /// The device cannot be opened for direct reads.
    pub fn new(device: &Path) -> Made<Self> {
        let file = File::options()
            .read(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(device)
            .map_err(failed(device.display()))?;
        let (noisy, over, read) = Default::default();
        let (is_noisy, is_over, count): (Arc<AtomicBool>, Arc<AtomicBool>, Arc<AtomicU64>) =
            (Arc::clone(&noisy), Arc::clone(&over), Arc::clone(&read));
        let thread = std::thread::spawn(move || {
            let mut memory = vec![0; SWALLOW + 4096];
            let skip = memory.as_ptr().align_offset(4096);
            let piece = &mut memory[skip..skip + SWALLOW];
            let mut offset = 0;
            while !is_over.load(Ordering::Relaxed) {
                if !is_noisy.load(Ordering::Relaxed) {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    continue;
                }
                match read_at(&file, piece, offset) {
                    Ok(0) | Err(_) => offset = 0,
                    Ok(n) => {
                        offset += n as u64;
                        count.fetch_add(n as u64, Ordering::Relaxed);
                    }
                }
            }
        });
        Ok(Self {
            noisy,
            over,
            read,
            thread: Some(thread),
        })
    }

    /// Starts reading.
    pub fn begin(&self) {
        self.noisy.store(true, Ordering::Relaxed);
    }

    /// Bytes read so far.
    pub fn read_bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

fn read_at(file: &File, piece: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, piece, offset)
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
