//! Run files that one `iolab fit` made together.

use std::path::{Path, PathBuf};

use iolab_command::run_files::files_of_folder;
use iolab_record::{Fit, Question};
use iolab_workload::Result;

/// Run files of the other workloads of the same question, found in the same folder by their names. They are only read.
pub(crate) fn companions(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let fits: Vec<Option<Fit>> = paths
        .iter()
        .map(|path| fit_of(path))
        .collect::<Result<_>>()?;
    let mut known: Vec<Fit> = fits.iter().flatten().cloned().collect();
    let mut found = Vec::new();
    for (path, fit) in paths.iter().zip(&fits) {
        let Some(fit) = fit else { continue };
        if fit.workloads.iter().all(|one| has(&known, fit, one)) {
            continue;
        }
        let folder = Path::new(".").join(path).with_file_name("");
        let names = files_of_folder(&folder).unwrap_or_default();
        for name in names.iter().filter_map(|beside| beside.file_name()) {
            let beside = path.with_file_name(name);
            let begin = format!("{}-", fit.requirement);
            // An unreadable file is not part of the question.
            if name.to_string_lossy().starts_with(&begin)
                && let Ok(Some(other)) = fit_of(&beside)
                && other.id == fit.id
                && !has(&known, &other, &other.workload)
            {
                known.push(other);
                found.push(beside);
            }
        }
    }
    Ok(found)
}

/// Whether a workload of this question is among the known ones.
fn has(known: &[Fit], question: &Fit, workload: &str) -> bool {
    let mut known = known.iter();
    known.any(|one| one.id == question.id && one.workload == workload)
}

/// The place of a run in a requirement.
fn fit_of(path: &Path) -> Result<Option<Fit>> {
    let asked = iolab_runfile::read(path)?.experiment.asked;
    Ok(asked.and_then(Question::into_fit))
}
