//! Who else uses a target: mounts, swap, loop devices, and the devices stacked upon it.

use std::collections::HashSet;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat, major, minor};

use crate::error::{Error, Result};

use super::errno::{of_std, read_kernel_file, reason};
use super::mounts::{self, Mount, unescape};

/// Device numbers, MAJOR and MINOR.
type Number = (u32, u32);

/// What the kernel tells about users of storage.
#[derive(Debug)]
pub(super) struct Kernel {
    sys: PathBuf,
    mounts: Vec<Mount>,
    /// Files and devices swapped to.
    swaps: Vec<PathBuf>,
    /// Name of each loop device with what it is backed by.
    loops: Vec<(String, PathBuf)>,
}

/// A device found on the way up from the target.
struct Stacked {
    number: Number,
    name: String,
    /// Whether it lies upon the target (dm, md, bcache) and is not just a part of it.
    holder: bool,
}

impl Kernel {
    /// Takes stock.
    ///
    /// # Errors
    /// Of kind refused when `/proc` or `/sys` do not tell.
    pub(super) fn read() -> Result<Self> {
        Self::read_from(Path::new("/proc"), Path::new("/sys"))
    }

    fn read_from(proc: &Path, sys: &Path) -> Result<Self> {
        let mountinfo = read_kernel_file(&proc.join("self/mountinfo"))?.ok_or_else(|| {
            untold(
                "there is no mountinfo in /proc",
                "run where /proc is mounted",
            )
        })?;
        // A kernel built without swap has no such file.
        let swaps = read_kernel_file(&proc.join("swaps"))?.unwrap_or_default();
        Ok(Self {
            sys: sys.to_owned(),
            mounts: mounts::parse(&mountinfo),
            swaps: parse_swaps(&swaps),
            loops: loops(sys)?,
        })
    }

    /// Why a block device must not be written: it, a partition of it, or a device upon it is in use.
    pub(super) fn device_use(&self, number: Number) -> Result<Option<String>> {
        let stack = self.stack(number)?;
        let used = stack.iter().find_map(|device| {
            self.number_use(device.number)
                .map(|how| format!("{} {how}", device.name))
        });
        let held = || {
            let holder = stack.iter().find(|device| device.holder)?;
            Some(format!("{} lies upon it and holds it", holder.name))
        };
        Ok(used.or_else(held))
    }

    /// Why a regular file must not be written.
    pub(super) fn file_use(&self, stat: &Stat) -> Option<String> {
        let is_it = |path: &Path| {
            rustix::fs::stat(path).is_ok_and(|other| super::lookup::same_inode(stat, &other))
        };
        if self.swaps.iter().any(|path| is_it(path)) {
            return Some("it is used as swap".to_owned());
        }
        let (name, _) = self.loops.iter().find(|(_, path)| is_it(path))?;
        Some(format!("it is the backing file of {name}"))
    }

    /// Kernel names, first bytes and lengths of a device's partitions.
    pub(super) fn partitions(&self, number: Number) -> Result<Vec<(String, u64, u64)>> {
        let dir = self.device_dir(number)?;
        let mut found = Vec::new();
        for child in children(&dir)? {
            if child.join("partition").exists() {
                // Sysfs counts sectors of 512 bytes whatever the device's own are.
                let sectors = |file: &str| number_in(&child.join(file)).map(|n| n * 512);
                if let (Some(start), Some(length)) = (sectors("start"), sectors("size")) {
                    found.push((name_of(&child), start, length));
                }
            }
        }
        Ok(found)
    }

    /// Whether the device is set read-only.
    pub(super) fn is_read_only(&self, number: Number) -> bool {
        let dir = self.sys_path(number);
        number_in(&dir.join("ro")) == Some(1)
    }

    fn number_use(&self, number: Number) -> Option<String> {
        if let Some(mount) = self.mounts.iter().find(|mount| mount.is_of(number)) {
            return Some(format!("is mounted at {}", mount.fs.mount_point.display()));
        }
        let is_it = |path: &PathBuf| mounts::block_device_at(path) == Some(number);
        if self.swaps.iter().any(is_it) {
            return Some("is used as swap".to_owned());
        }
        let (name, _) = self.loops.iter().find(|(_, path)| is_it(path))?;
        Some(format!("is what {name} is backed by"))
    }

