//! Columns of the tables of a run file: name, type, access, place in exports, and meaning. The schema, the reader, the writer,
//! the exports and RUNFILE.md are generated from these.

use std::borrow::Cow;

use iolab_workload::settings::{CellSpec, Setting};

/// Highest number of bytes, requests or nanoseconds of a trial: 1 EiB, 36 years. The sum of a few numbers of a sample then fits
/// their type.
pub const COUNT_MAX: u64 = 1 << 60;

type Get<T, V> = Box<dyn Fn(&T) -> Option<V> + Send + Sync>;
type Put<T, V> = Box<dyn Fn(&mut T, V) + Send + Sync>;

/// Reads a value from a row, and writes it into one. A value of `None` is NULL in the file.
pub enum Access<T: 'static> {
    /// A non-negative integer.
    Number(Get<T, u64>, Put<T, u64>),
    /// A floating-point number.
    Real(Get<T, f64>, Put<T, f64>),
    /// 0 or 1.
    Flag(fn(&T) -> Option<bool>, fn(&mut T, bool)),
    /// Text; the setter returns false for an invalid one.
    Text(
        for<'a> fn(&'a T) -> Option<Cow<'a, str>>,
        fn(&mut T, &str) -> bool,
    ),
    /// Bytes, which readers fetch one by one.
    Bytes(for<'a> fn(&'a T) -> Cow<'a, [u8]>),
    /// A setting of a cell.
    Setting(
        &'static Setting,
        fn(&T) -> &CellSpec,
        fn(&mut T) -> &mut CellSpec,
    ),
}

impl<T> Access<T> {
    /// A non-negative integer.
    pub fn number(
        get: impl Fn(&T) -> Option<u64> + Send + Sync + 'static,
        put: impl Fn(&mut T, u64) + Send + Sync + 'static,
    ) -> Self {
        Self::Number(Box::new(get), Box::new(put))
    }

    /// A floating-point number.
    pub fn real(
        get: impl Fn(&T) -> Option<f64> + Send + Sync + 'static,
        put: impl Fn(&mut T, f64) + Send + Sync + 'static,
    ) -> Self {
        Self::Real(Box::new(get), Box::new(put))
    }
}

/// When a value may be NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Null {
    /// Never.
    Never,
    /// When the whole group of columns that it belongs to is missing, or its value says so.
    Account,
    /// Always.
    Free,
}

/// One column of a table whose rows are a `T`.
pub struct Column<T: 'static> {
    /// Its name, including the unit.
    pub name: &'static str,
    /// Type of the column, with the functions that read and write it.
    pub access: Access<T>,
    /// Lowest and highest valid integer.
    pub bounds: (u64, u64),
    /// Lowest and highest valid floating-point number.
    pub range: (f64, f64),
    /// The valid words; empty if any text is valid.
    pub words: &'static [&'static str],
    /// When it may be NULL.
    pub null: Null,
    /// Whether the file has it; some columns of exports are computed.
    pub stored: bool,
    /// Whether exports include it.
    pub exported: bool,
    /// Whether it is the row number.
    pub key: bool,
    /// Its meaning in one line; the same for columns documented together.
    pub doc: &'static str,
}

impl<T> Column<T> {
    /// A column that exports include, of integers up to [`COUNT_MAX`], floating-point numbers of either sign, or any text.
    pub const fn of(name: &'static str, access: Access<T>) -> Self {
        Self {
            name,
            access,
            bounds: (0, COUNT_MAX),
            range: (f64::MIN, f64::MAX),
            words: &[],
            null: Null::Never,
            stored: true,
            exported: true,
            key: false,
            doc: "",
        }
    }

    /// A column with a setting of a cell.
    pub const fn setting(
        setting: &'static Setting,
        get: fn(&T) -> &CellSpec,
        put: fn(&mut T) -> &mut CellSpec,
    ) -> Self {
        let mut column = Self::of(setting.column, Access::Setting(setting, get, put));
        column.null = Null::Free;
        column.exported = setting.exported;
        column.doc = setting.doc;
        column
    }

    /// Sets the range of floating-point numbers.
    pub const fn within(mut self, least: f64, greatest: f64) -> Self {
        self.range = (least, greatest);
        self
    }

    /// Sets the range of integers.
    pub const fn between(mut self, least: u64, greatest: u64) -> Self {
        self.bounds = (least, greatest);
        self
    }

    /// Allows any integer that fits a run file.
    pub const fn any(self) -> Self {
        self.between(0, i64::MAX as u64)
    }

    /// Sets the valid words.
    pub const fn one_of(mut self, words: &'static [&'static str]) -> Self {
        self.words = words;
        self
    }

    /// Sets when it may be NULL.
    pub const fn null(mut self, null: Null) -> Self {
        self.null = null;
        self
    }

    /// Whether a row has no value in it. Settings and bytes always have one.
    pub fn is_null(&self, row: &T) -> bool {
        match &self.access {
            Access::Number(get, _) => get(row).is_none(),
            Access::Real(get, _) => get(row).is_none(),
            Access::Flag(get, _) => get(row).is_none(),
            Access::Text(get, _) => get(row).is_none(),
            Access::Bytes(_) | Access::Setting(..) => false,
        }
    }

    /// Makes it the row number.
    pub const fn key(mut self) -> Self {
        self.key = true;
        self.any()
    }

    /// Leaves it out of exports.
    pub const fn hidden(mut self) -> Self {
        self.exported = false;
        self
    }

    /// Makes it a computed column of exports that the file lacks.
    pub const fn derived(mut self) -> Self {
        self.stored = false;
        self
    }

    /// Sets its meaning.
    pub const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }
}

/// A table of a run file.
pub struct Table<T: 'static> {
    /// Name of the table.
    pub name: &'static str,
    /// The meaning of its rows, for RUNFILE.md.
    pub doc: &'static str,
    /// Its columns, in the order of exports.
    pub columns: Vec<Column<T>>,
    /// Further constraints for SQLite: keys, references.
    pub constraints: &'static [&'static str],
}

impl<T> Table<T> {
    /// The columns that the file has.
    pub fn stored(&self) -> impl Iterator<Item = &Column<T>> {
        self.columns.iter().filter(|column| column.stored)
    }
}
