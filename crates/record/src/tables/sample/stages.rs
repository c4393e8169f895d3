//! What tracing showed: the stages of requests.

use crate::Sample;
use crate::column::{Column, Null};
use iolab_workload::stages::{CarriedBy, Journal, StageSummary, TraceSummary};

const JOINED: &str = "requests of a traced trial whose events were all found, and those that miss some; NULL without `trace`, like all of the next";
const SPLIT: &str = "joined requests that were several to the device";
const CARRIED: &str = "requests of the disk (or to a server) that carried those of the trial, those of others (the file system's too), and flushes of its cache (or syncs and COMMITs that the server was asked for); `flush_waits` are requests that transfer nothing and wait for a flush. For a disk their sum is that of `device_read_ios`, `device_write_ios` and `device_flush_ios` over the same time";
const SYNCS: &str = "syncs that followed writes, or that writes carried out themselves; the journal commits that these waited for, and those of them that several waited for; the same of flushes";
const LOST: &str = "events that the kernel had no room for";
const TIME: &str = "time of a request in this layer, ns: its mean, quantiles, and the mean over the slowest 1 % of the requests; NULL where that is not known. `admission`, `queue`, `device` and `delivery` add up to the service time, `completion`, `cpu_wait` and `reaping` to `delivery`. Those of `sync_` are of a sync that follows a write or is within it, and add up to its time; the write's own are without it. See METHODS.md";

/// A number of what was counted.
macro_rules! count {
    ($name:literal, $($field:ident).+, $doc:expr) => {
        Column::number(
            $name,
            |s: &Sample| {
                s.traced
                    .as_ref()
                    .map(|traced: &TraceSummary| traced.counts.$($field).+)
            },
            |s, n| s.traced.get_or_insert_default().counts.$($field).+ = n,
        )
        .null(Null::Account)
        .doc($doc)
    };
}

/// The numbers of a stage.
macro_rules! stage {
    ($stage:ident) => {
        [
            stage!(real $stage, "_mean_ns", mean_ns),
            stage!(whole $stage, "_p50_ns", p50_ns),
            stage!(whole $stage, "_p99_ns", p99_ns),
            stage!(real $stage, "_tail_mean_ns", tail_mean_ns),
        ]
    };
    (real $stage:ident, $unit:literal, $field:ident) => {
        Column::real(
            concat!("stage_", stringify!($stage), $unit),
            |s: &Sample| of(s).and_then(|traced| traced.stages.$stage).map(|stage| stage.$field),
            |s, n| put(&mut s.traced.get_or_insert_default().stages.$stage).$field = n,
        )
        .within(0.0, f64::MAX)
        .null(Null::Account)
        .doc(TIME)
    };
    (whole $stage:ident, $unit:literal, $field:ident) => {
        Column::number(
            concat!("stage_", stringify!($stage), $unit),
            |s: &Sample| of(s).and_then(|traced| traced.stages.$stage).map(|stage| stage.$field),
            |s, n| put(&mut s.traced.get_or_insert_default().stages.$stage).$field = n,
        )
        .null(Null::Account)
        .doc(TIME)
    };
}

fn of(sample: &Sample) -> Option<&TraceSummary> {
    sample.traced.as_ref()
}

fn put(stage: &mut Option<StageSummary>) -> &mut StageSummary {
    stage.get_or_insert_default()
}

/// The columns of [`super::SAMPLE`] that only a traced trial has.
pub fn stages() -> Vec<Column<Sample>> {
    let mut columns = vec![
        count!("joined_requests", joined, JOINED),
        count!("unjoined_requests", unjoined, JOINED),
        count!("split_requests", split, SPLIT),
        count!("carrying_requests", carried, CARRIED),
        count!("other_requests", others, CARRIED),
        count!("device_flushes", flushes, CARRIED),
        count!("flush_waits", flush_waits, CARRIED),
        count!("lost_events", lost, LOST),
        Column::text(
            "trace_note",
            |s: &Sample| of(s).map(|traced| traced.note.as_str().into()),
            |s, text| {
                s.traced.get_or_insert_default().note = text.to_owned();
                true
            },
        )
        .null(Null::Account)
        .doc("why there are no stages, or not all of them, or not of all requests"),
        count!("traced_syncs", syncs.syncs, SYNCS),
        count!("sync_commits", syncs.commits, SYNCS),
        count!("shared_commits", syncs.shared_commits, SYNCS),
        count!("sync_flushes", syncs.flushes, SYNCS),
        count!("shared_flushes", syncs.shared_flushes, SYNCS),
        Column::text(
            "trace_journal",
            |s: &Sample| of(s).and_then(|traced| traced.journal).map(|journal| journal.name().into()),
            |s, text| {
                let journal = text.parse().ok();
                s.traced.get_or_insert_default().journal = journal;
                journal.is_some()
            },
        )
        .one_of(Journal::NAMES)
        .null(Null::Account)
        .doc("how the journal of the file system shows, where syncs were traced: `none`, by its `commits`, by the device's `metadata-writes`, or `hidden`: a server has it, if there is one"),
        Column::text(
            "trace_carrier",
            |s: &Sample| of(s).map(|traced| traced.carried_by.name().into()),
            |s, text| {
                let carrier = text.parse().ok();
                s.traced.get_or_insert_default().carried_by = carrier.unwrap_or_default();
                carrier.is_some()
            },
        )
        .one_of(CarriedBy::NAMES)
        .null(Null::Account)
        .doc("what has a request in the stage `device`: a `disk`, the `server` of a file system in user space, a `file-server` with its network (NFS), or `both`: several of these, of groups"),
    ];
    columns.extend(stage!(admission));
    columns.extend(stage!(queue));
    columns.extend(stage!(device));
    columns.extend(stage!(delivery));
    columns.extend(stage!(completion));
    columns.extend(stage!(cpu_wait));
    columns.extend(stage!(reaping));
    columns.extend(stage!(sync_admission));
    columns.extend(stage!(sync_host));
    columns.extend(stage!(sync_write));
    columns.extend(stage!(sync_journal));
    columns.extend(stage!(sync_flush));
    columns.extend(stage!(sync_delivery));
    columns
        .into_iter()
        .map(|column| column.since(6).hidden())
        .collect()
}
