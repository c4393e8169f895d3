//! Whether service levels hold in the cells of a run.

use iolab_record::environment::Environment;
use iolab_record::{Cell, RunRecord, SampleLatency};
use iolab_workload::Result;
use iolab_workload::response::{ServiceLevel, ServiceLevels};
use iolab_workload::settings::{cell_label, level_label};

use super::{Answer, Evidence, Judged, ReasonedAnswer, UnseenStalls, judge, merge_answers};
use crate::doubt::{Direction, Doubt, Doubts};
use crate::io_limit::ReachedLimit;

/// The answer for a level in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelAnswer {
    /// The result before doubts.
    pub judged: Judged,
    /// The doubts that turn yes or no into "cannot tell"; empty if the answer stands.
    pub turned_by: Vec<Doubt>,
}

/// The answers for levels in a cell, with their basis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CellAnswer {
    /// The label of the cell, or its rate where that is the only factor.
    pub cell: String,
    /// Each level, in the order asked.
    pub levels: Vec<LevelAnswer>,
    /// All doubts about the trials, including those that do not change an answer.
    pub doubts: Doubts,
    /// Time under load, ns.
    pub load_ns: u64,
}

/// The answers for every level in every cell of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdicts {
    /// Answers in the order of the cells; without unmeasured cells.
    pub cells: Vec<CellAnswer>,
}

impl LevelAnswer {
    /// The answer, with the reasons of an open one.
    pub fn reasoned(&self) -> ReasonedAnswer {
        if self.turned_by.is_empty() {
            return self.judged.reasoned();
        }
        let doubts = self.turned_by.iter();
        let reasons = doubts.map(|doubt| ReasonedAnswer::CannotTell(vec![doubt.what]));
        ReasonedAnswer::merge(reasons)
    }

    /// The answer.
    pub fn answer(&self) -> Answer {
        self.reasoned().answer()
    }

    /// Stalls that an answer of yes does not exclude; `None` for other answers.
    pub fn unseen_stalls(&self) -> Option<UnseenStalls> {
        let stalls = self.judged.unseen_stalls();
        stalls.filter(|_| self.answer() == Answer::Yes)
    }
}

impl CellAnswer {
    /// The answers from the trials of a cell.
    pub fn of<'a>(
        name: String,
        cell: &Cell,
        evidence: &Evidence<'_>,
        environment: &Environment,
        levels: impl IntoIterator<Item = &'a ServiceLevel>,
    ) -> Self {
        let levels: Vec<&ServiceLevel> = levels.into_iter().collect();
        let mut doubts = Doubts::of_cell(cell, evidence.samples(), environment);
        if levels.iter().all(|level| level.quantity.is_rate()) {
            doubts.leave_out_syncs_at_end();
        }
        let levels = levels.into_iter().map(|level| {
            let judged = judge(level, evidence);
            let turned_by = judged.answer.direction().map_or(Vec::new(), |direction| {
                doubts.turning(direction, |concerned| {
                    judge(level, &evidence.without(concerned)).answer == judged.answer
                })
            });
            LevelAnswer {
                turned_by: turned_by.into_iter().cloned().collect(),
                judged,
            }
        });
        Self {
            cell: name,
            levels: levels.collect(),
            load_ns: evidence.load_ns(),
            doubts,
        }
    }

    /// The limit of control groups that explains a failing level, so that no other disk would help.
    pub fn cause(&self, level: &LevelAnswer) -> Option<ReachedLimit> {
        (level.answer() == Answer::No).then_some(self.doubts.limit)?
    }

    /// The doubts to report: those that change an answer, and those that could if a level is open anyway.
    pub fn reasons(&self) -> Vec<&Doubt> {
        let mut open = self.levels.iter().map(|level| level.judged.answer);
        let of_open = match open.any(|answer| answer == Answer::CannotTell) {
            true => self.doubts.against(Direction::Equal),
            false => Vec::new(),
        };
        let told = |doubt: &&Doubt| {
            let mut turned = self.levels.iter().flat_map(|level| &level.turned_by);
            of_open.contains(doubt) || turned.any(|by| by == *doubt)
        };
        self.doubts.all.iter().filter(told).collect()
    }

    /// The most frequent stalls that its answers of yes do not exclude.
    pub fn unseen_stalls(&self) -> Option<UnseenStalls> {
        let levels = self.levels.iter();
        UnseenStalls::most_frequent(levels.filter_map(LevelAnswer::unseen_stalls))
    }

    /// The answer for all levels together, before doubts.
    pub fn measured(&self) -> Answer {
        merge_answers(self.levels.iter().map(|level| level.judged.answer))
    }

    /// The answer for all levels together, with the reasons of an open one.
    pub fn reasoned(&self) -> ReasonedAnswer {
        ReasonedAnswer::merge(self.levels.iter().map(LevelAnswer::reasoned))
    }

    /// The answer for all levels together.
    pub fn answer(&self) -> Answer {
        self.reasoned().answer()
    }
}

