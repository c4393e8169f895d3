//! Reports of fio: its jobs by their options.

mod places;

use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use iolab_workload::histogram::LatencyHistogram;
use iolab_workload::tool::Tool;
use iolab_workload::{Error, Result};

use super::FIO;
use super::report::{self, FioJob, FioReport};
use crate::{JobBytes, PeerResult, Results, Transferred};
use iolab_fio::described::described_cell;
use iolab_fio::options::{Options, give, reported_cell};
use iolab_record::{Ended, LatencyOf, OperationSummary, PerOperation};

/// Reads a report. Jobs that did nothing are left out; clones of one job (`numjobs` without `group_reporting`) are taken
/// together.
pub(super) fn import(text: &str) -> Result<Results> {
    let report = FioReport::parse(text)?;
    let tool = tool_of(&report);
    let mut notes = Vec::new();
    let idle = report.jobs.iter().filter(|job| job.elapsed_ns() == 0);
    notes.extend(idle.map(|job| {
        format!(
            "job '{}' did nothing that takes a millisecond, and is left out",
            job.jobname
        )
    }));
    let groups = groups_of(&report);
    let beside = groups
        .windows(2)
        .any(|pair| pair[0].1[0].groupid == pair[1].1[0].groupid);
    if beside {
        notes.push(
            "some of its jobs ran at the same time: each number is of a part of the load"
                .to_owned(),
        );
    }
    let places = match tool {
        // Its own exports name their targets among the settings.
        Tool::IOLAB => Vec::new(),
        _ => places::told_apart(&groups, &mut notes),
    };
    let mut entries = Vec::new();
    for (number, (options, jobs)) in groups.iter().enumerate() {
        match entry(tool, options, jobs, places.get(number)) {
            Ok(entry) => entries.push(entry),
            // A job that iolab cannot express is left out, and the others are kept.
            Err(error) if groups.len() > 1 => {
                notes.push(format!("{}: it is left out", error.message()));
            }
            Err(error) => return Err(error),
        }
    }
    notes.insert(0, Results::note_on_samples("job", &entries));
    Ok(Results {
        tool,
        version: report.version.clone(),
        measured_utc: report.timestamp.and_then(utc),
        entries,
        notes,
    })
}

/// What the jobs of a report transferred, clones of one job together; jobs that did nothing are left out.
pub(super) fn transferred(text: &str) -> Result<Transferred> {
    let report = FioReport::parse(text)?;
    let of_group = |(_, jobs): &JobGroup<'_>| {
        let sum = |of: fn(&FioJob) -> u64| {
            let all = jobs.iter().map(|job| of(job));
            all.fold(0, u64::saturating_add)
        };
        JobBytes {
            read: sum(|job| job.read.io_bytes),
            written: sum(|job| job.write.io_bytes),
            elapsed_ns: elapsed_ns(jobs),
        }
    };
    Ok(Transferred {
        tool: tool_of(&report),
        jobs: groups_of(&report).iter().map(of_group).collect(),
    })
}

/// iolab writes such reports too.
fn tool_of(report: &FioReport) -> Tool {
    match report.version.starts_with("iolab-") {
        true => Tool::IOLAB,
        false => FIO,
    }
}

/// Clones of one job, with its options.
type JobGroup<'a> = (Options, Vec<&'a FioJob>);

/// The jobs that did anything with their options, clones of one job together.
fn groups_of(report: &FioReport) -> Vec<JobGroup<'_>> {
    let mut groups: Vec<JobGroup<'_>> = Vec::new();
    for job in report.jobs.iter().filter(|job| job.elapsed_ns() > 0) {
        let mut options = report.global_options.clone();
        for (name, value) in job.options.clone() {
            give(&mut options, name, value);
        }
        let clones = groups.iter_mut().find(|(known, jobs)| {
            let first = jobs[0];
            let of = |job: &FioJob| (job.groupid, job.hostname.clone(), job.jobname.clone());
            let alike = of(first) == of(job);
            alike && *known == options && options.contains_key("numjobs")
        });
        match clones {
            Some((_, jobs)) => jobs.push(job),
            None => groups.push((options, vec![job])),
        }
    }
    groups
}

