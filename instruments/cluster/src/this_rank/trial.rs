//! A rank's part in a trial.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::clock::{Activity, CumulativeBytes};
use crate::link::{Link, Team};
use crate::shared_counters::{self, Numbered, Shares, taking_part};
use crate::trial::{self as joint, Halt, MergedTrial, RankPart, TrialContribution};
use iolab_engine::trial;
use iolab_record::{Part, PartId, RankActivity};
use iolab_runner::describe_failure;
use iolab_runner::ranks::RankReport;
use iolab_runner::timeouts::{ANSWER, Timeouts};
use iolab_storage::Target;
use iolab_workload::outcome::{ClientOutcome, FailedRank, Failure, Outcome};
use iolab_workload::trial::{FileLayout, Others, TrialSpec};
use iolab_workload::{Error, Result};

use super::{Member, habits, root_targets};

/// A wait shorter than this is waited out on the CPU, ns: a sleep would end too late.
const AWAKE_NS: i64 = 200_000;

impl Member {
    /// Carries the own part of a trial out; the root gets the results of all ranks.
    pub(super) fn trial(
        &mut self,
        asked: &TrialSpec,
        place: usize,
        target: &Target,
        stop: &AtomicBool,
    ) -> Result<Option<(Outcome, RankReport)>> {
        let rank = self.team.link().rank();
        let roster = taking_part(&self.places, asked.ranks, asked.hosts)?;
        let Some(number) = roster.iter().position(|other| *other == rank) else {
            return self.idle(asked, roster.len()).map(|()| None);
        };
        let part = match asked.is_shifted() {
            true => shared_counters::parts(&self.places, asked.shift)?[rank],
            false => number,
        };
        let after = roster.len() - 1 - part;
        let workers = |ranks: usize| asked.threads.saturating_mul(ranks as u32);
        let spec = TrialSpec {
            others: Others {
                before: workers(part),
                after: workers(after),
                before_written: asked.is_shifted().then(|| workers(number)),
            },
            ..asked.clone()
        };
        let timeouts = Timeouts::of(asked, roster.len());
        let mut meeting = MessageBarrier {
            team: &mut self.team,
            timeouts,
            prepared: false,
            start_ns: i64::MIN,
            halt: None,
            workers: Vec::new(),
        };
        let result = trial::run_with(&spec, target, &self.clock, stop, &mut meeting, None);
        let MessageBarrier {
            prepared,
            halt,
            workers,
            ..
        } = meeting;
        if let Some(halt) = halt {
            return Err(self.error(halt));
        }
        // A rank that cannot take part informs all others, at either of the two points where they wait for it.
        let wait = match prepared {
            true => timeouts.settling,
            false => timeouts.preparing,
        };
        let ready = result.as_ref().map(|_| ()).map_err(Error::clone);
        self.agree(wait, ready)?;
        let outcome = result?;
        let accounts = self.accounts.get(place).cloned().unwrap_or_default();
        let shares = accounts.shares(&self.places, &roster, rank);
        // Whether no other rank uses the file of this target.
        let has_own_file = self
            .targets
            .get(place)
            .is_some_and(root_targets::is_by_rank);
        let apart = spec.has_own_range() || has_own_file;
        let mut own = self.part(outcome, (&spec, apart), &workers, shares)?;
        let client = self.client(&own.rest, &roster, target, &accounts);
        own.rest.clients.extend(client);
        let whole = self.team.conclude(habits(ANSWER), Some(own));
        let whole = whole.map_err(|halt| self.error(halt))?;
        Ok(whole.map(|whole| merged(whole, &self.clients)))
    }

    /// Waits, without work for the CPU, until the ranks that take part are through.
    fn idle(&mut self, trial: &TrialSpec, ranks: usize) -> Result<()> {
        let timeouts = Timeouts::of(trial, ranks);
        let team = &mut self.team;
        let waited = team
            .agree(habits(timeouts.preparing), Ok(()))
            .and_then(|()| team.start(habits(ANSWER), Ok(())))
            // The measuring ranks have ended, and have left the file to the next trial.
            .and_then(|_| team.agree(habits(timeouts.carrying), Ok(())))
            .and_then(|()| team.agree(habits(timeouts.settling), Ok(())))
            .and_then(|()| team.conclude::<TrialContribution>(habits(ANSWER), None));
        waited.map(drop).map_err(|halt| self.error(halt))
    }

