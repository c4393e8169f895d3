//! The target and its file system.

use iolab_storage::TargetKind;

use super::{Facts, Said, fine, must_fix, quoted, worth_knowing};
use iolab_workload::quantity::{format_bytes, format_percent};
use iolab_workload::table;

/// Share of free space below which file systems and drives behave differently.
const FREE_SHARE_LOW: f64 = 0.1;

/// Names the target: its kind, size and file system.
pub(super) fn what(facts: &Facts) -> Option<Said> {
    let place = &facts.place;
    let size = place.bytes.map_or(String::new(), |bytes| {
        format!(" of {}", format_bytes(bytes as f64))
    });
    let what = match place.kind {
        TargetKind::Scratch => {
            "a directory: scratch files are made in it and removed at the end".to_owned()
        }
        TargetKind::File => format!("a file{size}"),
        TargetKind::BlockDevice => format!("a block device{size}"),
        TargetKind::CharDevice => "a character device".to_owned(),
    };
    let on = facts.file_system.as_ref().map_or(String::new(), |fs| {
        // The source of an overlay's mount is an arbitrary name; its layers are reported separately.
        let source = match facts.layering {
            Some(_) => String::new(),
            None => format!(" of {}", fs.source),
        };
        format!(
            "; {}{source}, mounted at {}",
            fs.kind,
            fs.mount_point.display()
        )
    });
    Some(fine(format!("{what}{on}")))
}

/// Warns of targets in memory.
pub(super) fn memory(facts: &Facts) -> Option<Said> {
    if !facts.place.is_memory {
        return None;
    }
    let kind = match &facts.file_system {
        Some(fs) if facts.layering.is_some() => {
            format!("the layer of this {} lies in memory", fs.kind)
        }
        Some(fs) => format!("{} lives in memory", fs.kind),
        None => format!("{} is not storage", facts.place.named),
    };
    let finding = must_fix(format!(
        "{kind}: what is measured here is memory, not a device"
    ));
    Some(finding.remedy("findmnt --real    # choose a directory on one of these"))
}

/// Reports file systems that pass requests on to something else.
pub(super) fn kind_of_file_system(facts: &Facts) -> Option<Said> {
    let fs = facts.file_system.as_ref()?;
    let kind = fs.kind.as_str();
    let what = match kind {
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" | "lustre" | "afs"
        | "glusterfs" => {
            "the data is on a server or a host: its caches, its network and its other clients affect every result, and no block device counts the bytes"
        }
        "zfs" => "zfs has its own cache, which dropping the page cache does not empty",
        _ if kind.starts_with("fuse") => {
            "requests pass through a program in user space, which may cache, reorder or serialise them"
        }
        _ => return None,
    };
    Some(worth_knowing(format!("{kind}: {what}")))
}

/// Reports mount options that change results.
pub(super) fn mount_options(facts: &Facts) -> Vec<Said> {
    const KNOWN: [(&str, &str); 7] = table! {
        ("sync", "every write is synchronous, whatever the experiment asks for");
        ("nobarrier", "fsync does not flush the device's cache: synced writes are fast but not durable");
        ("barrier=0", "fsync does not flush the device's cache: synced writes are fast but not durable");
        ("data=journal", "data is written twice, and O_DIRECT goes through the page cache");
        ("dax", "files bypass the page cache: hot and cold are the same");
        ("dax=always", "files bypass the page cache: hot and cold are the same");
        ("discard", "the file system trims deleted files at once, which can disturb the next run: pause between runs (--settle 10s)");
    };
    let Some(fs) = &facts.file_system else {
        return Vec::new();
    };
    let options: Vec<&str> = fs.mount_options.split(',').collect();
    KNOWN
        .iter()
        .filter(|(option, _)| options.contains(option))
        .map(|(option, meaning)| worth_knowing(format!("mounted with {option}: {meaning}")))
        .collect()
}

/// Reports too little space for the scratch file, and a nearly full file system.
pub(super) fn space(facts: &Facts) -> Option<Said> {
    let space = facts.space.filter(|space| space.total > 0)?;
    let share = space.free as f64 / space.total as f64;
    let free = format!(
        "{} of {} are free ({})",
        format_bytes(space.free as f64),
        format_bytes(space.total as f64),
        format_percent(share)
    );
    let makes_files = facts.place.kind == TargetKind::Scratch;
    let finding = if makes_files && space.free < facts.region_bytes {
        let wanted = format_bytes(facts.region_bytes as f64);
        worth_knowing(format!("{free}: less than the {wanted} that the default experiments use; they use a smaller region"))
        .remedy(format!("du -xhd1 {}    # see what takes the space", mount_point(facts)))
    } else if share < FREE_SHARE_LOW {
        worth_knowing(format!("{free}: nearly full file systems break files up, and nearly full drives write more slowly"))
        .remedy(format!("du -xhd1 {}    # see what takes the space", mount_point(facts)))
    } else {
        fine(free)
    };
    Some(finding)
}

fn mount_point(facts: &Facts) -> String {
    let point = facts
        .file_system
        .as_ref()
        .map(|fs| fs.mount_point.display());
    quoted(&point.map_or_else(|| facts.place.named.clone(), |point| point.to_string()))
}
