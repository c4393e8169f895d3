//! Table `preparation`.

use std::sync::LazyLock;

use crate::PreparationKind;
use crate::column::{Column, Null, Table};
use iolab_workload::table;

/// A row of table `preparation`: a pass or a round over a target before the first trial of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PreparationStep {
    /// When it ended, RFC 3339, UTC.
    pub at_utc: String,
    /// The target as the plan names it; `None` for the only one.
    pub target: Option<String>,
    /// Kind of the step.
    pub kind: PreparationKind,
    /// Number of this step among the steps of its kind, target and session, from 1.
    pub number: u32,
    /// Whether it was completed; `false` if the target refuses trims or cannot be purged, it failed, or the user interrupted it.
    pub ok: bool,
    /// Size of its requests, of which the last one may be shorter, bytes; `None` for a purge and in files older than this
    /// column.
    pub bs: Option<u64>,
    /// Requests completed.
    pub requests: u64,
    /// Bytes written, trimmed or purged.
    pub bytes: u64,
    /// First worker's start to last worker's end, ns; the sum of both if a shorter last request follows.
    pub elapsed_ns: u64,
}

impl PreparationStep {
    /// Requests per second; 0 if it took no time.
    pub fn iops(&self) -> f64 {
        match self.elapsed_ns {
            0 => 0.0,
            ns => self.requests as f64 * 1e9 / ns as f64,
        }
    }
}

/// Table `preparation`.
pub static PREPARATION: LazyLock<Table<PreparationStep>> = LazyLock::new(|| {
    Table {
        name: "preparation",
        doc: "one row per pass or round over a target before the first trial (`precondition`); a resumed run prepares its targets again",
        exported: false,
        columns: table! {
            Column::number("id", |_: &PreparationStep| None, |_, _| ()).null(Null::Free).key().doc("in the order of time");
            text!("at_utc", PreparationStep, at_utc).doc("when it ended");
            text!("target", PreparationStep, target?).doc("the target as the plan names it; NULL for the only one");
            word!("kind", PreparationStep, kind, PreparationKind)
                .doc("`purge`: all of the device is purged, by one command; `trim`, `seq`, `rand`: a pass that trims, or writes sequentially or randomly; `round`: random writes for a time, until rounds are steady");
            whole!("number", PreparationStep, number as u32).doc("from 1 among the steps of its kind, target and session");
            flag!("ok", PreparationStep, ok)
                .doc("1, or 0 where the target refuses trims or cannot be purged, the step failed, or the user interrupted it");
            number!("bs", PreparationStep, bs?).doc("size of its requests, NULL for a purge; a shorter one follows if the range is not a multiple")
                .between(1, i64::MAX as u64);
            whole!("requests", PreparationStep, requests as u64).doc("requests completed");
            whole!("bytes", PreparationStep, bytes as u64).doc("bytes written, trimmed or purged");
            whole!("elapsed_ns", PreparationStep, elapsed_ns as u64)
                .doc("its first worker's start to its last worker's end; a shorter last request counts its own");
        }
        .into_iter()
        .collect(),
        constraints: &[],
    }
});
