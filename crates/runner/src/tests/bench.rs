//! A stand-in for the engine, and a folder to run in.

use std::sync::atomic::Ordering;
use std::thread;

use iolab_workload::histogram::new_latency_histogram;
use iolab_workload::operation::PerOperation;
use iolab_workload::outcome::{Ended as TrialEnded, FailedRequest, Failure, Outcome, Tally};
use iolab_workload::region_state::Medium;
use iolab_workload::trial::TrialSpec;

use super::super::*;
use super::experiment;
use crate::evidence::Origin;
use iolab_plan::cells::{OneProcess, Plan};
use iolab_record::Run;
use iolab_runfile::NewFile;
use iolab_workload::settings::CellSpec;

/// Plays trials on a clock of its own: `elapsed_ns` says how long each takes, `cut` what happens at a trial of a given number.
pub(super) struct Mock<'a> {
    pub(super) elapsed_ns: &'a dyn Fn(&TrialSpec, u64) -> u64,
    pub(super) cut: Option<(u64, Cut)>,
    pub(super) trials: u64,
    pub(super) paused: Vec<Duration>,
    pub(super) now: Duration,
    /// Result of a purge: bytes of the device and its time, or the reason for having none.
    pub(super) purge: std::result::Result<(u64, Duration), &'static str>,
}

#[derive(Clone, Copy)]
pub(super) enum Cut {
    Interrupt,
    Fail(i32),
}

impl Executor for Mock<'_> {
    fn run(&mut self, cell: &CellSpec, stop: &AtomicBool) -> Result<Outcome> {
        let spec = &cell.trial;
        let number = self.trials;
        self.trials += 1;
        let elapsed_ns = (self.elapsed_ns)(spec, number);
        self.now += Duration::from_nanos(elapsed_ns);
        let mut outcome = played(spec, elapsed_ns);
        match self.cut {
            Some((at, Cut::Interrupt)) if at == number => {
                stop.store(true, Ordering::Relaxed);
                outcome.ended = TrialEnded::Interrupted;
            }
            Some((at, Cut::Fail(errno))) if at == number => {
                outcome.ended = TrialEnded::Failed;
                outcome.errors = 1;
                outcome.failure = Some(Failure::Request(FailedRequest {
                    syscall: "pwrite",
                    offset: 8192,
                    length: spec.bs,
                    errno,
                }));
            }
            _ => {}
        }
        Ok(outcome)
    }

    fn purge(
        &mut self,
        _cell: &CellSpec,
        _stop: &AtomicBool,
        begins: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<std::result::Result<(u64, Duration), String>> {
        if self.purge.is_ok() {
            begins("/dev/disk (1.10 TB, a disk)")?;
        }
        Ok(self.purge.map_err(str::to_owned))
    }

    fn gap(&self, cell: &CellSpec) -> Option<String> {
        (cell.tool.name() == "iozone").then(|| "why".to_owned())
    }

    fn pause(&mut self, time: Duration, _stop: &AtomicBool) {
        self.now += time;
        self.paused.push(time);
    }

    fn fit(&self, cell: &mut PlannedCell) -> Result<()> {
        cell.spec.batch_auto &= cell.spec.trial.depth > 1;
        Ok(())
    }

    fn alignment(&self) -> u64 {
        4096
    }

    fn origin(&self, _cell: &CellSpec) -> Origin {
        Origin::Medium(Medium::Storage)
    }

    fn now(&self) -> Duration {
        self.now
    }
}

pub(super) fn played(spec: &TrialSpec, elapsed_ns: u64) -> Outcome {
    let tally = |requests: u64| {
        let mut latency = new_latency_histogram();
        latency
            .record_n(elapsed_ns / 100, requests)
            .expect("in bounds");
        Tally {
            requests,
            bytes: requests * spec.bs,
            short_transfers: 0,
            latency,
            waits: None,
        }
    };
    let requests = spec.requests_bound().map_or(100, |most| most.min(100));
    let (read, write) = match spec.writes() {
        true => (Tally::default(), tally(requests)),
        false => (tally(requests), Tally::default()),
    };
    Outcome {
        operations: PerOperation {
            read,
            write,
            ..PerOperation::default()
        },
        elapsed_ns,
        all_active_ns: elapsed_ns,
        ..Outcome::default()
    }
}

pub(super) struct Silent;
impl Observer for Silent {}

