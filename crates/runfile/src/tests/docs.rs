//! RUNFILE.md documents every column and every key of the environment as the tables define them.

use std::fmt::Write;

use crate::schema::type_name;
use iolab_record::column::{Access, Column, Table};
use iolab_record::environment;
use iolab_record::tables::{
    CELL, CELL_GROUP, CLIENT_SAMPLE, ENVIRONMENT, EVENT, EXPERIMENT, GROUP_SAMPLE, LATENCY,
    LATENCY_OVER_TIME, PART, PREPARATION, QUESTION, QUESTION_LEVEL, RANK, RUN, SAMPLE, SERIES,
    TARGET, WITNESS, WITNESS_DEVICE, WITNESS_DISK, WITNESS_FILE, WITNESS_MOMENT,
    WITNESS_MOMENT_DEVICE, WITNESS_PROCESS,
};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/RUNFILE.md");

/// The type of a column, in words.
fn kind<T>(column: &Column<T>) -> String {
    match column.access {
        Access::Flag(..) => "0 or 1".to_owned(),
        _ => type_name(column).to_lowercase(),
    }
}

/// Columns of one type that are documented together have one row; the settings of a group are those of its cell.
fn rows<T>(table: &Table<T>) -> String {
    let of_cell = |column: &&Column<T>| {
        table.name == "cell_group" && matches!(column.access, Access::Setting(..))
    };
    let mut rows: Vec<(Vec<&Column<T>>, &str)> = Vec::new();
    for column in table.stored().filter(|column| !of_cell(column)) {
        let same = |(columns, doc): &&mut (Vec<&Column<T>>, &str)| {
            *doc == column.doc && kind(columns[0]) == kind(column)
        };
        match rows.iter_mut().find(same) {
            Some((columns, _)) => columns.push(column),
            None => rows.push((vec![column], column.doc)),
        }
    }
    let mut text = match table.exported {
        true => "| column | type | exported | meaning |\n|---|---|---|---|\n",
        false => "| column | type | meaning |\n|---|---|---|\n",
    }
    .to_owned();
    for (columns, doc) in rows {
        assert!(!doc.is_empty(), "{} has no meaning", columns[0].name);
        let names: Vec<String> = columns.iter().map(|c| format!("`{}`", c.name)).collect();
        let kind = kind(columns[0]);
        let shown = match (table.exported, columns[0].exported) {
            (false, _) => "",
            (true, false) => " |",
            (true, true) => " yes |",
        };
        let doc = doc.replace('|', "\\|");
        let names = names.join(", ");
        let _ = writeln!(text, "| {names} | {kind} |{shown} {doc} |");
    }
    text
}

/// The document with the current rows of a table.
fn with<T>(document: String, table: &Table<T>) -> String {
    let begin = format!("<!-- columns of {} -->\n", table.name);
    let heading = format!("## `{}`: {}\n", table.name, table.doc);
    assert!(document.contains(&heading), "no heading {heading}");
    between(&document, &begin, &rows(table))
}

/// The document with this text between a mark and the next end.
fn between(document: &str, begin: &str, text: &str) -> String {
    let (before, rest) = document.split_once(begin).expect(begin);
    let (_, after) = rest.split_once("<!-- end -->").expect("an end");
    format!("{before}{begin}{text}<!-- end -->{after}")
}

/// The keys of the environment.
fn keys() -> String {
    let mut text = "| key | value | meaning |\n|---|---|---|\n".to_owned();
    for key in environment::ALL {
        let _ = writeln!(text, "| `{}` | {} | {} |", key.name, key.words, key.doc);
    }
    text
}

#[test]
fn every_column_is_told() {
    let document = std::fs::read_to_string(DOCS).expect("the documentation");
    let mut wanted = with(document.clone(), &RUN);
    wanted = with(wanted, &TARGET);
    wanted = with(wanted, &RANK);
    wanted = with(wanted, &ENVIRONMENT);
    wanted = between(&wanted, "<!-- keys of environment -->\n", &keys());
    wanted = with(wanted, &EXPERIMENT);
    wanted = with(wanted, &QUESTION);
    wanted = with(wanted, &QUESTION_LEVEL);
    wanted = with(wanted, &CELL);
    wanted = with(wanted, &CELL_GROUP);
    wanted = with(wanted, &SAMPLE);
    wanted = with(wanted, &GROUP_SAMPLE);
    wanted = with(wanted, &CLIENT_SAMPLE);
    wanted = with(wanted, &PART);
    wanted = with(wanted, &LATENCY);
    wanted = with(wanted, &SERIES);
    wanted = with(wanted, &LATENCY_OVER_TIME);
    wanted = with(wanted, &PREPARATION);
    wanted = with(wanted, &EVENT);
    wanted = with(wanted, &WITNESS);
    wanted = with(wanted, &WITNESS_FILE);
    wanted = with(wanted, &WITNESS_DEVICE);
    wanted = with(wanted, &WITNESS_DISK);
    wanted = with(wanted, &WITNESS_PROCESS);
    wanted = with(wanted, &WITNESS_MOMENT);
    wanted = with(wanted, &WITNESS_MOMENT_DEVICE);
    if std::env::var_os("IOLAB_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(DOCS, &wanted).expect("can be written");
    }
    let same = std::fs::read_to_string(DOCS).expect("the documentation") == wanted;
    assert!(
        same,
        "docs/RUNFILE.md tells other columns or keys than there are: IOLAB_GOLDEN=write cargo test -p iolab-runfile every_column writes them"
    );
}
