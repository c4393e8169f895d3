//! The sentences of an observation, one for each claim, and its claims as data for other programs.

use crate::notation::clean;
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::{evidence, short};
use crate::claims::ClaimData;
use crate::data_column::{IOLAB_VERSION, SCHEMA};
use crate::findings::FindingKind;
use crate::rows::json_object;
use iolab_analysis::claim::Role;
use iolab_analysis::witness::{
    Asked, Bounds, Direction, Evidence, Flushes, NOTEWORTHY, OtherUse, Reading, Transfer, Unknown,
    WitnessClaim,
};
use iolab_figure::labels::capital;
use iolab_record::{ServedBy, ServedVerdict};
use iolab_workload::escape_control::escape_control;
use iolab_workload::region_state::Medium;
use iolab_workload::units::{counted, format_bytes, format_percent_of_whole};
use iolab_workload::witness::{Observed, Subject};

/// Subject of the clauses; `None` for devices, whose clauses name them.
pub(crate) fn subject(evidence: &Evidence) -> Option<String> {
    match &evidence.observed.subject {
        Subject::Devices => None,
        Subject::Program(command) => Some(short(command)),
        Subject::Process { pid, command } => Some(format!("{} (PID {pid})", short(command))),
    }
}

/// A claim as a separate sentence.
pub(super) fn sentence(claim: &WitnessClaim<'_>, evidence: &Evidence) -> String {
    let clause = clause(claim, evidence);
    match subject(evidence) {
        Some(subject) => format!("{subject}: {clause}."),
        None => clause + ".",
    }
}

/// A claim as a sentence that follows others about the same subject, without its full stop.
pub(super) fn further(claim: &WitnessClaim<'_>, evidence: &Evidence) -> String {
    let clause = clause(claim, evidence);
    match claim {
        // These begin with the name of a device or a tool, or as a sentence.
        WitnessClaim::Flushes(_)
        | WitnessClaim::Overstated { .. }
        | WitnessClaim::DeviceLoad { .. }
        | WitnessClaim::MostIo(_) => clause,
        WitnessClaim::NothingOfNote
        | WitnessClaim::Served { .. }
        | WitnessClaim::Syncs(_)
        | WitnessClaim::OtherUse(_) => capital(&clause),
    }
}

/// A claim as a part of a sentence.
pub(super) fn clause(claim: &WitnessClaim<'_>, evidence: &Evidence) -> String {
    match claim {
        WitnessClaim::NothingOfNote => format!(
            "storage carried less than {} for it",
            format_bytes(NOTEWORTHY as f64)
        ),
        WitnessClaim::Served {
            transfer: Transfer::Read,
            direction,
            verdict,
            ..
        } => reads(direction, verdict, evidence),
        WitnessClaim::Served {
            transfer: Transfer::Write,
            direction,
            verdict,
            ..
        } => writes(direction, verdict, evidence),
        WitnessClaim::Flushes(all) => flushes(all, evidence),
        WitnessClaim::Syncs(trace) => evidence::syncs(trace),
        WitnessClaim::OtherUse(other) => others(*other, evidence),
        WitnessClaim::Overstated {
            tool,
            transfer,
            claimed,
            carried,
        } => evidence::contradiction(
            tool,
            *transfer,
            *claimed,
            *carried,
            &device_of(evidence, *transfer),
        ),
        WitnessClaim::DeviceLoad { device, load } => {
            evidence::load(device, *load, evidence.observed.observed_ns)
        }
        WitnessClaim::MostIo(command) => {
            format!("Most I/O on any disk: {}", evidence::in_words(command))
        }
    }
}

/// Names of the devices that carried bytes of this direction.
fn device_of(evidence: &Evidence, transfer: Transfer) -> String {
    named(&evidence.devices_of(transfer))
}

fn named(devices: &[String]) -> String {
    match devices {
        [] => "storage".to_owned(),
        devices => devices.join(" and "),
    }
}

