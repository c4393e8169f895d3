//! Verdict on direct I/O bypassing the page cache, by a probe.
//!
//! Content of the blocks: bytes that were never written are answered without a device.
//!
//! Probes of the ways to issue requests.

use super::super::TargetContent;
use super::super::facts::{Direct, Transfer};
use super::{Facts, Said, device, fine, folder, must_fix, shell_word, worth_knowing};
use crate::facts::Attempt;
use iolab_storage::TargetKind;
use iolab_workload::units::{format_bytes, format_percent};

/// Share of the bytes from which a transfer counts as having reached its destination.
const MOST: f64 = 0.95;

/// Share up to which it counts as not having reached it at all.
const NEXT_TO_NOTHING: f64 = 0.05;

/// Share of the range above which cached pages are not incidental; another reader may have left some.
const CACHED_FROM: f64 = 0.5;

/// Verdict on the counts of a transfer.
#[derive(Debug, Clone, PartialEq)]
enum DirectVerdict {
    Honoured,
    /// The page cache took part, with the evidence.
    Buffered(String),
    /// The counts are inconclusive, and are stated.
    Unclear(String),
}

/// Reports the probes of direct I/O in both directions.
pub(super) fn direct(facts: &Facts) -> Vec<Said> {
    match &facts.direct {
        None => Vec::new(),
        // The requests would not reach a device; other findings say so.
        _ if facts.place.is_memory => Vec::new(),
        _ if facts.device.as_ref().is_some_and(device::stores_nothing) => Vec::new(),
        Some(Direct::Refused(why)) => vec![worth_knowing(format!(
            "{why}; experiments go through the page cache, which is dropped before each trial"
        ))],
        Some(Direct::Tried {
            alignment,
            read,
            write,
        }) => {
            let mut findings = Vec::new();
            let tried = [("reads", Some(read)), ("writes", write.as_ref())];
            for (word, tried) in tried {
                findings.extend(tried.map(|tried| judged(facts, word, *alignment, tried)));
            }
            findings
        }
    }
}

fn judged(facts: &Facts, word: &str, alignment: u64, tried: &Result<Transfer, String>) -> Said {
    let transfer = match tried {
        Ok(transfer) => transfer,
        Err(why) => {
            return worth_knowing(format!("direct {word} were not tried: {why}"));
        }
    };
    let tried = format_bytes(transfer.bytes as f64);
    match verdict(transfer) {
        DirectVerdict::Honoured => fine(format!(
            "direct {word} reach the device: tried with {tried}, aligned to {alignment} bytes"
        )),
        DirectVerdict::Buffered(how) => {
            let finding = must_fix(format!(
                "O_DIRECT is accepted for {word} but not honoured: {how}"
            ));
            finding.remedy(remedy(facts))
        }
        DirectVerdict::Unclear(what) => worth_knowing(format!(
            "it is unknown whether direct {word} reach a disk: {what}"
        )),
    }
}

fn remedy(facts: &Facts) -> String {
    let named = shell_word(&facts.place.named);
    let kind = facts.file_system.as_ref().map(|fs| fs.kind.as_str());
    match kind {
        // Checksums make btrfs read direct I/O through the page cache; files without them are read directly.
        Some("btrfs") => {
            let folder = folder(&facts.place);
            format!("mkdir {folder}/nocow && chattr +C {folder}/nocow    # then measure there")
        }
        _ => format!("iolab study --buffered {named}"),
    }
}

