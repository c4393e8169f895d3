//! Columns of the tables of a run file: each with its name, its type, how it is read and written, where exports show it,
//! and what it means. The schema, the reader, the writer, the exports and RUNFILE.md follow from these.

use std::borrow::Cow;

use iolab_workload::settings::{CellSpec, Setting};

use crate::SCHEMA_OLDEST;

/// Greatest number of bytes, requests or nanoseconds that one trial can have had: 1 EiB, 36 years. The sum of a few
/// numbers of a sample stays within its type then.
pub const COUNT_MAX: u64 = 1 << 60;

/// How a value gets out of a row and into one. Nothing is NULL in the file.
pub enum Access<T: 'static> {
    /// A whole number.
    Number(fn(&T) -> Option<u64>, fn(&mut T, u64)),
    /// A number.
    Real(fn(&T) -> Option<f64>, fn(&mut T, f64)),
    /// 0 or 1.
    Flag(fn(&T) -> Option<bool>, fn(&mut T, bool)),
    /// Text; false for one that cannot be.
    Text(
        for<'a> fn(&'a T) -> Option<Cow<'a, str>>,
        fn(&mut T, &str) -> bool,
    ),
    /// Bytes.
    Bytes(for<'a> fn(&'a T) -> &'a [u8], fn(&mut T, &[u8])),
    /// A setting of a cell, as its table has it.
    Setting(
        &'static Setting,
        fn(&T) -> &CellSpec,
        fn(&mut T) -> &mut CellSpec,
    ),
}

/// When a value may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Null {
    /// Never.
    Never,
    /// When the account that it belongs to is missing as a whole, or when its value says so.
    Account,
    /// Whenever.
    Free,
}

/// One column of a table whose rows are a `T`.
pub struct Column<T: 'static> {
    /// Its name, which carries the unit.
    pub name: &'static str,
    /// How it is read and written.
    pub access: Access<T>,
    /// Least and greatest of its whole numbers.
    pub bounds: (u64, u64),
    /// Least and greatest of its other numbers.
    pub range: (f64, f64),
    /// The words that it may hold; any text where there are none.
    pub words: &'static [&'static str],
    /// When it may be NULL.
    pub null: Null,
    /// The schema version that brought it, or the oldest one that is read. A file of an earlier version may hold it all the
    /// same; where it does not, what it would hold is as it was before there was one.
    pub since: i64,
    /// Whether the file holds it; exports have some that follow from others.
    pub stored: bool,
    /// Whether exports show it.
    pub exported: bool,
    /// Whether it numbers the rows.
    pub key: bool,
    /// What it means, in one line; the same for columns that are reported together.
    pub doc: &'static str,
}

impl<T> Column<T> {
    const fn of(name: &'static str, access: Access<T>) -> Self {
        Self {
            name,
            access,
            bounds: (0, COUNT_MAX),
            range: (f64::MIN, f64::MAX),
            words: &[],
            null: Null::Never,
            since: SCHEMA_OLDEST,
            stored: true,
            exported: true,
            key: false,
            doc: "",
        }
    }

    /// A whole number from 0 to [`COUNT_MAX`].
    pub const fn number(
        name: &'static str,
        get: fn(&T) -> Option<u64>,
        put: fn(&mut T, u64),
    ) -> Self {
        Self::of(name, Access::Number(get, put))
    }

    /// A number of either sign.
    pub const fn real(
        name: &'static str,
        get: fn(&T) -> Option<f64>,
        put: fn(&mut T, f64),
    ) -> Self {
        Self::of(name, Access::Real(get, put))
    }

    /// 0 or 1.
    pub const fn flag(
        name: &'static str,
        get: fn(&T) -> Option<bool>,
        put: fn(&mut T, bool),
    ) -> Self {
        Self::of(name, Access::Flag(get, put))
    }

    /// Text.
    pub const fn text(
        name: &'static str,
        get: for<'a> fn(&'a T) -> Option<Cow<'a, str>>,
        put: fn(&mut T, &str) -> bool,
    ) -> Self {
        Self::of(name, Access::Text(get, put))
    }

    /// Bytes.
    pub const fn bytes(
        name: &'static str,
        get: for<'a> fn(&'a T) -> &'a [u8],
        put: fn(&mut T, &[u8]),
    ) -> Self {
        Self::of(name, Access::Bytes(get, put))
    }

    /// A setting of a cell.
    pub const fn setting(
        setting: &'static Setting,
        get: fn(&T) -> &CellSpec,
        put: fn(&mut T) -> &mut CellSpec,
    ) -> Self {
        let mut column = Self::of(setting.column, Access::Setting(setting, get, put));
        column.since = setting.since;
        column.null = Null::Free;
        column.exported = setting.exported;
        column.doc = setting.doc;
        column
    }

    /// It came with this schema version.
    pub const fn since(mut self, version: i64) -> Self {
        self.since = version;
        self
    }

    /// Least and greatest of its numbers that are not whole.
    pub const fn within(mut self, least: f64, greatest: f64) -> Self {
        self.range = (least, greatest);
        self
    }

    /// Least and greatest of its whole numbers.
    pub const fn between(mut self, least: u64, greatest: u64) -> Self {
        self.bounds = (least, greatest);
        self
    }

    /// Any number that fits a run file.
    pub const fn any(self) -> Self {
        self.between(0, i64::MAX as u64)
    }

    /// It holds one of these words.
    pub const fn one_of(mut self, words: &'static [&'static str]) -> Self {
        self.words = words;
        self
    }

    /// When it may be NULL.
    pub const fn null(mut self, null: Null) -> Self {
        self.null = null;
        self
    }

    /// It numbers the rows.
    pub const fn key(mut self) -> Self {
        self.key = true;
        self.any()
    }

    /// It is in the file, and in no export.
    pub const fn hidden(mut self) -> Self {
        self.exported = false;
        self
    }

    /// It is in exports, and follows from what the file has.
    pub const fn derived(mut self) -> Self {
        self.stored = false;
        self
    }

    /// What it means.
    pub const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }
}

/// A table of a run file.
pub struct Table<T: 'static> {
    /// Its name.
    pub name: &'static str,
    /// What its rows are, for RUNFILE.md.
    pub doc: &'static str,
    /// Whether exports show its columns.
    pub exported: bool,
    /// Its columns, in the order of exports.
    pub columns: Vec<Column<T>>,
    /// What SQLite gets besides: keys, references.
    pub constraints: &'static [&'static str],
}

impl<T> Table<T> {
    /// The schema version that brought it: that of its first columns.
    pub fn since(&self) -> i64 {
        let versions = self.stored().map(|column| column.since);
        versions.min().unwrap_or(SCHEMA_OLDEST)
    }

    /// The columns that the file has.
    pub fn stored(&self) -> impl Iterator<Item = &Column<T>> {
        self.columns.iter().filter(|column| column.stored)
    }
}