fn reads(reads: &Direction, verdict: &ServedVerdict, evidence: &Evidence) -> String {
    let device = &device_of(evidence, Transfer::Read);
    // With pipes among its processes, all that its calls read counts, although the pipes served a part.
    let asked = match reads.asked {
        Asked::Bytes(bytes) => format!("the {} that it read", format_bytes(bytes.most as f64)),
        _ => "the bytes that it read".to_owned(),
    };
    let source = source(reads, device);
    let ways = &evidence.observed.ways;
    let others = [
        ("holes of its files", may_have_holes(&evidence.observed)),
        ("its own pipes", ways.inner_pipes),
    ];
    let others = others.into_iter().filter(|(_, may_be)| *may_be);
    let others = others.map(|(what, _)| format!(" or from {what}"));
    let cache = &format!("the page cache{}", others.collect::<String>());
    if let Some(sent) = over_network(evidence, Transfer::Read, verdict) {
        return format!(
            "{sent} of {asked} came over the network from a file server, and the rest from {cache}"
        );
    }
    match verdict.served_by {
        ServedBy::Device => format!("{} {asked} came from {source}", share_read(reads, verdict)),
        ServedBy::PageCache | ServedBy::Mixed if !ways.reads.is_direct() && is_none(verdict) => {
            format!("all of {asked} came from {cache}")
        }
        ServedBy::PageCache | ServedBy::Mixed if !ways.reads.is_direct() => format!(
            "{} {asked} came from {source}, and the rest from {cache}",
            share_read(reads, verdict)
        ),
        ServedBy::Hole => {
            format!("{asked} lie in holes, which read as zeros without any storage")
        }
        ServedBy::NotStorage => format!("{asked} came from memory, not from storage"),
        ServedBy::Network => format!("a file server over the network served {asked}"),
        _ if may_be_faults(reads) => format!(
            "{} {asked} came from {source}: {}",
            share_read(reads, verdict),
            verdict.reason
        ),
        _ => {
            let least = match reads.asked {
                Asked::Unknown {
                    why: Unknown::Missing,
                    ..
                } => "at least ",
                _ => "",
            };
            let moved = reads.moved.map_or_else(String::new, |moved| {
                let moved = format_bytes(moved as f64);
                format!("storage carried {least}{moved} for it; ")
            });
            format!(
                "{moved}where {asked} came from is unknown: {}",
                verdict.reason
            )
        }
    }
}

/// Whether its share is open only because page faults may have fetched bytes that storage carried.
fn may_be_faults(reads: &Direction) -> bool {
    let is_asked = matches!(reads.asked, Asked::Bytes(bytes) if bytes.least == bytes.most);
    let by_calls = reads.by_calls;
    is_asked && by_calls.is_some_and(|bytes| bytes.least < bytes.most)
}

/// Whether its reads may come from holes: no `--on` names the file, and a file that it read has less space than
/// bytes.
fn may_have_holes(observed: &Observed) -> bool {
    let mut read = observed.files.iter().filter(|file| file.is_read);
    observed.target.is_none()
        && read.any(|file| {
            let allocated = file.allocated_bytes;
            allocated.is_some_and(|allocated| allocated < file.bytes)
        })
}

