//! The cells of several runs, by the storage that they measured.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::CellAnalysis;
use iolab_record::environment::Environment;
use iolab_workload::Result;

/// A cell, after the place of its run.
pub(crate) type PlacedCell<'a> = (usize, &'a CellAnalysis);

/// A storage that runs measured.
#[derive(Debug)]
pub(crate) struct Storage<'a> {
    /// Name by which its reader knows it.
    pub(crate) name: String,
    /// Facts about it, of its first run.
    pub(crate) environment: Environment,
    /// Cells of all runs on it.
    pub(crate) cells: Vec<PlacedCell<'a>>,
}

/// Every storage of the runs, in the order of the files; `name` is given the target and the facts about it.
///
/// # Errors
/// Those of `name`.
pub(crate) fn storages<'a>(
    runs: &'a [AnalysedRun],
    name: impl Fn(&str, &Environment) -> Result<String>,
) -> Result<Vec<Storage<'a>>> {
    let mut all: Vec<Storage<'a>> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        for cell in &run.analysis().cells {
            let record = run.record();
            let target = record.target_called(cell.cell.spec.target.as_ref());
            let environment = record.environment_of(&cell.cell);
            let name = name(&target, &environment)?;
            match all.iter_mut().find(|known| known.name == name) {
                Some(known) => known.cells.push((place, cell)),
                None => all.push(Storage {
                    name,
                    environment: environment.into_owned(),
                    cells: vec![(place, cell)],
                }),
            }
        }
    }
    Ok(all)
}
