//! Import of fio reports: jobs by their options.

use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use iolab_record::{LatencyOf, OperationSummary, PerOperation, Sample};
use iolab_workload::histogram::LatencyHistogram;
use iolab_workload::trial::Pattern;
use iolab_workload::{Error, Result, usage_errors};

use crate::options::{Options, give, named_file};
use crate::reported::reported;

use super::report::{FioJob, FioReport, Written};
use super::{FIO, report};
use iolab_runner::peers::{PeerResult, Results};

/// Parses a report. Idle jobs are left out; clones of one job (`numjobs` without `group_reporting`) are taken
/// together.
pub(super) fn import(text: &str) -> Result<Results> {
    let report = report_of_fio(text)?;
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
        .any(|pair| pair[0].first().groupid == pair[1].first().groupid);
    if beside {
        notes.push(
            "some of its jobs ran at the same time: each number is of a part of the load"
                .to_owned(),
        );
    }
    let places = Places::of(&groups, &mut notes);
    let mut entries = Vec::new();
    let mut may_repeat = false;
    for (number, group) in groups.iter().enumerate() {
        match entry(group, places.of_each.get(number)) {
            Ok((entry, doubt)) => {
                notes.extend(doubt);
                may_repeat |= !group.options.contains_key("norandommap")
                    && entry.cell.trial.pattern == Pattern::Rand
                    && entry.cell.says_order();
                entries.push(entry);
            }
            // A job that iolab cannot express is left out, and the others are kept.
            Err(error) if groups.len() > 1 => {
                notes.push(format!("{}: it is left out", error.message()));
            }
            Err(error) => return Err(error),
        }
    }
    if may_repeat {
        notes.push("pattern=rand stands for rand or rand-replace: fio leaves a bare norandommap out of its report, but writes norandommap=1".to_owned());
    }
    notes.insert(0, Results::note_on_samples("job", &entries));
    Ok(Results {
        tool: FIO,
        version: report.version.clone(),
        measured_utc: report.timestamp.and_then(utc),
        target: places.of_all,
        host: places.host,
        entries,
        notes,
    })
}

/// Transfers of the jobs in a report, clones of one job together; idle jobs are left out.
pub(super) fn transferred(text: &str) -> Result<Vec<Sample>> {
    let report = report_of_fio(text)?;
    let groups = groups_of(&report);
    let is_unsplit = |group: &JobGroup<'_>| FioJob::counts(&group.jobs).unsplit.requests > 0;
    if groups.iter().any(is_unsplit) {
        return Err(Error::usage(
            "fio added up what it read and what it wrote (unified_rw_reporting)",
        )
        .hint("run fio with unified_rw_reporting=both, or without it"));
    }
    let samples = groups.iter().map(|group| sample_of(&group.jobs).0);
    Ok(samples.collect())
}

/// Parses a report; iolab exports such reports too.
fn report_of_fio(text: &str) -> Result<FioReport> {
    let report = FioReport::parse(text)?;
    usage_errors! {
        report.version.starts_with("iolab-") => "it is an export of iolab, not a report of fio", "use the run file that was exported";
    }
    Ok(report)
}

/// Clones of one job.
struct JobGroup<'a> {
    /// Options of the job, with the ones in `[global]`.
    options: Options,
    /// Whether the report has options for this job.
    has_options: bool,
    /// An option that occurs twice.
    repeated: Option<&'a str>,
    jobs: Vec<&'a FioJob>,
}

impl JobGroup<'_> {
    fn first(&self) -> &FioJob {
        self.jobs[0]
    }
}