fn writes(writes: &Direction, verdict: &ServedVerdict, evidence: &Evidence) -> String {
    let device = &written_to(writes, verdict, evidence);
    let discarded = discarded(evidence);
    let kept = match discarded {
        Some(_) => " and kept",
        None => "",
    };
    // Its calls may have written more: data that is overwritten in the page cache is sent once.
    let wrote = match Reading::of(&evidence.observed).medium(Transfer::Write) {
        Medium::Storage => "sent to storage",
        Medium::Memory | Medium::Elsewhere => "wrote",
    };
    let asked = match writes.asked {
        Asked::Bytes(written) if written.is_known_within(written.most) => format!(
            "the {} that it {wrote}{kept}",
            format_bytes(written.most as f64)
        ),
        // Bounds are omitted if it may have kept nothing, if nothing follows from them, or if they are far
        // apart.
        Asked::Bytes(written)
            if written.least < NOTEWORTHY.max(written.most / 2)
                || verdict.served_by == ServedBy::Unknown =>
        {
            "its writes".to_owned()
        }
        Asked::Bytes(written) => format!("the {} that it {wrote}{kept}", evidence::bounds(written)),
        _ => "the bytes that it wrote".to_owned(),
    };
    let owed = evidence
        .owed
        .filter(|owed| *owed > 0)
        .map_or(String::new(), |owed| {
            format!(
                ", and {} had still to be written back",
                format_bytes(owed as f64)
            )
        });
    let discarded = discarded.map_or(String::new(), |discarded| {
        format!(". It discarded {} unwritten", evidence::bounds(discarded))
    });
    if let Some(sent) = over_network(evidence, Transfer::Write, verdict) {
        return format!(
            "{sent} of {asked} had gone over the network to a file server at its end{owed}{discarded}"
        );
    }
    match verdict.served_by {
        ServedBy::Device => format!(
            "{} {asked} reached {device}{owed}{discarded}",
            share_written(writes, verdict, evidence.owed)
        ),
        ServedBy::PageCache | ServedBy::Mixed if !evidence.observed.ways.writes.is_direct() => {
            format!(
                "{} {asked} had reached {device} at its end{owed}{discarded}",
                share_written(writes, verdict, evidence.owed)
            )
        }
        ServedBy::NotStorage => format!("{asked} went to memory, not to storage"),
        ServedBy::Network => format!("{asked} went to a file server over the network"),
        _ => format!("where {asked} went is unknown: {}", verdict.reason),
    }
}

/// Names of the devices that it wrote to, or of the disks below if these carried less. A file in between may
/// hold the bytes that only the device counts.
fn written_to(writes: &Direction, verdict: &ServedVerdict, evidence: &Evidence) -> String {
    let device = device_of(evidence, Transfer::Write);
    let asked = match writes.asked {
        Asked::Bytes(written) => written.most as f64,
        Asked::Nothing | Asked::Unknown { .. } => return device,
    };
    let carried = writes.carried.map_or(0.0, |carried| carried.least as f64);
    let in_file = evidence.observed.devices.iter().any(|one| one.in_file);
    match verdict.device_fraction {
        Some(share) if in_file && carried > (share + 0.05) * asked => {
            format!("the disks below {device}")
        }
        _ => device,
    }
}

/// Bytes that it wrote to the page cache and that were discarded before they reached storage, for instance with
/// their file. `None` below the noteworthy amount.
fn discarded(evidence: &Evidence) -> Option<Bounds> {
    let cancelled = evidence.observed.processes.cancelled_write_bytes;
    // The owner of pages that were dirty before it started is unknown.
    let found = match evidence.writes.asked {
        Asked::Bytes(written) => written.most - written.least,
        Asked::Nothing | Asked::Unknown { .. } => return None,
    };
    (cancelled >= NOTEWORTHY).then(|| Bounds {
        least: cancelled.saturating_sub(found),
        most: cancelled,
    })
}

/// Share of the program's bytes that went over the network, if the page cache of this machine served the rest.
/// Bounded by what all processes used of the mount, and by the program's accounts.
fn over_network(
    evidence: &Evidence,
    transfer: Transfer,
    verdict: &ServedVerdict,
) -> Option<String> {
    let observed = &evidence.observed;
    let is_elsewhere = Reading::of(observed).medium(transfer) == Medium::Elsewhere;
    if verdict.served_by != ServedBy::Mixed || !is_elsewhere {
        return None;
    }
    let (nfs, io) = observed.nfs.zip(observed.processes.io)?;
    let bytes = match transfer {
        Transfer::Read => nfs.read_bytes.min(io.read_bytes),
        Transfer::Write => nfs.write_bytes.min(io.write_bytes),
    };
    Some(format_bytes(bytes as f64))
}

