//! Admin commands of NVMe drives, by the ioctl of the kernel's driver.
//!
//! Source: NVM Express Base Specification 2.0c, section 5.16 (Get Log Page); linux/nvme_ioctl.h.

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

use super::errno::of_std;

/// `NVME_IOCTL_ID` of linux/nvme_ioctl.h: number of a block device's namespace.
const NAMESPACE: libc::Ioctl = 0x4e40;
/// `NVME_IOCTL_ADMIN_CMD` of linux/nvme_ioctl.h, for the 72 bytes of [`PassthroughCommand`].
const ADMIN: libc::Ioctl = 0xc048_4e41_u32 as libc::Ioctl;

const GET_LOG_PAGE: u8 = 0x02;
/// Length of the log pages that [`nvme_log_page`] reads, bytes.
const LOG_PAGE: usize = 512;
/// Retain Asynchronous Event, in dword 10 of Get Log Page: reading clears no event that others wait for.
const RETAIN_EVENT: u32 = 1 << 15;
/// Number that stands for all namespaces.
const ALL_NAMESPACES: u32 = u32::MAX;

/// An admin command; everything else in it is 0.
#[derive(Default)]
pub(super) struct AdminCommand {
    pub(super) opcode: u8,
    pub(super) namespace: u32,
    pub(super) dword_10: u32,
    /// Time that it may take, ms; 0 for the kernel's default.
    pub(super) timeout_ms: u32,
}

/// `struct nvme_passthru_cmd` of linux/nvme_ioctl.h.
#[repr(C)]
#[derive(Default)]
struct PassthroughCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    dword_2: u32,
    dword_3: u32,
    metadata: u64,
    address: u64,
    metadata_length: u32,
    data_length: u32,
    dword_10: u32,
    dword_11: u32,
    dword_12: u32,
    dword_13: u32,
    dword_14: u32,
    dword_15: u32,
    timeout_ms: u32,
    result: u32,
}

/// A command that did not succeed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) why: String,
    /// Whether the drive may have begun the command.
    pub(super) is_sent: bool,
}

/// The first 512 bytes of a log page of an NVMe controller, for all of its namespaces. `None` for a page that the controller does not
/// offer, another device, or a process without CAP_SYS_ADMIN.
pub fn nvme_log_page(controller: &File, number: u8) -> Option<[u8; LOG_PAGE]> {
    let mut page = [0; LOG_PAGE];
    let last_dword = (LOG_PAGE / 4 - 1) as u32;
    let command = AdminCommand {
        opcode: GET_LOG_PAGE,
        namespace: ALL_NAMESPACES,
        dword_10: u32::from(number) | RETAIN_EVENT | (last_dword << 16),
        ..AdminCommand::default()
    };
    send(controller, command, &mut page).ok()?;
    Some(page)
}

/// Number of an NVMe namespace; `None` for any other device.
pub(super) fn namespace_of(file: &File) -> Option<u32> {
    // SAFETY: the request takes no argument and touches no memory of this process.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), NAMESPACE) };
    u32::try_from(answer).ok().filter(|number| *number > 0)
}

/// Sends a command whose answer has the length of `data`.
pub(super) fn send(file: &File, command: AdminCommand, data: &mut [u8]) -> Result<(), Failed> {
    let AdminCommand {
        opcode,
        namespace,
        dword_10,
        timeout_ms,
    } = command;
    let mut command = PassthroughCommand {
        opcode,
        namespace,
        dword_10,
        timeout_ms,
        address: data.as_mut_ptr().expose_provenance() as u64,
        data_length: u32::try_from(data.len()).unwrap_or(0),
        ..PassthroughCommand::default()
    };
    // SAFETY: the request reads and writes one `nvme_passthru_cmd`, whose layout `PassthroughCommand` has, and writes at most `data_length`
    // bytes to `address`: `data`, which is borrowed until the call returns.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), ADMIN, &raw mut command) };
    match answer {
        0 => Ok(()),
        status if status > 0 => Err(Failed {
            why: format!("NVMe status 0x{status:x}"),
            is_sent: true,
        }),
        _ => {
            let errno = of_std(&std::io::Error::last_os_error());
            Err(Failed {
                why: errno.to_string(),
                is_sent: ![Errno::ACCESS, Errno::PERM, Errno::NOTTY].contains(&errno),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_size_matches_its_request_number() {
        assert_eq!(
            size_of::<PassthroughCommand>(),
            ((ADMIN as usize) >> 16) & 0x3fff
        );
    }

    #[test]
    fn a_file_has_no_log_page() {
        let file = tempfile::tempfile().expect("a file");
        assert_eq!(nvme_log_page(&file, 2), None);
    }
}
