//! Run files as fio's JSON, for tools that read it: one job per cell, or per group of it, with its measured trials combined.
//!
//! Numbers have fio's names and units: `bw` in KiB/s, `runtime` in ms, latencies in ns. Source: fio's HOWTO, "JSON output".

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use iolab_analysis::trial_values::{GroupLatencies, RunWithLatencies};
use iolab_record::{Cell, LatencyOf, Operation, OperationSummary, RunRecord, Sample};
use iolab_report::rows::json_object;
use iolab_stats::Summary;
use iolab_workload::histogram::{LatencyHistogram, counts};

use crate::described::{DescribedJob, describe};

/// The default percentiles of fio.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Writes the measured cells of runs as one report.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn runs(runs: &[RunWithLatencies], to: &mut dyn Write) -> io::Result<()> {
    let mut all = Vec::new();
    for (number, (record, latencies)) in runs.iter().enumerate() {
        for cell in &record.cells {
            all.extend(jobs(number, record, cell, latencies));
        }
    }
    let first = runs.first().map(|(record, _)| &record.run);
    let report = first.map(|run| {
        json!({
            "fio version": format!("iolab-{}", run.tool_version),
            "time": run.started_utc,
            "global options": {},
            "jobs": all,
        })
    });
    json_object(&report, to)
}

/// The jobs of a cell with measured trials, one for each of its groups, which have one number in fio's report.
fn jobs<'a>(
    run: usize,
    record: &'a RunRecord,
    cell: &'a Cell,
    latencies: &'a GroupLatencies,
) -> impl Iterator<Item = Value> + 'a {
    let number = run * 10_000 + cell.id.unsigned_abs() as usize;
    let described = describe(&cell.spec.in_one_process()).into_iter();
    described.filter_map(move |described| job(number, record, cell, &described, latencies))
}

fn job(
    number: usize,
    record: &RunRecord,
    cell: &Cell,
    described: &DescribedJob,
    latencies: &GroupLatencies,
) -> Option<Value> {
    let group = described.group;
    let all = match group {
        0 => &record.samples,
        _ => &record.group_samples,
    };
    let is_own = |s: &&Sample| s.cell == cell.id && s.group == group && s.is_measured();
    let samples: Vec<&Sample> = all.iter().filter(is_own).collect();
    if samples.is_empty() {
        return None;
    }
    let sum = |of: fn(&Sample) -> u64| samples.iter().map(|s| of(s)).fold(0, u64::saturating_add);
    let elapsed_ns = sum(|s| s.elapsed_ns);
    // fio adds up the times of all workers.
    let worked_ns = elapsed_ns
        .saturating_mul(u64::from(described.trial.threads))
        .max(1);
    let percent = |part: u64| part as f64 * 100.0 / worked_ns as f64;
    let latency = |operation| latencies.get(&(cell.id, group, LatencyOf::service(operation)));
    let of = |operation| direction(&samples, elapsed_ns, operation, latency(operation));
    Some(json!({
        "jobname": name(record, cell, group),
        "groupid": number,
        "error": 0,
        "elapsed": elapsed_ns / 1_000_000_000,
        "job options": described.options,
        "read": of(Operation::Read),
        "write": of(Operation::Write),
        "trim": of(Operation::Trim),
        "sync": {"total_ios": sum(|s| s.operations.sync.requests), "lat_ns": latency_of(latency(Operation::Sync))},
        "job_runtime": worked_ns / 1_000_000,
        "usr_cpu": percent(sum(|s| s.counters.usage.user_ns)),
        "sys_cpu": percent(sum(|s| s.counters.usage.system_ns)),
        "ctx": sum(|s| s.counters.usage.voluntary_switches),
        "majf": sum(|s| s.counters.usage.major_faults),
        "minf": sum(|s| s.counters.usage.minor_faults),
    }))
}

