//! What tracing showed: the stages of requests.

use crate::Sample;
use crate::column::{Column, Null};
use iolab_workload::stages::{StageSummary, TraceSummary};

const JOINED: &str = "requests of a traced trial whose events were all found, and those that miss some; NULL without `trace`, like all of the next";
const SPLIT: &str = "joined requests that were several to the device";
const OTHERS: &str = "requests of others to the same disk, and flushes of its cache";
const LOST: &str = "events that the kernel had no room for";
const TIME: &str = "time of a request in this layer, ns: its mean, quantiles, and the mean over the slowest 1 % of the requests; NULL where that is not known. `admission`, `queue`, `device` and `delivery` add up to the service time, `completion`, `cpu_wait` and `reaping` to `delivery`; see METHODS.md";

/// A number of what was counted.
macro_rules! count {
    ($name:literal, $field:ident, $doc:expr) => {
        Column::number(
            $name,
            |s: &Sample| {
                s.traced
                    .as_ref()
                    .map(|traced: &TraceSummary| traced.counts.$field)
            },
            |s, n| s.traced.get_or_insert_default().counts.$field = n,
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
        count!("other_requests", others, OTHERS),
        count!("device_flushes", flushes, OTHERS),
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
    ];
    columns.extend(stage!(admission));
    columns.extend(stage!(queue));
    columns.extend(stage!(device));
    columns.extend(stage!(delivery));
    columns.extend(stage!(completion));
    columns.extend(stage!(cpu_wait));
    columns.extend(stage!(reaping));
    columns
        .into_iter()
        .map(|column| column.since(6).hidden())
        .collect()
}
