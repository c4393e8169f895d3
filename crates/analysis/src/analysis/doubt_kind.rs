//! The table of doubts: facts about trials, cells, runs and comparisons that could turn a number or an answer.
//!
//! Flags of cells, doubts about claims, trust, and reasons for "cannot tell" are its rows. Rows are in the order of their
//! weight, the weightiest first: the order of flags in tables, and of the reasons of which only one is shown.

use std::fmt;

use iolab_record::environment::{KEYS, Key, PeakSource, ValueType};
use iolab_record::{Sample, ServedBy};
use iolab_stats::Summary;
use iolab_workload::trial::{CacheState, SyncPolicy, TrialSpec};
use schemars::JsonSchema;
use serde::Serialize;

use super::{CellAnalysis, Context, Efficiency, Response, Shortfall, TRIALS_MIN, is_peer};
use crate::disturbance::{BEYOND_OURS, CellDisturbance, OWED_MAX, QUOTA_WAIT_MAX};
use crate::trial_values::median_of;

/// Share of a latency from which the cost of a time stamp, or the step of the clock, is flagged.
pub(crate) const CLOCK_SHOWS: f64 = 0.01;

/// Share of the data rate of a link from which the link decides. Headers of packets of 128 bytes take a sixth of a PCI link.
const LINK_REACHED: f64 = 0.8;

/// Class of doubts with the same consequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoubtClass {
    /// The numbers are useless.
    Invalid,
    /// The bytes did not come from where they should, or may not have.
    Source,
    /// Writes may not be durable.
    Durability,
    /// Others used the device or the machine, or it was too hot.
    Others,
    /// The conditions of the trials differ from what was asked for.
    Conditions,
    /// The trials themselves contradict a number.
    Trials,
    /// Something is missing.
    Lack,
}

/// Direction in which a doubt can move a number: what the storage looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// Better than it is.
    Better,
    /// Worse than it is.
    Worse,
    /// Better or worse.
    Either,
}

/// Unit of the extent of a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtentUnit {
    /// Share of the time or of the traffic.
    Share,
    /// Share of the time of a trial, on top of it.
    OfTrial,
    /// Ratio of two numbers.
    Times,
    /// Number per request.
    Count,
    /// Time, ns.
    Ns,
}

/// Least distance between values of two sides that undisturbed runs of one machine do not show.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Apart {
    /// Difference of two shares.
    By(f64),
    /// Ratio of two numbers.
    Times(f64),
}

/// A value of the conditions around the trials of a cell.
type Value = fn(&CellDisturbance) -> Option<f64>;

