//! Kinds of claims, one row each: in this file what runs show, in `kind/` what weakens their numbers and what explains a difference.

pub mod causes;
pub mod weaknesses;

use schemars::JsonSchema;
use serde::Serialize;

use super::Standing;
use crate::analysis::DoubtKind;

/// Meaning of a claim for the reader, in the order in which claims are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Answers the question of an experiment.
    Answer,
    /// Explains a number.
    Explanation,
    /// A difference, or the best size of an access: decides what to choose.
    Effect,
    /// The best size in each of several settings, where the experiment asks something else.
    BestInSettings,
    /// A change over time: a median would mix two levels.
    Change,
    /// No steady state: longer runs would give other results.
    Unsteady,
    /// A limit that changes a decision.
    Limit,
    /// Levels that are equivalent.
    Equivalence,
    /// Adds detail to other claims.
    Detail,
    /// Weakens the numbers without changing a decision.
    Weakness,
    /// States what the numbers do not show.
    Unshown,
    /// Nothing was found, or the data does not suffice.
    Nothing,
}

/// Standings that are listed, with their labels.
pub type Labels = &'static [(Standing, &'static str)];
/// Properties that all claims of one kind share.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Name for programs.
    pub name: &'static str,
    /// Meaning for the reader, if the claim shows something.
    pub role: Role,
    /// Doubt that the claim casts on the level of measured trials.
    pub unsettled: Option<DoubtKind>,
    /// Estimator and intervals, in words.
    pub basis: &'static str,
    /// First sentence. `{0}` stands for the first point, `{cell}` for the settings of the first cell, `{at}` for settings that all cells hold;
    /// `iolab-report` defines the other names.
    pub head: &'static str,
    /// Standings that are listed after the first sentence, with their labels.
    pub labels: Labels,
    /// Last sentence, with the names of [`Self::head`]: what to do, or why it is so.
    pub advice: &'static str,
}

impl Kind {
    /// A kind that says nothing yet.
    pub const fn new(name: &'static str, role: Role, basis: &'static str) -> Self {
        Self {
            name,
            role,
            unsettled: None,
            basis,
            head: "",
            labels: &[],
            advice: "",
        }
    }

    /// The kind itself: several of one name are an array, which has this function too.
    pub const fn first(&self) -> Option<&Self> {
        Some(self)
    }

    /// The kind with the doubt that it casts on the level of its cells.
    const fn unsettles(mut self, doubt: DoubtKind) -> Self {
        self.unsettled = Some(doubt);
        self
    }

    /// The kind with its first sentence and its labels.
    pub const fn says(mut self, head: &'static str, labels: Labels) -> Self {
        self.head = head;
        self.labels = labels;
        self
    }

    const fn advises(mut self, advice: &'static str) -> Self {
        self.advice = advice;
        self
    }
}

