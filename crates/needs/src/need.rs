//! Everything that tests need and a machine may lack.

use std::fmt;
use std::os::unix::fs::PermissionsExt;

/// Defines [`Need`] from rows: name in code, name in `IOLAB_REQUIRE`, alternative programs, description.
macro_rules! needs {
    ($($need:ident, $name:literal, [$($program:literal),*], $what:literal;)*) => {
        /// Something that a test needs and a machine may lack.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Need {
            $(#[doc = $what] $need,)*
        }

        impl Need {
            /// Every need.
            pub const ALL: &'static [Self] = &[$(Self::$need),*];

            /// Name of the need in `IOLAB_REQUIRE`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$need => $name,)* }
            }

            /// A short description.
            pub const fn what(self) -> &'static str {
                match self { $(Self::$need => $what,)* }
            }

            /// Programs of which one suffices; empty where it is not a program.
            pub const fn programs(self) -> &'static [&'static str] {
                match self { $(Self::$need => &[$($program),*],)* }
            }
        }
    };
}

needs! {
    Root, "root", [], "tests run as root";
    OrdinaryUser, "user", [], "an ordinary user who reaches a folder and the program";
    Mount, "mount", [], "the right to mount, and namespaces of mounts";
    Loop, "loop", [], "loop devices";
    LoopDirect, "loop-direct", [], "loop devices past the page cache";
    Partitions, "partitions", [], "partitions on loop devices";
    Zram, "zram", [], "zram devices";
    Fuse, "fuse", [], "file systems in user space (/dev/fuse)";
    Overlay, "overlay", [], "overlayfs";
    Cgroup, "cgroup", [], "control groups that limit I/O and memory";
    ScsiDebug, "scsi_debug", [], "the kernel module scsi_debug";
    Nvmet, "nvmet", [], "the kernel module nvmet";
    Vm, "vm", [], "guests under QEMU: root, qemu-system-x86_64, mmdebstrap, a server of packages for the first build";
    Arm64, "arm64", ["qemu-system-aarch64"], "guests under qemu-system-aarch64, and the static program for 64-bit ARM, named in IOLAB_ARM64";
    OldKernel, "old-kernel", ["qemu-system-x86_64"], "a guest under qemu-system-x86_64, and the static program for x86-64, named in IOLAB_STATIC";
    Ext4, "mkfs.ext4", ["mkfs.ext4"], "mkfs.ext4, and a kernel with ext4";
    Xfs, "mkfs.xfs", ["mkfs.xfs"], "mkfs.xfs, and a kernel with XFS";
    Btrfs, "mkfs.btrfs", ["mkfs.btrfs"], "mkfs.btrfs, and a kernel with btrfs";
    Erofs, "mkfs.erofs", ["mkfs.erofs"], "mkfs.erofs, and a kernel that mounts EROFS from a file";
    Vfat, "mkfs.vfat", ["mkfs.vfat"], "mkfs.vfat";
    Swap, "mkswap", ["mkswap"], "mkswap and swapon";
    Mksquashfs, "mksquashfs", ["mksquashfs"], "mksquashfs";
    Squashfuse, "squashfuse", ["squashfuse"], "squashfuse";
    Sfdisk, "sfdisk", ["sfdisk"], "sfdisk";
    Losetup, "losetup", ["losetup"], "losetup";
    Unshare, "unshare", ["unshare"], "unshare";
    XfsIo, "xfs_io", ["xfs_io"], "xfs_io";
    Fio, "fio", ["fio"], "fio";
    FioExamples, "fio-examples", [], "fio's example job files, in /usr/share/doc/fio/examples or the folder named by IOLAB_FIO_EXAMPLES";
    Iozone, "iozone", ["iozone"], "IOzone";
    Jq, "jq", ["jq"], "jq";
    Bash, "bash", ["bash"], "bash";
    Cc, "cc", ["cc"], "a C compiler that links programs, static and not";
    Mpi, "mpi", ["mpirun"], "mpirun, and a program built with MPI";
    Browser, "browser", ["chromium", "chromium-browser", "google-chrome"], "a browser without a window";
    Axe, "axe", [], "axe-core, whose file axe.min.js is named by IOLAB_AXE";
    Latex, "latex", ["pdflatex"], "LaTeX";
    Python, "python", ["python3"], "Python 3.9 or newer";
    Disk, "disk", [], "a folder on storage, not in memory";
    Shm, "shm", [], "/dev/shm, a tmpfs that can be written";
    BlockDevice, "block-device", [], "files that lie on a block device";
    DirectIo, "direct-io", [], "files that take direct I/O";
    Holes, "holes", [], "a file system that tells of holes";
    Fiemap, "fiemap", [], "a file system that tells of extents, reserved ones apart";
    Fallocate, "fallocate", [], "a file system that reserves space";
    Trim, "trim", [], "files that can be trimmed";
    BirthTimes, "birth-times", [], "a file system that knows when files were made";
    UnnamedFiles, "unnamed-files", [], "files without a name (O_TMPFILE)";
    FileHandles, "file-handles", [], "handles of files";
    AppendOnly, "append-only", ["chattr"], "directories that keep every file (chattr +a)";
    ColdCache, "cold-cache", [], "files whose pages leave the page cache when asked";
    Cachestat, "cachestat", [], "cachestat(2)";
    Mincore, "mincore", [], "mincore(2)";
    Leases, "leases", [], "leases of files";
    IoAccount, "io-account", [], "the I/O account of processes (/proc/PID/io)";
    SystemCalls, "system-calls", [], "a kernel that tells the system call of a thread (/proc/PID/task/N/syscall)";
    Pagemap, "pagemap", [], "page numbers in /proc/self/pagemap";
    HugePages, "huge-pages", [], "huge pages, transparent or of vm.nr_hugepages";
    SmallPages, "4k-pages", [], "pages of 4 KiB";
    Cpus, "cpus", [], "two CPUs or more";
    RealTime, "real-time", [], "chrt and taskset, and the right to real-time threads";
    Perf, "perf", [], "perf events of the kernel";
    HardwareEvents, "hardware-events", [], "perf events of the processor";
    TraceEvents, "trace-events", [], "trace events of the kernel (tracefs)";
    Libaio, "libaio", [], "Linux AIO";
    IoUring, "io_uring", [], "io_uring";
    Seccomp, "seccomp", [], "filters of system calls";
    TwoBlockDevices, "two-block-devices", [], "two block devices in /sys";
    Kmsg, "kmsg", [], "/proc/kmsg";
    Signals, "signals", [], "signals that are not ignored already (no nohup)";
    Quiet, "quiet", [], "a machine that is not busy with something else";
    DriveTraces, "drive-traces", [], "a folder with the traces of DiskSim 4.0, named by IOLAB_DRIVES";
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Need {
    /// The need with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|need| need.name() == name)
    }

    /// The need that lists this program.
    pub fn of_program(program: &str) -> Option<Self> {
        let all = Self::ALL.iter().copied();
        all.into_iter()
            .find(|need| need.programs().contains(&program))
    }

    /// First installed program of those that meet the need.
    pub fn program(self) -> Option<&'static str> {
        self.programs()
            .iter()
            .copied()
            .find(|name| is_installed(name))
    }
}

/// Whether a program is in `PATH`.
pub(crate) fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| {
        let data = folder.join(program).metadata();
        data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_told_apart() {
        let names: BTreeSet<&str> = Need::ALL.iter().map(|need| need.name()).collect();
        assert_eq!(names.len(), Need::ALL.len());
        for need in Need::ALL {
            assert_eq!(Need::of_name(need.name()), Some(*need));
            assert!(!need.name().contains([',', ' ', '\t']), "{need}");
        }
        assert_eq!(Need::of_name("all"), None, "it stands for every need");
    }

    #[test]
    fn programs_are_looked_for_in_the_path() {
        assert!(is_installed("sh") && !is_installed("no such program"));
        assert_eq!(Need::of_program("google-chrome"), Some(Need::Browser));
        assert_eq!(Need::Root.program(), None);
    }
}