pub(super) struct Fixture {
    _folder: tempfile::TempDir,
    pub(super) path: PathBuf,
    pub(super) experiment: Experiment,
}

pub(super) fn bench(sets: &[&str]) -> Fixture {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let common = ["bs=4k,64k,1M", "trials_max=9", "budget=1h"];
    let experiment = experiment("read-size", &[&common, sets].concat());
    Fixture {
        path: folder.path().join("run.iolab"),
        _folder: folder,
        experiment,
    }
}

impl Fixture {
    pub(super) fn start(&self, mock: &mut Mock<'_>) -> Result<Finished> {
        self.watched(mock, &mut Silent)
    }

    pub(super) fn watched(
        &self,
        mock: &mut Mock<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Finished> {
        self.session(observer)?
            .carry_out(mock, &StopFlags::default())
    }

    /// A session with a new run file.
    pub(super) fn session<'a>(&self, observer: &'a mut dyn Observer) -> Result<Session<'a>> {
        let planned = planned(&self.experiment);
        let begun = RunRecord {
            run: Run {
                status: RunStatus::Running,
                target_bytes: 1 << 30,
                seed: 42,
                ..Run::default()
            },
            experiment: experiment_record(&self.experiment)?,
            cells: fit::records(planned.cells()),
            ..RunRecord::default()
        };
        let file = prepared_run::create(NewFile::At(&self.path), &begun)?;
        Ok(Session::new(planned, &[], file, &begun, observer))
    }

    pub(super) fn take_up(&self, mock: &mut Mock<'_>) -> Result<Finished> {
        // A program that another test starts shares all locks until it is another program.
        let is_locked = |error: &Error| error.message().contains("being written");
        let mut waits = 0..2000;
        let (file, record) = loop {
            match RunFile::open_resume(&self.path) {
                Err(error) if is_locked(&error) && waits.next().is_some() => {
                    thread::sleep(Duration::from_millis(10));
                }
                opened => break opened?,
            }
        };
        // As the file has it: with the sizes that the run has added.
        let experiment = Experiment::from_toml(&record.experiment.toml, "run")?;
        let plan = as_begun(planned(&experiment), &record, &self.path)?;
        let mut observer = Silent;
        let mut session = Session::new(plan, &[], file, &record, &mut observer);
        session.take_over(&record)?;
        session.carry_out(mock, &StopFlags::default())
    }

    pub(super) fn record(&self) -> RunRecord {
        iolab_runfile::read(&self.path).expect("a run file")
    }
}

/// The plan as the stand-in fits it.
pub(super) fn planned(experiment: &Experiment) -> FittedPlan {
    let plan = Plan::of(experiment.clone(), &OneProcess).expect("valid");
    FittedPlan::of(plan, &|cell| {
        cell.spec.batch_auto &= cell.spec.trial.depth > 1;
        Ok(())
    })
    .expect("fitted")
}

pub(super) fn steady(_: &TrialSpec, _: u64) -> u64 {
    1_000_000
}

/// Far from any precision goal, and never the same twice.
pub(super) fn wild(_: &TrialSpec, number: u64) -> u64 {
    1_000_000 * (1 + number * 7 % 13)
}

pub(super) fn mock(elapsed_ns: &dyn Fn(&TrialSpec, u64) -> u64) -> Mock<'_> {
    Mock {
        elapsed_ns,
        cut: None,
        trials: 0,
        paused: Vec::new(),
        now: Duration::ZERO,
        purge: Err("is not an NVMe namespace"),
    }
}

/// The trials, in order: cell, block, seed.
pub(super) fn trials(record: &RunRecord) -> Vec<(i64, u32, u64)> {
    record
        .samples
        .iter()
        .filter(|s| s.ok)
        .map(|s| (s.cell, s.block, s.seed))
        .collect()
}

/// A stand-in whose trial of this number is cut.
pub(super) fn cut_at(at: u64, cut: Cut, elapsed_ns: &dyn Fn(&TrialSpec, u64) -> u64) -> Mock<'_> {
    Mock {
        cut: Some((at, cut)),
        ..mock(elapsed_ns)
    }
}

/// The record of a run with these settings.
pub(super) fn recorded(sets: &[&str], elapsed_ns: &dyn Fn(&TrialSpec, u64) -> u64) -> RunRecord {
    let bench = bench(sets);
    bench.start(&mut mock(elapsed_ns)).expect("done");
    bench.record()
}
