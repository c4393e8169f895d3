//! The target of a job file.

use std::fs::{File, FileType};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use iolab_workload::Error;

use super::job_errors::Mistakes;
use super::jobs::Job;
use crate::reported::named_file;

/// The one file or directory that all jobs name; for a missing file, its folder.
pub(super) fn named_by(jobs: &[Job], mistakes: &mut Mistakes) -> Option<PathBuf> {
    let mut found: Option<PathBuf> = None;
    for (number, job) in jobs.iter().enumerate() {
        let several = [
            (
                "filename",
                "names several files",
                "give one filename in the whole job file: fio joins all filename lines of [global] and of a job",
            ),
            (
                "directory",
                "names several folders, over which fio spreads its files",
                "name one folder; 'iolab run EXPERIMENT A B' measures several",
            ),
        ];
        let several = several
            .into_iter()
            .find(|(option, ..)| names_several(job, option));
        if let Some((option, what, hint)) = several {
            let error = Error::usage(format!("{option} {what}")).hint(hint);
            mistakes.add(&job.place_of(option), error);
            continue;
        }
        let target = named_file(&job.options);
        if number > 0 && target != found {
            let error = Error::usage("the jobs use different files");
            let named = ["filename", "directory"].map(|option| job.place_of(option));
            let place = named.into_iter().max().unwrap_or_else(|| job.place());
            mistakes.add(&place, error.hint("give one job file for each file"));
        }
        found = target;
    }
    // fio makes a file that is not there, but no directory.
    match jobs.iter().any(|job| job.options.contains_key("filename")) {
        true => found.map(reachable),
        false => found,
    }
}

/// Whether an option names several files or folders, separated by colons: fio adds up names that are given one by one.
pub(super) fn names_several(job: &Job, option: &str) -> bool {
    let name = job.options.get(option);
    name.is_some_and(|name| name.contains(':'))
}

/// Refuses a target whose path comes from a variable or from another file unless it exists. An existing path is not a
/// secret, and the run names it.
pub(super) fn check_known(jobs: &[Job], target: &Path, mistakes: &mut Mistakes) {
    let named = jobs
        .iter()
        .flat_map(|job| ["filename", "directory"].map(|option| job.place_of(option)));
    let hidden = named.filter(|place| place.hidden.is_some()).max();
    if let Some(place) = hidden.filter(|_| target.symlink_metadata().is_err()) {
        mistakes.add(&place, Error::usage("there is no such file or directory"));
    }
}

/// The folder of a file that is not there, as fio would make the file: a scratch file of iolab's own is made in it.
fn reachable(named: PathBuf) -> PathBuf {
    let folder = match named.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return named,
    };
    match named.symlink_metadata().is_err() && folder.is_dir() && !folder.starts_with("/dev") {
        true => folder.to_owned(),
        false => named,
    }
}

/// The size of a file or device, of which a job without a size uses all.
pub(super) fn bytes_of(target: &Path) -> Option<u64> {
    let metadata = target.metadata().ok()?;
    let bytes = match metadata.is_file() {
        true => metadata.len(),
        false => bytes_of_device(target, metadata.file_type())?,
    };
    Some(bytes).filter(|bytes| *bytes > 0)
}

pub(super) fn is_block_device(target: &Path) -> bool {
    let metadata = target.metadata();
    metadata.is_ok_and(|metadata| is_of_block_device(metadata.file_type()))
}

fn bytes_of_device(target: &Path, kind: FileType) -> Option<u64> {
    if !is_of_block_device(kind) {
        return None;
    }
    let mut device = File::open(target).ok()?;
    device.seek(SeekFrom::End(0)).ok()
}

#[cfg(unix)]
fn is_of_block_device(kind: FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_block_device(&kind)
}

/// Always false: on this system no file is a block device.
#[cfg(not(unix))]
fn is_of_block_device(_kind: FileType) -> bool {
    false
}
