//! Whether a thread waits for storage, and which file server a path lies on, without a request to either.

use std::fs;
use std::path::Path;

use iolab_storage::FileSystem;
use libc::c_long;

/// System calls that work on files by name or descriptor, and wait only for their storage: iolab takes no lock that it
/// would have to wait for. Not `read` and `write`, which also wait for terminals, pipes and programs.
#[rustfmt::skip]
const ON_FILES: &[c_long] = &[
    libc::SYS_openat, libc::SYS_openat2, libc::SYS_close, libc::SYS_unlinkat, libc::SYS_renameat2, libc::SYS_linkat, libc::SYS_mkdirat,
    libc::SYS_mknodat, libc::SYS_statx, libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statfs, libc::SYS_fstatfs, libc::SYS_faccessat,
    libc::SYS_faccessat2, libc::SYS_readlinkat, libc::SYS_name_to_handle_at, libc::SYS_getdents64, libc::SYS_fcntl, libc::SYS_flock, libc::SYS_fsync,
    libc::SYS_fdatasync, libc::SYS_syncfs, libc::SYS_sync_file_range, libc::SYS_fallocate, libc::SYS_ftruncate, libc::SYS_fadvise64, libc::SYS_lseek,
    libc::SYS_pread64, libc::SYS_pwrite64,
];

/// Older ones, which 64-bit ARM does not have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLDER: &[c_long] = &[
    libc::SYS_open, libc::SYS_unlink, libc::SYS_rename, libc::SYS_link, libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_stat, libc::SYS_lstat,
    libc::SYS_access, libc::SYS_readlink,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Whether a thread of this process, by its folder in `/proc/self/task`, waits in the kernel and cannot be interrupted, or waits in a call
/// for storage: some file systems can be interrupted there (FUSE).
pub(super) fn waits_for_storage(task: &Path) -> bool {
    let text = |name: &str| fs::read_to_string(task.join(name)).unwrap_or_default();
    text("stat").contains(") D ") || is_on_files(&text("syscall"))
}

/// Whether a thread waits in such a call, given the content of `/proc/self/task/N/syscall`. A running thread is in none.
fn is_on_files(syscall: &str) -> bool {
    let number = syscall.split_whitespace().next();
    let number = number.and_then(|number| number.parse::<c_long>().ok());
    number.is_some_and(|number| ON_FILES.contains(&number) || OLDER.contains(&number))
}

/// The file server on which a path lies by its name alone.
pub(super) fn server_of(path: &Path, mounts: &[FileSystem]) -> Option<String> {
    let above = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point));
    // The last mount hides earlier ones.
    let own = above.max_by_key(|mount| mount.mount_point.components().count())?;
    (own.kind == "nfs" || own.kind == "nfs4").then(|| own.source.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_waiting_for_others_are_not_storage() {
        let of = |number: c_long| is_on_files(&format!("{number} 0x3 0x0 0x7ffc51016258\n"));
        assert!(of(libc::SYS_fsync) && of(libc::SYS_unlinkat) && of(libc::SYS_openat));
        for other in [
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_wait4,
            libc::SYS_futex,
            libc::SYS_clock_nanosleep,
        ] {
            assert!(!of(other), "{other}");
        }
        for none in ["running\n", "-1 0x7ffc51016258 0x7fadb6b1a2ad\n", ""] {
            assert!(!is_on_files(none), "{none}");
        }
    }

    /// A thread that waits for a pipe does not wait for storage, and the kernel names the call.
    #[test]
    fn the_kernel_tells_the_call_of_a_thread() {
        use std::io::Read;
        use std::time::{Duration, Instant};
        let (mut from, to) = std::io::pipe().expect("a pipe");
        let (sender, thread) = std::sync::mpsc::channel();
        let waits = std::thread::spawn(move || {
            let _ = sender.send(rustix::thread::gettid().as_raw_nonzero());
            let _ = from.read(&mut [0]);
        });
        let thread = thread.recv().expect("it runs");
        let task = Path::new("/proc/self/task").join(thread.to_string());
        let read = format!("{} ", libc::SYS_read);
        let told = || fs::read_to_string(task.join("syscall")).unwrap_or_default();
        let give_up = Instant::now() + Duration::from_secs(5);
        while !told().starts_with(&read) && Instant::now() < give_up {
            std::thread::yield_now();
        }
        let (last, is_storage) = (told(), waits_for_storage(&task));
        drop(to);
        waits.join().expect("it ends");
        if !last.starts_with(&read) {
            return needs::skip(needs::Need::SystemCalls, format!("it tells {last:?}"));
        }
        assert!(!is_storage);
    }

    fn mount(kind: &str, at: &Path, source: &str) -> FileSystem {
        FileSystem {
            kind: kind.to_owned(),
            mount_point: at.to_owned(),
            mount_options: String::new(),
            source: source.to_owned(),
        }
    }

    #[test]
    fn the_mount_that_hides_others_is_the_one() {
        let at = Path::new("/mnt/x");
        let mut mounts = vec![mount("nfs", at, "host:/a")];
        let server = |mounts: &[FileSystem]| server_of(&at.join("y"), mounts);
        assert_eq!(server(&mounts).as_deref(), Some("host:/a"));
        mounts.push(mount("nfs", Path::new("/mnt"), "host:/b"));
        assert_eq!(server(&mounts).as_deref(), Some("host:/a"));
        mounts.push(mount("tmpfs", at, "tmpfs"));
        assert_eq!(server(&mounts), None);
    }
}
