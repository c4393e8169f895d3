//! Verdict on direct I/O bypassing the page cache, by a probe.

use super::super::facts::{Direct, Transfer};
use super::{Facts, Said, device, fine, folder, must_fix, quoted, worth_knowing};
use iolab_workload::quantity::format_bytes;

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
    let named = quoted(&facts.place.named);
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
