//! Names of targets that several runs call alike.

use crate::RunRecord;
use crate::environment::{Environment, KEYS};

/// A target of one of several runs that the user gave no name.
struct Unnamed {
    run: usize,
    number: usize,
    path: String,
    storage: String,
    host: Option<String>,
    device: Option<String>,
}

/// Gives targets of these runs names of their own where a path is not the same storage in all of them: the path with the host (`/data on alpha`), or
/// with the device where the hosts are the same or not known. A name that the user gave stays, and so does a path of which nothing more is known.
pub fn tell_targets_apart<'a>(records: impl IntoIterator<Item = &'a mut RunRecord>) {
    let mut records: Vec<&mut RunRecord> = records.into_iter().collect();
    let of_run = |(run, record): (usize, &&mut RunRecord)| {
        let paths = record.targets().enumerate();
        let unnamed = paths.filter_map(|(number, path)| {
            let of = &record.environment;
            of.get_of(number, &KEYS.target_name)
                .is_none()
                .then(|| Unnamed {
                    run,
                    number,
                    path: path.to_owned(),
                    storage: record.storage_of(number),
                    host: of.get(&KEYS.host_name),
                    device: of
                        .get_of(number, &KEYS.device_model)
                        .or_else(|| of.get_of(number, &KEYS.device)),
                })
        });
        unnamed.collect::<Vec<_>>()
    };
    let all: Vec<Unnamed> = records.iter().enumerate().flat_map(of_run).collect();
    for one in &all {
        let is_other = |other: &&Unnamed| other.path == one.path && other.storage != one.storage;
        let mut others = all.iter().filter(is_other).peekable();
        if others.peek().is_none() {
            continue;
        }
        let name = match (&one.host, &one.device) {
            (Some(host), _) if others.all(|other| other.host.as_ref() != Some(host)) => {
                format!("{} on {host}", one.path)
            }
            (_, Some(device)) => format!("{} on {device}", one.path),
            _ => continue,
        };
        let mut own = Environment::default();
        own.put(&KEYS.target_name, name);
        let environment = &mut records[one.run].environment;
        match one.number {
            0 => environment.extend(own),
            number => environment.put_target(number, own),
        }
    }
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
    fn a_path_on_two_disks_of_a_host_is_two_targets() {
        let two = vec![run("alpha", "X1"), run("alpha", "X2")];
        assert_eq!(names(two), ["/data on X1", "/data on X2"]);
    }

    #[test]
    fn names_stay_where_they_are_not_shared_or_nothing_more_is_known() {
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
