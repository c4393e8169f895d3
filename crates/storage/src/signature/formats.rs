//! Table of formats: the positions of their magic numbers, and further conditions.

use super::At::{End, Part, Start};
use super::{At, Format, Found, Probe};
use iolab_workload::table;

const fn format(
    name: &'static str,
    places: &'static [At],
    magics: &'static [&'static [u8]],
) -> Format {
    Format {
        name,
        places,
        magics,
        check: |_, _| Ok(true),
        part_of: &[],
    }
}

const fn checked(
    name: &'static str,
    places: &'static [At],
    magics: &'static [&'static [u8]],
    check: fn(&Probe, u64) -> Found<bool>,
) -> Format {
    Format {
        check,
        ..format(name, places, magics)
    }
}

const fn end(back: u64, align: u64) -> At {
    End {
        back,
        align,
        plus: 0,
    }
}

const LUKS_BACKUPS: &[At] = &[
    Start(0x4000),
    Start(0x8000),
    Start(0x1_0000),
    Start(0x2_0000),
    Start(0x4_0000),
    Start(0x8_0000),
    Start(0x10_0000),
    Start(0x20_0000),
    Start(0x40_0000),
];
const ZFS_FIRST_PAIR: &[At] = &[
    Start(0x4014),
    Start(0x4_4014),
    End {
        back: 0x8_0000,
        align: 0x4_0000,
        plus: 0x4014,
    },
    End {
        back: 0x4_0000,
        align: 0x4_0000,
        plus: 0x4014,
    },
];
/// Position of the magic number in an ext superblock.
const EXT_AT: u64 = 0x38;
/// The first superblock, then the copies in the first groups that have one (`sparse_super`), with blocks of 1,
/// 2 and 4 KiB.
const EXT: &[At] = &[
    Start(1024 + EXT_AT),
    ext_copy(1, 10),
    ext_copy(3, 10),
    ext_copy(5, 10),
    ext_copy(7, 10),
    ext_copy(9, 10),
    ext_copy(25, 10),
    ext_copy(27, 10),
    ext_copy(1, 11),
    ext_copy(3, 11),
    ext_copy(5, 11),
    ext_copy(7, 11),
    ext_copy(9, 11),
    ext_copy(25, 11),
    ext_copy(27, 11),
    ext_copy(1, 12),
    ext_copy(3, 12),
    ext_copy(5, 12),
    ext_copy(7, 12),
    ext_copy(9, 12),
    ext_copy(25, 12),
    ext_copy(27, 12),
];

/// Position of an ext superblock's copy. A group has eight blocks for each byte of a block; with the smallest
/// block size, the first block is the boot sector's.
const fn ext_copy(group: u64, block_bits: u32) -> At {
    let first = if block_bits == 10 { 1024 } else { 0 };
    Start((group << (2 * block_bits + 3)) + first + EXT_AT)
}

/// The first superblock, and the one of the second allocation group, for this number of groups on the target.
const XFS: &[At] = &[
    Start(0),
    Part(2),
    Part(3),
    Part(4),
    Part(5),
    Part(6),
    Part(8),
    Part(10),
    Part(12),
    Part(16),
    Part(20),
    Part(24),
    Part(28),
    Part(32),
    Part(36),
    Part(40),
    Part(48),
    Part(56),
    Part(64),
];
const EXT_MAGIC: &[&[u8]] = &[&[0x53, 0xef]];
const BOOT: &[At] = &[Start(510)];
const BOOT_MAGIC: &[&[u8]] = &[&[0x55, 0xaa]];