/// The properties of a doubt.
struct Row {
    name: &'static str,
    class: DoubtClass,
    looks: Looks,
    words: &'static str,
    remedy: Option<&'static str>,
    unit: ExtentUnit,
    /// Whole of which its extent is a share; empty for other units, and where `words` name it.
    whole: &'static str,
    /// Extent of the doubt in a cell, if it is large enough for a flag.
    extent: Option<Value>,
    /// Value in which two sides may differ, and by how much they must.
    compared: Option<(Value, Apart)>,
    /// Whether a cell without an extent gets a flag.
    raised: Option<fn(&Seen<'_>) -> bool>,
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

macro_rules! doubts {
    ($($kind:ident = $name:literal, $class:ident, $looks:ident, $words:literal
        $(, remedy $remedy:literal)? $(, unit $unit:ident)? $(, whole $whole:literal)? $(, extent $extent:expr)?
        $(, compared $value:expr => $apart:expr)? $(, raised $raised:expr)?;)+) => {
        /// A row of the table of doubts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
        pub enum DoubtKind {
            $(#[doc = $words] #[serde(rename = $name)] $kind,)+
        }

        impl DoubtKind {
            /// Every row.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            fn row(self) -> Row {
                match self {
                    $(Self::$kind => Row {
                        name: $name,
                        class: DoubtClass::$class,
                        looks: Looks::$looks,
                        words: $words,
                        remedy: None$(.or(Some($remedy)))?,
                        unit: [$(ExtentUnit::$unit,)? ExtentUnit::Share][0],
                        whole: [$($whole,)? ""][0],
                        extent: None$(.or(Some($extent as Value)))?,
                        compared: None$(.or(Some(($value as Value, $apart))))?,
                        raised: None$(.or(Some($raised as fn(&Seen<'_>) -> bool)))?,
                    },)+
                }
            }
        }
    };
}

doubts! {
    NoTrial = "no-trial", Lack, Either, "nothing was measured";
    VerifyFailed = "verify-failed", Invalid, Either, "wrong data was read back",
        raised |seen| seen.cell.verified.is_some_and(|verified| verified.failed > 0);
    Errors = "errors", Invalid, Either, "trials failed, and are excluded",
        raised |seen| seen.has_failed || seen.ok.iter().any(|s| s.errors > 0);
    Suspended = "suspended", Invalid, Either, "the machine slept, or iolab was stopped, during trials",
        remedy "keep the machine awake (systemd-inhibit), do not stop iolab, then repeat the run",
        unit Ns, extent CellDisturbance::slept;

    NotStorage = "not-storage", Source, Either, "no storage was involved",
        raised |seen| seen.is_served(ServedBy::NotStorage);
    Hole = "hole", Source, Better, "memory answered reads of data that was never written",
        raised |seen| seen.is_served(ServedBy::Hole);
    PageCache = "page-cache", Source, Better, "the page cache served the bytes",
        raised |seen| seen.is_not_hot() && seen.is_served(ServedBy::PageCache);
    Mixed = "mixed", Source, Better, "the device served only a part of the bytes",
        raised |seen| seen.is_not_hot() && seen.is_served(ServedBy::Mixed);
    UnknownSource = "unknown-source", Source, Better, "the source of the bytes is unknown",
        remedy "'iolab doctor TARGET' shows what iolab can see of the target";
    OtherSource = "other-source", Source, Better, "the bytes did not come from the requested source";

    NotSynced = "not-synced", Durability, Better, "nothing makes the writes durable (sync=none)";
    SyncedAtEnd = "synced-at-end", Durability, Better,
        "writes become durable only at the end of a trial (sync=end), which the times of requests do not include";
    Unsynced = "unsynced", Durability, Better, "no sync followed the last writes of trials",
        remedy "lower sync_every, so that a trial has many syncs, or make trials longer",
        whole "the writes";
    NeverFlushed = "never-flushed", Durability, Better, "no sync flushed the write cache of the device";

    IoLimit = "io-limit", Conditions, Worse, "an I/O limit of the control group decided the rate",
        remedy "raise it (io.max, docker --device-read-iops and the like), then repeat the run",
        raised |seen| seen.cell.io_limit.is_some();
    SlowLink = "slow-link", Conditions, Worse, "the link of the disk limited the rate, and is slower than the best that the disk can do",
        remedy "use a slot that gives the disk its full link, then repeat the run",
        raised |seen| seen.is_limited_by_link();
    ExceedsCeiling = "exceeds-ceiling", Conditions, Better, "the result exceeds the ceiling, and the evidence does not show why",
        remedy "either the ceiling is wrong (a burst, another device, a cache in the device), or the bytes did not come from the device",
        raised |seen| seen.cell.efficiency.is_some_and(|e| e.share > 1.0 && e.cause.is_none());
    ProbeNoise = "probe-noise", Conditions, Better, "the result exceeds a measured ceiling by no more than its noise";
    HostCache = "host-cache", Conditions, Better, "the host of the virtual machine may have a cache";

    OtherTraffic = "other-traffic", Others, Worse, "other programs used the disk",
        remedy "stop what else uses the disk ('iolab doctor TARGET' names it where it can), then repeat the run",
        whole "its traffic", extent CellDisturbance::traffic_of_others, compared |around| around.others => Apart::By(0.05);
    CpuContended = "cpu-contended", Others, Worse, "other programs used the CPUs",
        remedy "stop the processes that use the CPUs ('top -b -n 1 -o %CPU' lists them), then repeat the run",
        whole "the time", extent CellDisturbance::cpus_taken, compared |around| around.worker_wait.or(around.cpu_stall) => Apart::By(0.25);
    Steal = "steal", Others, Worse, "other guests of the hypervisor used the CPUs",
        remedy "repeat the run while the host is less busy, or on a dedicated host",
        whole "the CPU time", extent CellDisturbance::stolen, compared |around| around.steal => Apart::By(0.05);
    CpuQuota = "cpu-quota", Others, Worse, "a CPU quota held iolab back",
        remedy "raise the CPU quota of the control group (cpu.max), then repeat the run",
        whole "the CPU time", extent |around| around.quota_wait.filter(|share| *share > QUOTA_WAIT_MAX), compared |around| around.quota_wait => Apart::By(0.05);
    MemoryStall = "memory-stall", Others, Worse, "tasks waited for memory",
        remedy "free memory, then repeat the run",
        whole "the time", compared |around| around.memory_stall => Apart::By(0.05);
    RequestsInPieces = "requests-in-pieces", Others, Worse, "requests reached the device in pieces",
        remedy "repeat the run with --set buffer_memory=contiguous, which keeps the buffers in one piece",
        unit Count, compared |around| around.ios_per_request => Apart::Times(1.2);
    Throttled = "throttled", Others, Worse, "the drive throttled itself because of its temperature",
        remedy "cool the drive, then repeat the run",
        extent |around| around.throttled.filter(|share| *share > BEYOND_OURS), compared |around| around.throttled => Apart::By(0.05);
    // Smaller ratios have no effect.
    Fragmentation = "fragmentation", Others, Worse, "buffers were in several pieces of memory",
        remedy "free memory, so that the kernel has huge pages again ('echo 1 > /proc/sys/vm/compact_memory' as root), then repeat the run",
        unit Count, compared |around| around.buffer_pieces => Apart::Times(2.0);

    EarlierWrites = "earlier-writes", Conditions, Worse, "the storage may still have written for other cells during these reads",
        remedy "measure again with this version, which writes out between trials what others left";
    ToolBound = "tool-bound", Conditions, Worse, "the CPU or iolab was the limit",
        raised |seen| seen.is_tool_bound();
    RateNotHeld = "rate-not-held", Conditions, Better,
        "requests fell behind the requested rate, so that response times grow with the length of a trial",
        remedy "lower the rate (--rate) until it is held",
        raised |seen| seen.cell.rate_report.as_ref().is_some_and(|report| report.not_held > 0);
    TimeLimit = "time-limit", Conditions, Better, "a time limit ended trials",
        remedy "compare throughput or IOPS, or end trials by their bytes (--set bytes=SIZE --set time=none)";
    WriteBackOwed = "write-back-owed", Conditions, Better, "results exclude the time to store what was left in the page cache",
        remedy "set sync=end to include that time", unit OfTrial, extent |around| around.owed.filter(|share| *share > OWED_MAX);
    StorageCache = "cached", Conditions, Better, "results exclude the time to store what was left in a cache of the storage",
        remedy "set sync=end to include that time", unit OfTrial, extent CellDisturbance::left_in_storage_cache;
    CappedWrites = "capped-writes", Conditions, Better, "a cache can hold what a trial writes, because a budget of writes ends it",
        remedy "set writes=none to measure lasting rates", raised |seen| seen.may_fit_a_cache();
    ReadAhead = "read-ahead", Conditions, Worse, "the kernel read ahead, and fetched more bytes than were requested",
        remedy "set cache=direct to measure the device without the page cache",
        unit Times, extent |around| around.read_ahead.filter(|ratio| *ratio > 1.0 + BEYOND_OURS);
    ClockCost = "clock-cost", Conditions, Either, "a time stamp costs more than 1 % of a request",
        raised |seen| !is_peer(&seen.cell.cell) && seen.shows_in_latency(seen.context.record.run.clock_cost_ns);
    ClockResolution = "clock-resolution", Conditions, Either, "the steps of the clock exceed 1 % of a request",
        raised |seen| seen.shows_in_latency(seen.cell.clock_resolution_ns);

    LevelChanged = "level-changed", Trials, Either, "the level changed during the run";
    LevelInTrials = "level-in-trials", Trials, Either, "throughput changes its level within each trial";
    NotWrittenOver = "not-written-over", Trials, Either, "only a part of the region was written before the rounds";
    TwoGroups = "two-groups", Trials, Either, "the trials form two groups";
    Dependent = "dependent", Trials, Either, "each trial may depend on the one before",
        whole "the weight of an independent one";
    NotSettled = "not-settled", Trials, Either, "the last trials differ too much to be called settled";
    Contradicted = "contradicted", Trials, Either, "another run of the same settings shows otherwise",
        remedy "repeat both experiments; 'iolab history' shows how runs differ over time";
    RatesContradict = "rates-contradict", Trials, Either, "the level failed at one rate and held at a higher one";

    Unfinished = "unfinished", Lack, Either, "a run did not finish";
    NoDefinition = "no-definition", Lack, Either, "the definition in a run file cannot be read";
    NoRunFile = "no-run-file", Lack, Either, "a run file is missing";
    NoValue = "no-value", Lack, Either, "a side has no value";
    NoRatio = "no-ratio", Lack, Either, "a value is not positive, and the intervals overlap";
    NoRequest = "no-request", Lack, Either, "no such request was measured";
    NoRateHolds = "no-rate-holds", Lack, Either, "no rate is shown to hold";
    NoRateFails = "no-rate-fails", Lack, Either, "no rate is shown to fail";
    OneRunEach = "one-run-each", Lack, Either, "one run on each side does not show how much runs differ";
    FewRuns = "few-runs", Lack, Either, "too few runs for an interval";
    AboveMedian = "interval-above-median", Lack, Either, "the interval reaches above twice its median";
    Imprecise = "imprecise", Lack, Either, "the precision goal was missed";
    FewTrials = "few-trials", Lack, Either, "fewer trials than the 6 that an interval needs",
        raised |seen| seen.has_few_trials();
    FewRequests = "few-requests", Lack, Either, "too few requests for an interval",
        raised |seen| seen.has_few_requests();
    WideInterval = "wide-interval", Lack, Either, "the interval includes differences that matter and others that do not";
    AtLevel = "at-level", Lack, Either, "the value is at the level (the whole interval lies within 5 % of it)";
    NearLevel = "near-level", Lack, Either, "the level is within the interval, or within 5 % of it";
    FewInFlight = "few-in-flight", Conditions, Worse, "less than half of the requested concurrency was in flight",
        raised |seen| seen.cell.concurrency.is_some_and(|c| c.shortfall == Some(Shortfall::Issued));
    Serialised = "serialised", Conditions, Worse, "less than half of the requested concurrency reached the device",
        raised |seen| seen.cell.concurrency.is_some_and(|c| c.shortfall == Some(Shortfall::ReachedDevice));
    ShortTransfers = "short-transfers", Conditions, Worse, "the kernel cut transfers short",
        raised |seen| seen.ok.iter().any(|s| s.operations.iter().any(|(_, done)| done.short_transfers > 0));
    Gap = "gap", Lack, Either, "the tool did not carry out the cell",
        raised |seen| seen.cell.gap.is_some();
}

impl DoubtKind {
    /// Name for programs.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The fact as a clause.
    pub fn words(self) -> &'static str {
        self.row().words
    }

    /// Advice; `None` where nothing is known to help.
    pub fn remedy(self) -> Option<&'static str> {
        self.row().remedy
    }

    /// Consequences.
    pub fn class(self) -> DoubtClass {
        self.row().class
    }

    /// Direction in which it can move a number.
    pub fn looks(self) -> Looks {
        self.row().looks
    }

    /// Unit of its extent.
    pub fn unit(self) -> ExtentUnit {
        self.row().unit
    }

    /// Whole of which its extent is a share; empty where that is known.
    pub fn whole(self) -> &'static str {
        self.row().whole
    }

    /// Extent around the trials of a cell, if it is large enough for a flag.
    pub fn extent(self, around: &CellDisturbance) -> Option<f64> {
        self.row().extent.and_then(|extent| extent(around))
    }

    /// The value in which two sides may differ; `None` where it was not counted.
    pub(crate) fn compared(self, around: &CellDisturbance) -> Option<f64> {
        self.row().compared.and_then(|(value, _)| value(around))
    }

    /// Whether two compared values differ by more than undisturbed runs of one machine do.
    pub(crate) fn differs(self, a: f64, b: f64) -> bool {
        let apart = self.row().compared;
        apart.is_some_and(|(_, apart)| match apart {
            Apart::By(least) => (a - b).abs() >= least,
            Apart::Times(least) => a.max(b) >= least * a.min(b),
        })
    }

    /// Whether it disturbs the trials of a cell.
    pub fn disturbs(self) -> bool {
        self.class() == DoubtClass::Others || matches!(self, Self::Suspended | Self::WriteBackOwed)
    }

    /// Whether its extent is time that trials owe for what they left in a cache.
    pub fn is_owed(self) -> bool {
        self.unit() == ExtentUnit::OfTrial
    }

    /// The doubt about bytes with this verdict that should have come from the device.
    pub(crate) fn of_source(served_by: ServedBy) -> Self {
        match served_by {
            ServedBy::NotStorage => Self::NotStorage,
            ServedBy::Hole => Self::Hole,
            ServedBy::PageCache => Self::PageCache,
            ServedBy::Mixed => Self::Mixed,
            ServedBy::Unknown => Self::UnknownSource,
            ServedBy::Device | ServedBy::Network | ServedBy::Model => Self::OtherSource,
        }
    }
}

/// The name in words: `other traffic`.
impl fmt::Display for DoubtKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name().replace('-', " "))
    }
}

