//! Selection of cells by their levels.

use iolab_record::{Cell, RunRecord};
use iolab_workload::settings::Setting;

/// A selection of cells by their levels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct At(Vec<(String, String)>);

impl At {
    /// Selection of all cells.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selection of the cells with these levels: `bs=4k, threads=2`.
    ///
    /// # Panics
    ///
    /// If a setting or a value does not exist.
    pub fn levels(text: &str) -> Self {
        let level = |text: &str| {
            let (name, level) = text.trim().split_once('=').expect("setting=level");
            let setting = Setting::find(name).unwrap_or_else(|| panic!("no setting {name}"));
            let level = setting.canonical(level).unwrap_or_else(|e| panic!("{e}"));
            (name.to_owned(), level)
        };
        Self(text.split(',').map(level).collect())
    }

    /// Whether a cell is selected.
    pub fn holds(&self, cell: &Cell) -> bool {
        self.0.iter().all(|(name, level)| {
            let setting = Setting::find(name).expect("looked up before");
            setting.get(&cell.spec) == *level
        })
    }

    /// Indices of the selected cells of a record.
    pub fn of(&self, record: &RunRecord) -> Vec<usize> {
        let all = 0..record.cells.len();
        all.filter(|at| self.holds(&record.cells[*at])).collect()
    }
}
