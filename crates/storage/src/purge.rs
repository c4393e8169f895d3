//! Purges of a whole device by the command Format NVM of an NVMe namespace, with the setting that erases user
//! data.
//!
//! Source: NVM Express Base Specification 2.0c, sections 5.14 (Format NVM) and 5.17 (Identify), NVM Command Set Specification 1.0c,
//! section 4.1.5.1 (Identify Namespace). Other commands that purge (Sanitize, ATA SECURITY ERASE UNIT) outlast the process that sends
//! them, reach other namespaces, or lock the drive where they are interrupted: iolab does not send them.
//!
//! Admin commands of NVMe drives, by the ioctl of the kernel's driver.
//!
//! Source: NVM Express Base Specification 2.0c, section 5.16 (Get Log Page); linux/nvme_ioctl.h.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::errno::of_std;
use super::sysfs::{Number, number_of, text_of, value};
use super::{Target, TargetKind};
use iolab_workload::units::format_bytes;
use iolab_workload::{Error, Result};

const IDENTIFY: u8 = 0x06;

const FORMAT_NVM: u8 = 0x80;

/// Length of the answer to Identify, bytes.
const PAGE: usize = 4096;

/// CNS of Identify for the data structures of a namespace, and of the controller.
const OF_NAMESPACE: u32 = 0;

const OF_CONTROLLER: u32 = 1;

/// Secure erase setting 1, user data erase, in dword 10 of Format NVM.
const ERASE_USER_DATA: u32 = 1 << 9;

/// Longest time that a drive may take: large ones erase for minutes, and the kernel resets the controller after
/// that.
pub const PURGE_MAX: Duration = Duration::from_secs(4 * 3600);

/// A purge that a device supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purge {
    namespace: u32,
    /// Dword 10 of Format NVM: the present format of the namespace, and the kind of erasure.
    format: u32,
    /// Bytes of the namespace, all of which are erased.
    bytes: u64,
    /// Model name that the disk reports.
    model: Option<String>,
}

impl Purge {
    /// Erased bytes: all of the device, whatever part of it the run uses.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Name, size and model of the erased device, for messages.
    pub fn subject(&self, target: &Target) -> String {
        let model = self.model.as_deref().unwrap_or("model unknown");
        let size = format_bytes(self.bytes as f64);
        format!("{} ({size}, {model})", target.named().display())
    }

    /// Purges the whole device of a target, which has to be open for writing. Waits for the end, and returns
    /// the time taken.
    ///
    /// # Errors
    /// Of kind [`Failed`](iolab_workload::Kind::Failed): the answer of the drive or the kernel.
    pub fn carry_out(&self, target: &Target) -> Result<Duration> {
        let failed = |Failed { why, is_sent }| {
            let error = Error::failed(format!(
                "{}: NVMe Format NVM, user data erase, failed: {why}",
                target.named().display()
            ));
            match is_sent {
                true => error.hint("the contents are undefined now. Look at dmesg, format the drive by its maker's tool, or leave out purge"),
                false => error.hint("nothing was sent to the drive. Run iolab as root, or leave out purge"),
            }
        };
        let unsent = |why: String| Failed {
            why,
            is_sent: false,
        };
        let flags = rustix::fs::fcntl_getfl(target.file())
            .map_err(|error| failed(unsent(error.to_string())))?;
        if !flags.contains(rustix::fs::OFlags::RDWR) {
            return Err(failed(unsent("it is not open for writing".to_owned())));
        }
        let command = AdminCommand {
            opcode: FORMAT_NVM,
            namespace: self.namespace,
            dword_10: self.format,
            timeout_ms: u32::try_from(PURGE_MAX.as_millis()).unwrap_or(u32::MAX),
            ..AdminCommand::default()
        };
        let began = Instant::now();
        send(target.file(), command, &mut []).map_err(failed)?;
        Ok(began.elapsed())
    }
}

impl Target {
    /// Whether the target is an NVMe namespace, the only kind of device that can be purged.
    pub fn is_nvme_namespace(&self) -> bool {
        self.block_number().is_some_and(is_namespace)
    }

    /// Purge that the target's device supports.
    ///
    /// # Errors
    /// The reason why there is none, in words that follow the name of the target.
    pub fn purge(&self) -> std::result::Result<Purge, String> {
        let number = match self.kind() {
            TargetKind::BlockDevice => self.block_number(),
            TargetKind::Scratch | TargetKind::File | TargetKind::CharDevice => None,
        };
        let folder = folder_of(number.ok_or("is not a block device")?);
        if folder.join("partition").exists() {
            return Err("is a partition, and a purge reaches all of its disk".to_owned());
        }
        let (nsid, bytes) = namespace_in(&folder)?;
        let file = self.file();
        let namespace = namespace_of(file)
            .filter(|own| u64::from(*own) == nsid)
            .ok_or("is not an NVMe namespace")?;
        let page = |of| identify(file, namespace, of);
        let unknown = |failed: Failed| format!("does not say what it offers: {}", failed.why);
        let controller = page(OF_CONTROLLER).map_err(unknown)?;
        let own = page(OF_NAMESPACE).map_err(unknown)?;
        if capacity(&own) != Some(bytes) {
            return Err("has another size than its NVMe namespace".to_owned());
        }
        let format = format(&controller, &own).map_err(str::to_owned)?;
        Ok(Purge {
            namespace,
            format,
            bytes,
            model: text_of(folder.join("device/model")),
        })
    }
}

