//! Columns of the stages of traced requests and syncs.

use iolab_analysis::analysis::StageNumbers;
use iolab_workload::stages::{CarriedBy, Journal, Stage, SyncCounts};

use super::{Columns, ExportedCell};
use crate::data_column::DataColumn;

/// A count of what traced syncs waited for: the name of its column, its description, its value.
type SyncCount = (&'static str, &'static str, fn(SyncCounts) -> u64);

const SYNCS: [SyncCount; 5] = [
    (
        "traced_syncs",
        "traced syncs that followed writes, over all trials",
        |counts| counts.syncs,
    ),
    (
        "sync_commits",
        "journal commits that these waited for",
        |counts| counts.commits,
    ),
    (
        "shared_commits",
        "journal commits that several syncs waited for",
        |counts| counts.shared_commits,
    ),
    (
        "sync_flushes",
        "flushes of the device's cache within traced syncs",
        |counts| counts.flushes,
    ),
    (
        "shared_flushes",
        "flushes within several traced syncs",
        |counts| counts.shared_flushes,
    ),
];

/// Columns on the time of a traced cell by layer.
pub(super) fn stages<'a>() -> Columns<'a> {
    let mut columns = vec![DataColumn::number(
        "unjoined_share_max",
        "requests of a traced trial that miss events of the kernel, a share; the greatest of any trial",
        |row: &ExportedCell<'_>| row.cell.stages.as_ref().map(|stages| stages.unjoined_share),
    )];
    for stage in Stage::ALL {
        let name = stage.name().replace('-', "_");
        let mut add = |part: &str, what: &str, value: fn(&StageNumbers) -> Option<f64>| {
            columns.push(DataColumn::number(
                &format!("stage_{name}_{part}"),
                &format!("{what} of stage {stage} (docs/METHODS.md), where requests were traced; median over the trials"),
                move |row: &ExportedCell<'_>| value(row.cell.stages.as_ref()?.stages[*stage].as_ref()?),
            ));
        };
        add("mean_ns", "mean", |stage| Some(stage.mean_ns));
        add("p50_ns", "50th percentile", |stage| Some(stage.p50_ns));
        add("p99_ns", "99th percentile", |stage| Some(stage.p99_ns));
        let (whole, slowest) = match stage.is_of_sync() {
            false => (
                "share of the mean service time (without syncs that follow writes or are within them)",
                "share of the mean time of the slowest 1 % of the requests",
            ),
            true => (
                "share of the mean time of a sync",
                "share of the mean time of the slowest 1 % of the syncs",
            ),
        };
        add("share", whole, StageNumbers::share);
        add("tail_share", slowest, StageNumbers::tail_share);
    }
    let syncs = |row: &ExportedCell<'_>| -> Option<SyncCounts> {
        let stages = row.cell.stages.as_ref()?;
        stages.journal.map(|_| stages.syncs)
    };
    columns.extend(SYNCS.map(|(name, meaning, count)| {
        DataColumn::whole(name, meaning, move |row: &ExportedCell<'_>| {
            syncs(row).map(count)
        })
    }));
    columns.push(
        DataColumn::text(
            "trace_journal",
            "how the journal of the file system shows in traced syncs",
            |row: &ExportedCell<'_>| Some(row.cell.stages.as_ref()?.journal?.name().to_owned()),
        )
        .one_of(Journal::NAMES),
    );
    columns.push(
        DataColumn::text(
            "trace_carrier",
            "what has a request in the stage device: a disk, layers with the disks below them (device mapper, md), or both, of groups",
            |row: &ExportedCell<'_>| Some(row.cell.stages.as_ref()?.carried_by.name().to_owned()),
        )
        .one_of(CarriedBy::NAMES),
    );
    columns
        .into_iter()
        .map(|column| column.only_of(|row| row.cell.stages.is_some()))
        .collect()
}
