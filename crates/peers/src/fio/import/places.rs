//! Files, devices and servers that the jobs of a report measured.

use iolab_fio::named_file::named_file;

use super::JobGroup;

/// Placeholder for the folder in which fio ran, which its report does not name.
const FOLDER_OF_FIO: &str = "/(folder of fio)";

/// Targets and servers of jobs.
#[derive(Default)]
pub(super) struct Places {
    /// Target of all jobs; `None` if they name none, or differ.
    pub(super) of_all: Option<String>,
    /// Server of all jobs.
    pub(super) host: Option<String>,
    /// Target of each job; empty if all measured the same.
    pub(super) of_each: Vec<String>,
}

impl Places {
    /// Places of these jobs. Jobs on different targets become separate cells: they are not repetitions of each
    /// other, whatever their settings.
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

/// Common value of all, if any.
fn shared<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// Target of a job, such as `/dev/sda`; `None` if the job names none.
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