/// The flags of a cell, in order, from its other results.
pub(super) fn flags(
    context: &Context<'_>,
    cell: &CellAnalysis,
    trials: &[&Sample],
) -> Vec<DoubtKind> {
    let (ok, failed): (Vec<&Sample>, Vec<&Sample>) = trials.iter().partition(|s| s.ok);
    let seen = Seen {
        context,
        cell,
        ok,
        has_failed: !failed.is_empty(),
    };
    let is_raised = |flag: &DoubtKind| {
        flag.extent(&cell.disturbance).is_some()
            || flag.row().raised.is_some_and(|raised| raised(&seen))
    };
    DoubtKind::ALL.iter().copied().filter(is_raised).collect()
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

    /// A fact about its target.
    fn fact<K: ValueType>(&self, key: &Key<K>) -> Option<K::Value> {
        let record = self.context.record;
        let target = record.target_of(&self.cell.cell)?;
        record.environment.get_of(target, key)
    }

    /// Whether it reaches a link that is slower than the best of its disk, which is known then. A link of which more than all is used has another speed
    /// than the one that was read.
    fn is_limited_by_link(&self) -> bool {
        let is_limited = |of: Efficiency| {
            of.source == PeakSource::Link && (LINK_REACHED..=1.0).contains(&of.share)
        };
        let cell = self.cell;
        cell.is_device()
            && !cell.is_paced()
            && cell.efficiency.is_some_and(is_limited)
            && self.fact(&KEYS.device_link_best).is_some()
    }

    /// Whether a budget of writes ends its plain writes to a device before they fill the region.
    fn may_fit_a_cache(&self) -> bool {
        let is_within = |trial: &TrialSpec| {
            let is_short = trial.limit.bytes.is_some_and(|bytes| bytes < trial.region);
            is_short && trial.writes_data() && trial.sync == SyncPolicy::None
        };
        let definition = self.context.definition;
        let has_budget = definition.is_some_and(|experiment| experiment.design.writes.is_some());
        let trials = self.cell.cell.spec.trials();
        has_budget && self.cell.is_device() && trials.into_iter().any(is_within)
    }

    fn has_few_trials(&self) -> bool {
        let Self { cell, context, .. } = self;
        // A cell that reached a precision goal that was asked for needs no more trials.
        let is_precise = |precision: f64| precision <= context.record.experiment.precision;
        let is_precise = context.seeks_precision() && cell.precision.is_some_and(is_precise);
        let lacks = |r: Summary| context.seeks_precision() && r.median_interval.is_none();
        let is_latency = context.record.experiment.response.is_latency();
        let lacks_interval = cell.response.map_or(is_latency, lacks);
        (cell.n > 0 || cell.gap.is_none())
            && (cell.n < context.trials_min() && !is_precise || lacks_interval)
            && !self.has_few_requests()
    }

    fn has_few_requests(&self) -> bool {
        let Self { cell, context, .. } = self;
        // A cell without requests of the operation whose latency is shown does not lack anything.
        let only = cell.cell.spec.only_trial();
        let is_asked = context.record.experiment.response.is_latency()
            && only.is_none_or(|trial| context.timed.is_asked(trial));
        let lacks_values = cell.n >= TRIALS_MIN && cell.values.len() < TRIALS_MIN;
        cell.n >= context.trials_min() && is_asked && lacks_values
    }

    /// Whether a part of that many ns is more than 1 % of the median request; no where one is unknown. The parts are one time
    /// stamp, the cost of a request at depth 1, and the step of the clock, of which a latency is a multiple.
    fn shows_in_latency(&self, part_ns: Option<f64>) -> bool {
        let report = self.cell.rate_report.as_ref();
        let service = report.and_then(|report| report.service);
        let latency = service.or(self.cell.latency);
        let median = latency.and_then(|latency| latency[Response::Latency]);
        let shows = |(part, whole): (f64, f64)| part > CLOCK_SHOWS * whole;
        part_ns.zip(median).is_some_and(shows)
    }

    /// CPUs that the workers of all processes may use, as far as known. Several processes may be bound to
    /// different CPUs, so that at least those that they used count, on each host.
    fn cpus(&self) -> Option<u32> {
        let usable = self
            .context
            .record
            .environment
            .get(&KEYS.cpu_usable_count)?;
        let usable = u32::try_from(usable).ok()?;
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
            let time = s.elapsed_ns as f64 * f64::from(workers);
            (s.requests() > 0).then(|| time / s.requests() as f64)
        });
        let floor = self.context.record.run.floor_ns.zip(time_per_request);
        let near_floor = floor.is_some_and(|(floor, time)| floor >= 0.25 * time);
        let cores = self.cpus().map_or(workers, |cpus| cpus.min(workers));
        let polls = cell.keeps_rate() || ok.iter().any(|s| s.effective.polled);
        let cpu_share = median_of(ok, |s| {
            let cpu = s.cpu_ns() as f64;
            (s.elapsed_ns > 0).then(|| cpu / (s.elapsed_ns as f64 * f64::from(cores)))
        });
        near_floor || (cell.is_device() && !polls && cpu_share.is_some_and(|share| share >= 0.9))
    }
}

impl CellDisturbance {
    /// Whether others used the device or the CPUs, a quota held iolab back, or the machine slept.
    pub fn is_from_outside(&self) -> bool {
        let outside = [
            DoubtKind::OtherTraffic,
            DoubtKind::CpuContended,
            DoubtKind::Steal,
            DoubtKind::CpuQuota,
            DoubtKind::Suspended,
        ];
        outside.iter().any(|what| what.extent(self).is_some())
    }
}
