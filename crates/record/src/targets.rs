//! The targets of cells, in runs with several.

use std::borrow::Cow;

use iolab_workload::names::TargetName;

use crate::environment::{Environment, KEYS};
use crate::{Cell, RunRecord, TargetKind};

/// The target of an imported run whose report does not name any.
pub const UNKNOWN_TARGET: &str = "an unknown target";

impl RunRecord {
    /// The paths of all targets: of table `run`, then of table `target`.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        let further = self.further_targets.iter();
        std::iter::once(self.run.target.as_str()).chain(further.map(|t| t.target.as_str()))
    }

    /// The kinds of all targets, in the same order.
    pub fn target_kinds(&self) -> impl Iterator<Item = TargetKind> {
        let further = self.further_targets.iter();
        std::iter::once(self.run.target_kind).chain(further.map(|t| t.kind))
    }

    /// The sizes of all targets in the same order, bytes.
    pub fn target_bytes(&self) -> impl Iterator<Item = u64> {
        let further = self.further_targets.iter();
        std::iter::once(self.run.target_bytes).chain(further.map(|t| t.bytes))
    }

    /// Names of the targets: as given by the user, otherwise their paths.
    pub fn target_names(&self) -> impl Iterator<Item = String> {
        let named = self.targets().enumerate();
        named.map(|(number, path)| {
            let given = self.environment.get_of(number, &KEYS.target_name);
            given.unwrap_or_else(|| path.to_owned())
        })
    }

    /// Identifies the storage of the target of this number, as far as the run records it: host, device and its model, or
    /// the digest of a modelled disk.
    pub fn storage_of(&self, number: usize) -> String {
        let known = |key| self.environment.get_of(number, key).unwrap_or_default();
        let parts: [String; 4] = [
            known(&KEYS.host_name),
            known(&KEYS.device),
            known(&KEYS.device_model),
            known(&KEYS.model_digest),
        ];
        parts.join(" ")
    }

    /// The names of all targets in one text.
    pub fn target_text(&self) -> String {
        self.target_names().collect::<Vec<_>>().join(", ")
    }

    /// The name of a target; of the run's own target without a path.
    pub fn target_called(&self, named: Option<&TargetName>) -> String {
        let number = match named {
            None => Some(0),
            Some(named) => self.targets().position(|path| path == named.as_str()),
        };
        let name = number.and_then(|number| self.target_names().nth(number));
        name.unwrap_or_else(|| named.map(TargetName::to_string).unwrap_or_default())
    }

    /// The distinct numbers of the targets of a cell: with groups, of the active ones. 0 is the target of table `run`.
    pub fn targets_of(&self, cell: &Cell) -> Vec<usize> {
        let named = cell.spec.targets().into_iter();
        let mut numbers: Vec<usize> = named.map(|name| self.target_number(name)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The number of the target of a cell; `None` if its groups use several.
    pub fn target_of(&self, cell: &Cell) -> Option<usize> {
        match self.targets_of(cell)[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The number of the target of a name; 0 without a name.
    pub fn target_number(&self, named: Option<&TargetName>) -> usize {
        let found = named.and_then(|name| self.targets().position(|t| t == name.as_str()));
        found.unwrap_or(0)
    }

    /// The paths of the targets of a cell.
    pub fn target_paths_of(&self, cell: &Cell) -> Vec<&str> {
        let numbers = self.targets_of(cell).into_iter();
        let path = |number| self.targets().nth(number).unwrap_or_default();
        numbers.map(path).collect()
    }

    /// The facts that apply to the target of a cell; if its groups use several targets, the facts of the machine.
    pub fn environment_of(&self, cell: &Cell) -> Cow<'_, Environment> {
        match self.target_of(cell) {
            Some(0) => Cow::Borrowed(&self.environment),
            Some(number) => Cow::Owned(self.environment.of_target(number)),
            None => Cow::Owned(self.environment.of_machine()),
        }
    }
}

#[cfg(test)]
mod tests {
    use iolab_workload::group::GroupSpec;
    use iolab_workload::settings::CellSpec;
    use iolab_workload::trial::Rate;

    use super::*;
    use crate::FurtherTarget;

    /// A run on `/a` and `/b`.
    fn two_targets() -> RunRecord {
        let mut record = RunRecord::default();
        record.run.target = "/a".to_owned();
        record.further_targets = vec![FurtherTarget {
            id: 1,
            target: "/b".to_owned(),
            ..FurtherTarget::default()
        }];
        record
    }

    #[test]
    fn cells_find_their_target_by_its_path() {
        let record = two_targets();
        let mut cell = Cell::default();
        assert_eq!(record.target_paths_of(&cell), ["/a"]);
        cell.spec.target = "/b".parse().ok();
        assert_eq!(record.target_of(&cell), Some(1));
        assert_eq!(record.target_paths_of(&cell), ["/b"]);
    }

    #[test]
    fn a_target_goes_by_its_given_name() {
        let mut record = two_targets();
        let mut own = Environment::default();
        own.put(&KEYS.target_name, "WD-Red".to_owned());
        record.environment.put_target(1, own);
        assert_eq!(record.target_text(), "/a, WD-Red");
        let called = |path: &str| record.target_called(path.parse().ok().as_ref());
        assert_eq!(called("/b"), "WD-Red");
        assert_eq!(record.target_called(None), "/a");
    }

    #[test]
    fn groups_use_the_targets_of_running_ones() {
        let mut record = two_targets();
        let facts = [
            ("device_link_mb_s", "600"),
            ("target_1_device_link_mb_s", "3500"),
            ("cpu", "x"),
        ];
        let facts = facts.map(|(key, value)| (key.to_owned(), value.to_owned()));
        record.environment = facts.into_iter().collect();
        let cell = |active: [bool; 2]| {
            let group = |(name, runs): (&str, bool)| {
                let mut spec = CellSpec {
                    target: name.parse().ok(),
                    ..CellSpec::default()
                };
                spec.trial.rate = (!runs).then_some(Rate::ZERO);
                GroupSpec {
                    name: "g".to_owned(),
                    spec,
                }
            };
            let mut cell = Cell::default();
            cell.spec.groups = ["/a", "/b"].into_iter().zip(active).map(group).collect();
            cell
        };
        let link = |cell: &Cell| record.environment_of(cell).get(&KEYS.device_link_mb_s);
        let (first, second, both) = (cell([true, false]), cell([false, true]), cell([true, true]));
        assert_eq!(record.target_paths_of(&second), ["/b"]);
        assert_eq!(record.target_paths_of(&both), ["/a", "/b"]);
        assert_eq!(
            [link(&first), link(&second), link(&both)],
            [Some(600.0), Some(3500.0), None]
        );
        assert_eq!(record.environment_of(&both).text("cpu"), Some("x"));
    }
}
