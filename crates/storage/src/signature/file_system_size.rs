//! Size that a file system states; bytes beyond it are not its own. Offsets are from the superblocks in the
//! headers of Linux (fs/ext4/ext4.h, fs/xfs/libxfs/xfs_format.h, uapi/linux/btrfs_tree.h) and of mkswap.

use super::{Found, Probe};

/// Size of a format from its start, bytes; `None` if it states none, or an impossible one.
pub(super) fn of(name: &str, probe: &Probe) -> Found<Option<u64>> {
    let bytes = match name {
        "ext2" | "ext3" | "ext4" => ext(probe)?,
        "xfs" => {
            let block = u64::from(u32::from_be_bytes(probe.bytes(4)?));
            u64::from_be_bytes(probe.bytes(8)?).checked_mul(block)
        }
        // Size on this device alone, where there are several.
        "btrfs" => Some(u64::from_le_bytes(probe.bytes(0x1_0000 + 0xc9 + 8)?)),
        "swap" => swap(probe)?,
        _ => None,
    };
    // At least the end of the superblock.
    Ok(bytes.filter(|bytes| *bytes >= 128 << 10))
}

fn ext(probe: &Probe) -> Found<Option<u64>> {
    const IS_64BIT: u32 = 0x80;
    let high = match probe.u32(0x460)? & IS_64BIT {
        0 => 0,
        _ => u64::from(probe.u32(0x550)?),
    };
    let blocks = u64::from(probe.u32(0x404)?) | high << 32;
    let block = 1024u64.checked_shl(probe.u32(0x418)?);
    Ok(block.and_then(|block| blocks.checked_mul(block)))
}

/// Size of a swap area, bytes. The header counts pages, and its magic number ends the first page, whatever the
/// page size where it was made.
fn swap(probe: &Probe) -> Found<Option<u64>> {
    for page in [4_096, 8_192, 16_384, 32_768, 65_536] {
        if probe.bytes(page - 10)? == *b"SWAPSPACE2" {
            let last_page = u64::from(probe.u32(1028)?);
            return Ok((last_page + 1).checked_mul(page));
        }
    }
    Ok(None)
}