/// Active jobs with their options, clones of one job together.
fn groups_of(report: &FioReport) -> Vec<JobGroup<'_>> {
    let mut groups: Vec<JobGroup<'_>> = Vec::new();
    for job in report.jobs.iter().filter(|job| job.elapsed_ns() > 0) {
        let lists = [Some(&report.global_options), job.options.as_ref()];
        let lists = || lists.into_iter().flatten();
        let mut options = Options::new();
        for (name, value) in lists().flat_map(|list| list.0.clone()) {
            give(&mut options, name, value);
        }
        let clones = groups.iter_mut().find(|known| {
            let of = |job: &FioJob| (job.groupid, job.hostname.clone(), job.jobname.clone());
            let alike = of(known.first()) == of(job);
            alike && known.options == options && options.contains_key("numjobs")
        });
        match clones {
            Some(known) => known.jobs.push(job),
            None => groups.push(JobGroup {
                options,
                // A local run leaves the list of a job out if all its options are in [global].
                has_options: job.options.is_some()
                    || job.hostname.is_empty() && !report.global_options.0.is_empty(),
                repeated: lists().find_map(repeated),
                jobs: vec![job],
            }),
        }
    }
    groups
}

/// An option that occurs twice in a list. Names of files add up instead.
fn repeated(list: &Written) -> Option<&str> {
    let mut names = list.0.iter().map(|(name, _)| name.as_str()).enumerate();
    let is_before =
        |place: usize, name: &str| list.0[..place].iter().any(|(other, _)| other == name);
    let twice = names.find(|(place, name)| *name != "filename" && is_before(*place, name));
    twice.map(|(_, name)| name)
}

fn utc(seconds: i64) -> Option<String> {
    let since_1970 = Duration::from_secs(u64::try_from(seconds).ok()?);
    let time = UNIX_EPOCH.checked_add(since_1970)?;
    // A year of five digits does not fit this format.
    let mut text = String::new();
    write!(text, "{}", humantime::format_rfc3339_seconds(time)).ok()?;
    Some(text)
}

/// Result of one job, and remarks on its settings. With the name of its target if the report has several.
fn entry(group: &JobGroup<'_>, place: Option<&String>) -> Result<(PeerResult, Option<String>)> {
    let (options, jobs) = (&group.options, &group.jobs);
    let name = &group.first().jobname;
    let within = |error: Error| error.within(format!("job '{name}'"));
    let counts = FioJob::counts(jobs);
    let listed = group.has_options.then_some(options);
    let mut found = reported(listed, group.repeated, &counts).map_err(within)?;
    found.cell.tool = FIO;
    found.cell.target = place.map(|name| name.parse()).transpose().map_err(within)?;
    let what = match found.group_of {
        None => format!("job '{name}'"),
        Some(count) => format!("a group of {count} jobs ('{name}')"),
    };
    let doubt = found.doubt.map(|doubt| {
        format!("{what}: {doubt}: of its settings only what its counts confirm is known")
    });
    let command: Vec<String> = options
        .iter()
        .map(|(name, value)| format!("--{name}={value}"))
        .collect();
    let error = jobs.iter().map(|job| job.error).find(|error| *error != 0);
    let command = match (command.as_slice(), &doubt) {
        ([], _) => what,
        (command, None) => format!("{what}: {}", command.join(" ")),
        (command, Some(_)) => format!("{what}; its report says {}", command.join(" ")),
    };
    let (mut sample, histograms) = sample_of(jobs);
    sample.unsplit = counts.unsplit;
    sample.failure = error.map(|error| format!("fio reports error {error} in job '{name}'"));
    sample.effective.command = Some(command);
    let entry = PeerResult {
        cell: found.cell,
        sample,
        histograms,
    };
    let unsized_file = (!found.shares.is_empty()).then(|| {
        let shares = found.shares.join(", ");
        format!("job '{name}': {shares} of a file whose size the report does not give")
    });
    Ok((entry, doubt.or(unsized_file)))
}