    /// The work of this client's ranks, if this rank is the first of them.
    fn client(
        &mut self,
        own: &TrialContribution,
        roster: &[usize],
        target: &Target,
        accounts: &Numbered,
    ) -> Option<ClientOutcome> {
        let rank = self.team.link().rank();
        let members = shared_counters::members(&self.clients, roster, rank);
        let deed = TrialContribution {
            // Other clients may read the same accounts too.
            shares: accounts.shares(&self.places, &members, rank),
            ..own.clone()
        };
        let shared = accounts.shared(&self.clients, roster, rank);
        // All ranks have ended the trial: one that is silent now is lost, and is named at the next barrier.
        let joined = self.team.join_at_first(&members, || deed, ANSWER / 2);
        let joined = joined.ok().flatten();
        joined.map(|all| all.client(rank, target.medium(), shared))
    }

    /// The message of a rank to the root.
    fn part(
        &mut self,
        mut outcome: Outcome,
        (spec, apart): (&TrialSpec, bool),
        workers: &[(u64, u64)],
        shares: Shares,
    ) -> Result<joint::Contribution<TrialContribution>> {
        let ns = |ticks: u64| self.clock.ns_between(0, ticks) as i64;
        let spans = workers.iter().map(|(start, end)| (ns(*start), ns(*end)));
        let Some(activity) = Activity::of(spans) else {
            return Err(Error::failed("no worker of this rank has come to its end"));
        };
        let start = activity.first_start.middle();
        let intervals = outcome.series.intervals.iter();
        let cumulative = CumulativeBytes::new(
            start,
            intervals.map(|interval| {
                let end = start.saturating_add_unsigned(interval.end_ns());
                (end, interval.done.bytes())
            }),
        );
        let rank = self.team.link().rank();
        if let Some(failure) = outcome.failure.take() {
            let (message, remedy) = describe_failure(&failure);
            outcome.failure = Some(Failure::Rank(FailedRank {
                place: self.place(rank),
                message,
                remedy,
                errno: failure.errno(),
            }));
        }
        let part = RankPart {
            rank: rank as u64,
            started: activity.first_start,
            ended: activity.last_end,
            done: outcome.operations.moved(),
            errors: outcome.errors,
        };
        Ok(joint::Contribution {
            activity,
            cumulative,
            rest: TrialContribution {
                outcome,
                shares,
                apart,
                region_bytes: region_bytes(spec),
                parts: vec![part],
                clients: Vec::new(),
            },
        })
    }
}

/// The outcome of the trial as a whole, and the results of each rank.
fn merged(whole: MergedTrial<TrialContribution>, clients: &[usize]) -> (Outcome, RankReport) {
    let activity = whole.activity;
    let mut outcome = whole.rest.outcome;
    let region_bytes = Some(whole.rest.region_bytes);
    let begin = activity.first_start.middle();
    let parts = whole.rest.parts.iter();
    let mut parts: Vec<Part> = parts.map(|part| stored(part, begin)).collect();
    parts.sort_unstable_by_key(|part| part.id);
    let active = active(&parts, clients);
    let mut of_clients = whole.rest.clients;
    for client in &mut of_clients {
        let number = clients.get(client.rank as usize);
        let span = number.and_then(|number| active.get(number));
        let (start, end) = span.copied().unwrap_or_default();
        (client.start_ns, client.elapsed_ns) = (start, end.saturating_sub(start));
    }
    of_clients.sort_unstable_by_key(|client| client.rank);
    let (elapsed, skew) = (activity.elapsed_ns(), activity.skew_ns());
    outcome.elapsed_ns = elapsed.middle().round() as u64;
    let span = activity.all_active();
    outcome.all_active_ns = span.map_or(0, |(from, to)| to.abs_diff(from));
    let moved = whole.all_active_bytes;
    let together = RankActivity {
        elapsed_error_ns: elapsed.error().ceil() as u64,
        start_skew_ns: skew.middle().round() as u64,
        start_skew_error_ns: skew.error().ceil() as u64,
        all_active_least_bytes: moved.least.floor() as u64,
        all_active_most_bytes: moved.greatest.ceil() as u64,
    };
    let report = RankReport {
        parts,
        clients: of_clients,
        region_bytes,
        together: Some(together),
    };
    (outcome, report)
}

