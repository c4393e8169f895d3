//! Which of several files, devices or servers each job of a report measured.

use iolab_fio::named_file::named_file;
use iolab_fio::options::Options;

use super::JobGroup;
use crate::fio::report::FioJob;

/// What stands for the folder in which fio ran, which its report does not name.
const FOLDER_OF_FIO: &str = "/(folder of fio)";

/// The name of the target of each job; nothing where all have the same one. Jobs on different targets are cells of their own: they are no
/// repetitions of each other, whatever their settings.
pub(super) fn told_apart(groups: &[JobGroup<'_>], notes: &mut Vec<String>) -> Vec<String> {
    let names: Vec<String> = groups
        .iter()
        .map(|(options, jobs)| name_of(options, jobs))
        .collect();
    if names.windows(2).all(|pair| pair[0] == pair[1]) {
        return Vec::new();
    }
    notes.push(
        "its jobs measured different files, devices or servers: each is a level of the factor target"
            .to_owned(),
    );
    if names.iter().any(|name| name.contains(FOLDER_OF_FIO)) {
        notes.push(format!(
            "the report does not name the folder that fio ran in: {FOLDER_OF_FIO} stands for it"
        ));
    }
    names
}

/// `/dev/sda`; of a server `//SERVER/dev/sda`.
fn name_of(options: &Options, jobs: &[&FioJob]) -> String {
    let named = named_file(options).map(|path| path.to_string_lossy().into_owned());
    let path = match named {
        Some(path) if path.starts_with('/') => path,
        Some(path) if path != "." => {
            let path = path.strip_prefix("./").unwrap_or(&path);
            format!("{FOLDER_OF_FIO}/{path}")
        }
        _ => FOLDER_OF_FIO.to_owned(),
    };
    let server = jobs.first().map_or("", |job| job.hostname.as_str());
    match server {
        "" => path,
        server => format!("//{server}{path}"),
    }
}
