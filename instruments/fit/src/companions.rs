//! Run files that one `iolab fit` made together.

use std::path::{Path, PathBuf};

use iolab_command::run_files::files_of_folder;
use iolab_record::{Fit, Question};
use iolab_workload::Result;

/// Run files of the other workloads of the same question, found in the same folder by their names. They are only read.
pub(crate) fn companions(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let fits: Result<Vec<Option<Fit>>> = paths.iter().map(|path| fit_of(path)).collect();
    let fits = fits?;
    let mut known: Vec<Fit> = fits.iter().flatten().cloned().collect();
    let mut found = Vec::new();
    for (path, fit) in paths.iter().zip(&fits) {
        let Some(fit) = fit else { continue };
        let begin = format!("{}-", fit.requirement);
        let folder = Path::new(".").join(path).with_file_name("");
        let names = files_of_folder(&folder).unwrap_or_default();
        for name in names.iter().filter_map(|beside| beside.file_name()) {
            let beside = path.with_file_name(name);
            let is_new = |other: &Fit| known.iter().all(|one| !is_same(one, other));
            // An unreadable file is not part of the question.
            if name.to_string_lossy().starts_with(&begin)
                && let Ok(Some(other)) = fit_of(&beside)
                && other.id == fit.id
                && is_new(&other)
            {
                known.push(other);
                found.push(beside);
            }
        }
    }
    Ok(found)
}

/// Whether two runs answer for the same workload.
fn is_same(one: &Fit, other: &Fit) -> bool {
    (&one.id, &one.workload) == (&other.id, &other.workload)
}

/// The place of a run in a requirement.
fn fit_of(path: &Path) -> Result<Option<Fit>> {
    let asked = iolab_runfile::read(path)?.experiment.asked;
    Ok(asked.and_then(Question::into_fit))
}
