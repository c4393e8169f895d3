//! The cells of an experiment: the cross product of its factors, without the combinations that have no meaning.

use iolab_engine::spec::HUGE_PAGE_BYTES;
use iolab_engine::{Error, Result};

use crate::experiment::Experiment;
use crate::settings::CellSpec;
use crate::units::format_size;

/// One combination of levels.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCell {
    /// The level of each factor, in the order of the factors.
    pub levels: Vec<String>,
    /// What it asks of the engine.
    pub spec: CellSpec,
    /// Whether the run has added it, to look closer at what the grid has shown.
    pub refined: bool,
}

/// The cross product of all factors; the last factor varies fastest. Behind it comes the product with the levels of
/// `bs` that the run has added, where it has. Cells in which the preparation of the buffers
/// has no meaning ([`iolab_engine::spec::TrialSpec::buffer_init_applies`]) are left out.
///
/// # Errors
/// Of kind usage: an absurd plan, a `skip` that has no effect because the pattern is not `strided`, or no cell with a
/// meaning.
pub fn cells(experiment: &Experiment) -> Result<Vec<PlannedCell>> {
    let mut cells = product(experiment, None)?;
    if let Some(refined) = &experiment.refined {
        cells.extend(product(experiment, Some(&refined.bs))?);
    }
    cells.retain(|cell| cell.spec.trial.buffer_init_applies());
    if cells.is_empty() {
        let least = format_size(HUGE_PAGE_BYTES);
        return Err(Error::usage(format!(
            "buffer_init is huge or nohuge, and no bs is as large as a huge page, {least}"
        ))
        .hint(format!(
            "choose a bs of at least {least}, or another buffer_init"
        )));
    }
    Ok(cells)
}

/// How many combinations of an experiment have no meaning and are left out, in words; `None` when none is.
pub fn left_out(experiment: &Experiment, planned: usize) -> Option<String> {
    let all: usize = experiment
        .factors
        .iter()
        .map(|factor| factor.levels.len())
        .product();
    let missing = all.checked_sub(planned).filter(|missing| *missing > 0)?;
    Some(format!(
        "left out {missing} of {all} combinations: buffer_init huge and nohuge have no meaning where bs is below {}",
        format_size(HUGE_PAGE_BYTES)
    ))
}

/// `sizes` stand in for the levels of `bs`.
fn product(experiment: &Experiment, sizes: Option<&[String]>) -> Result<Vec<PlannedCell>> {
    experiment.check()?;
    let base = experiment.base()?;
    let mut cells = vec![PlannedCell {
        levels: Vec::new(),
        spec: base,
        refined: sizes.is_some(),
    }];
    for factor in &experiment.factors {
        let levels = match sizes {
            Some(sizes) if factor.setting.name == "bs" => sizes,
            _ => &factor.levels,
        };
        let mut crossed = Vec::with_capacity(cells.len() * levels.len());
        for cell in &cells {
            for level in levels {
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
    fn huge_pages_are_asked_of_buffers_that_can_have_one() {
        let mixed = experiment(&["bs=4k,1M,2M,16M", "buffer_init=touched,huge,nohuge"]);
        let planned = cells(&mixed).unwrap();
        let levels: Vec<String> = planned.iter().map(|c| c.levels.join(" ")).collect();
        assert_eq!(
            levels,
            [
                "4KiB touched",
                "1MiB touched",
                "2MiB touched",
                "2MiB huge",
                "2MiB nohuge",
                "16MiB touched",
                "16MiB huge",
                "16MiB nohuge"
            ]
        );
        let note = left_out(&mixed, planned.len()).unwrap();
        assert!(note.contains("4 of 12") && note.contains("2MiB"), "{note}");
        assert_eq!(left_out(&experiment(&["bs=4k,8k"]), 2), None);
        let error = cells(&experiment(&["bs=4k,1M", "buffer_init=huge"])).unwrap_err();
        assert!(error.remedy().is_some_and(|hint| hint.contains("2MiB")));
    }

    #[test]
    fn no_factor_is_one_cell() {
        let cells = cells(&experiment(&["bs=4k"])).unwrap();
        assert_eq!(cells.len(), 1);
        assert!(cells[0].levels.is_empty());
    }
}
