//! The tables of a run file for SQLite, generated from [`iolab_record::tables`], and their initial content.

use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

use rusqlite::Connection;
use rusqlite::limits::Limit;

use super::error::fault;
use super::logged;
use super::rows::{Tables, VALUE_MAX};
use iolab_record::column::{Access, Column, Null, Table};
use iolab_record::environment::Environment;
use iolab_record::tables::{
    CELL, CELL_GROUP, CLIENT_SAMPLE, CellRow, DRIVE_LOG, ENVIRONMENT, EVENT, EXPERIMENT, Fact,
    GROUP_SAMPLE, GroupRow, LATENCY, LATENCY_OVER_TIME, LevelRow, OBSERVATION, PART, PREPARATION,
    QUESTION, QUESTION_LEVEL, QuestionRow, RANK, RUN, SAMPLE, SERIES, STAGES, TARGET,
};
use iolab_record::{Cell, ExperimentRecord, Question, Run, SCHEMA_VERSION};
use iolab_workload::Result;

/// The bytes of a file with its plan and without samples. They say that it has a log, as it will have during the run: a reader that took it
/// for a plain file would wait for the lock of its writer.
pub(super) fn laid_out(
    run: &Run,
    environment: &Environment,
    experiment: &ExperimentRecord,
    cells: &[Cell],
) -> Result<Vec<u8>> {
    let mut content = with_tables(|tables| {
        tables.insert(&RUN, run)?;
        write_environment(tables, environment)?;
        tables.insert(&EXPERIMENT, experiment)?;
        if let Some(asked) = &experiment.asked {
            write_question(tables, asked)?;
        }
        write_cells(tables, experiment, cells)
    })?;
    logged::set_mode(&mut content, logged::WITH_LOG);
    Ok(content)
}

/// Writes the question of a run to the tables `question` and `question_level`.
fn write_question(tables: &Tables<'_>, question: &Question) -> Result<()> {
    let (kind, fit) = (question.kind(), question.clone().into_fit());
    tables.insert(&QUESTION, &QuestionRow { kind, fit })?;
    for (id, need) in (0..).zip(&question.needs) {
        let row = LevelRow {
            id,
            level: need.level.to_string(),
            source: need.source.clone(),
            wording: need.wording.clone(),
            remedy: need.remedy.clone(),
        };
        tables.insert(&QUESTION_LEVEL, &row)?;
    }
    Ok(())
}

/// The bytes of a file with all tables and what `write` writes to them.
pub(super) fn with_tables(write: impl FnOnce(&Tables<'_>) -> Result<()>) -> Result<Vec<u8>> {
    // Errors here have no file.
    let nowhere = Path::new("the new run file");
    let wrong = |error| fault(nowhere, &error);
    let mut memory = Connection::open_in_memory().map_err(wrong)?;
    // What exceeds it could not be read again.
    let limited = memory.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_MAX);
    limited.map_err(wrong)?;
    let identity = format!(
        "PRAGMA application_id = {}; PRAGMA user_version = {SCHEMA_VERSION}; BEGIN;",
        APPLICATION_ID
    );
    for sql in [identity.as_str(), &CREATE] {
        memory.execute_batch(sql).map_err(wrong)?;
    }
    write(&Tables::new(&memory, nowhere))?;
    memory.execute_batch("COMMIT").map_err(wrong)?;
    let content = memory.serialize("main").map_err(wrong)?;
    Ok(content.to_vec())
}

pub(super) fn write_environment(tables: &Tables<'_>, environment: &Environment) -> Result<()> {
    for (position, (key, value)) in environment.iter().enumerate() {
        let fact = Fact {
            host: 0,
            position: position as u64,
            key: key.to_owned(),
            value: value.to_owned(),
        };
        tables.insert(&ENVIRONMENT, &fact)?;
    }
    Ok(())
}

pub(super) fn write_cells(
    tables: &Tables<'_>,
    experiment: &ExperimentRecord,
    cells: &[Cell],
) -> Result<()> {
    for cell in cells {
        let levels: serde_json::Map<String, serde_json::Value> = experiment
            .factors
            .iter()
            .zip(&cell.levels)
            .map(|(factor, level)| (factor.clone(), level.as_str().into()))
            .collect();
        let row = CellRow {
            cell: cell.clone(),
            levels: serde_json::Value::Object(levels).to_string(),
        };
        tables.insert(&CELL, &row)?;
        for (id, group) in (1..).zip(&cell.spec.groups) {
            let row = GroupRow {
                cell: cell.id,
                id,
                name: group.name.clone(),
                target: 0,
                spec: group.spec.clone(),
            };
            tables.insert(&CELL_GROUP, &row)?;
        }
    }
    Ok(())
}

/// Marks a SQLite file as a run file: `IOLB`.
pub(crate) const APPLICATION_ID: i64 = 0x494F_4C42;

/// The name of each table with the statement that creates it. Constraints guard against mistakes of the writer; readers do not
/// trust them.
static TABLES: LazyLock<[(&str, String); 21]> = LazyLock::new(|| {
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
        create(&STAGES, " WITHOUT ROWID"),
        create(&PREPARATION, ""),
        create(&EVENT, ""),
        create(&OBSERVATION, ""),
    ]
});

/// Creates all tables.
pub(crate) static CREATE: LazyLock<String> =
    LazyLock::new(|| TABLES.iter().map(|(_, create)| create.as_str()).collect());

/// An empty run file in memory.
pub(crate) fn in_memory() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(&CREATE)?;
    Ok(connection)
}

/// Whether a run file has a table with this name.
pub(crate) fn is_ours(name: &str) -> bool {
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
fn type_name<T>(column: &Column<T>) -> &'static str {
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
