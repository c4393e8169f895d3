//! Strategies unknown to the runner, and the decisions of its own ones from a record.

use super::super::record::Record;
use super::super::sample::VisitPosition;
use super::super::strategy::{Finding, Outlook, Step, Strategy, Visit};
use super::*;
use iolab_record::Sample;

/// Measures the first cell, then adds a finer size and measures that for as long as the first one took.
struct Chain {
    taken: u32,
}

impl Chain {
    fn visit(&self, cell: usize, time: Option<Duration>) -> Step {
        Step::Visit(Visit {
            place: VisitPosition {
                cell,
                block: self.taken,
                visit: 0,
                position: 0,
                warmup: self.taken == 0,
            },
            time,
            series_ns: None,
        })
    }
}

impl Strategy for Chain {
    fn next(&mut self, record: &Record) -> Result<Step> {
        let step = match self.taken {
            0 | 1 => self.visit(0, None),
            2 => Step::Add(Box::new(record.plan.finer(2, vec!["8KiB".to_owned()])?)),
            3 => self.visit(3, record.trials().last().map(|trial| trial.wall)),
            4 => {
                let last = record.last().expect("a trial");
                let found = format!("{} bytes", last.cell.trial.bs);
                Step::Keep(vec![
                    Finding::Told(EventKind::Note, found),
                    Finding::Ended(3, EndedBy::Precision),
                ])
            }
            _ => Step::Done,
        };
        self.taken += 1;
        Ok(step)
    }

    fn outlook(&mut self, record: &Record) -> Outlook {
        Outlook {
            time: Duration::from_secs(3 - record.trials_done()),
            basis: Basis::Trials,
        }
    }
}

#[test]
fn an_unknown_strategy_is_carried_out() {
    #[derive(Default)]
    struct Watch(Vec<Duration>);
    impl Observer for Watch {
        fn trial_done(&mut self, trial: &TrialDone<'_>) {
            self.0.push(trial.progress.left);
        }
    }
    let bench = bench(&[]);
    let mut watch = Watch::default();
    let mut session = bench.session(&mut watch).expect("a session");
    let mut mock = mock(&steady);
    let mut chain = Chain { taken: 0 };
    session
        .follow_strategy(
            &mut chain,
            &mut mock,
            Stop::at_once(&AtomicBool::new(false)),
        )
        .expect("carried out");
    drop(session);
    assert_eq!(watch.0, [2, 1, 0].map(Duration::from_secs));
    let record = bench.record();
    let places: Vec<(i64, u32, bool)> = record
        .samples
        .iter()
        .map(|sample| (sample.cell, sample.block, sample.warmup))
        .collect();
    assert_eq!(places, [(0, 0, true), (0, 1, false), (3, 3, false)]);
    assert_eq!(record.cells.len(), 4);
    assert_eq!(record.cells[3].trial().bs, 8192);
    assert_eq!(record.cells[3].ended_by, Some(EndedBy::Precision));
    assert_eq!(record.events.last().expect("told").message, "8192 bytes");
}

#[test]
fn a_cell_given_up_gets_no_finer_sizes() {
    let bench = bench(&[&REFINE[..], &["tool=iolab,fio"]].concat());
    let cells = planned(&bench.experiment).cells().len();
    // The first trial of fio in the second block, after one that worked.
    let order = block_order(42, 1, cells);
    let of_fio = order.iter().position(|cell| cell % 2 == 1);
    let place = of_fio.expect("a cell of fio");
    let mut mock = mock(&knee);
    mock.cut = Some(((cells + place) as u64, Cut::Fail(5)));
    bench.start(&mut mock).expect("the run goes on");
    let record = bench.record();
    assert!(record.cells.len() > cells, "finer sizes were added");
    let failed = record.samples.iter().find(|sample| !sample.ok);
    let failed = failed.expect("one failed");
    assert_eq!((failed.cell as usize, failed.block), (order[place], 1));
    let its = |sample: &&Sample| sample.cell == failed.cell;
    assert_eq!(record.samples.iter().filter(its).count(), 2);
}
