//! The levels of a factor.

use std::collections::HashSet;

use super::Analysis;

impl Analysis {
    /// The levels of a factor, by its place in [`Analysis::factors`], in the order of the cells; none where there is no such factor.
    pub fn levels(&self, factor: usize) -> Vec<&str> {
        let mut seen = HashSet::new();
        let cells = self.cells.iter();
        let levels = cells.filter_map(|cell| cell.cell.levels.get(factor));
        let levels = levels.map(String::as_str);
        levels.filter(|level| seen.insert(*level)).collect()
    }
}
