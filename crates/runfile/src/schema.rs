//! The tables of a run file for SQLite, generated from [`iolab_record::tables`].

use std::fmt::Write;
use std::sync::LazyLock;

use iolab_record::column::{Access, Column, Null, Table};
use iolab_record::tables::{
    CELL, CELL_GROUP, CLIENT_SAMPLE, DRIVE_LOG, ENVIRONMENT, EVENT, EXPERIMENT, GROUP_SAMPLE,
    LATENCY, LATENCY_OVER_TIME, PART, PREPARATION, QUESTION, QUESTION_LEVEL, RANK, RUN, SAMPLE,
    SERIES, TARGET, WITNESS, WITNESS_DEVICE, WITNESS_DISK, WITNESS_FILE, WITNESS_MOMENT,
    WITNESS_MOMENT_DEVICE, WITNESS_PROCESS,
};
use rusqlite::Connection;

/// Marks a SQLite file as a run file: `IOLB`.
pub(super) const APPLICATION_ID: i64 = 0x494F_4C42;

/// Most rows of a table to read; a million samples take more than 1 GB of memory.
pub(super) const ROWS_MAX: usize = 1_000_000;

/// The name of each table with the statement that creates it. Constraints guard against mistakes of the writer; readers do not
/// trust them.
static TABLES: LazyLock<[(&str, String); 26]> = LazyLock::new(|| {
    let (sample, mut create_sample) = create(&SAMPLE, "");
    create_sample
        .push_str("CREATE UNIQUE INDEX sample_once ON sample (cell_id, block) WHERE ok = 1;\n");
    [
        create(&RUN, ""),
        create(&TARGET, ""),
        create(&RANK, ""),
        create(&ENVIRONMENT, " WITHOUT ROWID"),
        create(&EXPERIMENT, ""),
        create(&QUESTION, ""),
        create(&QUESTION_LEVEL, ""),
        create(&CELL, ""),
        create(&CELL_GROUP, " WITHOUT ROWID"),
        (sample, create_sample),
        create(&GROUP_SAMPLE, " WITHOUT ROWID"),
        create(&CLIENT_SAMPLE, " WITHOUT ROWID"),
        create(&PART, " WITHOUT ROWID"),
        create(&LATENCY, " WITHOUT ROWID"),
        create(&SERIES, " WITHOUT ROWID"),
        create(&LATENCY_OVER_TIME, " WITHOUT ROWID"),
        create(&DRIVE_LOG, " WITHOUT ROWID"),
        create(&PREPARATION, ""),
        create(&EVENT, ""),
        create(&WITNESS, ""),
        create(&WITNESS_FILE, ""),
        create(&WITNESS_DEVICE, ""),
        create(&WITNESS_DISK, ""),
        create(&WITNESS_PROCESS, ""),
        create(&WITNESS_MOMENT, " WITHOUT ROWID"),
        create(&WITNESS_MOMENT_DEVICE, " WITHOUT ROWID"),
    ]
});

/// Creates all tables.
pub(super) static CREATE: LazyLock<String> =
    LazyLock::new(|| TABLES.iter().map(|(_, create)| create.as_str()).collect());

/// An empty run file in memory.
pub(super) fn in_memory() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(&CREATE)?;
    Ok(connection)
}

/// Whether a run file has a table with this name.
pub(super) fn is_ours(name: &str) -> bool {
    TABLES.iter().any(|(table, _)| *table == name)
}

fn create<T>(table: &Table<T>, options: &str) -> (&'static str, String) {
    let columns = table.stored().map(declaration);
    let constraints = table.constraints.iter().map(|text| (*text).to_owned());
    let lines: Vec<String> = columns.chain(constraints).collect();
    let create = format!(
        "CREATE TABLE {} (\n    {}\n){options};\n",
        table.name,
        lines.join(",\n    ")
    );
    (table.name, create)
}

fn declaration<T>(column: &Column<T>) -> String {
    let name = column.name;
    if column.key {
        return format!("{name} INTEGER PRIMARY KEY CHECK ({name} >= 0)");
    }
    let mut text = format!("{name} {}", type_name(column));
    if column.null == Null::Never {
        text.push_str(" NOT NULL");
    }
    let check = match column.access {
        Access::Flag(..) => format!("{name} IN (0, 1)"),
        Access::Number(..) => format!("{name} >= {}", column.bounds.0),
        Access::Text(..) if !column.words.is_empty() => {
            format!("{name} IN ('{}')", column.words.join("', '"))
        }
        _ => return text,
    };
    let _ = write!(text, " CHECK ({check})");
    text
}

/// The SQLite type of a column.
pub(super) fn type_name<T>(column: &Column<T>) -> &'static str {
    match &column.access {
        Access::Number(..) | Access::Flag(..) => "INTEGER",
        Access::Real(..) => "REAL",
        Access::Text(..) => "TEXT",
        Access::Bytes(..) => "BLOB",
        Access::Setting(setting, ..) => match setting.kind.is_number() {
            true => "INTEGER",
            false => "TEXT",
        },
    }
}
