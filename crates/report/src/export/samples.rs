//! Rows of samples, one per trial and group, and rows of their intervals and latency buckets.

use serde_json::Value;

use super::Exported;
use crate::data_column::{self, DataColumn, DataRows, PlacedRow, column_value};
use iolab_record::tables::{CLIENT_SAMPLE, PART, Rank, SAMPLE, STAGES};
use iolab_record::{
    Cell, Interval, Operation, Part, PerOperation, RunRecord, Sample, SampleLatencyOverTime, Series,
};
use iolab_workload::histogram::over_time::{IntervalLatency, LatencyOverTime};
use iolab_workload::response::Response;
use iolab_workload::series::merge_intervals;
use iolab_workload::table;

/// Meaning of the column `sample`.
const ID: &str = "id of the trial in its run file";

/// A sample of a run.
pub(super) struct SampleRow<'a> {
    sample: &'a Sample,
    /// Whether the origin of the sample's bytes is known only together with other groups.
    shares_origin: bool,
}

/// Columns that are known only for all groups of a trial together, if the groups have different origins.
const OF_ALL_GROUPS: [&str; 3] = ["served_by", "device_fraction", "served_by_reason"];

/// The columns of a sample; columns of traced requests only if there are some.
fn columns<'a>(with_stages: bool) -> Vec<DataColumn<'a, SampleRow<'a>>> {
    let shown = SAMPLE.columns.iter().filter(|column| column.exported);
    let made = shown.map(|column| {
        let is_of_all = OF_ALL_GROUPS.contains(&column.name);
        DataColumn::like(column.name, column, move |row: &SampleRow<'_>| {
            (!(is_of_all && row.shares_origin)).then(|| column_value(column, row.sample))
        })
    });
    let stages = STAGES.columns.iter();
    let stages = stages.filter(|column| column.exported && with_stages);
    let stages = stages.map(|column| {
        let own = DataColumn::<SampleRow<'a>>::stored(column, |row| row.sample);
        own.only_of(|row| row.sample.traced.is_some())
    });
    let id = DataColumn::whole("sample", ID, |row: &SampleRow<'_>| Some(row.sample.id));
    std::iter::once(id.known())
        .chain(made)
        .chain(stages)
        .collect()
}

/// The rows of samples of some runs.
pub(super) fn rows<'a>(runs: &'a [Exported<'a>]) -> DataRows<'a, SampleRow<'a>> {
    let mut samples = runs.iter().flat_map(|(_, record, _)| &record.samples);
    let columns = columns(samples.any(|sample| sample.traced.is_some()));
    let runs = runs.iter();
    DataRows::new(
        columns,
        runs.map(|(name, record, answer)| ((name, *record, *answer), rows_of_run(record))),
    )
}

fn rows_of_run(record: &RunRecord) -> impl Iterator<Item = PlacedRow<'_, SampleRow<'_>>> {
    record.samples.iter().flat_map(move |sample| {
        let groups = record.groups_of(sample.id);
        let all = std::iter::once(sample).chain(groups);
        all.map(move |sample| {
            let is_alone = sample.group == 0 || groups.len() < 2;
            let row = SampleRow {
                sample,
                shares_origin: !is_alone && !sample.verdict.served_by.holds_for_parts(),
            };
            (cell_of(record, sample), sample.group, row)
        })
    })
}

fn cell_of<'a>(record: &'a RunRecord, sample: &Sample) -> Option<&'a Cell> {
    record.cells.get(usize::try_from(sample.cell).ok()?)
}

/// JSON schema of a row.
pub(crate) fn schema() -> Value {
    data_column::schema(&columns(true))
}

/// Data of a row: the part of a rank in a trial.
pub(super) struct RankRow<'a> {
    sample: &'a Sample,
    part: &'a Part,
    rank: &'a Rank,
    /// The client of the rank in the trial: the rank itself, or the one that represents its host.
    client: Option<&'a Sample>,
}

/// The rows of ranks of some runs.
pub(super) fn ranks<'a>(runs: &'a [Exported<'a>]) -> DataRows<'a, RankRow<'a>> {
    let runs = runs.iter();
    DataRows::new(
        rank_columns(),
        runs.map(|(name, record, answer)| ((name, *record, *answer), ranks_of_run(record))),
    )
}

fn ranks_of_run(record: &RunRecord) -> impl Iterator<Item = PlacedRow<'_, RankRow<'_>>> {
    let parts = record.parts.iter().filter(|_| !record.ranks.is_empty());
    parts.filter_map(|part| {
        // Parts are sorted by sample, group and target.
        let sample = record.samples.binary_search_by_key(&part.sample, |s| s.id);
        let row = RankRow {
            sample: &record.samples[sample.ok()?],
            part,
            rank: record.ranks.get(part.id.rank as usize)?,
            client: client_of(record, part),
        };
        Some((cell_of(record, row.sample), part.id.group, row))
    })
}

fn client_of<'a>(record: &'a RunRecord, part: &Part) -> Option<&'a Sample> {
    let all = &record.client_samples;
    let first = all.partition_point(|own| own.id < part.sample);
    let end = all.partition_point(|own| own.id <= part.sample);
    let host = |rank: u32| record.ranks.get(rank as usize).map(|rank| rank.host);
    let of_trial = || all[first..end].iter();
    let itself = of_trial().find(|own| own.client == part.id.rank);
    itself.or_else(|| of_trial().find(|own| host(own.client) == host(part.id.rank)))
}

