//! The user's consent to the loss of data that a run had.

use std::fmt;

use iolab_plan::experiment::Experiment;
use iolab_record::{Cell, RunRecord, TargetKind};
use iolab_workload::escape_control::shell_word;
use iolab_workload::names::TargetName;
use iolab_workload::trial::TrialSpec;

/// Whether the user consented to the loss of an existing target's data, which whoever finishes the run has to do
/// again. The file names the target, but no file decides that data may be destroyed.
fn needs_consent(record: &RunRecord) -> bool {
    let kinds: Vec<TargetKind> = record.target_kinds().collect();
    let is_existing = |kind: &TargetKind| kind.is_existing();
    let writes = |cell: &Cell| {
        let target = record.target_of(cell);
        let trials = cell.spec.trials_on(|_: Option<&TargetName>| true);
        target.is_none_or(|number| kinds.get(number).is_some_and(is_existing))
            && trials.into_iter().any(TrialSpec::writes)
    };
    let is_prepared = || {
        let definition = Experiment::from_toml(&record.experiment.toml, "the run file");
        definition.is_ok_and(|definition| definition.design.precondition.writes())
    };
    kinds.iter().any(is_existing) && (record.cells.iter().any(writes) || is_prepared())
}

/// The command that finishes the runs of these files, or of the folders that stand for them. `None` if none
/// can be resumed. Each of several files belongs to one process, as for the runs of one
/// command.
pub fn command_to_finish<'a>(
    runs: impl IntoIterator<Item = (&'a RunRecord, &'a str)>,
) -> Option<String> {
    let runs = runs.into_iter();
    let kept = runs.filter(|(record, _)| record.run.target_kind.is_resumable());
    let needed = |record: &RunRecord| (NeededConsent::of(record), record.ranks.len());
    let kept = kept.map(|(record, file)| (needed(record), file));
    let (needed, mut files): (Vec<_>, Vec<_>) = kept.unzip();
    files.dedup();
    let both = |(consent, processes): (NeededConsent, usize), (other, others)| {
        (consent.and(other), processes.max(others))
    };
    let (consent, processes) = needed.into_iter().reduce(both)?;
    Some(consent.resume_command(&files, processes))
}

/// Consent that a user has to give again to repeat or finish a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NeededConsent {
    /// Loss of the data on an existing target.
    pub destroys_data: bool,
    /// Changes to the system that affect other programs: see [`CellSpec::needs_change_system`].
    ///
    /// [`CellSpec::needs_change_system`]: iolab_workload::settings::CellSpec::needs_change_system
    pub changes_system: bool,
    /// Start of programs that the file names.
    pub runs_programs: bool,
}

impl NeededConsent {
    /// Consent that a run needs.
    pub fn of(record: &RunRecord) -> Self {
        let any = |needs: fn(&Cell) -> bool| record.cells.iter().any(needs);
        Self {
            destroys_data: needs_consent(record),
            changes_system: any(|cell| cell.spec.needs_change_system().is_some()),
            runs_programs: any(|cell| cell.spec.command.is_some()),
        }
    }

    /// The command that finishes the runs of these files, each with this many processes, to be pasted.
    pub fn resume_command(self, files: &[&str], processes: usize) -> String {
        let launcher = match processes {
            0 | 1 => String::new(),
            ranks => ["mpirun -n ", &ranks.to_string(), " "].concat(),
        };
        let files: Vec<_> = files.iter().map(|file| shell_word(file)).collect();
        let files = files.join(" ");
        [&launcher, "iolab resume ", &files, &self.to_string()].concat()
    }

    /// Consent that two runs need together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            destroys_data: self.destroys_data || other.destroys_data,
            changes_system: self.changes_system || other.changes_system,
            runs_programs: self.runs_programs || other.runs_programs,
        }
    }
}

/// Options of a command, with a space before each.
impl fmt::Display for NeededConsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (is_needed, option) in [
            (self.destroys_data, " --destroy-data"),
            (self.changes_system, " --change-system"),
            (self.runs_programs, " --run-programs"),
        ] {
            if is_needed {
                f.write_str(option)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use iolab_record::Rank;

    use super::*;

    #[test]
    fn finishing_writes_to_a_disk_needs_consent_again() {
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

    #[test]
    fn run_of_several_processes_is_finished_by_several() {
        let mut record = RunRecord::default();
        let command = |record: &RunRecord| command_to_finish([(record, "r.iolab")]);
        let told = command(&record);
        assert_eq!(told.as_deref(), Some("iolab resume r.iolab"));
        record.ranks = (0..4).map(|_| Rank::default()).collect();
        let told = command(&record);
        assert_eq!(told.as_deref(), Some("mpirun -n 4 iolab resume r.iolab"));
    }

    #[test]
    fn finishing_system_changes_needs_consent_again() {
        let mut record = RunRecord::default();
        record.run.target_kind = TargetKind::BlockDevice;
        record.cells.push(Cell::default());
        record.cells[0].spec.trial.read_percent = 100;
        let options = |record: &RunRecord| NeededConsent::of(record).to_string();
        assert_eq!(options(&record), "");
        record.cells[0].spec.trial.realtime = Some(1);
        assert_eq!(options(&record), " --change-system");
        record.cells[0].spec.trial.realtime = None;
        record.cells[0].spec.system = "scheduler:none".parse().expect("valid");
        record.cells[0].spec.trial.read_percent = 0;
        assert_eq!(options(&record), " --destroy-data --change-system");
        record.cells[0].spec.command = "cat {file}".parse().ok();
        assert!(options(&record).ends_with(" --run-programs"));
    }
}