/// From the start of clones to the end of the last, ns.
fn elapsed_ns(jobs: &[&FioJob]) -> u64 {
    jobs.iter().map(|job| job.elapsed_ns()).max().unwrap_or(0)
}

fn utc(seconds: i64) -> Option<String> {
    let since_1970 = Duration::from_secs(u64::try_from(seconds).ok()?);
    let time = UNIX_EPOCH.checked_add(since_1970)?;
    // A year of five digits has no such form.
    let mut text = String::new();
    write!(text, "{}", humantime::format_rfc3339_seconds(time)).ok()?;
    Some(text)
}

/// One job, on the target of this name where the report has several.
fn entry(
    tool: Tool,
    options: &Options,
    jobs: &[&FioJob],
    place: Option<&String>,
) -> Result<PeerResult> {
    let name = &jobs[0].jobname;
    let bytes = jobs.iter().map(|job| {
        job.read
            .io_bytes
            .max(job.write.io_bytes)
            .max(job.trim.io_bytes)
    });
    let done = bytes.max().unwrap_or(0);
    let within = |error: Error| error.within(format!("job '{name}'"));
    let cell = match tool {
        Tool::IOLAB => described_cell(options, done).map_err(within)?,
        _ => {
            let mut cell = reported_cell(options, done).map_err(within)?;
            cell.tool = tool;
            cell.target = place.map(|name| name.parse()).transpose().map_err(within)?;
            cell
        }
    };
    let mut histograms: Vec<(LatencyOf, LatencyHistogram)> = Vec::new();
    let sum = |of: fn(&FioJob) -> u64| jobs.iter().map(|job| of(job)).fold(0, u64::saturating_add);
    let syncs = report::FioLatency::merge(jobs.iter().map(|job| &job.sync.lat_ns));
    let of_syncs = OperationSummary {
        requests: sum(|job| job.sync.count()),
        latency: syncs.summary(),
        ..OperationSummary::default()
    };
    let done = PerOperation {
        read: direction(jobs, |job| &job.read),
        write: direction(jobs, |job| &job.write),
        sync: (of_syncs, syncs.histogram()),
        trim: direction(jobs, |job| &job.trim),
    };
    for (operation, (_, histogram)) in done.iter() {
        if !histogram.is_empty() {
            histograms.push((LatencyOf::service(operation), histogram.clone()));
        }
    }
    let command: Vec<String> = options
        .iter()
        .map(|(name, value)| format!("--{name}={value}"))
        .collect();
    let error = jobs.iter().map(|job| job.error).find(|error| *error != 0);
    Ok(PeerResult {
        cell,
        warmup: false,
        operations: done.map(|(summary, _)| summary),
        elapsed_ns: elapsed_ns(jobs),
        user_ns: sum(|job| job.cpu_ns(job.usr_cpu)),
        system_ns: sum(|job| job.cpu_ns(job.sys_cpu)),
        ended: Ended::Done,
        failure: error.map(|error| format!("fio reports error {error} in job '{name}'")),
        command: format!("job '{name}': {}", command.join(" ")),
        histograms,
    })
}

/// One direction of all clones. Quantiles are fio's own for one job, and those of all bins for several.
fn direction(
    jobs: &[&FioJob],
    of: impl Fn(&FioJob) -> &report::Direction,
) -> (OperationSummary, LatencyHistogram) {
    let all: Vec<&report::Direction> = jobs.iter().map(|job| of(job)).collect();
    let sum = |of: fn(&report::Direction) -> u64| {
        all.iter().map(|one| of(one)).fold(0, u64::saturating_add)
    };
    let times = report::FioLatency::merge(all.iter().map(|one| one.times()));
    let summed = OperationSummary {
        requests: sum(|one| one.total_ios),
        bytes: sum(|one| one.io_bytes),
        short_transfers: sum(|one| one.short_ios),
        latency: times.summary(),
        ..OperationSummary::default()
    };
    (summed, times.histogram())
}
