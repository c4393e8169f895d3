//! Tables of the plan: `cell` and `cell_group`.

use std::borrow::Cow;
use std::sync::LazyLock;

use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::trial::Rate;

use crate::column::{Column, Null, Table};
use crate::{Cell, EndedBy};
use iolab_workload::table;

/// A column with the rate of a cell in bytes per second, which the column of the setting lacks.
macro_rules! byte_rate {
    ($type:ty, $($spec:ident).+) => {
        Column::number(
            "rate_bytes_per_s",
            |row: &$type| row.$($spec).+.trial.rate.and_then(Rate::bytes),
            |row, bytes| row.$($spec).+.trial.rate = Some(Rate::Bytes(bytes)),
        )
        .between(1, i64::MAX as u64)
        .null(Null::Free)
        .hidden()
        .doc("the rate in bytes per second where it is given so; `rate` is NULL then")
    };
}

/// A row of table `cell`.
#[derive(Debug, Clone, PartialEq)]
pub struct CellRow {
    /// The cell; its levels are in the row.
    pub cell: Cell,
    /// A JSON object, factor to level.
    pub levels: String,
}

/// Table `cell`.
pub static CELL: LazyLock<Table<CellRow>> = LazyLock::new(|| {
    let settings = SETTINGS.iter().map(|setting| {
        Column::setting(
            setting,
            |row: &CellRow| &row.cell.spec,
            |row| &mut row.cell.spec,
        )
    });
    let mut columns = Vec::from(table! {
        whole!("id", CellRow, cell.id as i64).key().hidden()
            .doc("from 0, in the order of the definition; the last factor varies fastest; cells of finer sizes follow the cells of the grid");
        text!("levels", CellRow, levels).hidden().doc("a JSON object, factor to level: `{\"bs\":\"4KiB\",\"pattern\":\"rand\"}`");
    });
    // Read before the settings, which are NULL if they are named here.
    columns.push(
        Column::text("unknown_settings", unknown_settings, put_unknown)
            .null(Null::Free)
            .doc("names of the settings that the report of another tool does not say, separated by blanks: their columns are NULL; NULL where all are known"),
    );
    columns.extend(settings);
    columns.push(byte_rate!(CellRow, cell.spec));
    columns.extend(table! {
        word!("ended_by", CellRow, cell.ended_by?, EndedBy).doc("what ended the repetition; NULL while it is open");
    });
    Table {
        name: "cell",
        doc: "one row per combination of levels",
        exported: true,
        columns,
        constraints: &[],
    }
});

fn unknown_settings(row: &CellRow) -> Option<Cow<'_, str>> {
    let names: Vec<&str> = row.cell.spec.unknown.iter().copied().collect();
    (!names.is_empty()).then(|| names.join(" ").into())
}

fn put_unknown(row: &mut CellRow, names: &str) -> bool {
    let all = names.split(' ').map(|name| Some(Setting::find(name)?.name));
    let all: Option<_> = all.collect();
    all.map(|all| row.cell.spec.unknown = all).is_some()
}

/// A row of table `cell_group`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupRow {
    /// The cell.
    pub cell: i64,
    /// From 1, in the order of the definition.
    pub id: u32,
    /// Name of the group.
    pub name: String,
    /// Number of its target; 0 is the target in table `run`.
    pub target: u32,
    /// Settings of the group.
    pub spec: CellSpec,
}

/// Table `cell_group`.
pub static CELL_GROUP: LazyLock<Table<GroupRow>> = LazyLock::new(|| {
    let settings = SETTINGS
        .iter()
        .map(|setting| Column::setting(setting, |row: &GroupRow| &row.spec, |row| &mut row.spec));
    let mut columns = Vec::from(table! {
        whole!("cell_id", GroupRow, cell as i64).doc("the cell");
        whole!("group_id", GroupRow, id as u32).doc("from 1, in the order of the definition");
        text!("name", GroupRow, name).doc("its name");
        whole!("target_id", GroupRow, target as u32).doc("the target that it works on; 0 is the target in table `run`");
    });
    columns.extend(settings);
    columns.push(byte_rate!(GroupRow, spec));
    Table {
        name: "cell_group",
        doc: "one row per group of workers, where a trial has several",
        exported: false,
        columns,
        constraints: &[
            "PRIMARY KEY (cell_id, group_id)",
            "FOREIGN KEY (cell_id) REFERENCES cell (id)",
        ],
    }
});