fn name(record: &RunRecord, cell: &Cell, group: u32) -> String {
    let levels = record.experiment.factors.iter().zip(&cell.levels);
    let mut name = record.experiment.name.clone();
    for (factor, level) in levels {
        name.push_str(&format!(" {factor}={level}"));
    }
    let group = (group as usize).checked_sub(1);
    match group.and_then(|place| cell.spec.groups.get(place)) {
        Some(group) => format!("{name} {}", group.name),
        None => name,
    }
}

fn direction(
    samples: &[&Sample],
    elapsed_ns: u64,
    operation: Operation,
    times: Option<&LatencyHistogram>,
) -> Value {
    let sum = |what: fn(&OperationSummary) -> u64| {
        samples
            .iter()
            .map(|s| what(&s.operations[operation]))
            .fold(0, u64::saturating_add)
    };
    let (bytes, requests) = (sum(|d| d.bytes), sum(|d| d.requests));
    let runtime_ns = if requests > 0 { elapsed_ns } else { 0 };
    let per_second = |count: u64| match runtime_ns {
        0 => 0.0,
        ns => count as f64 * 1e9 / ns as f64,
    };
    let latency = latency_of(times);
    // As in fio, rates of a direction without requests are empty.
    let rated = if requests > 0 { samples } else { &[] };
    let rates = |what: fn(&OperationSummary) -> f64| -> Vec<f64> {
        let rate = |s: &&Sample| what(&s.operations[operation]) * 1e9 / s.elapsed_ns.max(1) as f64;
        rated.iter().map(rate).collect()
    };
    // The distribution over the trials takes the place of fio's half-second samples.
    let (iops, kib) = (
        iolab_stats::summary(&rates(|d| d.requests as f64)),
        iolab_stats::summary(&rates(|d| d.bytes as f64 / 1024.0)),
    );
    let of = |rate: Option<Summary>, value: fn(Summary) -> f64| rate.map_or(0.0, value);
    let mean = |rate| of(rate, |rate| rate.mean.unwrap_or(rate.median));
    let sd = |rate| of(rate, |rate| rate.sd.unwrap_or(0.0));
    json!({
        "io_bytes": bytes,
        "io_kbytes": bytes >> 10,
        "bw_bytes": per_second(bytes) as u64,
        "bw": (per_second(bytes) / 1024.0) as u64,
        "iops": per_second(requests),
        "runtime": runtime_ns.div_ceil(1_000_000),
        "total_ios": requests,
        "short_ios": sum(|d| d.short_transfers),
        "drop_ios": 0,
        "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0},
        "clat_ns": latency,
        "lat_ns": latency,
        "bw_min": of(kib, |rate| rate.min) as u64,
        "bw_max": of(kib, |rate| rate.max) as u64,
        "bw_agg": if requests > 0 { 100.0 } else { 0.0 },
        "bw_mean": mean(kib),
        "bw_dev": sd(kib),
        "bw_samples": rated.len(),
        "iops_min": of(iops, |rate| rate.min) as u64,
        "iops_max": of(iops, |rate| rate.max) as u64,
        "iops_mean": mean(iops),
        "iops_stddev": sd(iops),
        "iops_samples": rated.len(),
    })
}

/// Times as in JSON+. iolab's service time is the sum of both of fio's: from just before the submission to the completion.
fn latency_of(times: Option<&LatencyHistogram>) -> Value {
    let Some(times) = times.filter(|times| !times.is_empty()) else {
        return json!({"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0});
    };
    let percentile: Map<String, Value> = PERCENTILES
        .iter()
        .map(|percent| {
            let ns = times.value_at_quantile(percent / 100.0);
            (format!("{percent:.6}"), ns.into())
        })
        .collect();
    let bins = counts(times).into_iter();
    let bins: Map<String, Value> = bins
        .map(|(ns, count)| (ns.to_string(), count.into()))
        .collect();
    json!({
        "min": times.min(),
        "max": times.max(),
        "mean": times.mean(),
        "stddev": times.stdev(),
        "N": times.len(),
        "percentile": percentile,
        "bins": bins,
    })
}
