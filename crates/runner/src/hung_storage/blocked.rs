//! Whether a thread waits for storage, and for which file, as the kernel tells of it.

use std::ffi::{CStr, OsStr};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf, absolute};

use libc::c_long;

/// How the arguments of a call name its file.
#[derive(Debug, Clone, Copy)]
enum Names {
    /// The first one is a descriptor of it.
    Descriptor,
    /// The first one is its path.
    Path,
    /// The second one is its path from the directory of the first one.
    Below,
}

use Names::{Below, Descriptor, Path as ByPath};

/// System calls that work on files by name or descriptor, and wait for nothing but the storage of these: iolab takes no lock that it
/// would have to wait for. Not `read` and `write`, which also wait for terminals, pipes and programs.
#[rustfmt::skip]
const ON_FILES: &[(c_long, Names)] = &[
    (libc::SYS_openat, Below), (libc::SYS_openat2, Below), (libc::SYS_close, Descriptor),
    (libc::SYS_unlinkat, Below), (libc::SYS_renameat2, Below), (libc::SYS_linkat, Below), (libc::SYS_mkdirat, Below), (libc::SYS_mknodat, Below),
    (libc::SYS_statx, Below), (libc::SYS_fstat, Descriptor), (libc::SYS_newfstatat, Below), (libc::SYS_statfs, ByPath), (libc::SYS_fstatfs, Descriptor),
    (libc::SYS_faccessat, Below), (libc::SYS_faccessat2, Below), (libc::SYS_readlinkat, Below), (libc::SYS_name_to_handle_at, Below),
    (libc::SYS_getdents64, Descriptor), (libc::SYS_fcntl, Descriptor), (libc::SYS_flock, Descriptor),
    (libc::SYS_fsync, Descriptor), (libc::SYS_fdatasync, Descriptor), (libc::SYS_syncfs, Descriptor), (libc::SYS_sync_file_range, Descriptor),
    (libc::SYS_fallocate, Descriptor), (libc::SYS_ftruncate, Descriptor), (libc::SYS_fadvise64, Descriptor), (libc::SYS_lseek, Descriptor),
    (libc::SYS_pread64, Descriptor), (libc::SYS_pwrite64, Descriptor),
];

/// Older ones, which 64-bit ARM does not have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLDER: &[(c_long, Names)] = &[
    (libc::SYS_open, ByPath), (libc::SYS_unlink, ByPath), (libc::SYS_rename, ByPath), (libc::SYS_link, ByPath), (libc::SYS_mkdir, ByPath), (libc::SYS_rmdir, ByPath),
    (libc::SYS_stat, ByPath), (libc::SYS_lstat, ByPath), (libc::SYS_access, ByPath), (libc::SYS_readlink, ByPath),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[(c_long, Names)] = &[];

/// Where iolab opens by path what it holds by descriptor.
const HELD: &str = "/proc/self/fd";

/// Whether a thread of this process, by its folder in `/proc/self/task`, waits in the kernel and cannot be interrupted, or waits in a call
/// for storage: some file systems can be interrupted there (FUSE).
pub(super) fn waits_for_storage(task: &Path) -> bool {
    let text = |name: &str| fs::read_to_string(task.join(name)).unwrap_or_default();
    text("stat").contains(") D ") || on_files(&text("syscall")).is_some()
}

/// The file that such a thread waits for, of which nothing is asked; `None` where the kernel does not tell.
pub(super) fn waited_for(task: &Path) -> Option<PathBuf> {
    let told = || fs::read_to_string(task.join("syscall")).ok();
    let before = told()?;
    let file = file_of(&before);
    // A thread that goes on has other things in its memory by now.
    file.filter(|_| told().is_some_and(|now| now == before))
}