    /// The device, its partitions, and everything upon any of them, the device first.
    fn stack(&self, number: Number) -> Result<Vec<Stacked>> {
        let mut seen = HashSet::from([number]);
        let mut stack = vec![Stacked {
            number,
            name: name_of(&self.device_dir(number)?),
            holder: false,
        }];
        let mut next = 0;
        while next < stack.len() {
            let (dir, upon) = (self.device_dir(stack[next].number)?, stack[next].holder);
            next += 1;
            let parts = children(&dir)?
                .into_iter()
                .filter(|child| child.join("partition").exists())
                .map(|child| (child, upon));
            let holders = children(&dir.join("holders"))?
                .into_iter()
                .map(|child| (child, true));
            for (child, holder) in parts.chain(holders) {
                let Some(number) = device_number(&child) else {
                    return Err(untold(
                        &format!("{} has no device number", child.display()),
                        "choose another target",
                    ));
                };
                if seen.insert(number) {
                    stack.push(Stacked {
                        number,
                        name: name_of(&child),
                        holder,
                    });
                }
            }
        }
        Ok(stack)
    }

    fn sys_path(&self, (major, minor): Number) -> PathBuf {
        self.sys.join(format!("dev/block/{major}:{minor}"))
    }

    fn device_dir(&self, number: Number) -> Result<PathBuf> {
        std::fs::canonicalize(self.sys_path(number)).map_err(|error| {
            let (major, minor) = number;
            untold(
                &format!("device {major}:{minor} in /sys: {}", reason(of_std(&error))),
                "run where /sys is mounted and shows the device",
            )
        })
    }
}

fn untold(what: &str, hint: &str) -> Error {
    Error::refused(format!("cannot tell whether the target is in use: {what}")).hint(hint)
}

/// Entries of a sysfs directory; none when it is not there.
fn children(dir: &Path) -> Result<Vec<PathBuf>> {
    let wrong = |error: std::io::Error| {
        untold(
            &format!("{}: {}", dir.display(), reason(of_std(&error))),
            "run where /sys can be read",
        )
    };
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(wrong)?,
    };
    entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(wrong))
        .collect()
}

/// Kernel name of a device from its sysfs directory, where `!` stands for `/`.
fn name_of(dir: &Path) -> String {
    dir.file_name()
        .map(|name| name.to_string_lossy().replace('!', "/"))
        .unwrap_or_default()
}

