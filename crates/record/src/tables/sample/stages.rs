//! Stages of traced requests.

use crate::Sample;
use crate::column::Column;
use iolab_workload::stages::{CarriedBy, Journal};
use iolab_workload::table;

const JOINED: &str = "requests of a traced trial whose events were all found, and those that miss some; NULL without `trace`, like all of the next";
const SPLIT: &str = "joined requests that were several to the device";
const CARRIED: &str = "requests of the disk that carried the trial's requests, requests of others (the file system's too), and flushes of its cache; `flush_waits` are requests that transfer nothing and wait for a flush. Their sum equals the sum of `device_read_ios`, `device_write_ios` and `device_flush_ios` over the same time";
const SYNCS: &str = "syncs that followed writes, or that writes carried out themselves; the journal commits that these waited for, and the ones that several waited for; likewise for flushes";
const LOST: &str = "events that the kernel had no room for";
const TIME: &str = "time of a request in this layer, ns: its mean, quantiles, and the mean over the slowest 1 % of the requests; NULL where that is not known. `admission`, `queue`, `device` and `delivery` add up to the service time, `completion`, `cpu_wait` and `reaping` to `delivery`. The columns `sync_...` describe a sync that follows a write or is within it, and add up to its time; the write's own are without it. See METHODS.md";

/// The numbers of a stage.
macro_rules! stage {
    ($stage:ident) => {
        table! {
            real!(concat!("stage_", stringify!($stage), "_mean_ns"), Sample, traced?.stages.$stage?.mean_ns).doc(TIME).within(0.0, f64::MAX);
            number!(concat!("stage_", stringify!($stage), "_p50_ns"), Sample, traced?.stages.$stage?.p50_ns).doc(TIME);
            number!(concat!("stage_", stringify!($stage), "_p99_ns"), Sample, traced?.stages.$stage?.p99_ns).doc(TIME);
            real!(concat!("stage_", stringify!($stage), "_tail_mean_ns"), Sample, traced?.stages.$stage?.tail_mean_ns).doc(TIME).within(0.0, f64::MAX);
        }
    };
}

/// The columns of [`super::SAMPLE`] that only a traced trial has.
pub fn stages() -> Vec<Column<Sample>> {
    let counts = table! {
        number!("joined_requests", Sample, traced?.counts.joined).doc(JOINED);
        number!("unjoined_requests", Sample, traced?.counts.unjoined).doc(JOINED);
        number!("split_requests", Sample, traced?.counts.split).doc(SPLIT);
        number!("carrying_requests", Sample, traced?.counts.carried).doc(CARRIED);
        number!("other_requests", Sample, traced?.counts.others).doc(CARRIED);
        number!("device_flushes", Sample, traced?.counts.flushes).doc(CARRIED);
        number!("flush_waits", Sample, traced?.counts.flush_waits).doc(CARRIED);
        number!("lost_events", Sample, traced?.counts.lost).doc(LOST);
        text!("trace_note", Sample, traced?.note).doc("why there are no stages, or not all of them, or not of all requests");
        number!("traced_syncs", Sample, traced?.counts.syncs.syncs).doc(SYNCS);
        number!("sync_commits", Sample, traced?.counts.syncs.commits).doc(SYNCS);
        number!("shared_commits", Sample, traced?.counts.syncs.shared_commits).doc(SYNCS);
        number!("sync_flushes", Sample, traced?.counts.syncs.flushes).doc(SYNCS);
        number!("shared_flushes", Sample, traced?.counts.syncs.shared_flushes).doc(SYNCS);
        word!("trace_journal", Sample, traced?.journal?, Journal)
            .doc("how the journal of the file system shows, where syncs were traced: `none`, by its `commits`, or by the device's `metadata-writes`");
        word!("trace_carrier", Sample, traced?.carried_by, CarriedBy)
            .doc("what has a request in the stage `device`: a `disk`, `layers` that stand on others (device mapper, md) with the disks below, or `both`, of groups");
    };
    let stages = [
        stage!(admission),
        stage!(queue),
        stage!(device),
        stage!(delivery),
        stage!(completion),
        stage!(cpu_wait),
        stage!(reaping),
        stage!(sync_admission),
        stage!(sync_host),
        stage!(sync_write),
        stage!(sync_journal),
        stage!(sync_flush),
        stage!(sync_delivery),
    ];
    let columns = counts.into_iter().chain(stages.into_iter().flatten());
    columns.collect()
}
