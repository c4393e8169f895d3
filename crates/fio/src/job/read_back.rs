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

#[cfg(test)]
mod tests {
    use iolab_plan::cells::cells;

    use super::super::JobFile;

    const SCAN: &str = "[global]\nverify=meta\nverify_interval=512\nsize=1m\nfilename=x\n\
        [write]\nrw=write\nfill_device=1\ndo_verify=0\n[read]\nstonewall\nrw=read\n";

    /// Reads as much as was written, from another offset.
    const BEHIND: &str = "[global]\nverify=crc32c\nsize=1m\nfilename=x\n\
        [write]\nrw=write\n[read]\nstonewall\nrw=read\noffset=OFFSET\n";

    #[test]
    fn part_of_the_written_data_is_read_back() {
        for part in ["0", "0\nsize=512k", "512k\nsize=512k"] {
            let text = BEHIND.replace("OFFSET", part);
            JobFile::parse(&text, "part").expect(part);
        }
    }

    #[test]
    fn data_read_by_later_jobs_is_checked_once() {
        let file = JobFile::parse(SCAN, "scan").expect("read");
        let cells = cells(&file.experiment).expect("cells");
        let verified: Vec<(u8, bool)> = cells
            .iter()
            .map(|cell| (cell.spec.trial.read_percent, cell.spec.trial.verify))
            .collect();
        assert_eq!(verified, [(0, true), (100, false)]);
        let told = file.notes.iter().filter(|note| note.starts_with("read "));
        assert_eq!(told.count(), 1, "{:?}", file.notes);
    }

    #[test]
    fn unwritten_data_is_not_read_back() {
        for text in [
            SCAN.replace("rw=write", "rw=read"),
            SCAN.replace("[read]\n", "[read]\nverify=crc32c\n"),
            SCAN.replace("[read]\n", "[read]\nfilename=y\n"),
            BEHIND.replace("OFFSET", "1m"),
            BEHIND.replace("OFFSET", "0\nsize=2m"),
            BEHIND.replace("OFFSET", "4k"),
        ] {
            let error = JobFile::parse(&text, "scan").expect_err("refused");
            assert!(error.remedy().is_some(), "{error}");
        }
    }
}
