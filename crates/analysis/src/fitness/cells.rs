//! Whether levels hold in the cells of a run.

use iolab_record::environment::Environment;
use iolab_record::{Cell, RunRecord, SampleLatency};
use iolab_workload::Result;
use iolab_workload::service_level::{ServiceLevel, ServiceLevels};
use iolab_workload::settings::cell_label;

use super::{Answer, Evidence, Judged, judge, merge_answers};
use crate::doubt::{Direction, Doubt, Doubts, ReachedLimit};

/// A level in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelAnswer {
    /// The level with what was found, before any doubt.
    pub judged: Judged,
    /// What it comes to.
    pub answer: Answer,
    /// What turns a measured yes or no into "cannot tell"; none where it stands.
    pub turned_by: Vec<Doubt>,
}

/// Levels in a cell, and what they rest on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CellAnswer {
    /// The cell: its levels, or its rate where it is the only one.
    pub cell: String,
    /// Each level, in the order that they were asked in.
    pub levels: Vec<LevelAnswer>,
    /// What the evidence of the trials speaks against, whether or not it turns an answer.
    pub doubts: Doubts,
    /// Time under load, ns.
    pub load_ns: u64,
}

/// Every level in every cell of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdicts {
    /// In the order of the cells; none of cells that were not measured.
    pub cells: Vec<CellAnswer>,
    /// All of them together.
    pub answer: Answer,
}

impl CellAnswer {
    /// What the trials of a cell say of levels.
    pub fn of<'a>(
        name: String,
        cell: &Cell,
        evidence: &Evidence<'_>,
        environment: &Environment,
        levels: impl IntoIterator<Item = &'a ServiceLevel>,
    ) -> Self {
        let doubts = Doubts::of_cell(cell, evidence.samples(), environment);
        let levels = levels.into_iter().map(|level| {
            let judged = judge(level, evidence);
            let turned_by = judged.answer.direction().map_or(Vec::new(), |direction| {
                doubts.turning(direction, |concerned| {
                    judge(level, &evidence.without(concerned)).answer == judged.answer
                })
            });
            LevelAnswer {
                answer: match turned_by.is_empty() {
                    true => judged.answer,
                    false => Answer::CannotTell,
                },
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

    /// The limit that explains a level that fails, so that no other disk would keep it.
    pub fn cause(&self, level: &LevelAnswer) -> Option<ReachedLimit> {
        (level.answer == Answer::No).then_some(self.doubts.limit)?
    }

    /// What the reader must know of the trials: what turns an answer, and where a level is open by itself whatever could turn it.
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

    /// All levels together, before any doubt.
    pub fn measured(&self) -> Answer {
        merge_answers(self.levels.iter().map(|level| level.judged.answer))
    }

    /// All levels together.
    pub fn answer(&self) -> Answer {
        merge_answers(self.levels.iter().map(|level| level.answer))
    }
}

impl Verdicts {
    /// What a run says of levels.
    ///
    /// # Errors
    /// The first of `latencies`.
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
                    .rate
                    .map_or_else(String::new, |rate| format!("rate={rate}")),
                factors => cell_label(factors, &cell.levels),
            };
            let environment = record.environment_of(cell);
            CellAnswer::of(name, cell, evidence, &environment, levels.all())
        });
        let cells: Vec<CellAnswer> = cells.collect();
        Ok(Self {
            answer: merge_answers(cells.iter().map(CellAnswer::answer)),
            cells,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fitness::{Times, counted};
    use iolab_record::{LatencyOf, Operation, Sample, ServedBy};
    use iolab_workload::histogram::new_latency_histogram;
    use iolab_workload::settings::Setting;

    type Trial = (Sample, Times);

    /// A second of 1000 syncs of so many ms on a device.
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
            vec![(LatencyOf::service(Operation::Sync), counted(&histogram))],
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

    /// What `syncs.p99<10ms` comes to: as measured, the answer, and how many doubts turn it.
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
        (level.judged.answer, level.answer, level.turned_by.len())
    }

    use Answer::{CannotTell, No, Yes};

    #[test]
    fn a_no_under_disturbance_is_open_and_a_yes_stands() {
        assert_eq!(answered(&trials(12, 20.0, |_| ())), (No, No, 0));
        assert_eq!(answered(&trials(12, 20.0, busy)), (No, CannotTell, 1));
        assert_eq!(answered(&trials(12, 2.0, busy)), (Yes, Yes, 0));
    }

    #[test]
    fn a_yes_of_unknown_origin_is_open_and_a_no_stands() {
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
    fn an_answer_stands_that_the_undisturbed_trials_give() {
        let mut some = trials(12, 20.0, |_| ());
        some[..4].iter_mut().for_each(|(sample, _)| busy(sample));
        assert_eq!(answered(&some), (No, No, 0));
        // The slow ones are the disturbed ones.
        let mut some = trials(24, 2.0, |_| ());
        for slow in some.iter_mut().step_by(2) {
            *slow = trial(slow.0.id, 50.0);
            busy(&mut slow.0);
        }
        assert_eq!(answered(&some), (No, CannotTell, 1));
        // Too few are left to tell.
        let mut most = trials(12, 20.0, |_| ());
        most[..9].iter_mut().for_each(|(sample, _)| busy(sample));
        assert_eq!(answered(&most), (No, CannotTell, 1));
    }

    #[test]
    fn one_trial_is_open_whatever_went_on() {
        for change in [busy as fn(&mut Sample), unknown, |_| ()] {
            let (measured, answer, turned) = answered(&trials(1, 20.0, change));
            assert_eq!((measured, answer, turned), (CannotTell, CannotTell, 0));
        }
    }
}