fn verdict(transfer: &Transfer) -> DirectVerdict {
    let size = |bytes: u64| format_bytes(bytes as f64);
    let share = |bytes: u64| bytes as f64 / transfer.bytes.max(1) as f64;
    let tried = size(transfer.bytes);
    let holds = |cached| {
        format!(
            "of {tried}, the page cache holds {} afterwards",
            size(cached)
        )
    };
    let cached = transfer.cached_bytes.unwrap_or(0);
    // Earlier pages may be another reader's; only pages added by this transfer are evidence.
    let new = cached.saturating_sub(transfer.cached_before_bytes.unwrap_or(0));
    if share(new) >= CACHED_FROM {
        return DirectVerdict::Buffered(holds(cached));
    }
    let counts = [
        ("the process's account", transfer.process_bytes),
        ("the device's counters", transfer.device_bytes),
        ("the disks below it", transfer.disk_bytes),
    ];
    let known = counts
        .iter()
        .filter_map(|(who, bytes)| Some((*who, (*bytes)?)));
    let known: Vec<(&str, u64)> = known.collect();
    let all = |is_so: &dyn Fn(f64) -> bool| known.iter().all(|(_, n)| is_so(share(*n)));
    if known.is_empty() {
        return DirectVerdict::Unclear("neither the process nor a device has counters".to_owned());
    }
    if all(&|share| share >= MOST) {
        return DirectVerdict::Honoured;
    }
    let said: Vec<String> = known
        .iter()
        .map(|(who, n)| format!("{who} {}", size(*n)))
        .collect();
    let said = format!("of {tried}, {}", said.join(", "));
    match all(&|share| share <= NEXT_TO_NOTHING) {
        true if share(cached) >= CACHED_FROM => DirectVerdict::Buffered(holds(cached)),
        true if transfer.device_bytes.is_some() => DirectVerdict::Buffered(said),
        // Some file systems keep no account for the process, and some lie on no device that counts.
        true => DirectVerdict::Unclear(format!("{said}, and no device has counters")),
        false => DirectVerdict::Unclear(format!(
            "{said}; a cache, a hole or compression may be the cause"
        )),
    }
}

/// Share of empty bytes from which results change.
const EMPTY_SHARE: f64 = 0.01;

/// Space below which a scratch file means little, bytes.
const ROOM_MIN: u64 = 256 << 20;

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
    Some(match content_remedy(facts, content) {
        Some(content_remedy) => finding.remedy(content_remedy),
        None => finding,
    })
}

/// Command that makes a copy with all bytes written, if there is space for it.
fn content_remedy(facts: &Facts, content: &TargetContent) -> Option<String> {
    let room = facts.space?.room;
    if content.length.is_some_and(|length| length <= room) {
        let name = shell_word(&facts.place.named);
        let copy = shell_word(&format!("{}.full", facts.place.named));
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
        .map(|content| content.compressed_bytes)
        .filter(|bytes| *bytes > 0)
    {
        return Some(must_fix(format!("{} of the file are compressed: fewer bytes are read from the device than are delivered", format_bytes(bytes as f64)))
        .remedy(format!("btrfs property set {} compression none    # then write it anew", shell_word(&facts.place.named))));
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
    let content = facts.content.as_ref();
    content.filter(|content| content.set_encrypted)?;
    Some(worth_knowing(
        "the file system encrypts the data: part of every request is CPU time, and direct I/O may go through the page cache",
    ))
}

/// Backends that work.
pub(super) fn work(facts: &Facts) -> Option<Said> {
    let names: Vec<&str> = facts
        .backends
        .iter()
        .filter(|(_, attempt)| matches!(attempt, Attempt::Works(None)))
        .map(|(name, _)| name.as_str())
        .collect();
    if names.is_empty() {
        return None;
    }
    Some(fine(format!(
        "work here, each tried with one read: {}",
        names.join(", ")
    )))
}

/// Backends that fail, or do not work as requested.
pub(super) fn fail(facts: &Facts) -> Vec<Said> {
    facts
        .backends
        .iter()
        .filter_map(|(name, attempt)| {
            let (what, remedy) = match attempt {
                Attempt::Works(None) => return None,
                Attempt::Works(Some(remark)) => (format!("{name} works, but: {remark}"), None),
                Attempt::Fails(why, remedy) => {
                    (format!("{name} does not work here: {why}"), remedy.clone())
                }
            };
            let mut finding = worth_knowing(what);
            finding.remedy = remedy;
            Some(finding)
        })
        .collect()
}

/// Whether the target can be trimmed.
pub(super) fn trims(facts: &Facts) -> Option<Said> {
    match &facts.trims {
        None => None,
        Some(Attempt::Works(_)) => Some(fine("trims work (trim_percent)".to_owned())),
        Some(Attempt::Fails(why, _)) => Some(fine(format!("trim_percent cannot be used: {why}"))),
    }
}
