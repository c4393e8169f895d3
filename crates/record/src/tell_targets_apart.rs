//! Names that distinguish targets with the same path in several runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::RunRecord;
use crate::environment::{Environment, KEYS};

/// A target of one of several runs that the user gave no name.
struct Unnamed {
    run: usize,
    number: usize,
    path: String,
    storage: String,
    /// Its host, the model of its device and the device; empty if unknown.
    places: [String; 3],
}

/// Choices of the [`Unnamed::places`] that follow a path, the shortest first.
const CHOICES: [[bool; 3]; 8] = [
    [false, false, false],
    [true, false, false],
    [false, true, false],
    [true, true, false],
    [false, false, true],
    [true, false, true],
    [false, true, true],
    [true, true, true],
];

impl Unnamed {
    /// The path with some facts about its place: `/data on alpha/X1`.
    fn name(&self, choice: [bool; 3]) -> String {
        let chosen = self.places.iter().zip(choice);
        let chosen = chosen.filter(|(place, is_chosen)| *is_chosen && !place.is_empty());
        let places: Vec<&str> = chosen.map(|(place, _)| place.as_str()).collect();
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
fn choice(of_path: &[Unnamed]) -> [bool; 3] {
    let storage: BTreeSet<&str> = of_path.iter().map(|one| one.storage.as_str()).collect();
    let names = |choice: &[bool; 3]| {
        let names: BTreeSet<String> = of_path.iter().map(|one| one.name(*choice)).collect();
        names.len()
    };
    let all_differ = CHOICES.iter().find(|choice| names(choice) >= storage.len());
    // Among equally good choices, `max_by_key` returns the last one.
    let best = || CHOICES.iter().rev().max_by_key(|choice| names(choice));
    all_differ.or_else(best).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(host: &str, device: &str) -> RunRecord {
        let mut record = RunRecord::default();
        record.run.target = "/data".to_owned();
        record.environment.put(&KEYS.host_name, host.to_owned());
        record
            .environment
            .put(&KEYS.device_model, device.to_owned());
        record
    }

    fn names(mut records: Vec<RunRecord>) -> Vec<String> {
        tell_targets_apart(&mut records);
        records.iter().map(RunRecord::target_text).collect()
    }

    #[test]
    fn a_path_on_two_hosts_is_two_targets() {
        let two = vec![run("alpha", "X1"), run("beta", "X1"), run("alpha", "X1")];
        assert_eq!(
            names(two),
            ["/data on alpha", "/data on beta", "/data on alpha"]
        );
    }

    #[test]
    fn a_path_on_two_disks_is_two_targets() {
        let two = vec![run("alpha", "X1"), run("alpha", "X2")];
        assert_eq!(names(two), ["/data on X1", "/data on X2"]);
    }

    #[test]
    fn devices_of_one_model_are_distinguished() {
        let on = |device: &str| {
            let mut record = run("lab", "X1");
            record.environment.put(&KEYS.device, device.to_owned());
            record
        };
        assert_eq!(
            names(vec![on("sda"), on("sdb"), on("sda")]),
            ["/data on sda", "/data on sdb", "/data on sda"]
        );
    }

    #[test]
    fn several_disks_per_host_need_both_in_names() {
        let four = [
            ("alpha", "X1"),
            ("alpha", "X2"),
            ("beta", "X1"),
            ("beta", "X2"),
        ];
        assert_eq!(
            names(four.map(|(host, model)| run(host, model)).to_vec()),
            [
                "/data on alpha/X1", "/data on alpha/X2", "/data on beta/X1", "/data on beta/X2"
            ]
        );
        let mut all = Vec::new();
        for host in ["alpha", "beta"] {
            for (model, device) in [("X1", "sda"), ("X1", "sdb"), ("X2", "sda")] {
                let mut record = run(host, model);
                record.environment.put(&KEYS.device, device.to_owned());
                all.push(record);
            }
        }
        let all = names(all);
        assert_eq!(all[0], "/data on alpha/X1/sda");
        assert_eq!(BTreeSet::from_iter(&all).len(), 6);
    }

    #[test]
    fn storage_without_known_differences_keeps_the_shortest_name() {
        let model = |digest: &str| {
            let mut record = run("alpha", "X1");
            record
                .environment
                .put(&KEYS.model_digest, digest.to_owned());
            record
        };
        let all = vec![model("1"), model("2"), run("beta", "X1")];
        assert_eq!(
            names(all),
            ["/data on alpha", "/data on alpha", "/data on beta"]
        );
    }

    #[test]
    fn unshared_or_indistinguishable_names_stay() {
        assert_eq!(
            names(vec![run("alpha", "X1"), run("alpha", "X1")]),
            ["/data"; 2]
        );
        let mut elsewhere = run("beta", "X1");
        elsewhere.run.target = "/mnt".to_owned();
        assert_eq!(
            names(vec![run("alpha", "X1"), elsewhere]),
            ["/data", "/mnt"]
        );
        let mut named = run("beta", "X1");
        named
            .environment
            .put(&KEYS.target_name, "backup".to_owned());
        assert_eq!(names(vec![run("alpha", "X1"), named]), ["/data", "backup"]);
        assert_eq!(
            names(vec![run("", ""), run("", "X1")]),
            ["/data", "/data on X1"]
        );
    }
}