/// As [`Target::is_nvme_namespace`], for the object at a path.
pub fn is_nvme_namespace(path: &Path) -> bool {
    let number = rustix::fs::stat(path)
        .ok()
        .and_then(|stat| number_of(&stat));
    number.is_some_and(is_namespace)
}

fn is_namespace(number: Number) -> bool {
    namespace_number(&folder_of(number)).is_some()
}

/// Folder of a block device in sysfs.
fn folder_of((major, minor): Number) -> PathBuf {
    Path::new("/sys/dev/block").join(format!("{major}:{minor}"))
}

/// Number of the namespace, which only the kernel's own node of a namespace has.
fn namespace_number(folder: &Path) -> Option<u64> {
    value(folder.join("nsid"))
}

/// Number and size in bytes of the namespace at a folder of sysfs. Other devices are refused: one that stands
/// on a disk (device mapper) passes commands on to that disk, and would erase its other data too.
fn namespace_in(folder: &Path) -> std::result::Result<(u64, u64), String> {
    let nsid = namespace_number(folder).ok_or("is not an NVMe namespace")?;
    // Units of 512 bytes, whatever the device's block size.
    let sectors = value(folder.join("size")).ok_or("does not say its size")?;
    let names = |of: &Path| {
        let entries = std::fs::read_dir(of)
            .map_err(|error| format!("does not say what stands on it: {error}"))?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(|error| format!("does not say what stands on it: {error}"))
    };
    if !names(&folder.join("holders"))?.is_empty() {
        return Err("carries other devices".to_owned());
    }
    if names(folder)?
        .iter()
        .any(|entry| entry.join("partition").exists())
    {
        return Err("has partitions".to_owned());
    }
    Ok((nsid, sectors.saturating_mul(512)))
}

/// Size of a namespace by its own data structure, bytes; `None` for an impossible size.
fn capacity(own: &[u8; PAGE]) -> Option<u64> {
    let mut blocks = [0; 8];
    blocks.copy_from_slice(&own[..8]);
    let sizes = usize::from(own[26]);
    let format = (sizes & 0xf) | (((sizes >> 5) & 0b11) << 4);
    let block = 1_u64.checked_shl(u32::from(own[128 + 4 * format + 2]))?;
    u64::from_le_bytes(blocks).checked_mul(block)
}

/// Dword 10 of the command that purges a namespace, by the data structures of its controller and its own.
fn format(controller: &[u8; PAGE], own: &[u8; PAGE]) -> std::result::Result<u32, &'static str> {
    let optional_commands = u16::from_le_bytes([controller[256], controller[257]]);
    let namespaces = u32::from_le_bytes([
        controller[516], controller[517], controller[518], controller[519],
    ]);
    let format_attributes = controller[524];
    if optional_commands & 0b10 == 0 {
        return Err("does not offer Format NVM");
    }
    // A format (bit 0) or an erasure (bit 1) covers all namespaces.
    if format_attributes & 0b11 != 0 && namespaces != 1 {
        return Err("shares its controller with other namespaces, which Format NVM erases too");
    }
    if own[30] & 1 != 0 {
        return Err("may be attached to other controllers, and so to other hosts");
    }
    let (sizes, protection) = (u32::from(own[26]), u32::from(own[29]));
    // The present format, with its metadata and protection, so that only the contents change.
    let format = (sizes & 0xf)
        | (((sizes >> 4) & 1) << 4)
        | ((protection & 0b111) << 5)
        | (((protection >> 3) & 1) << 8)
        | (((sizes >> 5) & 0b11) << 12);
    Ok(format | ERASE_USER_DATA)
}

fn identify(
    file: &File,
    namespace: u32,
    structure: u32,
) -> std::result::Result<Box<[u8; PAGE]>, Failed> {
    let mut page = Box::new([0; PAGE]);
    let command = AdminCommand {
        opcode: IDENTIFY,
        namespace: if structure == OF_NAMESPACE {
            namespace
        } else {
            0
        },
        dword_10: structure,
        ..AdminCommand::default()
    };
    send(file, command, &mut page[..])?;
    Ok(page)
}

/// `NVME_IOCTL_ID` of linux/nvme_ioctl.h: number of a block device's namespace.
const NAMESPACE: libc::Ioctl = 0x4e40;

/// `NVME_IOCTL_ADMIN_CMD` of linux/nvme_ioctl.h, for the 72 bytes of [`AdminCommand`].
const ADMIN: libc::Ioctl = 0xc048_4e41_u32 as libc::Ioctl;

const GET_LOG_PAGE: u8 = 0x02;

/// Length of the log pages that [`nvme_log_page`] reads, bytes.
const LOG_PAGE: usize = 512;

