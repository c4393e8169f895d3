//! What an observation of a program shows: one line first, then what it rests on.

mod claim;
pub(crate) mod data;
mod device;

pub use data::json;

use std::time::Duration;

use iolab_analysis::witness::{Asked, Bounds, Direction, Evidence, OtherUse};
use iolab_record::{ServedBy, ServedVerdict};
use iolab_workload::counters::DeviceStat;
use iolab_workload::escape_control::escape_control;
use iolab_workload::quantity::{
    counted, format_bytes, format_ns, format_percent_of_whole, significant,
};
use iolab_workload::units::format_duration;
use iolab_workload::witness::{GroupLimits, Observed, ObservedEnd, Subject};

use crate::layout::{WIDTH_MIN, wrap};
use crate::shell::shell_word;

/// Columns of a label and the gap behind it.
const LABEL: usize = 11;
/// Least bytes of pages that were dirty before for which it is told.
const NOTEWORTHY: u64 = 256 << 10;
/// Most files, and most processes of others, that are listed.
const LISTED_MAX: usize = 5;

/// The evidence, for a terminal of `width` columns.
pub fn text(evidence: &Evidence, width: u16) -> String {
    let room = usize::from(width.max(WIDTH_MIN));
    let mut text = wrap(&headline(evidence), room).join("\n") + "\n\n";
    for (label, value) in rows(evidence) {
        let lines = wrap(&escape_control(&value), room - LABEL);
        for (n, line) in lines.iter().enumerate() {
            let label = if n == 0 { label } else { "" };
            text.push_str(&format!("{label:LABEL$}{line}\n"));
        }
    }
    text
}

/// What the evidence comes to, in one sentence.
pub fn headline(evidence: &Evidence) -> String {
    let name = match &evidence.observed.subject {
        Subject::Devices => return escape_control(&device::headline(evidence)).into_owned(),
        Subject::Program(command) => short(command),
        Subject::Process { pid, command } => format!("{} ({pid})", short(command)),
    };
    let device = device(evidence);
    let clauses = [
        reads(evidence, &device),
        writes(evidence, &device),
        flushes(evidence, &device),
        others(evidence, &device),
        claim::contradictions(evidence, &device),
    ];
    let clauses: Vec<String> = clauses.into_iter().flatten().collect();
    let sentence = match clauses.is_empty() {
        true => "it read and wrote no storage of note".to_owned(),
        false => clauses.join("; "),
    };
    escape_control(&format!("{name}: {sentence}.")).into_owned()
}

/// The command that observes the same again.
pub fn command(observed: &Observed) -> String {
    let mut words = vec!["iolab witness".to_owned()];
    if let Some(target) = &observed.target {
        words.extend([
            "--on".to_owned(),
            shell_word(&target.path.to_string_lossy()),
        ]);
    }
    match &observed.subject {
        Subject::Program(command) => {
            words.push("--".to_owned());
            words.extend(command.iter().map(|word| shell_word(word)));
        }
        Subject::Process { pid, .. } => words.push(format!("-p {pid}")),
        Subject::Devices => {
            let names = observed.devices.iter().map(|one| shell_word(&one.name));
            words.extend(names.map(|name| format!("--device {name}")));
            let time = Duration::from_millis(observed.observed_ns.div_ceil(1_000_000));
            words.push(format!("--for {}", format_duration(time)));
        }
    }
    words.join(" ")
}

