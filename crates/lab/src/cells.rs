//! The cells of an experiment: the full cross product of its factors.

use iolab_engine::Result;

use crate::experiment::Experiment;
use crate::settings::CellSpec;

/// One combination of levels.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCell {
    /// The level of each factor, in the order of the factors.
    pub levels: Vec<String>,
    /// What it asks of the engine.
    pub spec: CellSpec,
}

/// The full cross product of all factors; the last factor varies fastest.
///
/// # Errors
/// Of kind usage: an absurd plan, or a `skip` that has no effect because the pattern is not `strided`.
pub fn cells(experiment: &Experiment) -> Result<Vec<PlannedCell>> {
    experiment.check()?;
    let base = experiment.base()?;
    let mut cells = vec![PlannedCell {
        levels: Vec::new(),
        spec: base,
    }];
    for factor in &experiment.factors {
        let mut crossed = Vec::with_capacity(cells.len() * factor.levels.len());
        for cell in &cells {
            for level in &factor.levels {
                let mut next = cell.clone();
                factor.setting.set(&mut next.spec, level)?;
                next.levels.push(level.clone());
                crossed.push(next);
            }
        }
        cells = crossed;
    }
    Ok(cells)
}

/// How a cell is called in messages: `bs=4KiB, depth=8`; `every trial` where nothing varies.
pub fn label(factors: &[String], levels: &[String]) -> String {
    if factors.is_empty() {
        return "every trial".to_owned();
    }
    let parts: Vec<String> = factors
        .iter()
        .zip(levels)
        .map(|(factor, level)| format!("{factor}={level}"))
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(sets: &[&str]) -> Experiment {
        let mut experiment = Experiment::find("read-size").unwrap();
        for set in sets {
            experiment.apply_set(set).unwrap();
        }
        experiment
    }

    #[test]
    fn cells_are_the_cross_product_last_factor_fastest() {
        let cells = cells(&experiment(&["bs=4k,8k", "threads=1,2,4"])).unwrap();
        let levels: Vec<String> = cells.iter().map(|c| c.levels.join(" ")).collect();
        assert_eq!(
            levels,
            ["4KiB 1", "4KiB 2", "4KiB 4", "8KiB 1", "8KiB 2", "8KiB 4"]
        );
        assert_eq!(cells[5].spec.trial.bs, 8192);
        assert_eq!(cells[5].spec.trial.threads, 4);
    }

    #[test]
    fn no_factor_is_one_cell() {
        let cells = cells(&experiment(&["bs=4k"])).unwrap();
        assert_eq!(cells.len(), 1);
        assert!(cells[0].levels.is_empty());
    }
}