/// Retain Asynchronous Event, in dword 10 of Get Log Page: reading clears no event that others wait for.
const RETAIN_EVENT: u32 = 1 << 15;

/// Number that stands for all namespaces.
const ALL_NAMESPACES: u32 = u32::MAX;

/// `struct nvme_passthru_cmd` of linux/nvme_ioctl.h: an admin command.
#[repr(C)]
#[derive(Default)]
struct AdminCommand {
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
    /// Time that it may take, ms; 0 for the kernel's default.
    timeout_ms: u32,
    result: u32,
}

/// A command that did not succeed.
#[derive(Debug)]
struct Failed {
    why: String,
    /// Whether the drive may have begun the command.
    is_sent: bool,
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
fn namespace_of(file: &File) -> Option<u32> {
    // SAFETY: the request takes no argument and touches no memory of this process.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), NAMESPACE) };
    u32::try_from(answer).ok().filter(|number| *number > 0)
}

/// Sends a command whose answer has the length of `data`.
fn send(
    file: &File,
    mut command: AdminCommand,
    data: &mut [u8],
) -> std::result::Result<(), Failed> {
    command.address = data.as_mut_ptr().expose_provenance() as u64;
    command.data_length = u32::try_from(data.len()).unwrap_or(0);
    // SAFETY: the request reads and writes one `nvme_passthru_cmd`, whose layout `AdminCommand` has, and writes at most `data_length`
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

    /// A controller that supports Format NVM, with this many namespaces and format attributes.
    fn controller(namespaces: u32, attributes: u8) -> [u8; PAGE] {
        let mut page = [0; PAGE];
        page[256] = 0b10;
        page[516..520].copy_from_slice(&namespaces.to_le_bytes());
        page[524] = attributes;
        page
    }

    #[test]
    fn a_purge_keeps_the_format_of_its_namespace() {
        let mut own = [0; PAGE];
        // Format 2 of the first 16, metadata at the end of the block, protection type 1 in its first bytes.
        (own[26], own[29]) = (0b1_0010, 0b1001);
        let first = format(&controller(8, 0b100), &own);
        assert_eq!(first, Ok(0x2 | (1 << 4) | (1 << 5) | (1 << 8) | (1 << 9)));
        // Format 33 of 64.
        (own[26], own[29]) = (0b100_0001, 0);
        assert_eq!(
            format(&controller(1, 0b11), &own),
            Ok(1 | (1 << 9) | (2 << 12))
        );
    }

    #[test]
    fn shared_or_unsupported_purges_are_refused() {
        let own = [0; PAGE];
        for attributes in [0b01, 0b10] {
            let several = format(&controller(2, attributes), &own);
            assert!(several.is_err(), "{attributes:b}");
        }
        let mut shared = own;
        shared[30] = 1;
        assert!(format(&controller(1, 0), &shared).is_err());
        let mut without = controller(1, 0);
        without[256] = 0b1101;
        assert!(format(&without, &own).is_err());
    }

    #[test]
    fn a_namespace_has_the_blocks_of_its_format() {
        let mut own = [0; PAGE];
        own[..8].copy_from_slice(&262_144_u64.to_le_bytes());
        // 512 bytes in format 0, 4096 in format 33.
        (own[130], own[128 + 4 * 33 + 2]) = (9, 12);
        assert_eq!(capacity(&own), Some(128 << 20));
        own[26] = 0b100_0001;
        assert_eq!(capacity(&own), Some(1 << 30));
        own[128 + 4 * 33 + 2] = 64;
        assert_eq!(capacity(&own), None);
    }

    #[test]
    fn only_a_free_namespace_is_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        let write = |name: &str, text: &str| std::fs::write(at.join(name), text).expect("written");
        write("size", "262144\n");
        // Device mapper, partitions and bcache lack the number of a namespace.
        std::fs::create_dir(at.join("holders")).expect("made");
        assert!(namespace_in(at).is_err());
        write("nsid", "1\n");
        assert_eq!(namespace_in(at), Ok((1, 128 << 20)));
        write("holders/dm-0", "");
        assert!(namespace_in(at).is_err());
        std::fs::remove_file(at.join("holders/dm-0")).expect("removed");
        std::fs::create_dir(at.join("p1")).expect("made");
        write("p1/partition", "1\n");
        assert!(namespace_in(at).is_err());
        std::fs::remove_dir_all(at.join("p1")).expect("removed");
        std::fs::remove_dir(at.join("holders")).expect("removed");
        assert!(namespace_in(at).is_err());
        assert!(namespace_in(&at.join("nowhere")).is_err());
    }

    #[test]
    fn a_file_is_no_namespace() {
        let file = tempfile::tempfile().expect("a file");
        assert_eq!(namespace_of(&file), None);
        assert_eq!(nvme_log_page(&file, 2), None);
        let refused = identify(&file, 1, OF_CONTROLLER);
        assert!(refused.is_err_and(|failed| !failed.is_sent));
    }

    #[test]
    fn command_size_matches_its_request_number() {
        assert_eq!(size_of::<AdminCommand>(), ((ADMIN as usize) >> 16) & 0x3fff);
    }
}