/// The name of a program without its folder.
pub(crate) fn short(command: &[String]) -> String {
    let name = command.first().map_or("the program", String::as_str);
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

/// The devices in question, by name.
fn device(evidence: &Evidence) -> String {
    match evidence.devices.as_slice() {
        [] => "storage".to_owned(),
        devices => devices.join(" and "),
    }
}

fn reads(evidence: &Evidence, device: &str) -> Option<String> {
    let reads = &evidence.reads;
    let verdict = reads.verdict.as_ref()?;
    // With pipes among its processes: all that its calls read, of which the pipes served a part.
    let asked = match reads.asked {
        Asked::Bytes(bytes) => format!("the {} that it read", format_bytes(bytes.most as f64)),
        _ => "the bytes that it read".to_owned(),
    };
    let source = source(reads, device);
    let ways = &evidence.observed.ways;
    let cache = match (ways.inner_pipes, may_have_holes(&evidence.observed)) {
        (true, true) => "the page cache, from holes of its files or from its own pipes",
        (true, false) => "the page cache or from its own pipes",
        (false, true) => "the page cache or from holes of its files",
        (false, false) => "the page cache",
    };
    Some(match verdict.served_by {
        ServedBy::Device => format!("{} {asked} came from {source}", share(verdict)),
        ServedBy::PageCache | ServedBy::Mixed if !ways.reads.is_direct() && is_none(verdict) => {
            format!("all of {asked} came from {cache}")
        }
        ServedBy::PageCache | ServedBy::Mixed if !ways.reads.is_direct() => format!(
            "{} {asked} came from {source}, and the rest from {cache}",
            share(verdict)
        ),
        ServedBy::Hole => {
            format!("{asked} lie in holes, which read as zeros: no storage is behind them")
        }
        ServedBy::NotStorage => format!("{asked} came from memory, not from storage"),
        ServedBy::Network => format!("{asked} came from a file server over the network"),
        _ => {
            let moved = reads.moved.map(|moved| format_bytes(moved as f64));
            let open = match (&reads.asked, moved) {
                (Asked::Bytes(bytes), Some(moved)) if bytes.least < bytes.most => format!(
                    "storage carried {moved} of {asked}; how much of the rest the page cache served"
                ),
                (_, Some(moved)) => {
                    format!("storage carried {moved} of its reads; where {asked} came from")
                }
                (_, None) => format!("where {asked} came from"),
            };
            format!("{open} is unknown: {}", verdict.reason)
        }
    })
}

/// Whether what it read can lie in holes: nobody named the file, and one that it read has less space than bytes.
fn may_have_holes(observed: &Observed) -> bool {
    let mut read = observed.files.iter().filter(|file| file.is_read);
    observed.target.is_none()
        && read.any(|file| {
            let allocated = file.allocated_bytes;
            allocated.is_some_and(|allocated| allocated < file.bytes)
        })
}

fn writes(evidence: &Evidence, device: &str) -> Option<String> {
    let writes = &evidence.writes;
    let verdict = writes.verdict.as_ref()?;
    let discarded = discarded(evidence);
    let kept = match discarded {
        Some(_) => " and kept",
        None => "",
    };
    let asked = match writes.asked {
        Asked::Bytes(written) if written.is_known_within(written.most) => {
            format!(
                "the {} that it wrote{kept}",
                format_bytes(written.most as f64)
            )
        }
        Asked::Bytes(written) => format!("the {} that it wrote{kept}", bounds(written)),
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
        format!(", {} were discarded unwritten", bounds(discarded))
    });
    Some(match verdict.served_by {
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
    })
}

/// Bytes that it wrote to the page cache and that were discarded before they were written to storage, with their file for instance;
/// `None` where they are not of note.
fn discarded(evidence: &Evidence) -> Option<Bounds> {
    let cancelled = evidence.observed.processes.cancelled_write_bytes;
    // Of pages that were dirty before it started it is not known whose they were.
    let found = match evidence.writes.asked {
        Asked::Bytes(written) => written.most - written.least,
        Asked::Nothing | Asked::Unknown { .. } => return None,
    };
    (cancelled >= NOTEWORTHY).then(|| Bounds {
        least: cancelled.saturating_sub(found),
        most: cancelled,
    })
}

/// Whether the device carried nothing of note.
fn is_none(verdict: &ServedVerdict) -> bool {
    verdict.device_fraction.is_some_and(|share| share < 0.0005)
}

/// The share of the device, as the subject of a sentence: `all of`, `12 % of`.
fn share(verdict: &ServedVerdict) -> String {
    match verdict.device_fraction {
        Some(share) if share >= 0.9995 => "all of".to_owned(),
        Some(_) if is_none(verdict) => "none of".to_owned(),
        Some(share) => format!("{} of", format_percent_of_whole(share)),
        None => "an unknown share of".to_owned(),
    }
}

/// The same of writes, where others' can leave open what the device carried of these. It is not all where some is owed.
fn share_written(writes: &Direction, verdict: &ServedVerdict, owed: Option<u64>) -> String {
    match (verdict.device_fraction, writes.carried) {
        (None, Some(carried)) => format!("{} of", bounds(carried)),
        (Some(share), _) if share >= 0.9995 && owed.is_some_and(|owed| owed > 0) => {
            "nearly all of".to_owned()
        }
        _ => share(verdict),
    }
}

/// Where reads that the page cache did not serve came from: the device, unless other disks can have served a part of them.
fn source(reads: &Direction, device: &str) -> String {
    let carried = reads.carried.zip(reads.moved);
    let carried = carried.filter(|(carried, moved)| !carried.is_all_of(*moved));
    carried.map_or_else(
        || device.to_owned(),
        |(carried, _)| {
            let part = match carried.least == 0 || carried.least == carried.most {
                true => bounds(carried),
                false => format!("at least {}", format_bytes(carried.least as f64)),
            };
            format!("storage, {part} of it from {device}")
        },
    )
}

