//! The user's consent to the loss of data that a run had.

use iolab_plan::experiment::Experiment;
use iolab_record::{Cell, RunRecord, TargetKind};
use iolab_workload::target::TargetName;
use iolab_workload::trial::TrialSpec;

/// Whether the user has consented to the loss of what an existing target of this run held, as whoever finishes the run has to do again:
/// the file names the target, and no file decides that data may be destroyed.
pub fn needs_consent(record: &RunRecord) -> bool {
    let further = record.further_targets.iter().map(|target| target.kind);
    let kinds: Vec<TargetKind> = std::iter::once(record.run.target_kind)
        .chain(further)
        .collect();
    let is_existing = |kind: &TargetKind| kind.is_existing();
    let any: &dyn Fn(Option<&TargetName>) -> bool = &|_| true;
    let writes = |cell: &Cell| {
        let on = match record.target_of(cell) {
            Some(number) => kinds.get(number).is_some_and(is_existing),
            None => true,
        };
        on && cell.spec.trials_on(any).into_iter().any(TrialSpec::writes)
    };
    let is_prepared = || {
        let definition = Experiment::from_toml(&record.experiment.toml, "run file");
        definition.is_ok_and(|definition| definition.design.precondition.writes())
    };
    kinds.iter().any(is_existing) && (record.cells.iter().any(writes) || is_prepared())
}

/// What a command that carries out a run again takes for that consent: nothing, or an option behind a space.
pub fn consent_option(record: &RunRecord) -> &'static str {
    match needs_consent(record) {
        true => " --destroy-data",
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finishes_a_run_that_writes_to_a_disk_consents_again() {
        let mut record = RunRecord::default();
        record.cells.push(Cell::default());
        for (kind, read_percent, consents) in [
            (TargetKind::BlockDevice, 0, true),
            (TargetKind::File, 0, true),
            (TargetKind::BlockDevice, 100, false),
            (TargetKind::Scratch, 0, false),
            (TargetKind::Model, 0, false),
        ] {
            record.run.target_kind = kind;
            record.cells[0].spec.trial.read_percent = read_percent;
            assert_eq!(needs_consent(&record), consents, "{kind} {read_percent}");
        }
    }
}
