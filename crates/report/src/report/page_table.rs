//! A table as a page shows it: its title, its notes and its rows. Notes common to all tables appear once, above
//! them.

use super::captioned::Captioned;
use super::section::Section;
use crate::layout::Grid;

/// Most characters of a value on one line. Longer values, such as the paths of a stripe, would push the next
/// numbers out of sight.
const ON_ONE_LINE: usize = 32;

/// A table with its caption in two parts.
#[derive(Debug)]
pub(super) struct PageTable<'a> {
    /// Title of the table.
    pub(super) title: &'a str,
    /// Notes that a reader needs; may be empty.
    pub(super) notes: String,
    pub(super) grid: &'a Grid,
    /// The id of each row; empty if rows do not stand for cells.
    ids: Vec<String>,
}

impl<'a> PageTable<'a> {
    /// The table with all of its notes.
    pub(super) fn of(table: &'a Captioned) -> Self {
        Shared(Vec::new()).without(table)
    }

    /// The classes of the value in a column; empty where it has none.
    pub(super) fn class(&self, column: &usize, value: &str) -> &'static str {
        let is_right = self
            .grid
            .headings
            .get(*column)
            .is_some_and(|(_, right)| *right);
        match (is_right, value.chars().count() > ON_ONE_LINE) {
            (false, false) => "",
            (true, false) => "r",
            (false, true) => "long",
            (true, true) => "r long",
        }
    }

    /// The id of a row; empty where it has none.
    pub(super) fn id(&self, row: &usize) -> &str {
        self.ids.get(*row).map_or("", String::as_str)
    }
}

/// Notes that all tables have.
#[derive(Debug)]
pub(super) struct Shared(Vec<String>);

impl Shared {
    /// The notes that all of these tables share; none for a single table.
    pub(super) fn of<'a>(tables: impl Iterator<Item = &'a Captioned>) -> Self {
        let notes = tables.map(|table| split(&table.caption).1);
        let all: Vec<Vec<&str>> = notes.collect();
        let Some((first, rest)) = all.split_first().filter(|(_, rest)| !rest.is_empty()) else {
            return Self(Vec::new());
        };
        let shared = first
            .iter()
            .filter(|note| rest.iter().all(|other| other.contains(note)));
        Self(shared.map(|note| (*note).to_owned()).collect())
    }

    /// The notes as one sentence; empty where there are none.
    pub(super) fn text(&self) -> String {
        self.0.join("; ")
    }

    /// The tables of a section without these notes.
    pub(super) fn left_out<'a>(&self, section: &'a Section) -> Vec<PageTable<'a>> {
        let mut tables: Vec<PageTable<'a>> = section
            .tables
            .iter()
            .map(|table| self.without(table))
            .collect();
        if let Some(first) = tables.first_mut() {
            let ids = section
                .cells
                .iter()
                .filter_map(|cell| section.row_id(*cell));
            first.ids = ids.collect();
        }
        tables
    }

    fn without<'a>(&self, table: &'a Captioned) -> PageTable<'a> {
        let (title, mut notes) = split(&table.caption);
        notes.retain(|note| !self.0.iter().any(|shared| shared == note));
        PageTable {
            title,
            notes: notes.join("; "),
            grid: &table.grid,
            ids: Vec::new(),
        }
    }
}

/// The title of a caption, and its notes.
fn split(caption: &str) -> (&str, Vec<&str>) {
    let end = [caption.find("; "), caption.find(". ")];
    match end.into_iter().flatten().min() {
        Some(end) => (&caption[..end], caption[end + 2..].split("; ").collect()),
        None => (caption, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_notes_of_tables_appear_once() {
        let table = |caption: &str| Captioned {
            caption: caption.to_owned(),
            grid: Grid {
                headings: Vec::new(),
                dispensable: Vec::new(),
                rows: Vec::new(),
            },
        };
        let tables = [
            table("a: speed; p50: one request; bs=1"),
            table("b; p50: one request"),
        ];
        let shared = Shared::of(tables.iter());
        assert_eq!(shared.text(), "p50: one request");
        let shown = shared.without(&tables[0]);
        assert_eq!((shown.title, shown.notes.as_str()), ("a: speed", "bs=1"));
        assert_eq!(Shared::of(tables[..1].iter()).text(), "");
    }
}
