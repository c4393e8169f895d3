//! The targets of cells: their paths byte for byte, and names that distinguish equal ones of several runs.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::environment::{Environment, KEYS};
use crate::{Cell, RunRecord, TargetKind};
use iolab_workload::names::TargetName;

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

    /// The facts that apply to the target of a cell; if its groups use several targets, the facts of the machine.
    pub fn environment_of(&self, cell: &Cell) -> Cow<'_, Environment> {
        match self.target_of(cell) {
            Some(0) => Cow::Borrowed(&self.environment),
            Some(number) => Cow::Owned(self.environment.of_target(number)),
            None => Cow::Owned(self.environment.of_machine()),
        }
    }
}

/// The bytes of a path that is not UTF-8; `None` if text keeps it.
pub fn beyond_text(path: &Path) -> Option<Vec<u8>> {
    let bytes = || path.as_os_str().as_encoded_bytes().to_owned();
    path.to_str().is_none().then(bytes)
}

/// The paths of the targets of a run, its own first.
pub fn target_paths(record: &RunRecord) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = record.targets().map(PathBuf::from).collect();
    let exact = record.environment.get(&KEYS.target_path_hex);
    // A file may come from a stranger: the path that is opened has to be the one that is shown.
    if let Some(exact) = exact
        .and_then(of_bytes)
        .filter(|path| path.display().to_string() == record.run.target)
    {
        paths[0] = exact;
    }
    paths
}

/// The path of these bytes; `None` on systems whose paths are not bytes, which cannot have such a target.
fn of_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt;
        Some(std::ffi::OsString::from_vec(bytes).into())
    }
    #[cfg(not(unix))]
    {
        drop(bytes);
        None
    }
}

/// A target of one of several runs that the user gave no name.
struct Unnamed {
    run: usize,
    number: usize,
    path: String,
    storage: String,
    /// Its host, the model of its device and the device; empty if unknown.
    places: [String; 3],
}

/// Number of choices of the [`Unnamed::places`] that follow a path: each is a set of bits, one for each place.
const CHOICES: usize = 8;

impl Unnamed {
    /// The path with some facts about its place: `/data on alpha/X1`.
    fn name(&self, choice: usize) -> String {
        let places = self.places.iter().enumerate();
        let chosen = places.filter(|(bit, place)| choice >> bit & 1 == 1 && !place.is_empty());
        let places: Vec<&str> = chosen.map(|(_, place)| place.as_str()).collect();
        match places.is_empty() {
            true => self.path.clone(),
            false => format!("{} on {}", self.path, places.join("/")),
        }
    }
}

/// Gives targets of these runs names of their own if a path is not the same storage in all of them. The name is the path
/// with the host, the model of the device or the device, or with as many of them as distinguish the storage (`/data on
/// alpha/X1`). A name that the user gave stays, and so does a path without known differences.
pub fn tell_targets_apart<'a>(records: impl IntoIterator<Item = &'a mut RunRecord>) {
    let mut records: Vec<&mut RunRecord> = records.into_iter().collect();
    let of_run = |(run, record): (usize, &&mut RunRecord)| {
        let paths = record.targets().enumerate();
        let unnamed = paths.filter_map(|(number, path)| {
            let of = &record.environment;
            let known = |key| of.get_of(number, key).unwrap_or_default();
            of.get_of(number, &KEYS.target_name)
                .is_none()
                .then(|| Unnamed {
                    run,
                    number,
                    path: path.to_owned(),
                    storage: record.storage_of(number),
                    places: [
                        of.get(&KEYS.host_name).unwrap_or_default(),
                        known(&KEYS.device_model),
                        known(&KEYS.device),
                    ],
                })
        });
        unnamed.collect::<Vec<_>>()
    };
    let mut of_paths: BTreeMap<String, Vec<Unnamed>> = BTreeMap::new();
    for one in records.iter().enumerate().flat_map(of_run) {
        of_paths.entry(one.path.clone()).or_default().push(one);
    }
    for of_path in of_paths.values() {
        let choice = choice(of_path);
        for one in of_path {
            let name = one.name(choice);
            if name == one.path {
                continue;
            }
            let mut own = Environment::default();
            own.put(&KEYS.target_name, name);
            let environment = &mut records[one.run].environment;
            match one.number {
                0 => environment.extend(own),
                number => environment.put_target(number, own),
            }
        }
    }
}

/// The first choice with which different storage of a path has different names, or else one with the most names.
fn choice(of_path: &[Unnamed]) -> usize {
    let storage: BTreeSet<&str> = of_path.iter().map(|one| one.storage.as_str()).collect();
    let names = |choice: &usize| {
        let names: BTreeSet<String> = of_path.iter().map(|one| one.name(*choice)).collect();
        names.len()
    };
    let all_differ = (0..CHOICES).find(|choice| names(choice) >= storage.len());
    // Among equally good choices, `max_by_key` returns the last one.
    let best = || (0..CHOICES).rev().max_by_key(names);
    all_differ.or_else(best).unwrap_or_default()
}
