//! One run by several processes (ranks). The root has the others carry out their part of each trial, within time limits.
//!
//! Files to begin with: `this_rank.rs` the execution of orders, `root_targets.rs` the orders of the root and its targets,
//! `handshake.rs` the greeting of the ranks, their hosts and their errors, `trial.rs` a rank's part in a trial.

pub(crate) mod handshake;
mod root_targets;
mod trial;

use std::cell::RefCell;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::link::{FANOUT, Link, List, Team};
use crate::shared_counters::{Numbered, taking_part};
use crate::trial::TrialTimeouts;
use crate::{link, shared_counters};
use iolab_host::clock::Clock;
use iolab_plan::cells::{PlannedCell, Processes};
use iolab_record::tables::Rank;
use iolab_runner::Targets;
use iolab_runner::ranks::{RankReport, Ranks, is_own};
use iolab_runner::timeouts::{ANSWER, moving};
use iolab_storage::{Need, Target, TargetKind};
use iolab_workload::outcome::Outcome;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{FileLayout, Others, Shift, TrialSpec};
use iolab_workload::{Error, Result, launchers, usage_errors};
use serde::Serialize;
use serde::de::DeserializeOwned;

use handshake::{Host, unreadable};
use root_targets::{RemoteTarget, RootOrder, trial_of};

/// How long a rank waits for the next order: between two orders the root stores measurements.
const IDLE: Duration = Duration::from_secs(600);

/// This process as one rank of the run. Rank 0, the root, plans and keeps the run file.
pub struct ThisRank(RefCell<Member>);

/// State of a rank.
struct Member {
    team: Team<dyn Link>,
    clock: Clock,
    /// Hosts of all ranks, in their order, once the ranks have met.
    hosts: Vec<Host>,
    /// Number of the host of each rank.
    places: Vec<usize>,
    /// The targets, once they are opened.
    targets: Vec<RemoteTarget>,
    /// Number of the client of each rank: its host, or the rank itself if it has a target of its own.
    clients: Vec<usize>,
    /// Whether a target with a different path at each rank is one store all the same: ranks read the data of others.
    one_store: bool,
    /// Work of each rank in the last trial; known to the root.
    report: RankReport,
    /// The host of this rank.
    host: Host,
    /// Accounts of the kernel that each rank reads, by target.
    accounts: Vec<Numbered>,
    /// Whether a rank was lost.
    lost: bool,
    /// End of the advice to look at the host of a lost rank.
    after_loss: String,
    /// How to finish the run; the other ranks do not have it yet.
    advice: Option<String>,
    /// Notes of the other ranks about opening their targets; known to the root.
    notes: Vec<String>,
    ended: bool,
}

impl ThisRank {
    /// This rank; `clock` is the clock that `link` reads.
    pub fn new(link: Box<dyn Link>, clock: Clock) -> Self {
        Self(RefCell::new(Member {
            team: Team::new(link, FANOUT),
            clock,
            hosts: Vec::new(),
            places: Vec::new(),
            targets: Vec::new(),
            clients: Vec::new(),
            one_store: false,
            report: RankReport::default(),
            host: Host::here(),
            accounts: Vec::new(),
            lost: false,
            after_loss: "; then start anew".to_owned(),
            advice: None,
            notes: Vec::new(),
            ended: false,
        }))
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.borrow().team.is_root()
    }

    fn check(&self, cell: &CellSpec) -> Result<()> {
        let trial = &cell.trial;
        let one_process = concat!("start one process, without ", launchers!());
        usage_errors! {
            cell.runs_program() || cell.tool.is_peer() => "measuring another program is not possible with several ranks", one_process;
            cell.has_groups() => "several groups of workers is not possible with several ranks", one_process;
            trial.trace => "a trace of requests is not possible with several ranks", one_process;
            trial.files.is_some() => "several files of each thread (files) is not possible with several ranks",
                "set files=none: each thread of every process has one file";
            trial.starts_fresh() && trial.layout != FileLayout::Private =>
                "one new file for all workers (layout=shared with allocate) is not possible with several ranks",
                "set layout=private, or allocate=none";
        }
        // Refuses impossible shifts before anything is opened.
        shared_counters::parts(&self.0.borrow().places, trial.shift).map(drop)
    }

