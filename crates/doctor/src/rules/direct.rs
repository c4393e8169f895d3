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

#[cfg(test)]
mod tests {
    use super::super::super::Severity::{Fine, MustFix, WorthKnowing};
    use super::super::testing::only;
    use super::*;
    use iolab_storage::FileSystem;
    use iolab_storage::TargetKind;

    const BYTES: u64 = 4 << 20;

    fn transfer(process: Option<u64>, device: Option<u64>, cached: Option<u64>) -> Transfer {
        Transfer {
            bytes: BYTES,
            process_bytes: process,
            device_bytes: device,
            disk_bytes: None,
            cached_before_bytes: Some(0),
            cached_bytes: cached,
        }
    }

    fn read(read: Result<Transfer, String>) -> Facts {
        Facts {
            direct: Some(Direct::Tried {
                alignment: 512,
                read,
                write: None,
            }),
            ..Facts::default()
        }
    }

    #[test]
    fn what_reached_the_device_is_honoured() {
        let all = Some(BYTES);
        for counted in [
            transfer(all, all, Some(0)),
            transfer(all, Some(BYTES * 2), Some(4096)),
            transfer(all, None, None),
            transfer(None, all, None),
        ] {
            assert_eq!(only(direct(&read(Ok(counted)))).0, Fine, "{counted:?}");
        }
    }

    #[test]
    fn requests_to_what_stores_nothing_reach_no_device() {
        let all = Some(BYTES);
        let mut facts = read(Ok(transfer(all, all, Some(0))));
        facts.device = Some(iolab_host::device::Device {
            layer: Some("zero".to_owned()),
            ..Default::default()
        });
        assert_eq!(direct(&facts), []);
    }

    #[test]
    fn a_file_system_that_buffers_is_caught() {
        let all = Some(BYTES);
        let told = [
            // Fetched into the page cache, and left there.
            transfer(all, all, all),
            // Served from a cache.
            transfer(Some(0), Some(0), Some(0)),
            transfer(Some(0), Some(4096), None),
        ]
        .map(|counted| {
            let (severity, what, remedy) = only(direct(&read(Ok(counted))));
            assert_eq!(severity, MustFix, "{counted:?}");
            assert!(remedy.is_some(), "{what}");
            what
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        O_DIRECT is accepted for reads but not honoured: of 4 MiB, the page cache holds 4 MiB afterwards
        O_DIRECT is accepted for reads but not honoured: of 4 MiB, the process's account 0 B, the device's counters 0 B
        O_DIRECT is accepted for reads but not honoured: of 4 MiB, the process's account 0 B, the device's counters 4 KiB
        ");
    }

    #[test]
    fn the_remedy_for_btrfs_names_a_folder() {
        let told = [
            (TargetKind::File, "data"),
            (TargetKind::File, "/mnt/a b/data"),
            (TargetKind::Scratch, "/mnt"),
        ]
        .map(|(kind, named)| {
            let mut facts = read(Ok(transfer(Some(0), Some(0), Some(0))));
            facts.place.kind = kind;
            facts.place.named = named.to_owned();
            facts.file_system = Some(FileSystem {
                kind: "btrfs".to_owned(),
                mount_point: "/mnt".into(),
                mount_options: String::new(),
                source: String::new(),
            });
            only(direct(&facts)).2.expect("a remedy")
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        mkdir ./nocow && chattr +C ./nocow    # then measure there
        mkdir '/mnt/a b'/nocow && chattr +C '/mnt/a b'/nocow    # then measure there
        mkdir /mnt/nocow && chattr +C /mnt/nocow    # then measure there
        ");
    }

    #[test]
    fn pages_of_another_reader_are_no_proof() {
        let all = Some(BYTES);
        let before = |counted: Transfer| Transfer {
            cached_before_bytes: all,
            ..counted
        };
        let honoured = before(transfer(all, all, all));
        assert_eq!(only(direct(&read(Ok(honoured)))).0, Fine);
        // A file system in memory: always in the page cache, and without counters.
        let memory = before(transfer(Some(0), None, all));
        assert_eq!(only(direct(&read(Ok(memory)))).0, MustFix);
    }

    #[test]
    fn what_nobody_counts_is_not_judged() {
        let mut told = Vec::new();
        for counted in [
            transfer(None, None, None),
            transfer(Some(0), None, Some(0)),
            transfer(Some(0), Some(BYTES), Some(0)),
        ] {
            told.push(only(direct(&read(Ok(counted)))));
        }
        assert!(told.iter().all(|(severity, ..)| *severity == WorthKnowing));
        let told: Vec<String> = told.into_iter().map(|(_, what, _)| what).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        it is unknown whether direct reads reach a disk: neither the process nor a device has counters
        it is unknown whether direct reads reach a disk: of 4 MiB, the process's account 0 B, and no device has counters
        it is unknown whether direct reads reach a disk: of 4 MiB, the process's account 0 B, the device's counters 4 MiB; a cache, a hole or compression may be the cause
        ");
        let (severity, what, _) = only(direct(&read(Err("it is too small".to_owned()))));
        assert_eq!(severity, WorthKnowing);
        insta::assert_snapshot!(what, @"direct reads were not tried: it is too small");
    }

    #[test]
    fn device_may_hide_reads_from_lower_disks() {
        let all = Some(BYTES);
        let looped = Transfer {
            disk_bytes: Some(0),
            ..transfer(all, all, Some(0))
        };
        let half = transfer(Some(BYTES / 2), Some(BYTES / 2), Some(0));
        assert_eq!(only(direct(&read(Ok(half)))).0, WorthKnowing);
        let (severity, what, _) = only(direct(&read(Ok(looped))));
        assert_eq!(severity, WorthKnowing);
        insta::assert_snapshot!(what, @"it is unknown whether direct reads reach a disk: of 4 MiB, the process's account 4 MiB, the device's counters 4 MiB, the disks below it 0 B; a cache, a hole or compression may be the cause");
    }

    #[test]
    fn refused_direct_io_is_reported_except_in_memory() {
        let mut facts = Facts::default();
        assert!(direct(&facts).is_empty());
        facts.direct = Some(Direct::Refused("no O_DIRECT".to_owned()));
        let (severity, _, remedy) = only(direct(&facts));
        assert_eq!((severity, remedy), (WorthKnowing, None));
        facts.place.is_memory = true;
        assert!(direct(&facts).is_empty());
    }
}