/// Whether the device carried nothing of note.
fn is_none(verdict: &ServedVerdict) -> bool {
    verdict.device_fraction.is_some_and(|share| share < 0.0005)
}

/// The share of the device, as the subject of a sentence: `all of`, `12 % of`.
fn share(verdict: &ServedVerdict) -> String {
    match verdict.device_fraction {
        Some(share) if share >= 1.0 => "all of".to_owned(),
        Some(share) if share >= 0.9995 => "nearly all of".to_owned(),
        Some(_) if is_none(verdict) => "none of".to_owned(),
        Some(share) => format!("{} of", format_percent_of_whole(share)),
        None => "an unknown share of".to_owned(),
    }
}

/// Share of reads that storage carried, if page faults can have fetched a part of it.
fn share_read(reads: &Direction, verdict: &ServedVerdict) -> String {
    let Asked::Bytes(asked) = &reads.asked else {
        return share(verdict);
    };
    let by_calls = reads.by_calls.filter(|bytes| bytes.least < bytes.most);
    let Some(bytes) = by_calls else {
        return share(verdict);
    };
    let of_asked = |bytes: u64| (bytes as f64 / asked.most.max(1) as f64).min(1.0);
    let (least, most) = (of_asked(bytes.least), of_asked(bytes.most));
    // The disks below carried less than the device.
    if verdict.device_fraction.is_some_and(|share| share < least) {
        return share(verdict);
    }
    let text = format_percent_of_whole;
    match (text(least), text(most)) {
        (least, most) if least == most => share(verdict),
        (_, most) if least < 0.0005 => format!("at most {most} of"),
        (least, most) => format!("{least} to {most} of"),
    }
}

/// Share of writes that the device carried, which others' writes can leave open. Never all if some bytes are
/// still to be written.
fn share_written(writes: &Direction, verdict: &ServedVerdict, owed: Option<u64>) -> String {
    match (verdict.device_fraction, writes.carried) {
        (None, Some(Bounds { most: 0, .. })) => "none of".to_owned(),
        // How much that is remains unknown.
        (None, _) if verdict.served_by == ServedBy::Device && owed == Some(0) => {
            "all of".to_owned()
        }
        (None, Some(carried)) => format!("{} of", evidence::bounds(carried)),
        (Some(share), _) if share >= 0.9995 && owed.is_some_and(|owed| owed > 0) => {
            "nearly all of".to_owned()
        }
        _ => share(verdict),
    }
}

/// Source of the reads that the page cache did not serve: the device, unless other disks can have served a part
/// of them. Read-ahead and program files, which storage carried as well, do not count and may come from other
/// disks.
fn source(reads: &Direction, device: &str) -> String {
    let asked = match &reads.asked {
        Asked::Bytes(bytes) => bytes.most,
        Asked::Nothing | Asked::Unknown { .. } => u64::MAX,
    };
    let carried = reads.carried.zip(reads.moved).map(|(carried, moved)| {
        let from_storage = moved.min(asked);
        let elsewhere = moved.saturating_sub(carried.least);
        let part = Bounds {
            least: from_storage.saturating_sub(elsewhere),
            most: carried.most.min(asked),
        };
        (part, from_storage)
    });
    let carried = carried.filter(|(carried, whole)| !carried.is_all_of(*whole));
    carried.map_or_else(
        || device.to_owned(),
        |(carried, _)| {
            let part = match carried.least == 0 || carried.least == carried.most {
                true => evidence::bounds(carried),
                false => format!("at least {}", format_bytes(carried.least as f64)),
            };
            format!("storage, {part} of it from {device}")
        },
    )
}

fn flushes(flushes: &Flushes, evidence: &Evidence) -> String {
    let of = match evidence.others {
        OtherUse::None if flushes.are_in_question => "",
        OtherUse::None | OtherUse::Little { .. } | OtherUse::Some { .. } | OtherUse::Unknown => {
            ", of all processes"
        }
    };
    format!(
        "{} completed {}{of}",
        named(&flushes.disks),
        counted(flushes.completed, "cache flush")
    )
}