    /// A rank other than the root: carries out the root's orders, until the run is over. All files that it made are removed
    /// at the end.
    ///
    /// # Errors
    /// When a rank is lost: the root, or another one.
    pub fn follow(&self, stop: &AtomicBool) -> Result<()> {
        let member = &mut *self.0.borrow_mut();
        let mut targets: Vec<Target> = Vec::new();
        let mut rest = Duration::ZERO;
        loop {
            let timeout = IDLE.saturating_add(mem::take(&mut rest));
            let message = member.team.broadcast(&[], timeout);
            let message = message.map_err(|lost| member.error(lost))?;
            // The root reports failures of a rank; a lost rank ends the run.
            let done = match link::decode(&message) {
                Some(RootOrder::Open(places)) => member.follow_open(&places, &mut targets),
                Some(RootOrder::Fill { seed, bytes }) => {
                    let filled = member.fill(&targets, seed, stop);
                    member.agree(moving(bytes), filled)
                }
                Some(RootOrder::Trial {
                    settings,
                    seed,
                    target: number,
                }) => match (trial_of(&settings, seed), targets.get(number)) {
                    (Ok(trial), Some(target)) => {
                        member.trial(&trial, number, target, stop).map(drop)
                    }
                    _ => member.agree(ANSWER, Err(unreadable())),
                },
                Some(RootOrder::End) => {
                    // All trials are kept.
                    member.after_loss = String::new();
                    let removed = targets.into_iter().map(Target::remove);
                    let removed = removed.fold(Ok(()), Result::and);
                    let time = member.removal_time();
                    let done = member.agree(time, removed);
                    return if member.lost { done } else { Ok(()) };
                }
                Some(RootOrder::Rest(time)) => {
                    rest = Duration::from_nanos(time);
                    Ok(())
                }
                Some(RootOrder::Keep(advice)) => {
                    member.after_loss = format!(". {advice}");
                    Ok(())
                }
                None => member.agree(ANSWER, Err(unreadable())),
            };
            if member.lost {
                return done;
            }
        }
    }

    /// Whether a rank is lost: the others do not end by themselves then, and [`ThisRank::abort`] has to end them.
    pub fn has_lost(&self) -> bool {
        self.0.borrow().lost
    }

    /// Ends all ranks at once with this exit code.
    pub fn abort(&self, code: i32) {
        self.0.borrow_mut().team.link().abort(code);
    }
}

impl Ranks for ThisRank {
    fn count(&self) -> usize {
        self.0.borrow_mut().team.link().size()
    }

    fn rows(&self) -> Vec<Rank> {
        handshake::rows(&self.0.borrow().hosts)
    }

    fn clock(&self) -> Clock {
        self.0.borrow().clock.clone()
    }

    fn place(&self, named: &Path) -> Result<PathBuf> {
        let member = &mut *self.0.borrow_mut();
        handshake::place(named, member.team.link().rank(), &member.host.name)
    }

    fn open(&self, targets: &mut Targets, needs: &[Need]) -> Result<()> {
        let count = self.count();
        let member = &mut *self.0.borrow_mut();
        // If ranks read the data of others they all use the same file, whatever path each of them sees it under.
        let one_store = member.one_store;
        let is_shared = |named: &Path| one_store || !is_own(named);
        targets.divide(count as u32, &is_shared);
        let mut places = Vec::new();
        let demands = targets.iter().map(|(_, target)| target.demands()).collect();
        for ((named, target), need) in targets.iter().zip(needs) {
            usage_errors! {
                need.write && target.kind() != TargetKind::Scratch =>
                    format!("several ranks write to scratch files only, and {} is another target", target.path().display()),
                    "give a directory, or measure reads";
            }
            places.push(root_targets::of(named, target, need, is_shared(named))?);
        }
        member.know_targets(&places);
        member.give(&RootOrder::Open(places))?;
        // Its own scratch files are already there; leftovers of dead runs are not.
        member.clean(&[])?;
        let opened = targets.iter().map(|(_, target)| target);
        member.notes = member.agree_on_targets(demands, opened)?;
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        self.0.borrow().notes.clone()
    }

