//! Signatures found by `blkid`, where it is installed: it knows more formats than iolab's table, and newer
//! ones.

use std::fs::File;

use super::super::{lent_descriptor, system_tools};

/// blkid's names that differ from iolab's; all others are lowercased.
const OURS: &[(&str, &str)] = &[
    ("crypto_LUKS", "luks"),
    ("LVM1_member", "lvm2"),
    ("LVM2_member", "lvm2"),
    ("linux_raid_member", "mdraid"),
    ("isw_raid_member", "isw-raid"),
    ("ddf_raid_member", "ddf-raid"),
    ("zfs_member", "zfs"),
    ("DM_integrity", "integrity"),
    ("DM_verity_hash", "verity"),
    ("VMFS_volume_member", "vmfs"),
    ("ceph_bluestore", "bluestore"),
    ("ext4dev", "ext4"),
    ("hfsplus", "hfs+"),
    ("squashfs3", "squashfs"),
    ("swsuspend", "swap"),
    ("DM_snapshot_cow", "snapshot"),
    ("dos", "mbr"),
    ("PMBR", "gpt"),
    ("mac", "apm"),
];

/// Formats that blkid finds in `length` bytes of an open file or device from byte `start`; empty if it is not
/// installed.
pub(super) fn names(file: &File, start: u64, length: u64) -> Vec<String> {
    let Ok(place) = lent_descriptor::descriptor(file) else {
        return Vec::new();
    };
    let (start, length) = (start.to_string(), length.to_string());
    let arguments = ["-p", "-o", "export", "-O", &start, "-S", &length, &place];
    match system_tools::output("blkid", &arguments) {
        Some(output) if output.code == Some(0) => parse(&output.stdout),
        // blkid sees several formats and does not say which.
        Some(output) if output.code == Some(8) => vec!["ambivalent".to_owned()],
        _ => Vec::new(),
    }
}

/// Whether blkid knows a format by this name of iolab's.
pub(super) fn knows(name: &str) -> bool {
    const TABLES: [&str; 7] = [
        "aix", "ambivalent", "atari", "minix", "solaris_x86", "ultrix", "unixware",
    ];
    let listed = || system_tools::output("blkid", &["-k"]);
    TABLES.contains(&name)
        || listed().is_some_and(|output| {
            output
                .stdout
                .lines()
                .any(|known| ours(known.trim()) == name)
        })
}

/// iolab's name for a name of blkid's.
pub(super) fn ours(name: &str) -> String {
    let ours = OURS
        .iter()
        .find(|(theirs, _)| theirs.eq_ignore_ascii_case(name));
    ours.map_or_else(|| name.to_ascii_lowercase(), |(_, ours)| (*ours).to_owned())
}

fn parse(output: &str) -> Vec<String> {
    output
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(key, _)| matches!(*key, "TYPE" | "PTTYPE"))
        .map(|(_, name)| ours(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ours_where_we_have_one() {
        let printed = "DEVNAME=/dev/sda\nPTUUID=1\nPTTYPE=dos\n";
        assert_eq!(parse(printed), ["mbr"]);
        let printed = "LOGUUID=1\nUSAGE=other\nTYPE=xfs_external_log\n";
        assert_eq!(parse(printed), ["xfs_external_log"]);
        assert_eq!(
            parse("TYPE=BitLocker\nTYPE=LVM2_member"),
            ["bitlocker", "lvm2"]
        );
        assert_eq!(parse(""), [] as [String; 0]);
    }
}