/// Start and end of the activity of each client's ranks, by the number of the client, ns.
fn active(parts: &[Part], clients: &[usize]) -> HashMap<usize, (u64, u64)> {
    let mut spans = HashMap::new();
    for part in parts {
        let Some(client) = clients.get(part.id.rank as usize) else {
            continue;
        };
        let (start, end) = (part.start_ns, part.start_ns.saturating_add(part.elapsed_ns));
        let (first, last) = spans.entry(*client).or_insert((start, end));
        *first = start.min(*first);
        *last = end.max(*last);
    }
    spans
}

/// Bytes that the workers of this rank go over.
fn region_bytes(spec: &TrialSpec) -> u64 {
    match spec.layout {
        FileLayout::Private => (0..spec.threads)
            .map(|worker| spec.private_bytes(worker))
            .sum(),
        FileLayout::Shared | FileLayout::Interleaved | FileLayout::Overlapping => {
            let range = spec.own_range();
            range.end - range.start
        }
    }
}

/// A rank's part as a run file keeps it, in a trial that begins at this moment of the root's clock.
fn stored(part: &RankPart, begin: i64) -> Part {
    let (start, end) = (part.started.middle(), part.ended.middle());
    Part {
        id: PartId {
            rank: u32::try_from(part.rank).unwrap_or(u32::MAX),
            ..PartId::default()
        },
        start_ns: start.saturating_sub(begin).max(0).unsigned_abs(),
        elapsed_ns: end.saturating_sub(start).max(0).unsigned_abs(),
        done: part.done,
        errors: part.errors,
        ..Part::default()
    }
}

/// The barrier at which the workers of this rank wait for the workers of the others.
struct MessageBarrier<'a> {
    team: &'a mut Team<dyn Link>,
    timeouts: Timeouts,
    /// All ranks were ready.
    prepared: bool,
    /// Start of the trial by the clock of this rank, once announced.
    start_ns: i64,
    halt: Option<Halt>,
    workers: Vec<(u64, u64)>,
}

impl MessageBarrier<'_> {
    /// Remembers what keeps the ranks from going on; the caller has the words for it.
    fn kept<T>(&mut self, result: std::result::Result<T, Halt>) -> Result<T> {
        result.map_err(|halt| {
            let error = Error::failed(halt.to_string());
            self.halt = Some(halt);
            error
        })
    }
}

impl trial::RankBarrier for MessageBarrier<'_> {
    fn ready(&mut self) -> Result<()> {
        let agreed = self.team.agree(habits(self.timeouts.preparing), Ok(()));
        self.kept(agreed)?;
        self.prepared = true;
        Ok(())
    }

    fn announced(&mut self) -> Result<()> {
        let started = self.team.start(habits(ANSWER), Ok(()));
        self.start_ns = self.kept(started)?;
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        loop {
            let left = self.start_ns.saturating_sub(self.team.link().now_ns());
            if left <= 0 {
                return Ok(());
            }
            if left > AWAKE_NS {
                std::thread::sleep(Duration::from_nanos((left - AWAKE_NS).unsigned_abs()));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn ended(&mut self) -> Result<()> {
        let agreed = self.team.agree(habits(self.timeouts.carrying), Ok(()));
        self.kept(agreed)
    }

    fn worked(&mut self, workers: Vec<(u64, u64)>) {
        self.workers = workers;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_active_throughout_its_ranks() {
        let part = |rank, start_ns, elapsed_ns| Part {
            id: PartId {
                rank,
                ..PartId::default()
            },
            start_ns,
            elapsed_ns,
            ..Part::default()
        };
        // Rank 3 takes no part.
        let parts = [part(0, 20, 70), part(1, 5, 30), part(2, 10, 60)];
        let spans = active(&parts, &[0, 1, 0, 2]);
        assert_eq!(spans, HashMap::from([(0, (10, 90)), (1, (5, 35))]));
    }
}