    fn fill(&self, seed: u64, bytes: u64, own: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        // The files of the other ranks are at most as large as the root's.
        let bytes = bytes.saturating_mul(self.count() as u64);
        let order = RootOrder::Fill { seed, bytes };
        self.0.borrow_mut().give(&order)?;
        let filled = own();
        let member = &mut *self.0.borrow_mut();
        member.agree(moving(bytes), filled)
    }

    fn keeps_trials(&self, advice: &str) {
        let member = &mut *self.0.borrow_mut();
        member.after_loss = format!(". {advice}");
        // The others have it before the next trial.
        member.advice = Some(advice.to_owned());
    }

    fn rest(&self, time: Duration) -> Result<()> {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.borrow_mut().give(&RootOrder::Rest(time))
    }

    fn run(
        &self,
        trial: &TrialSpec,
        number: usize,
        target: &Target,
        stop: &AtomicBool,
    ) -> Result<Outcome> {
        let trial = TrialSpec {
            others: Others::default(),
            ..trial.clone()
        };
        let member = &mut *self.0.borrow_mut();
        if let Some(advice) = member.advice.take() {
            member.give(&RootOrder::Keep(advice))?;
        }
        member.give(&RootOrder::trial(&trial, number)?)?;
        let whole = member.trial(&trial, number, target, stop)?;
        let (outcome, report) =
            whole.ok_or_else(|| Error::failed("the root of the ranks has no result"))?;
        member.report = report;
        Ok(outcome)
    }

    fn take_report(&self) -> RankReport {
        mem::take(&mut self.0.borrow_mut().report)
    }

    fn end(&self) -> Result<()> {
        let member = &mut *self.0.borrow_mut();
        if member.ended || member.lost || !member.team.is_root() {
            return Ok(());
        }
        member.ended = true;
        // All trials are kept.
        member.after_loss = String::new();
        member.give(&RootOrder::End)?;
        let time = member.removal_time();
        member.agree(time, Ok(()))
    }
}

impl Processes for ThisRank {
    fn span(&self, cells: &mut [PlannedCell]) -> Result<()> {
        for cell in cells.iter() {
            self.check(&cell.spec)?;
        }
        let member = &mut *self.0.borrow_mut();
        for cell in cells {
            let trial = &mut cell.spec.trial;
            member.one_store |= trial.shift != Shift::None;
            let part = taking_part(&member.places, trial.ranks, trial.hosts)?;
            trial.span(part.len() as u32);
        }
        Ok(())
    }
}

impl Member {
    /// Hands an order of the root to every rank.
    fn give(&mut self, order: &RootOrder) -> Result<()> {
        let given = self.team.broadcast(&link::encode(order), ANSWER);
        given.map(drop).map_err(|lost| self.error(lost))
    }

    /// Waits for all ranks; the error of the first one that has any.
    fn agree(&mut self, timeout: Duration, ready: Result<()>) -> Result<()> {
        let agreed = self.team.agree(habits(timeout), ready);
        agreed.map_err(|halt| self.error(halt))
    }

    /// Combines the values of all ranks at the root; every rank gets the result.
    fn pool<T, M>(&mut self, own: T, make: impl FnOnce(Vec<T>) -> M) -> Result<M>
    where
        T: Serialize + DeserializeOwned,
        M: Serialize + DeserializeOwned,
    {
        let all = self.team.gather(List(vec![own]), ANSWER);
        let all = all.map_err(|lost| self.error(lost))?;
        let message = all.map_or_else(Vec::new, |all| link::encode(&make(all.0)));
        // The root waits for others first.
        let in_all = self.team.timeout_in_all(ANSWER);
        let message = self.team.broadcast(&message, in_all);
        let message = message.map_err(|lost| self.error(lost))?;
        link::decode(&message).ok_or_else(unreadable)
    }
}

fn habits(timeout: Duration) -> TrialTimeouts {
    TrialTimeouts {
        rounds: 8,
        timeout: ANSWER,
        trial: timeout,
    }
}
