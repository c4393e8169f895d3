//! Cells that find what other cells have left on the storage.

use std::collections::BTreeMap;

use iolab_workload::settings::CellSpec;

use crate::experiment::{Design, INTERVAL_TRIALS, WarmUp};

/// Whether the order of these cells may decide their results: some write to a target that others use too, no warm-up takes up what was
/// left there, and trials are too few to average over orders.
pub fn depends_on_order<'a>(design: &Design, cells: impl Iterator<Item = &'a CellSpec>) -> bool {
    if design.warmup != WarmUp::None || design.trials_max >= INTERVAL_TRIALS {
        return false;
    }
    let mut uses: BTreeMap<Option<&str>, (usize, bool)> = BTreeMap::new();
    for cell in cells.filter(|cell| !cell.runs_program()) {
        let writes = cell.trials().into_iter().any(|trial| trial.writes());
        let mut targets: Vec<Option<&str>> = cell
            .targets()
            .into_iter()
            .map(|target| target.map(|name| name.as_str()))
            .collect();
        targets.sort_unstable();
        targets.dedup();
        for target in targets {
            let (cells, is_written) = uses.entry(target).or_default();
            *cells += 1;
            *is_written |= writes;
        }
    }
    let mut uses = uses.into_values();
    uses.any(|(cells, is_written)| cells > 1 && is_written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::cells;
    use crate::experiment::Experiment;

    fn depends(name: &str, sets: &[&str]) -> bool {
        let mut experiment = Experiment::find(name).expect("built in");
        for set in sets {
            experiment.apply_set(set).expect("a change");
        }
        let cells = cells(&experiment).expect("valid");
        depends_on_order(&experiment.design, cells.iter().map(|cell| &cell.spec))
    }

    #[test]
    fn cells_that_write_once_each_without_a_warm_up_depend_on_their_order() {
        let soak = ["bs=64k,1M", "warmup=none", "trials_min=1", "trials_max=1"];
        assert!(depends("write-random", &soak));
        assert!(!depends("read-random", &soak));
        assert!(!depends(
            "write-random",
            &[&["bs=64k"], &soak[1..]].concat()
        ));
        assert!(!depends("write-random", &soak[..2]));
        assert!(!depends("write-random", &["bs=64k,1M"]));
    }
}