/// Work of clones, with its latencies.
fn sample_of(jobs: &[&FioJob]) -> (Sample, Vec<(LatencyOf, LatencyHistogram)>) {
    let sum = |of: fn(&FioJob) -> u64| jobs.iter().map(|job| of(job)).fold(0, u64::saturating_add);
    let syncs = report::FioLatency::merge(jobs.iter().map(|job| &job.sync.lat_ns));
    let of_syncs = OperationSummary {
        requests: sum(|job| job.sync.count()),
        latency: syncs.summary().map(Box::new),
        ..OperationSummary::default()
    };
    let done = PerOperation {
        read: direction(jobs, |job| &job.read),
        write: direction(jobs, |job| &job.write),
        sync: (of_syncs, syncs.histogram()),
        trim: direction(jobs, |job| &job.trim),
    };
    let latencies = done
        .iter()
        .filter(|(_, (_, histogram))| !histogram.is_empty());
    let latencies = latencies
        .map(|(operation, (_, histogram))| (LatencyOf::service(operation), histogram.clone()));
    let histograms = latencies.collect();
    let mut sample = Sample {
        operations: done.map(|(summary, _)| summary),
        // From the start of the clones to the end of the last.
        elapsed_ns: jobs.iter().map(|job| job.elapsed_ns()).max().unwrap_or(0),
        ..Sample::default()
    };
    sample.counters.usage.user_ns = sum(|job| job.cpu_ns(job.usr_cpu));
    sample.counters.usage.system_ns = sum(|job| job.cpu_ns(job.sys_cpu));
    (sample, histograms)
}

/// One direction of all clones. Quantiles are fio's own for one job, and follow from all bins for several.
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
        latency: times.summary().map(Box::new),
        ..OperationSummary::default()
    };
    (summed, times.histogram())
}

/// Placeholder for the folder in which fio ran, which its report does not name.
const FOLDER_OF_FIO: &str = "/(folder of fio)";

/// Targets and servers of jobs.
#[derive(Default)]
struct Places {
    /// Target of all jobs; `None` if they name none, or differ.
    of_all: Option<String>,
    /// Server of all jobs.
    host: Option<String>,
    /// Target of each job; empty if all measured the same.
    of_each: Vec<String>,
}

impl Places {
    /// Places of these jobs. Jobs on different targets become separate cells: they are not repetitions of each
    /// other, whatever their settings.
    fn of(groups: &[JobGroup<'_>], notes: &mut Vec<String>) -> Self {
        let servers = shared(groups.iter().map(|group| group.first().hostname.as_str()));
        let names: Vec<Option<String>> = groups.iter().map(path_of).collect();
        let host = servers.filter(|server| !server.is_empty());
        if let (Some(_), Some(name)) = (servers, shared(names.iter())) {
            return Self {
                of_all: name.clone(),
                host: host.map(str::to_owned),
                of_each: Vec::new(),
            };
        }
        notes.push(
            "its jobs measured different files, devices or servers: each is a level of the factor target"
                .to_owned(),
        );
        let named = groups.iter().zip(names).map(|(group, name)| {
            let path = name.unwrap_or_else(|| FOLDER_OF_FIO.to_owned());
            match (servers, group.first().hostname.as_str()) {
                (None, server) if !server.is_empty() => format!("//{server}{path}"),
                _ => path,
            }
        });
        let of_each: Vec<String> = named.collect();
        if of_each.iter().any(|name| name.contains(FOLDER_OF_FIO)) {
            notes.push(format!(
                "the report does not name the folder that fio ran in: {FOLDER_OF_FIO} stands for it"
            ));
        }
        Self {
            of_all: None,
            host: host.map(str::to_owned),
            of_each,
        }
    }
}

/// Common value of all, if any.
fn shared<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// Target of a job, such as `/dev/sda`; `None` if the job names none.
fn path_of(group: &JobGroup<'_>) -> Option<String> {
    let path = named_file(&group.options)?;
    let path = path.to_string_lossy();
    Some(match path.as_ref() {
        "." => FOLDER_OF_FIO.to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        path => format!(
            "{FOLDER_OF_FIO}/{}",
            path.strip_prefix("./").unwrap_or(path)
        ),
    })
}

#[cfg(test)]
mod tests;