impl Verdicts {
    /// The answers of a run.
    ///
    /// # Errors
    ///
    /// The first error of `latencies`.
    pub fn of(
        levels: &ServiceLevels,
        record: &RunRecord,
        latencies: impl IntoIterator<Item = Result<SampleLatency>>,
    ) -> Result<Self> {
        let evidence = Evidence::of_cells(record, latencies)?;
        let measured = record
            .cells
            .iter()
            .filter_map(|cell| Some((cell, evidence.get(&cell.id)?)));
        let cells = measured.map(|(cell, evidence)| {
            let name = match record.experiment.factors.as_slice() {
                [] => cell
                    .trial()
                    .rate()
                    .map_or_else(String::new, |rate| level_label("rate", &rate.to_string())),
                factors => cell_label(factors, &cell.levels),
            };
            let environment = record.environment_of(cell);
            CellAnswer::of(name, cell, evidence, &environment, levels.all())
        });
        Ok(Self {
            cells: cells.collect(),
        })
    }

    /// The answer for all cells together, with the reasons of an open one.
    pub fn reasoned(&self) -> ReasonedAnswer {
        ReasonedAnswer::merge(self.cells.iter().map(CellAnswer::reasoned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fitness::Times;
    use iolab_record::{LatencyOf, Operation, Sample, ServedBy};
    use iolab_workload::histogram::{counts, new_latency_histogram};
    use iolab_workload::settings::Setting;

    type Trial = (Sample, Times);

    /// A second of 1000 syncs of `ms` each on a device.
    fn trial(id: i64, ms: f64) -> Trial {
        let mut histogram = new_latency_histogram();
        histogram.saturating_record_n((ms * 1e6) as u64, 1000);
        let mut sample = Sample {
            id,
            ok: true,
            elapsed_ns: 1_000_000_000,
            ..Sample::default()
        };
        sample.operations.sync.requests = 1000;
        sample.verdict.served_by = ServedBy::Device;
        (
            sample,
            vec![(LatencyOf::service(Operation::Sync), counts(&histogram))],
        )
    }

    fn trials(number: i64, ms: f64, change: impl Fn(&mut Sample)) -> Vec<Trial> {
        let mut all: Vec<Trial> = (0..number).map(|n| trial(n, ms)).collect();
        all.iter_mut().for_each(|(sample, _)| change(sample));
        all
    }

    fn busy(sample: &mut Sample) {
        sample.counters.pressure.cpu_stall_ns = Some(sample.elapsed_ns);
    }

    fn unknown(sample: &mut Sample) {
        sample.verdict.served_by = ServedBy::Unknown;
    }

    /// Results of `syncs.p99<10ms`: the answer as measured, the answer after doubts, and the number of doubts
    /// that change it.
    fn answered(trials: &[Trial]) -> (Answer, Answer, usize) {
        let mut cell = Cell::default();
        for (name, value) in [("read_percent", "0"), ("sync", "fdatasync")] {
            let setting = Setting::find(name).expect("a setting");
            setting.set(&mut cell.spec, value).expect("a value");
        }
        let levels = ["syncs.p99<10ms".parse().expect("a level")];
        let evidence = Evidence::of_trials(trials, 1);
        let environment = Environment::default();
        let found = CellAnswer::of(String::new(), &cell, &evidence, &environment, &levels);
        let level = &found.levels[0];
        (level.judged.answer, level.answer(), level.turned_by.len())
    }

    use Answer::{CannotTell, No, Yes};

    #[test]
    fn under_disturbance_no_is_open_and_yes_stands() {
        assert_eq!(answered(&trials(12, 20.0, |_| ())), (No, No, 0));
        assert_eq!(answered(&trials(12, 20.0, busy)), (No, CannotTell, 1));
        assert_eq!(answered(&trials(12, 2.0, busy)), (Yes, Yes, 0));
    }

    #[test]
    fn from_unknown_origin_yes_is_open_no_stands() {
        assert_eq!(answered(&trials(12, 2.0, unknown)), (Yes, CannotTell, 1));
        assert_eq!(answered(&trials(12, 20.0, unknown)), (No, No, 0));
        let both = |sample: &mut Sample| {
            unknown(sample);
            busy(sample);
        };
        assert_eq!(answered(&trials(12, 20.0, both)), (No, CannotTell, 1));
        assert_eq!(answered(&trials(12, 2.0, both)), (Yes, CannotTell, 1));
    }

    #[test]
    fn answer_of_undisturbed_trials_stands() {
        let mut some = trials(12, 20.0, |_| ());
        some[..4].iter_mut().for_each(|(sample, _)| busy(sample));
        assert_eq!(answered(&some), (No, No, 0));
        // The slow trials are the disturbed ones.
        let mut some = trials(24, 2.0, |_| ());
        for slow in some.iter_mut().step_by(2) {
            *slow = trial(slow.0.id, 50.0);
            busy(&mut slow.0);
        }
        assert_eq!(answered(&some), (No, CannotTell, 1));
        // Too few trials remain for an answer.
        let mut most = trials(12, 20.0, |_| ());
        most[..9].iter_mut().for_each(|(sample, _)| busy(sample));
        assert_eq!(answered(&most), (No, CannotTell, 1));
    }

    #[test]
    fn one_trial_never_decides() {
        for change in [busy as fn(&mut Sample), unknown, |_| ()] {
            let (measured, answer, turned) = answered(&trials(1, 20.0, change));
            assert_eq!((measured, answer, turned), (CannotTell, CannotTell, 0));
        }
    }
}