/// All formats that iolab knows.
pub(super) const FORMATS: &[Format] = &table! {
    checked("ext2", EXT, EXT_MAGIC, |p, at| is_ext(p, at, "ext2"));
    checked("ext3", EXT, EXT_MAGIC, |p, at| is_ext(p, at, "ext3"));
    checked("ext4", EXT, EXT_MAGIC, |p, at| is_ext(p, at, "ext4"));
    format("xfs", XFS, &[b"XFSB"]);
    // Roots of the trees of free inodes, of owners and of shared blocks, after the first four blocks.
    format("xfs", &[Start(4 << 12)], &[b"FIB3"]);
    format("xfs", &[Start(5 << 12)], &[b"RMB3", b"R3FC"]);
    format("xfs", &[Start(6 << 12)], &[b"R3FC"]);
    // Log of an XFS file system with a separate log device.
    Format { part_of: &["xfs"], ..checked("xfs_external_log", &[Start(0)], &[b""], has_xfs_log) };
    // Journal of an ext3 or ext4 file system with a separate journal device.
    checked("jbd", &[Start(1024 + EXT_AT)], EXT_MAGIC, |p, _| { Ok(p.u32(0x460)? & JOURNAL_DEVICE != 0) });
    format("zonefs", &[Start(0)], &[b"SFOZ"]);
    format("romfs", &[Start(0)], &[b"-rom1fs-"]);
    format("snapshot", &[Start(0)], &[b"SnAp"]);
    format("btrfs", &[Start(0x1_0040), Start(0x400_0040), Start(0x40_0000_0040)], &[b"_BHRfS_M"]);
    format("gpt", &[Start(512), Start(1024), Start(2048), Start(4096), end(512, 512), end(1024, 1024), end(2048, 2048), end(4096, 4096)],
        &[b"EFI PART"]);
    Format { part_of: &["gpt", "vfat", "exfat", "ntfs", "bitlocker", "refs"], ..checked("mbr", BOOT, BOOT_MAGIC, has_partitions) };
    format("vfat", &[Start(54)], &[b"FAT12   ", b"FAT16   ", b"FAT     "]);
    // Boot sector, and its copy in the seventh sector.
    format("vfat", &[Start(82), Start(6 * 512 + 82)], &[b"FAT32   "]);
    checked("vfat", BOOT, BOOT_MAGIC, is_fat_boot_sector);
    format("exfat", &[Start(3), Start(12 * 512 + 3), Start(12 * 4096 + 3)], &[b"EXFAT   "]);
    format("ntfs", &[Start(3), End { back: 512, align: 512, plus: 3 }], &[b"NTFS    "]);
    format("bitlocker", &[Start(3)], &[b"-FVE-FS-"]);
    format("refs", &[Start(3)], &[b"ReFS\0\0\0\0"]);
    // Ten bytes before the end of the first page, for each page size in use.
    format("swap", &[Start(4086), Start(8182), Start(16374), Start(32758), Start(65526)],
        &[b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND\0", b"S2SUSPEND\0"]);
    format("luks", &[Start(0)], &[b"LUKS\xba\xbe"]);
    format("luks", LUKS_BACKUPS, &[b"SKUL\xba\xbe"]);
    format("lvm2", &[Start(0), Start(512), Start(1024), Start(1536)], &[b"LABELONE"]);
    // Metadata area, after the label.
    format("lvm2", &[Start(4100)], &[b" LVM2 x[5A%r0N*>"]);
    // Versions 1.1, 1.2, 1.0 and 0.9.
    format("mdraid", &[Start(0), Start(4096), end(8192, 4096), end(65536, 65536)], &[b"\xfc\x4e\x2b\xa9", b"\xa9\x2b\x4e\xfc"]);
    format("isw-raid", &[end(1024, 512)], &[b"Intel Raid ISM Cfg Sig. "]);
    format("ddf-raid", &[end(512, 512)], &[b"\xde\x11\xde\x11"]);
    format("iso9660", &[Start(32769)], &[b"CD001"]);
    format("udf", &[Start(34817), Start(36865), Start(38913)], &[b"NSR02", b"NSR03"]);
    format("squashfs", &[Start(0)], &[b"hsqs", b"sqsh"]);
    format("cramfs", &[Start(0)], &[b"\x45\x3d\xcd\x28", b"\x28\xcd\x3d\x45"]);
    format("f2fs", &[Start(1024), Start(4096 + 1024)], &[b"\x10\x20\xf5\xf2"]);
    format("erofs", &[Start(1024)], &[b"\xe2\xe1\xf5\xe0"]);
    format("zfs", ZFS_FIRST_PAIR, &[b"\0\0\0\x07version"]);
    format("zfs", &[Start(0x2_0000)], &[b"\x0c\xb1\xba\0", b"\0\xba\xb1\x0c"]);
    format("bcache", &[Start(4120)], &[b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"]);
    format("bcachefs", &[Start(4120)], &[b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"]);
    format("jfs", &[Start(32768), Start(61440)], &[b"JFS1"]);
    format("reiserfs", &[Start(65588), Start(8244)], &[b"ReIsErFs", b"ReIsEr2Fs", b"ReIsEr3Fs"]);
    format("reiser4", &[Start(65536)], &[b"ReIsEr4"]);
    checked("nilfs2", &[Start(1030), End { back: 4096, align: 4096, plus: 6 }], &[b"\x34\x34"], |p, at| Ok(p.u32(at - 6)? == 2));
    format("ocfs2", &[Start(1024), Start(2048), Start(4096), Start(8192)], &[b"OCFSV2"]);
    format("gfs2", &[Start(65536)], &[b"\x01\x16\x19\x70"]);
    format("ufs", &[Start(9564), Start(66908)], &[b"\x54\x19\x01\0", b"\x19\x01\x54\x19"]);
    format("bluestore", &[Start(0)], &[b"bluestore block device\n"]);
    format("oracleasm", &[Start(32)], &[b"ORCLDISK"]);
    format("stratis", &[Start(516), Start(4612)], &[b"!Stra0tis\x86\xff\x02^\x41rh"]);
    format("vmfs", &[Start(0x10_0000)], &[b"\x0d\xd0\x01\xc0"]);
    format("vmfs", &[Start(0x20_0000)], &[b"\x5e\xf1\xab\x2f"]);
    format("apfs", &[Start(32)], &[b"NXSB"]);
    format("hfs+", &[Start(1024), end(1024, 512)], &[b"H+\0\x04", b"HX\0\x05"]);
    checked("hfs", &[Start(1024)], &[b"BD"], |p, _| Ok(p.u32(1044)? != 0));
    format("apm", &[Start(512), Start(1024), Start(2048), Start(4096)], &[b"PM\0\0"]);
    checked("sun", &[Start(508)], &[b"\xda\xbe"], |p, _| { sums_up::<2>(p, |sum, word| sum ^ word) });
    checked("sgi", &[Start(0)], &[b"\x0b\xe5\xa9\x41"], |p, _| { sums_up::<4>(p, u32::wrapping_add) });
    format("bsd", &[Start(0), Start(64), Start(512)], &[b"\x57\x45\x56\x82"]);
    format("ldm", &[Start(0xc00)], &[b"PRIVHEAD"]);
    format("vdo", &[Start(0)], &[b"dmvdo001"]);
    format("integrity", &[Start(0)], &[b"integrt\0"]);
    // Metadata of device-mapper targets (drivers/md of Linux: dm-thin-metadata.c and so on).
    format("dm-thin", &[Start(32)], &[b"\xba\x52\x9c\x01\0\0\0\0"]);
    format("dm-cache", &[Start(32)], &[b"\x03\xc4\x18\0\0\0\0\0"]);
    format("dm-era", &[Start(32)], &[b"\x7b\x07\xc1\x7e\0\0\0\0"]);
    format("dm-clone", &[Start(32)], &[b"\x64\x7f\xf2\x8a\0\0\0\0"]);
    format("dm-writecache", &[Start(0)], &[b"\x21\x93\x48\x23"]);
    format("dm-zoned", &[Start(0)], &[b"DBZD"]);
    format("dm-raid", &[Start(0)], &[b"DmRd"]);
    format("dm-mirror", &[Start(0)], &[b"rRiM"]);
    format("dm-log-writes", &[Start(0)], &[b"rhswfsj\0"]);
    format("verity", &[Start(0)], &[b"verity\0\0"]);
    format("qcow2", &[Start(0)], &[b"QFI\xfb"]);
    format("qed", &[Start(0)], &[b"QED\0"]);
    format("parallels", &[Start(0)], &[b"WithoutFreeSpace", b"WithouFreSpacExt"]);
    format("vmdk", &[Start(0)], &[b"KDMV", b"COWD", b"# Disk DescriptorFile"]);
    format("vdi", &[Start(64)], &[b"\x7f\x10\xda\xbe"]);
    format("vhdx", &[Start(0)], &[b"vhdxfile"]);
    format("vhd", &[Start(0), end(512, 512)], &[b"conectix"]);
};

/// Whether the big-endian words of the first sector add up to zero, as in the labels of Sun and SGI.
fn sums_up<const N: usize>(probe: &Probe, plus: fn(u32, u32) -> u32) -> Found<bool> {
    let sector: [u8; 512] = probe.bytes(0)?;
    let word = |bytes: &[u8; N]| {
        bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u32::from(*byte))
    };
    let words = sector.as_chunks::<N>().0.iter().map(word);
    Ok(words.fold(0, plus) == 0)
}

/// Feature flag (incompat) of an ext file system that is only a journal.
const JOURNAL_DEVICE: u32 = 0x8;

/// Whether one of the first sectors has the header of a log record, as libblkid looks for it.
fn has_xfs_log(probe: &Probe, _: u64) -> Found<bool> {
    const SECTOR: usize = 512;
    const MAGIC: [u8; 4] = [0xfe, 0xed, 0xba, 0xbe];
    let mut bytes = vec![0; (256 << 10).min(probe.length as usize) / SECTOR * SECTOR];
    if !probe.read(0, &mut bytes)? {
        return Ok(false);
    }
    let is_record =
        |sector: &[u8]| sector.starts_with(&MAGIC) && matches!(sector[8..12], [0, 0, 0, 1 | 2]);
    Ok(bytes.chunks_exact(SECTOR).any(is_record))
}

/// Distinguishes ext2, ext3 and ext4 by their feature flags, as libblkid does, in the superblock with its magic
/// number at `at`. A copy names the group that it is in.
fn is_ext(probe: &Probe, at: u64, name: &str) -> Found<bool> {
    const HAS_JOURNAL: u32 = 0x4;
    /// Features of ext3: filetype, recover, journal_dev, meta_bg; sparse_super, large_file, btree_dir.
    const INCOMPAT_EXT3: u32 = 0x2 | 0x4 | 0x8 | 0x10;
    const RO_COMPAT_EXT3: u32 = 0x1 | 0x2 | 0x4;
    let base = at - EXT_AT;
    let word = |offset: u64| probe.u32(base + offset);
    let (log_block_size, revision) = (word(0x18)?, word(0x4c)?);
    if log_block_size > 6 || revision > 1 || word(0x60)? & JOURNAL_DEVICE != 0 {
        return Ok(false);
    }
    let group = u64::from(u16::from_le_bytes(probe.bytes(base + 0x5a)?));
    if base != 1024 && group != base >> (2 * (log_block_size + 10) + 3) {
        return Ok(false);
    }
    let newer = word(0x60)? & !INCOMPAT_EXT3 != 0 || word(0x64)? & !RO_COMPAT_EXT3 != 0;
    let journal = word(0x5c)? & HAS_JOURNAL != 0;
    Ok(name
        == match (newer, journal) {
            (true, _) => "ext4",
            (false, true) => "ext3",
            (false, false) => "ext2",
        })
}

/// Whether the four entries are plausible as a partition table, and at least one is in use.
fn has_partitions(probe: &Probe, _: u64) -> Found<bool> {
    let mut table = [0; 64];
    if !probe.read(446, &mut table)? {
        return Ok(false);
    }
    let entries = || table.as_chunks::<16>().0.iter();
    let plausible = entries().all(|entry| matches!(entry[0], 0 | 0x80));
    let used = entries().any(|entry| entry[4] != 0 && entry[12..16] != [0; 4]);
    Ok(plausible && used)
}

/// Whether the boot sector has the parameters of a FAT file system without a type string.
fn is_fat_boot_sector(probe: &Probe, _: u64) -> Found<bool> {
    let mut sector = [0; 32];
    if !probe.read(0, &mut sector)? {
        return Ok(false);
    }
    let sector_size = u16::from_le_bytes([sector[11], sector[12]]);
    let reserved = u16::from_le_bytes([sector[14], sector[15]]);
    Ok(matches!(sector[0], 0xeb | 0xe9)
        && matches!(sector_size, 512 | 1024 | 2048 | 4096)
        && sector[13].is_power_of_two()
        && reserved != 0
        && matches!(sector[16], 1 | 2)
        && sector[21] >= 0xf0)
}
