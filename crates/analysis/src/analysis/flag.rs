//! Flags: what readers must know about a cell.

use std::fmt;

use iolab_record::{Sample, ServedBy};
use iolab_workload::trial::CacheState;

use super::{CellAnalysis, Context, Shortfall, is_peer};
use crate::trial_values::{median_of, per_request};

/// Share of a latency from which the cost of a time stamp, or the step of the clock, is flagged.
pub(crate) const CLOCK_SHOWS: f64 = 0.01;

/// Severity of a flag when several runs are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caution {
    /// Rank of the caution among all, the worst first.
    pub rank: u8,
    /// Whether it is a disturbance from outside.
    pub disturbs: bool,
    /// Whether it makes the numbers of the cell useless.
    pub ruins: bool,
}

impl Caution {
    const fn new(rank: u8) -> Self {
        Self {
            rank,
            disturbs: false,
            ruins: false,
        }
    }

    const fn disturbs(mut self) -> Self {
        self.disturbs = true;
        self
    }

    const fn ruins(mut self) -> Self {
        self.ruins = true;
        self
    }
}

/// The input for flags: a cell with its other results, and its trials.
struct Seen<'a> {
    context: &'a Context<'a>,
    cell: &'a CellAnalysis,
    /// Successful measured trials.
    ok: Vec<&'a Sample>,
    /// Whether a trial failed, including warm-ups.
    has_failed: bool,
}