fn flushes(evidence: &Evidence, device: &str) -> Option<String> {
    let flushes = evidence.flushes.filter(|flushes| *flushes > 0)?;
    evidence.writes.verdict.as_ref()?;
    let of = match evidence.others {
        OtherUse::None => "",
        OtherUse::Some { .. } | OtherUse::Unknown => ", of all processes",
    };
    Some(format!(
        "{device} completed {}{of}",
        counted(flushes, "cache flush")
    ))
}

fn others(evidence: &Evidence, device: &str) -> Option<String> {
    let has_bytes = evidence.reads.verdict.is_some() || evidence.writes.verdict.is_some();
    if !has_bytes || evidence.devices.is_empty() {
        return None;
    }
    Some(match evidence.others {
        OtherUse::None => format!("nothing else used {device}"),
        OtherUse::Some { read, written } => {
            let may = if read.least.max(written.least) == 0 {
                "may have"
            } else {
                "have"
            };
            let dirty = evidence.observed.dirty_before_bytes.unwrap_or(0);
            let early = match dirty.min(written.most) {
                few if few < NOTEWORTHY => String::new(),
                early => format!(
                    ", up to {} of it from pages that were dirty before",
                    format_bytes(early as f64)
                ),
            };
            format!(
                "others {may} read {} and written {} on {device} meanwhile{early}",
                bounds(read),
                bounds(written)
            )
        }
        OtherUse::Unknown => {
            format!("whether others used {device} is unknown: its traffic is not counted")
        }
    })
}

fn bounds(bytes: Bounds) -> String {
    let text = |bytes: u64| format_bytes(bytes as f64);
    match bytes.least == bytes.most {
        true => text(bytes.most),
        false if bytes.least == 0 => format!("up to {}", text(bytes.most)),
        false => format!("{} to {}", text(bytes.least), text(bytes.most)),
    }
}

pub(crate) fn rows(evidence: &Evidence) -> Vec<(&'static str, String)> {
    let observed = &evidence.observed;
    let processes = &observed.processes;
    let mut rows = match &observed.subject {
        Subject::Program(command) => vec![("program", command.join(" "))],
        Subject::Process { pid, command } => {
            vec![("process", format!("{pid}: {}", command.join(" ")))]
        }
        Subject::Devices => Vec::new(),
    };
    if observed.subject != Subject::Devices {
        rows.push(("end", end(evidence)));
    }
    if let Some(io) = processes.io {
        let bytes = |bytes: u64| format_bytes(bytes as f64);
        rows.push((
            "reads",
            format!(
                "{} in {}; {} from storage",
                bytes(io.rchar),
                counted(io.syscr, "call"),
                bytes(io.read_bytes)
            ),
        ));
        let cancelled = match processes.cancelled_write_bytes {
            0 => String::new(),
            cancelled => format!(", {} of it never will be", bytes(cancelled)),
        };
        rows.push((
            "writes",
            format!(
                "{} in {}; {} sent or to be sent to storage{cancelled}",
                bytes(io.wchar),
                counted(io.syscw, "call"),
                bytes(io.write_bytes)
            ),
        ));
    }
    for (label, verdict) in [
        ("read from", &evidence.reads.verdict),
        ("written to", &evidence.writes.verdict),
    ] {
        if let Some(verdict) = verdict {
            rows.push((label, format!("{}: {}", verdict.served_by, verdict.reason)));
        }
    }
    for device in &observed.devices {
        let traffic = device
            .traffic
            .map_or_else(|| "its traffic is not counted".to_owned(), traffic);
        rows.push(("device", format!("{}: {traffic}", device.name)));
        rows.extend(device::load(device, observed.observed_ns).map(|load| ("load", load)));
    }
    rows.extend(
        claim::told(evidence)
            .into_iter()
            .map(|told| ("claim", told)),
    );
    let known = |name: &str| observed.devices.iter().any(|device| device.name == name);
    for disk in observed.disks.iter().filter(|disk| !known(&disk.name)) {
        rows.push(("disk", format!("{}: {}", disk.name, traffic(disk.traffic))));
    }
    let mut files: Vec<_> = observed.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
    rows.extend(files.into_iter().take(LISTED_MAX).map(|file| {
        let cached = file.after.map_or(String::new(), |after| {
            format!(
                ", {} of it in the page cache at the end",
                format_bytes(after.resident_bytes as f64)
            )
        });
        let size = format_bytes(file.bytes as f64);
        ("file", format!("{}: {size}{cached}", file.path.display()))
    }));
    rows.extend(
        observed
            .others
            .active
            .iter()
            .take(LISTED_MAX)
            .map(|one| ("other", format!("{}, on any disk", device::process(one)))),
    );
    if !observed.others.sees_ended && observed.subject == Subject::Devices {
        rows.push((
            "other",
            "processes that ended meanwhile are missing: only root sees them".to_owned(),
        ));
    }
    if observed.others.unread > 0 {
        let unread = counted(observed.others.unread, "process");
        rows.push((
            "other",
            format!("the accounts of {unread} of other users cannot be read"),
        ));
    }
    rows.extend(limits(&observed.limits).map(|limits| ("limits", limits)));
    rows.push(("CPU", cpu(evidence)));
    rows
}

