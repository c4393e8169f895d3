//! Jobs that check the data of an earlier job: iolab checks it after each trial that writes, and these jobs only read.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{FileLayout, TrialSpec};

use super::jobs::Job;
use super::side_by_side::has_several;

/// For each job that reads back, the job that wrote it.
pub(super) struct ReadBack(Vec<Option<usize>>);

impl ReadBack {
    /// Finds them among jobs that run one after the other, each with its cell; `None` for a job with mistakes.
    pub(super) fn of(jobs: &[Job], cells: &[Option<CellSpec>], stages: &[usize]) -> Self {
        let trial = |number: usize| Some(&cells.get(number)?.as_ref()?.trial);
        let writer = |(number, job): (usize, &Job)| {
            let read = trial(number).filter(|trial| trial.verify && !trial.writes())?;
            let wrote = |(place, other): &(usize, &Job)| {
                let same = |name| other.options.get(name) == job.options.get(name);
                ["filename", "directory", "verify"].into_iter().all(same)
                    && trial(*place).is_some_and(|written| covers(written, read))
            };
            let mut before = jobs.iter().enumerate().take(number).rev();
            let (place, _) = before.find(wrote)?;
            (!has_several(stages)).then_some(place)
        };
        Self(jobs.iter().enumerate().map(writer).collect())
    }

    /// Has the data of the job with this number checked if another job reads it back; the other job then only reads.
    pub(super) fn settle(&self, number: usize, cell: &mut CellSpec) {
        cell.trial.verify |= self.0.contains(&Some(number));
        cell.trial.verify &= !self.reads(number);
    }

    fn reads(&self, number: usize) -> bool {
        self.0.get(number).is_some_and(Option::is_some)
    }

    /// A note about each job whose data is read back.
    pub(super) fn told<'a>(&'a self, jobs: &'a [Job]) -> impl Iterator<Item = String> + 'a {
        let pairs = jobs.iter().zip(&self.0);
        pairs.filter_map(|(job, writer)| {
            let writer = jobs.get((*writer)?)?;
            Some(format!(
                "{} reads without a check: iolab checks the data after each trial of {}, outside its time; fio checks it while it reads",
                job.name, writer.name
            ))
        })
    }
}

/// Whether a job writes data in all of the range that another one reads, in the one file that both have.
fn covers(written: &TrialSpec, read: &TrialSpec) -> bool {
    let range = |trial: &TrialSpec| (trial.offset, trial.offset.saturating_add(trial.region));
    let ((from, to), (first, end)) = (range(written), range(read));
    let is_one_file = [written, read].map(|trial| trial.layout != FileLayout::Private);
    written.writes_data() && is_one_file == [true; 2] && from <= first && end <= to
}