/// How the call that a thread waits in names its file, as `/proc/self/task/N/syscall` gives the call; `None` for a call that is no such
/// one. A thread that runs is in none.
fn on_files(syscall: &str) -> Option<Names> {
    let number: c_long = syscall.split_whitespace().next()?.parse().ok()?;
    let mut calls = ON_FILES.iter().chain(OLDER);
    let call = calls.find(|(call, _)| *call == number);
    call.map(|(_, names)| *names)
}

fn file_of(syscall: &str) -> Option<PathBuf> {
    let names = on_files(syscall)?;
    let arguments = syscall.split_whitespace().skip(1);
    let mut arguments =
        arguments.map_while(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let mut argument = || arguments.next();
    let path = match names {
        Descriptor => return held(argument()?),
        ByPath => text_at(argument()?)?,
        Below => {
            let (folder, path) = (argument()?, text_at(argument()?)?);
            match held(folder) {
                Some(folder) if path.as_os_str().is_empty() => folder,
                Some(folder) => folder.join(path),
                None => path,
            }
        }
    };
    match path
        .strip_prefix(HELD)
        .map(|held| held.to_str()?.parse().ok())
    {
        Ok(descriptor) => held(descriptor?),
        Err(_) => absolute(path).ok(),
    }
}

/// What a descriptor of this process leads to; `None` where that is no file, or the current directory is meant.
fn held(descriptor: u64) -> Option<PathBuf> {
    let path = fs::read_link(format!("{HELD}/{descriptor}")).ok()?;
    path.is_absolute().then_some(path)
}

/// The path that the memory of this process has at an address.
fn text_at(address: u64) -> Option<PathBuf> {
    let mut bytes = [0; libc::PATH_MAX as usize];
    let memory = File::open("/proc/self/mem").ok()?;
    let count = memory.read_at(&mut bytes, address).ok()?;
    let text = CStr::from_bytes_until_nul(bytes.get(..count)?).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(text.to_bytes())))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn calls_that_wait_for_something_else_are_not_storage() {
        let is_on_files = |syscall: &str| on_files(syscall).is_some();
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

    /// A thread that waits for a pipe does not wait for storage, and the kernel tells which call that is.
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

    /// Each way in which a call names its file, as the kernel would tell of it.
    #[test]
    fn the_file_of_a_call_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().canonicalize().expect("a path");
        let name = at.join("file");
        let file = File::create(&name).expect("a file");
        let dir = File::open(&at).expect("a folder");
        let text = |text: &str| std::ffi::CString::new(text).expect("no NUL");
        let (short, whole) = (text("file"), text(name.to_str().expect("text")));
        let (none, magic) = (text(""), text(&format!("{HELD}/{}", file.as_raw_fd())));
        let at_current = u64::from(libc::AT_FDCWD.cast_unsigned());
        let descriptor = |file: &File| u64::from(file.as_raw_fd().cast_unsigned());
        let told = |call: c_long, first: u64, second: &CStr| {
            let second = second.as_ptr().addr();
            file_of(&format!(
                "{call} {first:#x} {second:#x} 0x0 0x7ffc51016258\n"
            ))
        };
        let found = Some(name.clone());
        assert_eq!(told(libc::SYS_fsync, descriptor(&file), &none), found);
        assert_eq!(told(libc::SYS_unlinkat, descriptor(&dir), &short), found);
        assert_eq!(told(libc::SYS_statx, descriptor(&file), &none), found);
        for path in [&whole, &magic] {
            assert_eq!(told(libc::SYS_openat, at_current, path), found);
            let by_path = path.as_ptr().addr() as u64;
            assert_eq!(told(libc::SYS_statfs, by_path, &none), found);
        }
        let current = std::env::current_dir().expect("a folder");
        let below = told(libc::SYS_openat, at_current, &short);
        assert_eq!(below, Some(current.join("file")));
        let (from, _to) = std::io::pipe().expect("a pipe");
        let pipe = u64::from(from.as_raw_fd().cast_unsigned());
        assert_eq!(told(libc::SYS_fsync, pipe, &none), None);
        assert_eq!(told(libc::SYS_read, descriptor(&file), &none), None);
    }
}
