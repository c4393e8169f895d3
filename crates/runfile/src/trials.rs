//! Reads the trials of a run, of which a file may have many: only the columns that hold values.

use iolab_record::Sample;
use iolab_record::column::{Column, Null};
use iolab_record::tables::SAMPLE;
use iolab_workload::Result;
use rusqlite::Row;

use super::error::{damaged, fault, too_large};
use super::rows::Reader;
use super::schema::ROWS_MAX;
use super::table_reader::Tables;

/// All trials, in the order of their numbers; each must belong to one of `cells` cells.
///
/// Most columns are NULL in a whole file. A trial with a value in a column that no earlier trial filled is read by all
/// columns, its followers by the columns that have been filled.
pub(super) fn read(tables: &Tables<'_>, cells: usize) -> Result<Vec<Sample>> {
    let wrong = |error| fault(tables.path, &error);
    let mut samples: Vec<Sample> = Vec::new();
    let mut filled: Vec<&Column<Sample>> = Vec::new();
    loop {
        let after = samples.last().map_or(i64::MIN, |last| last.id);
        let sql = "SELECT * FROM sample WHERE id > ? ORDER BY id LIMIT 1";
        let mut whole = tables.connection.prepare(sql).map_err(wrong)?;
        let reader = Reader::new(&SAMPLE, &whole, tables.path)?;
        let mut rows = whole.query([after]).map_err(wrong)?;
        let Some(row) = rows.next().map_err(wrong)? else {
            return Ok(samples);
        };
        read_into(tables, &reader, row, cells, &mut samples)?;
        let of_row = reader.filled(row);
        let is_filled = |column: &&Column<Sample>| named(&filled, column) || named(&of_row, column);
        filled = SAMPLE.stored().filter(is_filled).collect();
        read_filled(tables, &filled, cells, &mut samples)?;
    }
}

fn named(columns: &[&Column<Sample>], column: &Column<Sample>) -> bool {
    columns.iter().any(|one| one.name == column.name)
}

/// Adds the trials after the last one, by these columns, up to the first with a value in another one.
fn read_filled(
    tables: &Tables<'_>,
    filled: &[&Column<Sample>],
    cells: usize,
    samples: &mut Vec<Sample>,
) -> Result<()> {
    let wrong = |error| fault(tables.path, &error);
    let names: Vec<&str> = filled.iter().map(|column| column.name).collect();
    let sql = format!(
        "SELECT {}, {} FROM sample WHERE id > ? ORDER BY id",
        names.join(", "),
        has_more(filled)
    );
    let mut statement = tables.connection.prepare(&sql).map_err(wrong)?;
    let reader = Reader::of_columns(&SAMPLE, filled, tables.path);
    let after = samples.last().map_or(i64::MIN, |last| last.id);
    let mut rows = statement.query([after]).map_err(wrong)?;
    while let Some(row) = rows.next().map_err(wrong)? {
        if row.get(filled.len()).map_err(wrong)? {
            break;
        }
        read_into(tables, &reader, row, cells, samples)?;
    }
    Ok(())
}

/// Whether a row has a value in a column that is not `filled`, in SQL. The columns of a part that no trial has are NULL together,
/// so that one of them stands for all.
fn has_more(filled: &[&Column<Sample>]) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut more = vec!["0".to_owned()];
    for column in SAMPLE.stored().filter(|column| !named(filled, column)) {
        let part = column.account;
        let is_of_known = filled.iter().any(|one| one.account == part);
        if is_of_known || (column.null == Null::Account && !parts.contains(&part)) {
            parts.push(part);
            more.push(format!("{} IS NOT NULL", column.name));
        }
    }
    more.join(" OR ")
}

/// Adds one trial.
fn read_into(
    tables: &Tables<'_>,
    reader: &Reader<'_, Sample>,
    row: &Row<'_>,
    cells: usize,
    samples: &mut Vec<Sample>,
) -> Result<()> {
    let path = tables.path;
    tables.weigh(reader, row)?;
    if samples.len() == ROWS_MAX {
        let what = format!("table sample has more than {ROWS_MAX} rows");
        return Err(too_large(path, what));
    }
    let last = samples.last().map(|last| last.id);
    // Read where it stays: a sample is large, and there may be many.
    let sample = samples.push_mut(Sample::default());
    reader.read(row, sample)?;
    let id = sample.id;
    if last.is_some_and(|last| last >= id) {
        let what = format!("sample {id} is not in the order of the samples");
        return Err(damaged(path, what));
    }
    let place = usize::try_from(sample.cell).ok();
    if place.is_none_or(|place| place >= cells) {
        let cell = sample.cell;
        let what = format!("sample {id} is of an unknown cell {cell}");
        return Err(damaged(path, what));
    }
    let verified = sample.verified.unwrap_or_default();
    if verified
        .faults
        .iter()
        .any(|faults| faults.blocks > verified.blocks)
    {
        let what = format!("sample {id} has more faulty blocks than were read back");
        return Err(damaged(path, what));
    }
    Ok(())
}