/// The columns of a rank: its trial, its part, and the evidence of its client.
fn rank_columns<'a>() -> Vec<DataColumn<'a, RankRow<'a>>> {
    const OF_TRIAL: [&str; 3] = ["block", "warmup", "ok"];
    let is_own = |name: &str| !name.ends_with("_id");
    let of_trial = SAMPLE.columns.iter().filter(|c| OF_TRIAL.contains(&c.name));
    let of_part = PART.columns.iter().filter(|c| is_own(c.name));
    let of_client = CLIENT_SAMPLE.columns.iter().filter(|c| is_own(c.name));
    type Column<'a> = DataColumn<'a, RankRow<'a>>;
    let mut columns = vec![Column::whole("sample", ID, |row| Some(row.sample.id))];
    columns.extend(of_trial.map(|c| Column::stored(c, |row| row.sample)));
    columns.extend(table! {
        Column::whole("rank", "number of the rank", |row| Some(row.part.id.rank));
        Column::whole("rank_host_id", "number of its host", |row| Some(row.rank.host));
        Column::text("rank_host", "name of its host", |row| Some(row.rank.name.clone()));
    });
    columns.extend(of_part.map(|c| Column::stored(c, |row| row.part)));
    let doc = "the rank that stands for its host";
    columns.push(Column::whole("client", doc, |row| Some(row.client?.client)));
    columns.extend(of_client.map(|c| {
        let name = format!("client_{}", c.name);
        Column::like(&name, c, |row| Some(column_value(c, row.client?)))
    }));
    columns
}

/// Activity of a trial in one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CourseInterval {
    /// Requests and bytes.
    pub(super) done: Interval,
    /// Latencies by operation; empty without requests, and if none are kept.
    pub(super) latency: PerOperation<IntervalLatency>,
}

/// The intervals of a trial with their latencies, in the longer intervals of throughput and latency.
pub(super) fn joined(series: &Series, latency: &[SampleLatencyOverTime]) -> Vec<CourseInterval> {
    let of = |operation: Operation| {
        let own = latency.iter().filter(|one| one.operation == operation);
        let groups = own.map(|one| one.latency.clone());
        groups.reduce(LatencyOverTime::plus).unwrap_or_default()
    };
    let kept = PerOperation::from_fn(of);
    let longest = kept
        .iter()
        .map(|(_, own)| own)
        .max_by_key(|own| own.interval_ns);
    let Some(longest) = longest.filter(|own| !own.intervals.is_empty()) else {
        let intervals = series.intervals.iter().map(|done| CourseInterval {
            done: *done,
            ..CourseInterval::default()
        });
        return intervals.collect();
    };
    let rows = (0..longest.intervals.len()).filter_map(|number| {
        let (start, end) = longest.bounds_ns(number);
        let is_last = number + 1 == longest.intervals.len();
        let own = series
            .intervals
            .iter()
            .filter(|interval| interval.start_ns >= start && (interval.start_ns < end || is_last));
        let own: Vec<Interval> = own.copied().collect();
        Some(CourseInterval {
            done: (!own.is_empty()).then(|| merge_intervals(&own))?,
            latency: kept.as_ref().map(|one| {
                let interval = one.intervals.get(number);
                interval.cloned().unwrap_or_default()
            }),
        })
    });
    rows.collect()
}

/// The latency columns of an interval: `read_latency_p50_ns` and so on.
pub(super) fn latency_columns() -> impl Iterator<Item = String> {
    let operations = Operation::ALL.iter();
    operations.flat_map(|operation| {
        let times = format!("{operation}_latency");
        Response::shown_latencies().map(move |of| of.column_of(&times))
    })
}

/// The values of these columns; empty without requests.
pub(super) fn latencies(interval: &PerOperation<IntervalLatency>) -> impl Iterator<Item = Value> {
    interval.iter().flat_map(|(_, latency)| {
        let quantiles = Response::shown_latencies().map(Response::quantile);
        quantiles.map(|quantile| quantile.and_then(|q| latency.quantile_ns(q)).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_record::{Moved, RequestTime};
    use iolab_workload::histogram::over_time::{BUCKETS, bucket};

    #[test]
    fn rows_have_the_longer_intervals_and_all_data() {
        let interval = |number: u64, length_ns| Interval {
            start_ns: 100 * number,
            length_ns,
            done: PerOperation {
                read: Moved {
                    requests: 1,
                    bytes: 4096,
                },
                ..PerOperation::default()
            },
            drive_millidegrees: None,
        };
        let mut intervals: Vec<Interval> = (0..5).map(|n| interval(n, 100)).collect();
        intervals.push(interval(5, 140));
        let series = Series { intervals };
        let one = |ns: u64| {
            let mut counts = vec![0; BUCKETS];
            counts[bucket(ns)] = 3;
            IntervalLatency::new(&counts, ns)
        };
        let latency = LatencyOverTime {
            interval_ns: 200,
            span_ns: 640,
            intervals: vec![one(1000), one(2000), one(3000)],
        };
        let latency = [SampleLatencyOverTime {
            sample: 1,
            group: 0,
            operation: Operation::Read,
            quantity: RequestTime::Service,
            latency,
        }];
        let rows = joined(&series, &latency);
        let seen: Vec<_> = rows
            .iter()
            .map(|row| {
                let done = row.done;
                (
                    done.start_ns,
                    done.end_ns(),
                    done.done.read.requests,
                    row.latency.read.max_ns,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [(0, 200, 2, 1000), (200, 400, 2, 2000), (400, 640, 2, 3000)]
        );
        let bare = joined(&series, &[]);
        assert_eq!(bare.len(), 6);
        assert!(bare.iter().all(|row| row.latency.read.total() == 0));
    }
}
