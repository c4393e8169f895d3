//! `writes`: the bytes that a run may write to each target. The plan caps each trial that writes, and the run pays for it before
//! it begins.

use iolab_workload::settings::CellSpec;
use iolab_workload::units::{counted, exact_size};
use iolab_workload::{Error, Result, usage_errors};

use super::Experiment;

impl Experiment {
    /// Caps the bytes of each trial that writes: the fewest trials of all cells, and what fills their target, stay within `writes`.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): cells without such a cap; a cap below the requests in flight.
    pub(crate) fn cap_writes(&self, mut cells: Vec<&mut CellSpec>) -> Result<()> {
        let Some(budget) = self.design.writes else {
            return Ok(());
        };
        let lacks_cap = |cell: &CellSpec| cell.runs_program() || cell.has_groups();
        usage_errors! {
            cells.iter().any(|cell| lacks_cap(cell)) => "writes in an experiment with programs or groups",
                "leave it out: iolab caps what workers with one task write to one target";
        }
        let trials = self.design.trials_wanted(cells.len()) + self.design.warm_ups();
        let fill = cells.iter().map(|cell| cell.bytes_used()).max();
        let rest = budget.saturating_sub(fill.unwrap_or(0));
        let sizes = cells.iter().map(|cell| cell.trial.largest_request());
        let largest = sizes.max().unwrap_or(1);
        let writers: Vec<CellSpec> = cells.iter().map(|cell| (**cell).clone()).collect();
        // Enough for the requests in flight of every cell.
        let in_flight = writers.iter().map(|cell| &cell.trial).map(|trial| {
            trial
                .in_flight_of_all()
                .saturating_mul(trial.largest_request())
        });
        let least_cap = in_flight.max().unwrap_or(0).next_multiple_of(largest);
        let least = (writers.len() as u64 * u64::from(trials)).saturating_mul(least_cap);
        let least = least.saturating_add(fill.unwrap_or(0));
        for spec in &mut cells {
            if !spec.trial.writes_data() {
                continue;
            }
            let same = writers.iter().filter(|other| other.target == spec.target);
            let same = same.filter(|other| other.trial.writes_data()).count() as u64;
            let cap = rest / (same * u64::from(trials));
            let request = spec.trial.largest_request();
            // All trials write alike if that is possible.
            let cap = match cap - cap % largest {
                0 => cap - cap % request,
                whole => whole,
            };
            let in_flight = spec.trial.in_flight_of_all();
            if cap / request < in_flight {
                return Err(Error::usage(format!(
                    "writes={} leaves {} for each trial of {}, less than the {} in flight",
                    exact_size(budget),
                    exact_size(cap),
                    counted(same, "cell"),
                    counted(in_flight, "request"),
                ))
                .hint(format!(
                    "allow more (--set writes={}), or choose fewer levels, a smaller region or smaller requests",
                    exact_size(least).replace(' ', "")
                )));
            }
            let limit = &mut spec.trial.limit.bytes;
            *limit = Some(limit.map_or(cap, |own| own.min(cap)));
        }
        Ok(())
    }
}

/// Most bytes that a trial of a cell writes under a budget of writes.
pub fn writes_at_most(cell: &CellSpec) -> u64 {
    match cell.trial.writes_data() {
        true => cell.trial.limit.bytes.unwrap_or(u64::MAX),
        false => 0,
    }
}