macro_rules! flags {
    ($($(#[$doc:meta])* $flag:ident = $name:literal, $caution:expr, $raised:expr;)+) => {
        /// A warning about a cell. Tables list flags in this order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Flag {
            $($(#[$doc])* $flag,)+
        }

        impl Flag {
            /// Every flag.
            pub const ALL: &'static [Self] = &[$(Self::$flag),+];

            /// Name of the flag in tables and exports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$flag => $name,)+
                }
            }

            /// Effect of the flag on the numbers of several runs; `None` for flags that are only shown with each
            /// cell.
            pub fn caution(self) -> Option<Caution> {
                match self {
                    $(Self::$flag => $caution,)+
                }
            }

            fn is_raised(self, seen: &Seen<'_>) -> bool {
                let raised: fn(&Seen<'_>) -> bool = match self {
                    $(Self::$flag => $raised,)+
                };
                raised(seen)
            }
        }
    };
}

flags! {
    /// The page cache served it. Not raised where the page cache was filled on purpose, for any group.
    PageCache = "page cache",
        Some(Caution::new(5)),
        |seen| seen.is_not_hot() && seen.is_served(ServedBy::PageCache);
    /// The device served a part of it. Not raised where the page cache was filled on purpose, for any group.
    Mixed = "mixed",
        Some(Caution::new(5)),
        |seen| seen.is_not_hot() && seen.is_served(ServedBy::Mixed);
    /// The tool cannot carry out the cell, or failed.
    Gap = "gap",
        Some(Caution::new(17)),
        |seen| seen.cell.gap.is_some();
    /// The trials read ranges that were never written, at least in part.
    Hole = "hole",
        Some(Caution::new(4)),
        |seen| seen.is_served(ServedBy::Hole);
    /// No storage was involved.
    NotStorage = "not storage",
        Some(Caution::new(3)),
        |seen| seen.is_served(ServedBy::NotStorage);
    /// The device transferred more than 5 % for others.
    OtherTraffic = "other traffic",
        Some(Caution::new(8).disturbs()),
        |seen| seen.cell.disturbance.has_other_traffic();
    /// The kernel read more than 5 % beyond what was requested.
    ReadAhead = "read-ahead",
        Some(Caution::new(14)),
        |seen| seen.cell.disturbance.has_read_ahead();
    /// The trials form groups by the number of pieces of a request, with different responses.
    RequestsSplit = "requests split",
        Some(Caution::new(12).disturbs()),
        |seen| seen.cell.disturbance.split.is_some_and(|split| split.matters());
    /// Outstanding write-back took more than 5 % of the timed span.
    WriteBackOwed = "write-back owed",
        Some(Caution::new(13).disturbs()),
        |seen| seen.cell.disturbance.owes_write_back();
    /// Direct writes were left in a cache of the storage: making them durable took more than a quarter of the timed span.
    StorageCache = "cached",
        Some(Caution::new(13)),
        |seen| seen.cell.disturbance.fills_storage_cache();
    /// The hypervisor or other programs used CPU time.
    CpuContended = "cpu contended",
        Some(Caution::new(9).disturbs()),
        |seen| seen.cell.disturbance.is_cpu_contended();
    /// The CPU quota of the control group slowed iolab.
    CpuQuota = "cpu quota",
        Some(Caution::new(9).disturbs()),
        |seen| seen.cell.disturbance.held_by_quota().is_some();
    /// An I/O limit of the control group decided the rate.
    IoLimit = "io limit",
        Some(Caution::new(6)),
        |seen| seen.cell.io_limit.is_some();
    /// The machine was suspended, or iolab stopped, during a trial.
    Suspended = "suspended",
        Some(Caution::new(7).disturbs().ruins()),
        |seen| seen.cell.disturbance.suspended_ns > 0;
    /// iolab or the CPU may have been the limit, not the storage.
    ToolBound = "tool-bound",
        Some(Caution::new(10)),
        |seen| seen.is_tool_bound();
    /// A time stamp costs more than 1 % of the median request.
    ClockCost = "clock cost",
        Some(Caution::new(15)),
        |seen| seen.clock_shows();
    /// Time stamps grow in steps of more than 1 % of the median request.
    ClockResolution = "clock resolution",
        Some(Caution::new(15)),
        |seen| seen.clock_is_coarse();
    /// Fewer requests were made than the rate asks for.
    RateNotHeld = "rate not held",
        Some(Caution::new(11)),
        |seen| seen.cell.rate_report.as_ref().is_some_and(|report| report.not_held > 0);
    /// Less than half of the requested concurrency was in flight.
    FewInFlight = "few in flight",
        None,
        |seen| seen.cell.concurrency.is_some_and(|c| c.shortfall == Some(Shortfall::Issued));
    /// Less than half of the requested concurrency reached the device.
    Serialised = "serialised",
        None,
        |seen| seen.cell.concurrency.is_some_and(|c| c.shortfall == Some(Shortfall::ReachedDevice));
    /// Above a ceiling, without a known reason.
    ExceedsCeiling = "exceeds ceiling",
        Some(Caution::new(6)),
        |seen| seen.cell.efficiency.is_some_and(|e| e.exceeds());
    /// Too few trials for an interval, or fewer than the experiment requests without its precision goal.
    FewTrials = "few trials",
        Some(Caution::new(16)),
        |seen| seen.has_few_trials();
    /// Enough trials, but too few of them with enough requests for the quantile of the response.
    FewRequests = "few requests",
        Some(Caution::new(16)),
        |seen| seen.has_few_requests();
    /// Data that was read back differed from what was written.
    VerifyFailed = "verify failed",
        Some(Caution::new(1).ruins()),
        |seen| seen.cell.verified.is_some_and(|verified| verified.failed > 0);
    /// A trial failed.
    Errors = "errors",
        Some(Caution::new(2).ruins()),
        |seen| seen.has_failed || seen.ok.iter().any(|s| s.errors > 0);
    /// The kernel cut transfers short.
    ShortTransfers = "short transfers",
        None,
        |seen| seen.ok.iter().any(|s| s.operations.iter().any(|(_, done)| done.short_transfers > 0));
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The flags of a cell, in order, from its other results.
pub(super) fn of(context: &Context<'_>, cell: &CellAnalysis, trials: &[&Sample]) -> Vec<Flag> {
    let (ok, failed): (Vec<&Sample>, Vec<&Sample>) = trials.iter().partition(|s| s.ok);
    let seen = Seen {
        context,
        cell,
        ok,
        has_failed: !failed.is_empty(),
    };
    let all = Flag::ALL.iter().copied();
    all.filter(|flag| flag.is_raised(&seen)).collect()
}

impl Seen<'_> {
    fn is_not_hot(&self) -> bool {
        let trials = self.cell.cell.spec.trials();
        trials.iter().all(|trial| trial.cache != CacheState::Hot)
    }

    fn is_served(&self, verdict: ServedBy) -> bool {
        let served = self.cell.served_alone();
        served.is_some_and(|served| served.any(verdict))
    }

    fn has_few_trials(&self) -> bool {
        let Self { cell, context, .. } = self;
        (cell.n > 0 || cell.gap.is_none())
            && ((cell.n < context.trials_min && !self.is_precise())
                || cell
                    .response
                    .is_none_or(|r| context.seeks_precision && r.median_interval.is_none()))
            && !self.has_few_requests()
    }

    /// Whether it reached a precision goal that was asked for: then more trials are not needed.
    fn is_precise(&self) -> bool {
        let Context {
            seeks_precision,
            precision_goal,
            ..
        } = self.context;
        let precision = self.cell.precision;
        *seeks_precision && precision.is_some_and(|precision| precision <= *precision_goal)
    }

    fn has_few_requests(&self) -> bool {
        let Self { cell, context, .. } = self;
        // A cell without requests of the operation whose latency is shown does not lack anything.
        let is_asked = !context.response.is_latency() || {
            let only = cell.cell.spec.only_trial();
            only.is_none_or(|trial| context.timed.is_asked(trial))
        };
        cell.n >= context.trials_min && is_asked && cell.lacks_requests()
    }

    /// One time stamp, the cost of a request at depth 1, is visible in its latency.
    fn clock_shows(&self) -> bool {
        !is_peer(&self.cell.cell) && self.shows_in_latency(self.context.clock_cost_ns)
    }

    /// The step of the clock shows in the latency of a request, which is a multiple of it.
    fn clock_is_coarse(&self) -> bool {
        self.shows_in_latency(self.cell.clock_resolution_ns)
    }

    /// Whether a part of that many ns is more than 1 % of the median request; no where one is unknown.
    fn shows_in_latency(&self, part_ns: Option<f64>) -> bool {
        let cell = self.cell;
        let service = cell
            .rate_report
            .as_ref()
            .and_then(|rate_report| rate_report.service);
        let median = service.or(cell.latency).map(|quantiles| quantiles.p50_ns);
        part_ns
            .zip(median)
            .is_some_and(|(part, whole)| part > CLOCK_SHOWS * whole)
    }

    /// CPUs that the workers of all processes may use, as far as known. Several processes may be bound to
    /// different CPUs, so that at least those that they used count, on each host.
    fn cpus(&self) -> Option<u32> {
        let usable = self.context.cpus?;
        let trial = self.cell.cell.trial();
        if trial.workers() == trial.threads {
            return Some(usable);
        }
        let used = self.ok.iter().map(|s| s.cpus_used.numbers().len());
        let used = u32::try_from(used.max().unwrap_or(0)).ok()?;
        Some(usable.max(used).saturating_mul(self.context.hosts))
    }

    /// Whether iolab itself was the limit. Either its overhead is at least a quarter of a request's time, or the
    /// workers used nine tenths of their CPU time. Workers that poll or wait for an intended start always use
    /// the CPU and are excluded.
    fn is_tool_bound(&self) -> bool {
        let (cell, ok) = (self.cell, &self.ok);
        // The cost of a program is what its trial measures, and iolab's overhead does not affect other tools.
        if cell.cell.spec.runs_program() || is_peer(&cell.cell) {
            return false;
        }
        let workers = cell.cell.trial().workers();
        let time_per_request = median_of(ok, |s| {
            per_request(s.elapsed_ns as f64 * f64::from(workers), s)
        });
        let floor = self.context.floor_ns.zip(time_per_request);
        let near_floor = floor.is_some_and(|(floor, time)| floor >= 0.25 * time);
        let cores = self.cpus().map_or(workers, |cpus| cpus.min(workers));
        let waits = cell
            .rate_report
            .as_ref()
            .is_some_and(|rate_report| rate_report.not_held == 0);
        let polls = waits || ok.iter().any(|s| s.effective.polled);
        let cpu_share = median_of(ok, |s| {
            let cpu = s.cpu_ns() as f64;
            (s.elapsed_ns > 0).then(|| cpu / (s.elapsed_ns as f64 * f64::from(cores)))
        });
        near_floor || (cell.is_device() && !polls && cpu_share.is_some_and(|share| share >= 0.9))
    }
}