fn number_in(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn device_number(dir: &Path) -> Option<Number> {
    let text = std::fs::read_to_string(dir.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn parse_swaps(text: &[u8]) -> Vec<PathBuf> {
    let first_field = |line: &[u8]| {
        let end = line.iter().position(|byte| b" \t".contains(byte))?;
        let bytes = unescape(&line[..end]);
        Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
    };
    text.split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(first_field)
        .collect()
}

fn loops(sys: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for dir in children(&sys.join("block"))? {
        // The file is there only while the loop device is set up.
        let Ok(mut bytes) = std::fs::read(dir.join("loop/backing_file")) else {
            continue;
        };
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
        found.push((name_of(&dir), path));
    }
    Ok(found)
}

/// The number of the device that a block device's inode stands for.
pub(super) fn number_of(stat: &Stat) -> Option<Number> {
    let is_block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    is_block.then(|| (major(stat.st_rdev), minor(stat.st_rdev)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A made-up kernel: sdq with partition sdq1, upon which lies dm-7, upon which lies md9.
    struct Fake(tempfile::TempDir);

    impl Fake {
        fn new() -> Self {
            let fake = Self(tempfile::tempdir().unwrap());
            for (dir, number) in [
                ("devices/sdq", "259:900"),
                ("devices/sdq/sdq1", "259:901"),
                ("devices/dm-7", "259:907"),
                ("devices/md9", "259:909"),
            ] {
                let dir = fake.sys().join(dir);
                fs::create_dir_all(dir.join("holders")).unwrap();
                fs::write(dir.join("dev"), format!("{number}\n")).unwrap();
                fs::create_dir_all(fake.sys().join("dev/block")).unwrap();
                symlink(&dir, fake.sys().join("dev/block").join(number)).unwrap();
            }
            let part = fake.sys().join("devices/sdq/sdq1");
            fs::write(part.join("partition"), "1\n").unwrap();
            fs::write(part.join("start"), "2048\n").unwrap();
            fs::write(part.join("size"), "4096\n").unwrap();
            fs::write(fake.sys().join("devices/sdq/ro"), "1\n").unwrap();
            fs::create_dir_all(fake.proc().join("self")).unwrap();
            fake.mounts("");
            fake
        }

        fn sys(&self) -> PathBuf {
            self.0.path().join("sys")
        }

        fn proc(&self) -> PathBuf {
            self.0.path().join("proc")
        }

        fn mounts(&self, text: &str) {
            fs::write(self.proc().join("self/mountinfo"), text).unwrap();
        }

        fn hold(&self, below: &str, above: &str) {
            let name = Path::new(above).file_name().unwrap();
            let link = self.sys().join("devices").join(below).join("holders");
            symlink(self.sys().join("devices").join(above), link.join(name)).unwrap();
        }

        fn kernel(&self) -> Kernel {
            Kernel::read_from(&self.proc(), &self.sys()).unwrap()
        }
    }

    #[test]
    fn an_unused_device_is_free() {
        let kernel = Fake::new().kernel();
        // The directory is gone with the fake, so look before that.
        assert!(kernel.device_use((259, 900)).is_err());
        let fake = Fake::new();
        let kernel = fake.kernel();
        assert_eq!(kernel.device_use((259, 900)).unwrap(), None);
        assert!(kernel.is_read_only((259, 900)) && !kernel.is_read_only((259, 901)));
        assert_eq!(
            kernel.partitions((259, 900)).unwrap(),
            [("sdq1".to_owned(), 2048 * 512, 4096 * 512)]
        );
    }

    #[test]
    fn a_mounted_partition_guards_the_whole_disk() {
        let fake = Fake::new();
        fake.mounts("1 1 259:901 / /data rw - ext4 /dev/sdq1 rw\n");
        let kernel = fake.kernel();
        let why = kernel.device_use((259, 900)).unwrap().unwrap();
        assert_eq!(why, "sdq1 is mounted at /data");
        assert!(kernel.device_use((259, 901)).unwrap().is_some());
    }

    #[test]
    fn holders_are_followed_up_to_the_mount() {
        let fake = Fake::new();
        fake.hold("sdq/sdq1", "dm-7");
        let why = fake.kernel().device_use((259, 900)).unwrap().unwrap();
        assert_eq!(why, "dm-7 lies upon it and holds it");
        fake.hold("dm-7", "md9");
        // A circle must not hang the walk.
        fake.hold("md9", "dm-7");
        fake.mounts("1 1 259:909 / /array rw - xfs /dev/md9 rw\n");
        let why = fake.kernel().device_use((259, 900)).unwrap().unwrap();
        assert_eq!(why, "md9 is mounted at /array");
        // What lies below is not what is asked for: md9 does not use dm-7's partitions.
        assert!(fake.kernel().device_use((259, 909)).unwrap().is_some());
    }

    #[test]
    fn swap_files_and_backing_files_are_known_by_inode() {
        let fake = Fake::new();
        let disk = fake.0.path().join("a file");
        fs::write(&disk, "x").unwrap();
        let stat = rustix::fs::stat(&disk).unwrap();
        assert_eq!(fake.kernel().file_use(&stat), None);

        let escaped = disk.display().to_string().replace(' ', "\\040");
        let swaps = format!("Filename\tType\tSize\tUsed\tPriority\n{escaped}  file\t8\t0\t-2\n");
        fs::write(fake.proc().join("swaps"), swaps).unwrap();
        let why = fake.kernel().file_use(&stat).unwrap();
        assert_eq!(why, "it is used as swap");
        fs::remove_file(fake.proc().join("swaps")).unwrap();

        let other = fake.0.path().join("another name");
        fs::hard_link(&disk, &other).unwrap();
        let dir = fake.sys().join("block/loop3/loop");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("backing_file"), format!("{}\n", other.display())).unwrap();
        let why = fake.kernel().file_use(&stat).unwrap();
        assert_eq!(why, "it is the backing file of loop3");
    }

    #[test]
    fn without_proc_nothing_is_taken_for_free() {
        let empty = tempfile::tempdir().unwrap();
        let error = Kernel::read_from(empty.path(), empty.path()).unwrap_err();
        assert_eq!(error.kind(), crate::Kind::Refused);
    }
}
