//! Text of an observation of a program: the conclusion in one line, then the evidence.

pub(crate) mod sentences;
mod traced;

use std::io::{self, Write};
use std::time::Duration;

use crate::course;
use crate::evidence::{Evidence, OtherCommand, device_load, io_of};
use crate::observed::{GroupLimits, Observed, ObservedEnd, ProcessTotals, Subject};
use iolab_analysis::claim::Claim;
use iolab_figure::{Figure, Options};
use iolab_report::findings::sentences::finding;
use iolab_report::observation::Seen;
use iolab_report::rows::json_object;
use iolab_workload::Result;
use iolab_workload::counters::{DeviceStat, ProcessIo};
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::format_duration;
use iolab_workload::units::{counted, format_bytes, format_ns, significant};

use iolab_workload::escape_control::shell_word;

/// Most files, and most names of other processes, that are listed.
const LISTED_MAX: usize = 5;

impl Seen for Evidence {
    fn name(&self) -> String {
        sentences::subject(self).unwrap_or_else(|| self.devices.join(", "))
    }

    /// One sentence per claim; the first sentence begins with the name of the program.
    fn headline(&self) -> String {
        let claims = self.claims();
        let text = |(place, claim): (usize, &Claim)| match place {
            0 => sentences::sentence(claim, self),
            _ => sentences::further(claim),
        };
        let sentences: Vec<String> = claims.iter().enumerate().map(text).collect();
        let line = sentences.join(" ");
        escape_control(&line).into_owned()
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let observed = &self.observed;
        let mut rows = subject(self);
        let io = observed.processes.io.iter();
        rows.extend(io.flat_map(|io| calls(io, &observed.processes)));
        let (read, written) = (&self.reads.verdict, &self.writes.verdict);
        let verdicts = match read == written {
            true => vec![("read, written", read)],
            false => vec![("read from", read), ("written to", written)],
        };
        rows.extend(verdicts.into_iter().filter_map(|(label, verdict)| {
            let verdict = verdict.as_ref()?;
            Some((label, format!("{}: {}", verdict.served_by, verdict.reason)))
        }));
        for device in &observed.devices {
            let traffic = device.traffic.map(traffic);
            let traffic = traffic.unwrap_or_else(|| "its traffic is not counted".to_owned());
            rows.push(("device", format!("{}: {traffic}", device.name)));
            let stat = device.traffic;
            let has_io = stat.is_some_and(|stat| stat.read_ios > 0 || stat.write_ios > 0);
            if has_io && observed.subject != Subject::Devices {
                let load = device_load(device, observed.observed_ns);
                rows.push(("load", finding(&load, &[]).text));
            }
        }
        let reported = self.reported().map(|(_, claim)| finding(&claim, &[]).text);
        let labelled = |label, texts: Vec<String>| texts.into_iter().map(move |text| (label, text));
        rows.extend(labelled("claim", reported.collect()));
        rows.extend(traced::rows(self));
        rows.extend(file_servers(observed).map(|told| ("network", told)));
        let known = |name: &str| observed.devices.iter().any(|device| device.name == name);
        let disks = observed.disks.iter().filter(|disk| !known(&disk.name));
        rows.extend(
            disks.map(|disk| ("disk", format!("{}: {}", disk.name, traffic(disk.traffic)))),
        );
        rows.extend(largest_files(observed).map(|file| ("file", file)));
        rows.extend(labelled("other", other_processes(observed)));
        rows.extend(limits(&observed.limits).map(|limits| ("limits", limits)));
        rows.push(("CPU", cpu(self)));
        rows
    }