fn others(other: OtherUse, evidence: &Evidence) -> String {
    let device = named(&evidence.devices);
    match other {
        OtherUse::None => format!("nothing else used {device}"),
        OtherUse::Little { most } => format!(
            "others read and wrote at most {} in all on {device}",
            format_bytes(most as f64)
        ),
        OtherUse::Some { read, written } => {
            let is_certain = read.least.max(written.least) > 0;
            let (may_read, may_write, wrote) = match is_certain {
                true => ("read", "wrote", "wrote"),
                false => ("may have read", "may have written", "written"),
            };
            let dirty = evidence.observed.dirty_before_bytes.unwrap_or(0);
            let early = match dirty.min(written.most) {
                few if few < NOTEWORTHY => String::new(),
                early => format!(
                    ", of which up to {} was dirty before the observation",
                    format_bytes(early as f64)
                ),
            };
            let (of_reads, of_writes) = (evidence::bounds(read), evidence::bounds(written));
            // File systems write data of their own in addition to the program's.
            let may_be_own = evidence.writes.asked != Asked::Nothing && written.most > 0;
            let done = match (read.most, written.most) {
                (0, _) => format!("{may_write} {of_writes} to {device}"),
                (_, 0) => format!("{may_read} {of_reads} from {device}"),
                _ if !may_be_own => {
                    format!("{may_read} {of_reads} from {device} and {wrote} {of_writes} to it")
                }
                _ => format!(
                    "{may_read} {of_reads} from {device}, and they or the file system {may_write} {of_writes} to it"
                ),
            };
            let others = match may_be_own && read.most == 0 {
                true => "other processes or the file system",
                false => "other processes",
            };
            format!("{others} {done}{early}")
        }
        OtherUse::Unknown => {
            let why = match Reading::of(&evidence.observed).traffic() {
                Some(_) => "the program's own part of its traffic is not known",
                None => "its traffic is not counted",
            };
            format!("whether others used {device} is unknown: {why}")
        }
    }
}

/// JSON document of `iolab witness`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WitnessDocument<'a> {
    /// Version of this schema: it rises where a name vanishes or changes its meaning, not where one is added.
    schema: u32,
    /// Version of iolab that wrote this.
    iolab_version: &'static str,
    /// The result of the evidence, in one sentence.
    text: String,
    /// Claims in the order in which they are printed: the parts of `text`, each with its numbers.
    claims: Vec<ClaimData<WitnessClaim<'a>>>,
    #[serde(flatten)]
    evidence: &'a Evidence,
}

/// Writes one object.
///
/// # Errors
/// Errors of `to`.
pub fn json(evidence: &Evidence, to: &mut dyn Write) -> io::Result<()> {
    let document = WitnessDocument {
        schema: SCHEMA,
        iolab_version: IOLAB_VERSION,
        text: super::headline(evidence),
        claims: of(evidence),
        evidence,
    };
    json_object(&document, to)
}

/// All claims of the evidence, in the order in which they are printed.
pub(super) fn of<'a>(evidence: &'a Evidence) -> Vec<ClaimData<WitnessClaim<'a>>> {
    let data = |claim: WitnessClaim<'a>| {
        let kind = claim.kind();
        ClaimData {
            kind: kind.name.to_owned(),
            purpose: match kind.is_doubt {
                _ if kind.role == Role::Nothing => FindingKind::Limit,
                true => FindingKind::Doubt,
                false => FindingKind::Result,
            },
            role: kind.role,
            // The first line contains all claims.
            headline: true,
            runs: Vec::new(),
            quantity: None,
            sentence: clean(&sentence(&claim, evidence)),
            basis: match &claim {
                WitnessClaim::Served { verdict, .. } => {
                    escape_control(&verdict.reason).into_owned()
                }
                _ => kind.basis.to_owned(),
            },
            evidence: claim,
        }
    };
    evidence.claims().into_iter().map(data).collect()
}
