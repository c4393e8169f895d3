//! Which files, devices and servers the jobs of a report measured.

use iolab_fio::named_file::named_file;

use super::JobGroup;

/// What stands for the folder in which fio ran, which its report does not name.
const FOLDER_OF_FIO: &str = "/(folder of fio)";

/// Where jobs ran.
#[derive(Default)]
pub(super) struct Places {
    /// What all of them measured; `None` where they name nothing, or differ.
    pub(super) of_all: Option<String>,
    /// The server of all of them.
    pub(super) host: Option<String>,
    /// What each of them measured; empty where all measured the same.
    pub(super) of_each: Vec<String>,
}

impl Places {
    /// Jobs on different targets are cells of their own: they are no repetitions of each other, whatever their settings.
    pub(super) fn of(groups: &[JobGroup<'_>], notes: &mut Vec<String>) -> Self {
        let servers = shared(groups.iter().map(|group| group.first().hostname.as_str()));
        let names: Vec<Option<String>> = groups.iter().map(path_of).collect();
        let host = servers.filter(|server| !server.is_empty());
        if let (Some(_), Some(name)) = (servers, shared(names.iter())) {
            return Self {
                of_all: name.clone(),
                host: host.map(str::to_owned),
                of_each: Vec::new(),
            };
        }
        notes.push(
            "its jobs measured different files, devices or servers: each is a level of the factor target"
                .to_owned(),
        );
        let named = groups.iter().zip(names).map(|(group, name)| {
            let path = name.unwrap_or_else(|| FOLDER_OF_FIO.to_owned());
            match (servers, group.first().hostname.as_str()) {
                (None, server) if !server.is_empty() => format!("//{server}{path}"),
                _ => path,
            }
        });
        let of_each: Vec<String> = named.collect();
        if of_each.iter().any(|name| name.contains(FOLDER_OF_FIO)) {
            notes.push(format!(
                "the report does not name the folder that fio ran in: {FOLDER_OF_FIO} stands for it"
            ));
        }
        Self {
            of_all: None,
            host: host.map(str::to_owned),
            of_each,
        }
    }
}

/// What all have in common.
fn shared<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// `/dev/sda`; `None` where a job names nothing.
fn path_of(group: &JobGroup<'_>) -> Option<String> {
    let path = named_file(&group.options)?;
    let path = path.to_string_lossy();
    Some(match path.as_ref() {
        "." => FOLDER_OF_FIO.to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        path => format!(
            "{FOLDER_OF_FIO}/{}",
            path.strip_prefix("./").unwrap_or(path)
        ),
    })
}