/// Kinds, and the function `rows` with the name and the meaning of each.
#[macro_export]
macro_rules! kinds {
    ($($(#[doc = $meaning:literal])+ $vis:vis $item:ident $row:ident: $kinds:ty = $kind:expr;)+) => {
        $($(#[doc = $meaning])+ $vis $item $row: $kinds = $kind;)+

        /// Name and meaning of each of these rows; several can have one name.
        pub fn rows() -> Vec<(&'static str, &'static str)> {
            vec![$(($row.first().map_or("", |kind| kind.name), concat!($($meaning),+))),+]
        }
    };
}
pub use kinds;

pub use causes::*;
pub use weaknesses::*;

/// Name and meaning of each kind of claims about runs; several can have one name.
pub fn all() -> Vec<(&'static str, &'static str)> {
    [rows(), weaknesses::rows(), causes::rows()].concat()
}

const IN_BLOCKS: &str = "ratios within the blocks that both cells share (of medians where they share none), with simultaneous 95 % intervals";
const BLOCKS: &str = "the extreme trials of all cells in one block, by the permutations of their trials, and a gap to the other blocks";
const SHARED_BLOCKS: &str =
    "ratios within the blocks that both cells share, with simultaneous 95 % intervals";
const OVER_RUN_TRIALS: &str = "changepoints (PELT) in the logarithms of the trials, or in the intervals of consecutive trials, each confirmed by Welch's test for dependent values; warm-ups count where measured trials show none";
const IN_TRIALS: &str =
    "changepoints (PELT) in the median over the trials of each interval, confirmed likewise";
const TENTHS: &str = "medians of the tenths of the trial: test of Mann and Kendall, and their distance in standard deviations within the tenths";
const ADDED: &str =
    "the same search in the intervals of each trial, and in the trial with a change added to it";
const FLIGHT: &str =
    "the requests in flight, by Little's law, and those at the device, by its counters";
const AT_LIMIT: &str = "ratios of IOPS within the blocks that cells share, of sizes and of requests in flight, all shown to be within 5 % by simultaneous 95 % intervals";
const LAST_TRIALS: &str =
    "the last 5 trials of each cell that writes, and the bytes written before them";
const ROUNDS: &str = "the last rounds of all cells, or of the writes before them: their range and the line of least squares through them, over their mean";
const DRIVE_LOG: &str = "the drive's own log (SMART, page C0h), read before and after each trial";
const MEDIA_OVER_HOST: &str = "bytes written to flash memory over bytes from hosts, by the drive's own log before and after each trial; it counts all programs, partitions and namespaces";
const LAYERS: &str = "the requests of each traced trial, joined with the kernel's events; simultaneous 95 % intervals of the median share over the trials";

const READ_BACK: &str = "every block that a trial wrote, read back after it";
const TIMES: &str =
    "ratios of times within the blocks that both programs share, with simultaneous 95 % intervals";
const TWO_T_TESTS: &str = "two one-sided t tests on the logarithms at each size";
const QUANTILES: &str =
    "medians over the trials of their response times' quantiles, with exact 95 % intervals";
const PAGE_FAULTS: &str = "ratios within the blocks that both cells share, with simultaneous 95 % intervals, and the page faults of each trial";
const FITTED: &str = "the median time of a request at each size, fitted as a fixed cost and a rate";
const OF_ACCESS: &str = "ratios within the blocks that both cells share (of medians across runs), with simultaneous 95 % intervals for all cells of the access";
const TAILS: &str =
    "the 99th percentile over the median of each trial, with simultaneous 95 % intervals";
/// Standings of a change of level.
const LEVELS: Labels = &[
    (Standing::Level, "All levels"),
    (Standing::Seen, "Each seen for"),
    (Standing::MedianOf, "Medians of"),
    (Standing::First, "First tenth"),
    (Standing::Last, "Last tenth"),
    (Standing::Lowest, "Lowest tenth"),
    (Standing::Highest, "Highest tenth"),
    (Standing::Alike, "Changed too"),
    (
        Standing::Disturbed,
        "Disturbed from outside at the lower level, which may have made the change",
    ),
    (
        Standing::Suspended,
        "Disturbed at the lower level, or the machine or iolab was suspended, which may have made the change",
    ),
];
/// Standings of cells compared with the best one.
const RANKED: Labels = &[
    (Standing::Near, "Within 5 % of it"),
    (Standing::Open, "Not shown to differ"),
    WORSE_IN_EACH,
    MEASURED,
    (Standing::Worse, "Worse"),
    CANNOT_TELL,
];
/// Standings of cells none of which is shown to be worse.
const UNRANKED: Labels = &[WORSE_IN_EACH, MEASURED, CANNOT_TELL];
const WORSE_IN_EACH: (Standing, &str) = (Standing::WorseInEach, "Worse in each block");
const MEASURED: (Standing, &str) = (Standing::Measured, "Measured for an interval");
const CANNOT_TELL: (Standing, &str) = (Standing::Doubtful, "Cannot tell");
const LENGTH_MATTERS: &str = "Shorter or longer trials would give other results.";
const EQUIVALENT: Kind = Kind::new("programs-equivalent", Role::Answer, TWO_T_TESTS);
const NOT_EQUIVALENT: Kind = EQUIVALENT.says(
    "{other} against {base}{at}: equivalence within {0} is not shown (equivalence test, p <= 0.05)",
    BY_SIZE,
);
const BY_SIZE: Labels = &[
    (Standing::From, "From"),
    CANNOT_TELL,
    (Standing::Alone, "By the ratio alone from"),
    (Standing::AsMeasured, "As measured"),
    (Standing::Unknown, "Too few trials"),
];
const FEWER: Labels = &[(Standing::Alike, "Fewer than requested in")];
const COMPARED: Kind = Kind::new("effect", Role::Effect, IN_BLOCKS);
const SIZE: Kind = Kind::new("best-size", Role::Effect, SHARED_BLOCKS);
const WAY: Kind = Kind::new("fastest-way", Role::Answer, SHARED_BLOCKS);
const fn throttled(head: &'static str) -> Kind {
    Kind::new("throttled", Role::Explanation, DRIVE_LOG)
        .says(head, &[(Standing::Alike, "Throttled too in")])
        .advises("Cool the drive, then repeat the run.")
}
const IN_LAYERS: Kind = Kind::new("time-by-layer", Role::Explanation, LAYERS);
const SLOWEST: Labels = &[(Standing::Slowest, "In the slowest 1 % of the requests")];
const STEADY: Kind = Kind::new("steady-rounds", Role::Detail, ROUNDS);
/// Series next to the least steady one.
const STEADIER: (Standing, &str) = (Standing::Alike, "At least as steady");
const UNSTEADY: Kind =
    Kind::new("rounds-not-steady", Role::Unsteady, ROUNDS).advises("{more} may reach it.");
const NOT_JUDGED: Kind = Kind::new("rounds-not-judged", Role::Unsteady, ROUNDS);
const TOO_FEW: Kind = NOT_JUDGED.advises("{more} helps.");
const APART: Kind = Kind::new("block-apart", Role::Change, BLOCKS);

kinds! {
/// Data that was read back is correct.
pub static VERIFIED: Kind = Kind::new("verified", Role::Answer, READ_BACK).says(
    "The data that was read back is correct: {0}. All data of {1} was read back",
    &[
        (
            Standing::Cached,
            "From the page cache, which does not verify storage, at most",
        ),
        (Standing::CacheUnknown, "Share of the page cache unknown"),
    ],
);
/// Data that was read back is wrong.
pub static VERIFY_FAILED: Kind =
    Kind::new("verify-failed", Role::Answer, VERIFIED.basis)
        .says(
            "This storage did NOT keep what was written to it in {0}: {1} that were read back are wrong",
            &[(Standing::Wrong, "Faults")],
        )
        .advises(
            "The first places are in the run file. Do not use any result before the cause is found.",
        );
/// Ratio of the times of two programs.
pub static PROGRAMS_DIFFER: Kind = Kind::new("programs-differ", Role::Answer, TIMES).says(
    "{other} against {base}{at}",
    &[
        (Standing::Differs, "Times differ"),
        (Standing::NotFound, "No difference found"),
        (Standing::Unknown, "Too few trials"),
        CANNOT_TELL,
    ],
);
/// Equivalence of two programs within a margin: shown, not shown because of doubts, not shown although the ratio is within it,
/// or not shown.
pub static PROGRAMS_EQUIVALENT: [Kind; 4] = [
    EQUIVALENT.says(
        "{other} against {base}{at}: equivalent within {0} (equivalence test, p <= 0.05)",
        BY_SIZE,
    ),
    EQUIVALENT.says(
        "{other} against {base}{at}: cannot tell whether they are equivalent within {0} (equivalence test, p <= 0.05)",
        BY_SIZE,
    ),
    NOT_EQUIVALENT.advises("{more_trials}"),
    NOT_EQUIVALENT,
];
/// Response time as a function of the given load.
pub static LOAD: Kind = Kind::new("load", Role::Answer, QUANTILES).says(
    "{time}: {0}, {1}",
    &[
        (Standing::HighestAsked, "At the highest rate asked for"),
        (Standing::HighestHeld, "At the highest rate that was held"),
        (
            Standing::NotTooHigh,
            "At the highest rate that is not shown to be too high",
        ),
        (
            Standing::Hidden,
            "Overload that does not show in such trials, at most, and their length (increase --time)",
        ),
        (
            Standing::Stored,
            "Share of a trial's time that the storage needed after it for writes in its cache (a load that outlasts the cache may not hold this rate)",
        ),
    ],
);
/// Rates of which none was reached.
pub static LOAD_NOT_HELD: Kind = Kind::new("load", Role::Answer, LOAD.basis)
    .says(
        "No rate was held (at least {0} of its requests issued in time): at {1}, the lowest, the median trial reached {2}",
        &[],
    )
    .advises("Response times at such rates grow with the length of a trial.");
/// Fewer requests in flight than asked for.
const FEW_IN_FLIGHT: Kind =
    Kind::new("serialised", Role::Explanation, FLIGHT).says("Only {0} were in flight{cell}", FEWER);
/// Region that holds too few requests of this size.
pub static SMALL_REGION: Kind = FEW_IN_FLIGHT.advises(
    "The region holds {1} of this size: a larger region (--size) or fewer threads times depth.",
);
/// Trials whose bytes are too few requests.
pub static FEW_BY_BYTES: Kind = FEW_IN_FLIGHT
    .advises("A trial has only {1}: increase --set bytes, or use fewer threads times depth.");
/// Trials of one pass over a region of too few requests.
pub static FEW_BY_REGION: Kind = FEW_IN_FLIGHT.advises(
    "A trial has only {1}: increase the region (--size), or use fewer threads times depth.",
);
/// Requests that were issued late, or too few of them: in trials that end by time, by bytes, or with the region.
pub static LATE: [Kind; 3] = [
    FEW_IN_FLIGHT.advises("The threads did not issue them in time, or the trials had too few requests: increase --time."),
    FEW_IN_FLIGHT.advises("The threads did not issue them in time, or the trials had too few requests: increase --set bytes."),
    FEW_IN_FLIGHT.advises("The threads did not issue them in time, or the trials had too few requests: increase the region (--size)."),
];
/// Fewer requests at the device than asked for.
const FEW_AT_DEVICE: Kind = FEW_IN_FLIGHT.says("Only {0} were at the device{cell}", FEWER);
/// Limit of a control group that was reached.
pub static AT_IO_LIMIT: Kind =
    FEW_AT_DEVICE.advises("An I/O limit of the control group held them back ({1}).");
/// Lock of a file that the threads share, without which another cell is faster.
pub static SHARED_FILE: Kind = FEW_AT_DEVICE.advises("The threads wait for a lock of the file that they share: with layout=private the same threads reach {1}.");
/// Descriptor that the threads share, without which another cell is faster.
pub static SHARED_DESCRIPTOR: Kind = FEW_AT_DEVICE.advises("The threads wait for the descriptor that they share, with its one position: with descriptors=private the same threads reach {1}.");
/// Seeks before each transfer, without which another cell is faster.
pub static SEEKS: Kind = FEW_AT_DEVICE.advises("The threads wait for the seek before each transfer: with backend=psync the same threads reach {1}.");
/// Descriptor with one position that the threads share.
pub static SHARED_POSITION: Kind = FEW_AT_DEVICE.advises("lseek and read on one descriptor need a lock around both, since all threads share its position: use pread (backend=psync), or a descriptor per thread.");
/// CPUs as the limit.
pub static AT_CPU_LIMIT: Kind =
    FEW_AT_DEVICE.advises("The CPUs were the limit: more threads cannot help there.");
/// CPUs that others used, which may be the cause.
pub static OTHERS_ON_CPUS: Kind =
    FEW_AT_DEVICE.advises("Other programs used the CPUs at the same time, which may be the cause.");
/// Full queue of the device.
pub static FULL_QUEUE: Kind =
    FEW_AT_DEVICE.advises("The queue of the device holds {1} at most (nr_requests), and was full.");
/// Writes that each wait until they are durable.
pub static DURABLE_WRITES: Kind = FEW_AT_DEVICE.advises(
    "Each write waits until it is durable; file systems and devices do that one write at a time.",
);
/// Requests that waited before the device for an unknown reason.
pub static WAITED: Kind = FEW_AT_DEVICE.advises("The requests waited before they reached the device; with several threads, 'iolab run why-serialised' isolates the cause.");
/// Cost of page faults in untouched buffers.
pub static FAULT_COST: Kind = Kind::new("cost-of-page-faults", Role::Explanation, PAGE_FAULTS).says(
    "Page faults: untouched buffers have {factor} throughput than zeroed ones{at}, {1} against {0}",
    &[
        (Standing::Faults, "A trial, untouched and zeroed"),
        (Standing::Cost, "Time per page fault"),
        (Standing::Alike, "Slower in"),
    ],
);
/// Fixed cost of a request, and a bandwidth for its bytes.
pub static REQUEST_COST: Kind = Kind::new("cost-of-requests", Role::Detail, FITTED).says(
    "Time per request{at} is {0} + size / {1}, to within {2}",
    &[(Standing::Half, "Half of that rate is reached at")],
);
/// Comparison of two levels of a factor, of targets, or of groups at once with each alone: a difference, or none.
pub static EFFECT: [Kind; 2] = [
    COMPARED.says(
        "{target}{Subject} {with} {other} is {than} {with} {base}{origin} {numbers}",
        &[
            (Standing::Opposite, "But"),
            (Standing::Differs, "Also"),
            (Standing::Equivalent, "Equivalent within 5 %"),
            (Standing::NotFound, "No difference found{within}"),
            (Standing::Unknown, "Too few trials"),
            CANNOT_TELL,
        ],
    ),
    COMPARED.says(
        "{target}No difference in {quantity} is shown between {other}{or_more} and {base}{origin}",
        &[
            (Standing::Equivalent, "Equivalent within 5 %"),
            (Standing::NotFound, "Not excluded{within}"),
            (Standing::Unknown, "Too few trials"),
            CANNOT_TELL,
        ],
    ),
];
/// Best I/O size of a curve: shown, not shown, or not known from so few trials.
pub static BEST_SIZE: [Kind; 3] = [
    SIZE.says("Best {quantity}{at}: {0}", RANKED),
    SIZE.says(
        "No I/O size is shown to give a {worse} {quantity} than another{at}",
        UNRANKED,
    ),
    SIZE.says(
        "Too few trials to tell which I/O size gives the best {quantity}{at}. Best median: {0}",
        UNRANKED,
    ),
];
/// Best of the ways that an experiment names: shown, not shown, or not known from so few trials.
pub static FASTEST_WAY: [Kind; 3] = [
    WAY.says(BEST_SIZE[0].head, RANKED),
    WAY.says(
        "No way is shown to give a {worse} {quantity} than another",
        UNRANKED,
    ),
    WAY.says(
        "Too few trials to tell which way gives the best {quantity}. Best median: {0}",
        UNRANKED,
    ),
];
/// Best setting for an access, of all runs.
pub static BEST_SETTING: Kind = Kind::new("choice", Role::Detail, OF_ACCESS).says(
    "Best throughput of {accesses_on}: {0}",
    &[
        (Standing::MedianOf, "Median of"),
        (
            Standing::Near,
            "Simplest setting shown to be within 5 % of it",
        ),
    ],
);
/// Change of the level over a run.
pub static LEVEL_OVER_RUN: Kind = Kind::new("level-over-run", Role::Change, OVER_RUN_TRIALS)
    .unsettles(DoubtKind::LevelChanged)
    .says(
        "Over the run throughput{accesses} {moved}{cell}: {0}, then {1}",
        LEVELS,
    )
    .advises("Medians over the run may mix both levels: --precondition or --settle may avoid it.");
/// Change of the level within each trial.
pub static LEVEL_WITHIN_TRIALS: Kind = Kind::new("level-within-trials", Role::Change, IN_TRIALS)
    .unsettles(DoubtKind::LevelChanged)
    .says(
        "Within a trial throughput{groups} {moved}{cell}: {0}, then {1}",
        LEVELS,
    )
    .advises(LENGTH_MATTERS);
/// Change of the level within trials that a run measures from their beginning.
pub static LEVEL_OF_SOAK: Kind = Kind::new("level-within-trials", Role::Answer, IN_TRIALS)
    .says(LEVEL_WITHIN_TRIALS.head, LEVELS)
    .advises(LENGTH_MATTERS);
/// Change of the level in the warm-up.
pub static LEVEL_IN_WARM_UP: Kind = Kind::new("level-in-warm-up", Role::Change, IN_TRIALS)
    .says(
        "During the warm-up, which the numbers exclude, throughput {moved}{cell}: {0}, then {1}",
        LEVELS,
    )
    .advises("The measured trials show the later level.");
/// Trial that falls or rises without a step.
pub static GRADUAL_CHANGE: Kind = Kind::new("gradual-change", Role::Answer, TENTHS)
    .says("Within a trial throughput gradually {moved}{cell}", LEVELS)
    .advises(LENGTH_MATTERS);
/// Trial that varies without a step or a trend.
pub static UNEVEN: Kind = Kind::new("gradual-change", Role::Answer, TENTHS)
    .says("Within a trial throughput varied{cell}", LEVELS)
    .advises(LENGTH_MATTERS);
/// Trials from their beginning without a change.
pub static NO_LEVEL_CHANGE: Kind = Kind::new("no-level-change", Role::Answer, ADDED).says(
    "No lasting change of throughput was found within a trial{cell}",
    &[
        (
            Standing::Step,
            "Least step for a quarter of a trial that would have been found in each cell",
        ),
        (
            Standing::Drift,
            "Least steady drift over a trial that would have been found in each cell",
        ),
        (Standing::Alike, "Not found too in"),
    ],
);
/// Trials too short or too uneven to show a change.
pub static UNKNOWN_CHANGE: Kind = Kind::new("no-level-change", Role::Nothing, ADDED)
    .says(
        "Cannot tell whether throughput changes within a trial{cell}: too short or too uneven",
        &[],
    )
    .advises("A longer trial (--soak) may show it.");
/// Slow requests, far above the median latency.
pub static LONG_TAIL: Kind = Kind::new("long-tail", Role::Limit, TAILS).says(
    "The 99th percentile of {latency} is {times} the median{range}{cell}: {1} against {0}",
    &[
        (Standing::Alike, "Shorter tails above 3× in"),
        (Standing::NotJudged, "Not judged"),
    ],
);
/// Throttling of a drive, for a time that it counts; or of which it counts the times only.
pub static THROTTLED: [Kind; 2] = [
    throttled("The drive throttled itself because of its temperature for {0} of {1}{cell}"),
    throttled("The drive throttled itself because of its temperature {0}{cell}"),
];
/// Throttling that counts of a drive do not show.
pub static UNKNOWN_THROTTLING: Kind = Kind::new("throttled", Role::Nothing, DRIVE_LOG).says(
    "Cannot tell whether the drive throttled itself{cell}: counts of its log are missing or went back",
    &[],
);
/// Bytes written to flash memory over bytes that hosts wrote.
pub static WRITE_AMPLIFICATION: Kind = Kind::new(
    "write-amplification",
    Role::Explanation,
    MEDIA_OVER_HOST,
)
.says(
    "Write amplification{cell} is {0}: the drive wrote {1} to its flash memory for {2} from hosts",
    &[(Standing::Own, "Written by the trial itself")],
);
/// Counts of a drive that give no write amplification.
pub static UNKNOWN_AMPLIFICATION: Kind =
    Kind::new("write-amplification", Role::Nothing, MEDIA_OVER_HOST).says(
        "Cannot tell the write amplification{cell}: the drive's counts of bytes to its flash memory and from hosts have to grow, the second by at least {0}",
        &[],
    );
/// Layers that take most of the time of requests: of all their time, or without the syncs that follow them.
pub static TIME_BY_LAYER: [Kind; 2] = [
    IN_LAYERS.says(
        "Largest part of the mean service time ({0}){cell}: {1}",
        SLOWEST,
    ),
    IN_LAYERS.says(
        "Largest part of the mean service time without syncs ({0}){cell}: {1}",
        SLOWEST,
    ),
];
/// Layers that take most of the time of syncs.
pub static SYNCS_BY_LAYER: Kind = Kind::new("syncs-by-layer", Role::Explanation, LAYERS).says(
    "Largest part of the mean time of a sync ({0}){cell}: {1}",
    &[
        (Standing::Slowest, "In the slowest 1 % of the syncs"),
        (
            Standing::Journalled,
            "Syncs, and journal commits that they waited for",
        ),
        (
            Standing::Shared,
            "Commits that served several syncs at once",
        ),
    ],
);
/// Layers that take most of the time of syncs, in a file system without a journal.
pub static SYNCS_WITHOUT_JOURNAL: Kind = Kind::new("syncs-by-layer", Role::Explanation, LAYERS)
    .says(SYNCS_BY_LAYER.head, SYNCS_BY_LAYER.labels)
    .advises("There is no journal.");
/// Last trials that are alike before the region was overwritten.
pub static NOT_WRITTEN_OVER: Kind = Kind::new("not-written-over", Role::Unsteady, LAST_TRIALS)
    .says(
        "Not shown to have settled: {0}. The last 5 trials are alike, but only {1} of the region was overwritten before them{cell}",
        &[],
    )
    .advises("--precondition overwrites it first.");
/// Last trials that slope.
pub static NOT_STEADY: Kind = Kind::new("not-steady", Role::Unsteady, LAST_TRIALS)
    .unsettles(DoubtKind::NotSettled)
    .says(
        "Not settled: {0}. The last 5 trials{cell} spread over {1} with a slope of {2}",
        &[],
    )
    .advises("More trials, --settle or --precondition may reach it.");
/// Last trials that scatter, without a slope.
pub static SCATTERED: Kind = Kind::new("not-steady", Role::Unsteady, LAST_TRIALS)
    .unsettles(DoubtKind::NotSettled)
    .says(NOT_STEADY.head, &[])
    // Neither more trials nor a precondition takes scatter away.
    .advises("The cause is scatter, not a shown slope: longer trials may reach it.");
/// Rounds that came to a steady state: by the limits and cells of a standard, by others, or of writes.
pub static STEADY_ROUNDS: [Kind; 3] = [
    STEADY.says("Steady state after {0}: over the last {1}, {response}{cell} ranges over {2} of its mean with a slope of {3}", &[STEADIER]),
    STEADY.says("Steady by the limits asked after {0}: over the last {1}, {response}{cell} ranges over {2} of its mean with a slope of {3}", &[STEADIER]),
    STEADY.says("Steady by the limits asked after {0} of random writes before the first trial: over the last {1}, IOPS on {target} ranges over {2} of its mean with a slope of {3}", &[STEADIER]),
];
/// Rounds that are alike, with doubts about a steady state.
pub static ROUNDS_ALIKE: Kind = Kind::new("rounds-alike", Role::Unsteady, ROUNDS).says(
    "After {0} the last {1} are alike: {response}{cell} ranges over {2} of its mean with a slope of {3}",
    &[STEADIER, (Standing::Doubtful, "Not shown to be a steady state")],
);
/// Rounds of cells, or of writes, that are not steady.
pub static ROUNDS_NOT_STEADY: [Kind; 2] = [
    UNSTEADY.says("NOT steady after {0}: over the last {1}, {response}{cell} ranges over {2} of its mean with a slope of {3}", &[STEADIER]),
    UNSTEADY.says("NOT steady after {0} of random writes before the first trial: over the last {1}, IOPS on {target} ranges over {2} of its mean with a slope of {3}", &[STEADIER]),
];
/// Rounds that cannot be judged: too few of cells or of writes, without values, or not ended by their own rule.
pub static ROUNDS_NOT_JUDGED: [Kind; 4] = [
    TOO_FEW.says("Cannot tell whether it is steady: {0} of a window", &[]),
    TOO_FEW.says("Cannot tell whether it is steady: {0} of a window of random writes before the first trial", &[]),
    NOT_JUDGED.says("Cannot tell whether it is steady after {0}: a tracked cell lacks values of {quantity}", &[]),
    NOT_JUDGED.says("The run did not end by its rounds: {0} complete, no window was chosen, and the numbers are from all trials", &[]),
];
/// Block in which the response of all cells was lower, or higher, than in all other blocks.
pub static BLOCK_APART: [Kind; 2] = [
    APART.says("In block {0}, {quantity} of {1} was {2} lower than in the others", &[]),
    APART.says("In block {0}, {quantity} of {1} was {2} higher than in the others", &[]),
];
/// Limit of requests that more requests in flight do not raise.
pub static REQUEST_LIMIT: Kind = Kind::new("request-limit", Role::Limit, AT_LIMIT).says(
    "Limited at {0} from {2} to {3}{at}: beyond {1} in flight at most 5 % is gained",
    &[],
);
/// Limit of bytes that more requests in flight do not raise.
pub static THROUGHPUT_LIMIT: Kind =
    Kind::new("throughput-limit", Role::Limit, AT_LIMIT).says(REQUEST_LIMIT.head, &[]);
/// Limit of requests of one size that more requests in flight do not raise.
pub static FLIGHT_LIMIT: Kind = Kind::new("flight-limit", Role::Limit, AT_LIMIT)
    .says("Limited at {0}{at}: beyond {1} in flight at most 5 % is gained", &[]);
}
