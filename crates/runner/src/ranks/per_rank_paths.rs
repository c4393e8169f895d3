//! Targets that every rank has for itself: paths with `{rank}` or `{host}` in them.

use std::path::{Path, PathBuf};

use iolab_workload::{Error, Result, launchers};

use super::hosts::Host;

/// Placeholder for the number of a rank.
const RANK: &str = "{rank}";
/// Placeholder for the name of its host.
const HOST: &str = "{host}";

/// Whether a path is another one for every rank, or for every host.
pub fn is_own(path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    let has = |what: &str| path.windows(what.len()).any(|part| part == what.as_bytes());
    has(RANK) || has(HOST)
}

/// Whether a path is another one for every rank.
pub(super) fn is_by_rank(path: &str) -> bool {
    path.contains(RANK)
}

/// The path that a rank on a host uses.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a placeholder in a path that is not UTF-8.
pub fn place(path: &Path, rank: usize, host: &str) -> Result<PathBuf> {
    if !is_own(path) {
        return Ok(path.to_owned());
    }
    let text = path.to_str().ok_or_else(|| {
        Error::usage(format!("{} is not UTF-8", path.display()))
            .hint("ranks exchange paths with {rank} or {host} as text: give another name")
    })?;
    let text = text.replace(RANK, &rank.to_string()).replace(HOST, host);
    Ok(PathBuf::from(text))
}

/// The path of the only process that a launcher started, which is rank 0.
///
/// # Errors
/// As [`place`].
pub fn of_one(path: &Path) -> Result<PathBuf> {
    place(path, 0, &Host::here().name)
}

/// The path of the only process.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): it is one for several.
pub fn alone(path: &Path) -> Result<PathBuf> {
    if is_own(path) && path.symlink_metadata().is_err() {
        return Err(Error::usage(format!(
            "{} is for several processes, and this is one",
            path.display()
        ))
        .hint(concat!(
            "start several with ",
            launchers!(),
            " (iolab built with the feature mpi), or name one target"
        )));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_has_its_path() {
        let of = |path: &str| place(Path::new(path), 7, "node03").expect("UTF-8");
        assert_eq!(of("/mnt/{host}/r{rank}/x"), Path::new("/mnt/node03/r7/x"));
        assert_eq!(of("/mnt/{other}"), Path::new("/mnt/{other}"));
        assert!(is_own(Path::new("d{rank}")) && !is_own(Path::new("/mnt/rank")));
        assert!(alone(Path::new("/nowhere/{rank}")).is_err());
        assert!(alone(Path::new("/nowhere")).is_ok());
        let one = of_one(Path::new("/mnt/{host}/{rank}")).expect("UTF-8");
        assert!(one.ends_with("0") && !is_own(&one), "{}", one.display());
    }
}
