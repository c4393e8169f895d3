//! Chunks of btrfs. Its extents name places in an address space of its own, which chunks map to devices
//! (`BTRFS_IOC_TREE_SEARCH` of the chunk tree, linux/btrfs_tree.h). Only root may ask.

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::ioctl::opcode;

/// `BTRFS_CHUNK_TREE_OBJECTID`, `BTRFS_FIRST_CHUNK_TREE_OBJECTID` and `BTRFS_CHUNK_ITEM_KEY` of linux/btrfs_tree.h.
const CHUNK_TREE: u64 = 3;
const FIRST_CHUNK_TREE: u64 = 256;
const CHUNK_ITEM: u32 = 228;
/// `BTRFS_BLOCK_GROUP_DATA`.
const DATA: u64 = 1;
/// Bytes of `struct btrfs_ioctl_search_header`.
const HEADER: usize = 32;
/// Positions in `struct btrfs_chunk`: length, type, number of stripes, and device and offset of the first
/// stripe.
const LENGTH: usize = 0;
const TYPE: usize = 24;
const STRIPES: usize = 44;
const DEVICE: usize = 48;
const OFFSET: usize = 56;

/// `struct btrfs_ioctl_search_key` of linux/btrfs.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct SearchKey {
    tree_id: u64,
    min_objectid: u64,
    max_objectid: u64,
    min_offset: u64,
    max_offset: u64,
    min_transid: u64,
    max_transid: u64,
    min_type: u32,
    max_type: u32,
    nr_items: u32,
    unused: u32,
    unused_more: [u64; 4],
}

/// `struct btrfs_ioctl_search_args`.
#[repr(C)]
struct SearchArgs {
    key: SearchKey,
    items: [u8; 4096 - size_of::<SearchKey>()],
}

/// Contiguous bytes, in the address space of a file system and on its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) logical: u64,
    pub(super) bytes: u64,
    /// First byte on the device.
    pub(super) physical: u64,
}

/// An item of the chunk tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChunkItem {
    chunk: Chunk,
    is_data: bool,
    stripes: u16,
    device: u64,
}

/// Data chunks of the file system that a file lies on, in ascending order.
///
/// # Errors
/// The reason why they are unknown, in a few words.
pub(super) fn data_chunks(file: &File) -> Result<Vec<Chunk>, &'static str> {
    of_data(&all(file)?)
}

fn of_data(items: &[ChunkItem]) -> Result<Vec<Chunk>, &'static str> {
    let device = items.first().map(|item| item.device);
    if items.iter().any(|item| Some(item.device) != device) {
        return Err("this btrfs lies on several devices");
    }
    let data = || items.iter().filter(|item| item.is_data);
    match data().all(|item| item.stripes == 1) {
        true => Ok(data().map(|item| item.chunk).collect()),
        false => Err("this btrfs keeps its data more than once, or striped"),
    }
}

fn all(file: &File) -> Result<Vec<ChunkItem>, &'static str> {
    const REFUSED: &str = "btrfs does not tell its chunks (only root may ask)";
    let mut items = Vec::new();
    let mut from = 0;
    loop {
        let mut args = SearchArgs {
            key: SearchKey {
                tree_id: CHUNK_TREE,
                min_objectid: FIRST_CHUNK_TREE,
                max_objectid: FIRST_CHUNK_TREE,
                min_offset: from,
                max_offset: u64::MAX,
                max_transid: u64::MAX,
                min_type: CHUNK_ITEM,
                max_type: CHUNK_ITEM,
                nr_items: u32::MAX,
                ..SearchKey::default()
            },
            items: [0; 4096 - size_of::<SearchKey>()],
        };
        const REQUEST: rustix::ioctl::Opcode = opcode::read_write::<SearchArgs>(0x94, 17);
        // SAFETY: the argument is laid out as in linux/btrfs.h, 4096 bytes, and outlives the call, which writes nothing beyond it.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), REQUEST as _, &raw mut args) };
        if result != 0 {
            return Err(REFUSED);
        }
        if args.key.nr_items == 0 {
            return Ok(items);
        }
        let found = items_of(&args.items, args.key.nr_items).ok_or(REFUSED)?;
        let last = found.last().ok_or(REFUSED)?.chunk.logical;
        items.extend(found);
        from = last + 1;
    }
}

/// Parses `count` items, each after its header.
fn items_of(mut bytes: &[u8], count: u32) -> Option<Vec<ChunkItem>> {
    let mut items = Vec::new();
    for _ in 0..count {
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        let length = u32::from_ne_bytes(header.get(28..32)?.try_into().ok()?);
        let (item, rest) = rest.split_at_checked(length as usize)?;
        let number = |at: usize| Some(u64::from_le_bytes(item.get(at..at + 8)?.try_into().ok()?));
        items.push(ChunkItem {
            chunk: Chunk {
                logical: u64::from_ne_bytes(header.get(16..24)?.try_into().ok()?),
                bytes: number(LENGTH)?,
                physical: number(OFFSET)?,
            },
            is_data: number(TYPE)? & DATA != 0,
            stripes: u16::from_le_bytes(item.get(STRIPES..STRIPES + 2)?.try_into().ok()?),
            device: number(DEVICE)?,
        });
        bytes = rest;
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_are_as_large_as_the_kernels() {
        assert_eq!(size_of::<SearchKey>(), 104);
        assert_eq!(size_of::<SearchArgs>(), 4096);
    }

    fn item(logical: u64, kind: u64, stripes: u16, device: u64) -> Vec<u8> {
        let mut bytes = vec![0; HEADER + 80];
        bytes[16..24].copy_from_slice(&logical.to_ne_bytes());
        bytes[28..32].copy_from_slice(&80u32.to_ne_bytes());
        let at = |field: usize| HEADER + field;
        bytes[at(LENGTH)..at(LENGTH) + 8].copy_from_slice(&4096u64.to_le_bytes());
        bytes[at(TYPE)..at(TYPE) + 8].copy_from_slice(&kind.to_le_bytes());
        bytes[at(STRIPES)..at(STRIPES) + 2].copy_from_slice(&stripes.to_le_bytes());
        bytes[at(DEVICE)..at(DEVICE) + 8].copy_from_slice(&device.to_le_bytes());
        bytes[at(OFFSET)..at(OFFSET) + 8].copy_from_slice(&(logical + 100).to_le_bytes());
        bytes
    }

    fn chunks(items: &[Vec<u8>]) -> Result<Vec<u64>, &'static str> {
        let items = items_of(&items.concat(), items.len() as u32).expect("items");
        let chunks = of_data(&items)?.into_iter();
        Ok(chunks.map(|chunk| chunk.physical).collect())
    }

    #[test]
    fn data_with_copies_or_other_devices_is_unknown() {
        let (data, twice_metadata) = (item(1 << 30, DATA, 1, 1), item(1 << 20, 4, 2, 1));
        assert_eq!(
            chunks(&[data.clone(), twice_metadata]),
            Ok(vec![(1 << 30) + 100])
        );
        assert!(chunks(&[data.clone(), item(0, DATA, 2, 1)]).is_err());
        assert!(chunks(&[data.clone(), item(0, 4, 1, 2)]).is_err());
        assert_eq!(items_of(&data[..60], 1), None);
        assert_eq!(items_of(&data, 2), None);
    }
}
