//! Levels of a factor and of a cell.

use std::collections::HashSet;

use super::{Analysis, CellAnalysis};

impl Analysis {
    /// The cell of this id; `None` if the analysis has none, for instance for a rate that a search skipped.
    pub fn cell(&self, id: i64) -> Option<&CellAnalysis> {
        self.cells.iter().find(|cell| cell.cell.id == id)
    }

    /// The levels of the cell of this id, in the order of [`Analysis::factors`]; empty without such a cell.
    pub fn levels_of(&self, id: i64) -> &[String] {
        self.cell(id).map_or(&[], |cell| &cell.cell.levels)
    }

    /// The levels of a factor, by its place in [`Analysis::factors`], in the order of the cells; empty without
    /// such a factor.
    pub fn levels(&self, factor: usize) -> Vec<&str> {
        let mut seen = HashSet::new();
        let cells = self.cells.iter();
        let levels = cells.filter_map(|cell| cell.cell.levels.get(factor));
        let levels = levels.map(String::as_str);
        levels.filter(|level| seen.insert(*level)).collect()
    }
}