fn end(evidence: &Evidence) -> String {
    let observed = &evidence.observed;
    let time = format_ns(observed.elapsed_ns as f64);
    let how = match observed.end {
        ObservedEnd::Code(code) => format!("exit code {code} after {time}"),
        ObservedEnd::Signal(signal) => format!("ended by signal {signal} after {time}"),
        ObservedEnd::Gone => format!("ended after {time}"),
        ObservedEnd::Running => format!("still running after {time}"),
    };
    let processes = &observed.processes;
    let mut also = Vec::new();
    if observed.observed_ns > observed.elapsed_ns + 1_000_000 {
        let time = format_ns(observed.observed_ns as f64);
        also.push(format!("what it had started was observed for {time}"));
    }
    if processes.running > 0 && matches!(observed.subject, Subject::Program(_)) {
        also.push(format!("{} still running", processes.running));
    }
    if processes.ignores_children && !processes.is_complete {
        also.push(
            "I/O of children whose ends their parent ignored may be missing: only root sees it"
                .to_owned(),
        );
    }
    if processes.cut_short > 0 {
        also.push(format!(
            "what {} did in the last 0.1 s before the end is missing: only root sees it",
            counted(processes.cut_short, "process")
        ));
    }
    if processes.unread > 0 {
        also.push(format!(
            "{} without an account that can be read",
            processes.unread
        ));
    }
    [vec![how], also].concat().join("; ")
}

fn traffic(traffic: DeviceStat) -> String {
    format!(
        "read {} in {}, wrote {} in {}, {} flushed, busy {}",
        format_bytes(traffic.read_bytes as f64),
        counted(traffic.read_ios, "request"),
        format_bytes(traffic.write_bytes as f64),
        counted(traffic.write_ios, "request"),
        counted(traffic.flush_ios, "time"),
        format_ns(traffic.busy_ms as f64 * 1e6)
    )
}

/// The limits of control groups; `None` where there are none.
fn limits(limits: &GroupLimits) -> Option<String> {
    let GroupLimits {
        cpus,
        memory_bytes,
        io,
    } = limits;
    let cpus = cpus.map(|cpus| format!("{} CPUs", significant(cpus)));
    let memory = memory_bytes.map(|bytes| format!("{} of memory", format_bytes(bytes as f64)));
    let io = io.iter().map(|(what, per_second)| what.format(*per_second));
    let all: Vec<String> = cpus.into_iter().chain(memory).chain(io).collect();
    (!all.is_empty()).then(|| format!("control groups allow {}", all.join(", ")))
}

fn cpu(evidence: &Evidence) -> String {
    let observed = &evidence.observed;
    let ns = |ns: u64| format_ns(ns as f64);
    let usage = observed.processes.usage;
    let usage =
        usage.map(|usage| format!("user {}, system {}", ns(usage.user_ns), ns(usage.system_ns)));
    let mut parts: Vec<String> = usage.into_iter().collect();
    if observed.subject != Subject::Devices {
        parts.push(format!(
            "waited for a CPU {}",
            ns(observed.processes.run_delay_ns)
        ));
    }
    let pressure = observed.pressure;
    let told = [
        (
            "some task of the machine waited for a CPU",
            pressure.cpu_stall_ns,
        ),
        ("the hypervisor took", pressure.steal_ns),
        ("a CPU quota held this group back", pressure.throttled_ns),
    ];
    let told = told.into_iter().filter_map(|(what, spent)| {
        Some(format!("{what} {}", ns(spent.filter(|spent| *spent > 0)?)))
    });
    parts.extend(told);
    parts.push(format!("observing took {}", ns(observed.observer_cpu_ns)));
    parts.join("; ")
}
