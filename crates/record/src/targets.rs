//! Which target a cell of a run works on, where the run has several.

use std::borrow::Cow;

use iolab_spec::target::TargetName;

use crate::environment::Environment;
use crate::{Cell, RunRecord};

impl RunRecord {
    /// The paths of all targets: that of table `run`, then those of table `target`.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        let further = self.further_targets.iter();
        std::iter::once(self.run.target.as_str()).chain(further.map(|t| t.target.as_str()))
    }

    /// The paths of all targets in one text.
    pub fn target_text(&self) -> String {
        self.targets().collect::<Vec<_>>().join(", ")
    }

    /// The number of the target that a cell works on: 0 for that of table `run`.
    pub fn target_of(&self, cell: &Cell) -> usize {
        self.target_number(cell.spec.target.as_ref())
    }

    /// The number of the target of a name; 0 without one.
    pub fn target_number(&self, named: Option<&TargetName>) -> usize {
        let found = named.and_then(|name| self.targets().position(|t| t == name.as_str()));
        found.unwrap_or(0)
    }

    /// The path of the target that a cell works on.
    pub fn target_path_of(&self, cell: &Cell) -> &str {
        let number = self.target_of(cell);
        self.targets().nth(number).unwrap_or_default()
    }

    /// The environment as it holds for the target that a cell works on.
    pub fn environment_of(&self, cell: &Cell) -> Cow<'_, Environment> {
        match self.target_of(cell) {
            0 => Cow::Borrowed(&self.environment),
            number => Cow::Owned(self.environment.of_target(number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FurtherTarget;

    #[test]
    fn cells_find_their_target_by_its_path() {
        let mut record = RunRecord::default();
        record.run.target = "/a".to_owned();
        record.further_targets = vec![FurtherTarget {
            id: 1,
            target: "/b".to_owned(),
            ..FurtherTarget::default()
        }];
        let mut cell = Cell::default();
        assert_eq!(record.target_path_of(&cell), "/a");
        cell.spec.target = "/b".parse().ok();
        assert_eq!(record.target_of(&cell), 1);
        assert_eq!(record.target_path_of(&cell), "/b");
    }
}
