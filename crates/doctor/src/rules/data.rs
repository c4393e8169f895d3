//! Content of the blocks: bytes that were never written are answered without a device.

use iolab_storage::TargetKind;

use super::super::TargetContent;
use super::{Facts, Said, fine, folder, must_fix, quoted, worth_knowing};
use iolab_workload::quantity::{format_bytes, format_percent};

/// Share of empty bytes from which results change.
const EMPTY_SHARE: f64 = 0.01;
/// Space below which a scratch file means little, bytes.
const ROOM_MIN: u64 = 256 << 20;
/// Mean size of pieces below which large requests are split, bytes.
const PIECE_MIN: u64 = 1 << 20;
/// File systems with a mount option for compression.
const COMPRESSING: [&str; 4] = [
    "compress", "compress-force", "compress_algorithm", "compression",
];

/// Content of an existing file or device; `None` for a directory, whose scratch file is filled.
fn existing(facts: &Facts) -> Option<&TargetContent> {
    let is_there = matches!(facts.place.kind, TargetKind::File | TargetKind::BlockDevice);
    facts.content.as_ref().filter(|_| is_there)
}

/// Reports holes, and space that is only reserved.
pub(super) fn written(facts: &Facts) -> Option<Said> {
    let content = existing(facts).filter(|content| content.looked_bytes > 0)?;
    if content.empty_bytes == 0 {
        return Some(fine("every byte was written"));
    }
    let share = content.empty_bytes as f64 / content.looked_bytes as f64;
    // Reserved space takes storage, a hole does not.
    let written = content.looked_bytes - content.empty_bytes;
    let reserved = content
        .allocated_bytes
        .is_some_and(|bytes| bytes.saturating_sub(written) >= content.empty_bytes / 2);
    let how = match reserved {
        true => "is only reserved and was never written",
        false => "is a hole",
    };
    let what = format!(
        "{} of {} ({}) {how}: it reads as zeros without any device",
        format_bytes(content.empty_bytes as f64),
        format_bytes(content.looked_bytes as f64),
        format_percent(share)
    );
    let finding = if share >= EMPTY_SHARE {
        must_fix(what)
    } else {
        worth_knowing(what)
    };
    Some(match remedy(facts, content) {
        Some(remedy) => finding.remedy(remedy),
        None => finding,
    })
}

/// Command that makes a copy with all bytes written, if there is space for it.
fn remedy(facts: &Facts, content: &TargetContent) -> Option<String> {
    let room = facts.space?.room;
    if content.length.is_some_and(|length| length <= room) {
        let name = quoted(&facts.place.named);
        let copy = quoted(&format!("{}.full", facts.place.named));
        return Some(format!(
            "cp --sparse=never --reflink=never --no-clobber {name} {copy}    # then measure the copy"
        ));
    }
    let folder = folder(&facts.place);
    (room >= ROOM_MIN).then(|| {
        format!("iolab study {folder}    # measures a scratch file that fits, written in full")
    })
}

/// Reports blocks of a device with only zeros: trimmed ones are answered without touching the medium.
pub(super) fn zeros(facts: &Facts) -> Option<Said> {
    let (looked, zeros) = existing(facts).and_then(|content| content.zero_blocks)?;
    let what = format!("{zeros} of {looked} sampled blocks hold only zeros");
    Some(if zeros * 4 >= looked {
        worth_knowing(format!(
            "{what}: most devices answer reads of blocks that were never written, or were trimmed, without accessing the medium"
        ))
    } else {
        fine(what)
    })
}

/// Reports compression: fewer bytes reach the device than requested.
pub(super) fn compressed(facts: &Facts) -> Option<Said> {
    let content = facts.content.as_ref()?;
    if let Some(bytes) = existing(facts)
        .and_then(|content| content.layout)
        .map(|layout| layout.compressed_bytes)
        .filter(|bytes| *bytes > 0)
    {
        return Some(must_fix(format!("{} of the file are compressed: fewer bytes are read from the device than are delivered", format_bytes(bytes as f64)))
        .remedy(format!("btrfs property set {} compression none    # then write it anew", quoted(&facts.place.named))));
    }
    let option = facts.file_system.as_ref().and_then(|fs| {
        fs.mount_options.split(',').find(|option| {
            let name = option.split('=').next().unwrap_or(option);
            COMPRESSING.contains(&name)
        })
    });
    let why = match (content.set_compressed, option) {
        (true, _) => "files here are set to be compressed".to_owned(),
        (false, Some(option)) => format!("mounted with {option}"),
        (false, None) => return None,
    };
    Some(worth_knowing(format!(
        "{why}: what iolab writes by default cannot be compressed, but trying takes CPU time, and compressible=100 would measure the compressor"
    )))
}

/// Reports encryption by the file system.
pub(super) fn encrypted(facts: &Facts) -> Option<Said> {
    let is_encrypted = |content: &&TargetContent| {
        content.set_encrypted || content.layout.is_some_and(|l| l.encrypted_bytes > 0)
    };
    facts.content.as_ref().filter(is_encrypted)?;
    Some(worth_knowing(
        "the file system encrypts the data: part of every request is CPU time, and direct I/O may go through the page cache",
    ))
}

/// Reports extents that belong to several files.
pub(super) fn shared(facts: &Facts) -> Option<Said> {
    let bytes = existing(facts)
        .and_then(|content| content.layout)
        .map(|layout| layout.shared_bytes)
        .filter(|bytes| *bytes > 0)?;
    Some(worth_knowing(format!(
        "{} of the file are shared with other files (reflinks, snapshots): the first write to each part copies it",
        format_bytes(bytes as f64)
    )))
}

/// Reports a file in many small pieces; a scratch file counts too, since its directory would keep any file like
/// that.
pub(super) fn fragmented(facts: &Facts) -> Option<Said> {
    let layout = facts.content.as_ref().and_then(|content| content.layout);
    let layout = layout.filter(|layout| layout.pieces > 1)?;
    let average = layout.written_bytes / layout.pieces;
    if average >= PIECE_MIN {
        return None;
    }
    let whose = match facts.place.kind {
        TargetKind::Scratch => "files made here lie",
        _ => "the file lies",
    };
    Some(worth_knowing(format!(
        "{whose} in pieces of {} on average ({} of them): larger requests are split",
        format_bytes(average as f64),
        layout.pieces
    )))
}