    fn command(&self) -> String {
        let observed = &self.observed;
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

    fn figure(&self, options: &Options) -> Result<Figure> {
        options.check(None)?;
        Figure::of(course::model(self, options), options)
    }

    fn json(&self, to: &mut dyn Write) -> io::Result<()> {
        json_object(&sentences::document(self), to)
    }
}

/// The name of a program without its folder.
pub(crate) fn short(command: &[String]) -> String {
    let name = command.first().map_or("the program", String::as_str);
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

/// Rows on the observed program and how it ended.
fn subject(evidence: &Evidence) -> Vec<(&'static str, String)> {
    let who = match &evidence.observed.subject {
        Subject::Program(command) => ("program", command.join(" ")),
        Subject::Process { pid, command } => {
            ("process", format!("PID {pid}: {}", command.join(" ")))
        }
        Subject::Devices => return Vec::new(),
    };
    vec![who, ("end", end(evidence))]
}

/// Rows on what the processes read and wrote, by their calls and from storage.
fn calls(io: &ProcessIo, processes: &ProcessTotals) -> [(&'static str, String); 2] {
    let bytes = |bytes: u64| format_bytes(bytes as f64);
    // An account of a child that its parent, or an observer of a running process, did not wait for has its calls in steps of
    // 1024 (xacct_add_tsk of kernel/tsacct.c).
    let calls = |calls: u64| match processes.ignores_children || processes.usage.is_none() {
        true => String::new(),
        false => format!(" in {}", counted(calls, "call")),
    };
    let reads = format!(
        "{}{}; {} from storage",
        bytes(io.rchar),
        calls(io.syscr),
        bytes(io.read_bytes)
    );
    let cancelled = match processes.cancelled_write_bytes {
        0 => String::new(),
        cancelled => format!(", of which {} was discarded unwritten", bytes(cancelled)),
    };
    let writes = format!(
        "{}{}; {} sent or to be sent to storage{cancelled}",
        bytes(io.wchar),
        calls(io.syscw),
        bytes(io.write_bytes)
    );
    [("reads", reads), ("writes", writes)]
}

/// Traffic with file servers; `None` without any.
fn file_servers(observed: &Observed) -> Option<String> {
    let nfs = observed
        .nfs
        .filter(|nfs| nfs.read_bytes + nfs.write_bytes > 0)?;
    Some(format!(
        "file servers (NFS) sent {} and got {}, of all processes that use these mounts",
        format_bytes(nfs.read_bytes as f64),
        format_bytes(nfs.write_bytes as f64)
    ))
}

fn largest_files(observed: &Observed) -> impl Iterator<Item = String> {
    let mut files: Vec<_> = observed.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
    files.into_iter().take(LISTED_MAX).map(|file| {
        let cached = file.after.map_or(String::new(), |after| {
            format!(
                ", {} of it in the page cache at the end",
                format_bytes(after.resident_bytes as f64)
            )
        });
        let size = format_bytes(file.bytes as f64);
        format!("{}: {size}{cached}", file.path.display())
    })
}

/// Rows on other processes that did I/O, and on what is unknown of these.
fn other_processes(observed: &Observed) -> Vec<String> {
    let others = &observed.others;
    let commands = OtherCommand::all(others);
    let listed = commands.iter().take(LISTED_MAX);
    let mut rows: Vec<String> = listed
        .map(|one| finding(&io_of(one, false), &[]).text)
        .collect();
    if let more @ 1.. = commands.len().saturating_sub(LISTED_MAX) {
        rows.push(format!(
            "{} did less",
            counted(more as u64, "further program")
        ));
    }
    if !others.sees_ended {
        rows.push(
            "processes that ended during the observation are missing: only root sees them"
                .to_owned(),
        );
    }
    if others.unread > 0 {
        let unread = counted(others.unread, "process");
        rows.push(format!("the accounts of {unread} cannot be read"));
    }
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
        also.push(format!(
            "processes that it started were observed for {time}"
        ));
    }
    if processes.running > 0 && matches!(observed.subject, Subject::Program(_)) {
        also.push(format!("{} still running", processes.running));
    }
    if processes.may_miss_children() {
        also.push(
            "I/O of children whose ends their parent ignored may be missing: only root sees it, once all have ended"
                .to_owned(),
        );
    }
    if processes.cut_short > 0 {
        also.push(format!(
            "what {} did after the last reading of the accounts is missing: only root sees it",
            counted(processes.cut_short, "process")
        ));
    }
    if processes.unread > 0 {
        let unread = counted(processes.unread, "process");
        also.push(format!("the accounts of {unread} cannot be read"));
    }
    [vec![how], also].concat().join("; ")
}

fn traffic(traffic: DeviceStat) -> String {
    let busy = match (
        traffic.busy_ms,
        traffic.read_ios.saturating_add(traffic.write_ios),
    ) {
        // Any number of short requests can lie between two ticks, at which the kernel sees none in flight.
        (0, 1..) => {
            "busy time unknown (requests shorter than a clock tick of the kernel)".to_owned()
        }
        (ms, _) => format!("busy {}", format_ns(ms as f64 * 1e6)),
    };
    format!(
        "read {} in {}, wrote {} in {}, {}, {busy}",
        format_bytes(traffic.read_bytes as f64),
        counted(traffic.read_ios, "request"),
        format_bytes(traffic.write_bytes as f64),
        counted(traffic.write_ios, "request"),
        counted(traffic.flush_ios, "cache flush")
    )
}

/// The limits of control groups, in words; `None` without any.
fn limits(limits: &GroupLimits) -> Option<String> {
    let cpus = limits.cpus;
    let cpus = cpus.map(|cpus| format!("{} CPUs", significant(cpus)));
    let memory = limits.memory_bytes;
    let memory = memory.map(|bytes| format!("{} of memory", format_bytes(bytes as f64)));
    let io = limits
        .io
        .iter()
        .map(|(what, per_second)| what.format(*per_second));
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
