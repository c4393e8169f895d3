//! File or device below a loop device, according to the loop driver (`LOOP_GET_STATUS64`, see loop(4)). A path
//! in sysfs may by now name another file, or belong to another mount namespace.

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::fs::{major, minor};
use rustix::io::Errno;

use super::storage_graph::{FileId, Node};

/// `LOOP_GET_STATUS64` of linux/loop.h.
const GET_STATUS64: libc::c_ulong = 0x4c05;

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// File or device below a loop device, and the first byte that the loop device shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Backing {
    pub(super) node: Node,
    pub(super) offset: u64,
}

/// Asks an open loop device what it stands on.
///
/// # Errors
/// Errors of the kernel: `ENXIO` when it is not set up.
pub(super) fn backing(device: &File) -> Result<Backing, Errno> {
    let mut info = std::mem::MaybeUninit::<LoopInfo64>::zeroed();
    // SAFETY: the request writes one `loop_info64`, whose layout `LoopInfo64` has, to memory of that size on this stack.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), GET_STATUS64 as _, info.as_mut_ptr()) };
    if answer != 0 {
        return Err(super::super::errno::of_std(&std::io::Error::last_os_error()));
    }
    // SAFETY: it was zeroed, which is a valid value of every field, and the kernel has filled it.
    let info = unsafe { info.assume_init() };
    let numbers = |encoded: u64| (major(encoded), minor(encoded));
    let node = match info.rdevice {
        0 => Node::File(FileId {
            dev: numbers(info.device),
            inode: info.inode,
        }),
        device => Node::Device(numbers(device)),
    };
    Ok(Backing {
        node,
        offset: info.offset,
    })
}
