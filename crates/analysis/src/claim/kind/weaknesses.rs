//! Kinds of claims on what weakens the numbers of a run, or what they do not show.

use super::{Kind, Role, kinds};
use crate::claim::Standing;

const fn unfinished(head: &'static str) -> Kind {
    Kind::new(
        "unfinished",
        Role::Unshown,
        "the status of the run, and the cells without a measured trial",
    )
    .says(head, &[(Standing::Unknown, "Without a measured trial")])
    .advises("The results cover the trials completed so far.")
}
const NOT_READ: Kind = Kind::new(
    "definition-not-read",
    Role::Weakness,
    "the definition of the experiment that the run file contains",
)
.says("The definition of the experiment in this run file cannot be read; another version of iolab may have written it. Not judged: causes, steady states, tests of a standard, the order of trials", &[]);
const GAP: Kind = Kind::new("gaps", Role::Unshown, "the options of each tool");
const MODELLED: Kind = Kind::new("model", Role::Unshown, "the target of the run");
const UNSYNCED: Kind = Kind::new("not-durable", Role::Unshown, "the sync policy of each cell that writes").says(
    "{Cells} wrote without a sync (sync=none): a power failure may lose writes that are still in a cache",
    &[],
);
const IMPRECISE: Kind = Kind::new(
    "below-precision",
    Role::Weakness,
    "the farther end of the median's interval, against the goal",
)
.says(
    "{Cells} missed the {0} precision goal. Widest interval{cell}, after {1}: ±{3}, {2}",
    &[],
);
const GROUPED: Kind = Kind::new(
    "two-groups",
    Role::Weakness,
    "the density of each cell's trials, and its valley",
)
.says(
    "The trials of {cells} form two groups:{cell} {0} of them around {1}, the others around {2}",
    &[],
);
const NO_TAIL: Kind =
    Kind::new("tail-unknown", Role::Unshown, "the requests of each trial").advises("{longer}");

kinds! {
/// Plan that was not carried out: a run that was cut off, failed, was interrupted, was ended by the user, or was ended by the user with
/// intervals in view.
pub static UNFINISHED: [Kind; 5] = [
    unfinished("The run was cut off or is still in progress"),
    unfinished("The run failed"),
    unfinished("The run was interrupted"),
    unfinished("The user ended the run"),
    unfinished("The user ended the run").advises("The results cover the trials completed so far. If the values shown were the reason, the 95 % intervals contain the median less often than in 95 % of runs."),
];
/// Run of unknown purpose: with one trial per cell, or with more.
pub static DEFINITION_NOT_READ: [Kind; 2] = [
    NOT_READ.advises("'iolab show' prints it."),
    NOT_READ.advises("The numbers assume blocks of trials in random order. 'iolab show' prints it."),
];
/// Cells that depend on what earlier cells left.
pub static ORDER_OF_CELLS: Kind =
    Kind::new("order-of-cells", Role::Weakness, "the warm-up, and the cells that write")
        .says("Cells use the same storage one after the other, without a warm-up: what one leaves there (a full cache, heat, used-up burst credits) the next one finds", &[])
        .advises("Differences between these cells may come from their order. Measure one cell per run.");
/// Cells that a tool left out, or that it gave up, for one reason.
pub static GAPS: [Kind; 2] = [
    GAP.says("{tool} did not measure {own}: {why}", &[]),
    GAP.says("{tool} failed, and did not finish {own}: {why}", &[]),
];
/// Command line of a trial of another tool.
pub static PEERS: Kind = Kind::new("peers", Role::Weakness, "the command line of each trial").says(
    "Command of a trial{cell}: {command} - every trial's own command is in the column 'effective' of iolab export",
    &[],
);
/// Modelled disk in place of a device: with a title, or without one.
pub static MODEL: [Kind; 2] = [
    MODELLED.says("All numbers come from {target} ({title}), computed in virtual time. No device was measured", &[]),
    MODELLED.says("All numbers come from {target}, computed in virtual time. No device was measured", &[]),
];
/// Cells that a file server served. A client does not see how much of that came from the server's disks.
pub static NETWORK: Kind = Kind::new(
    "network",
    Role::Unshown,
    "the account of the NFS client (mountstats), for each trial",
)
.says("A file server over the network served {cells}, perhaps from its memory: only regions larger than that show its disks", &[]);
/// Doubt about cells, that with the greatest extent first.
pub static DOUBT: Kind = Kind::new(
    "doubt",
    Role::Weakness,
    "counters and settings of each trial (METHODS.md, \"Doubts\")",
)
.says("{Cells}: {doubt}", &[])
.advises("{remedy}");
/// Requests that reached the device in pieces, which is as it should be above the device's limit.
pub static REQUESTS_IN_PIECES: Kind = Kind::new(
    "requests-in-pieces",
    Role::Weakness,
    "the device's count of requests over iolab's, in each trial",
)
.says("{Cells}: requests reached the device in pieces, up to {0} per request{cell}", &[])
.advises("The cause is a limit of the device (device_request_max_kib, device_segments_max) or the memory of the buffers.");
/// Writes that nothing made durable: of iolab, or of an imported job.
pub static NOT_DURABLE: [Kind; 2] = [
    UNSYNCED.advises("{sync} makes them durable, and includes that time."),
    UNSYNCED.advises("A sync at the end of each job makes them durable, and includes that time."),
];
/// Hosts, or ranks of one host, that were slower than the others in every trial.
pub static STRAGGLER: Kind = Kind::new(
    "straggler",
    Role::Weakness,
    "throughput over the median of the others in the same trial: below 1 in every trial, and the exact interval of its median below 0.95, at 95 % for all hosts or ranks together",
)
.says(
    "",
    &[
        (
            Standing::Worse,
            "Slower than the others in every trial, by throughput",
        ),
        (Standing::MedianOf, "Medians of"),
    ],
)
.advises("Check its load, its connection to the storage and its mount options.");
/// Ranks that end long after the first one, which a stonewall would hide.
pub static RANK_IMBALANCE: Kind = Kind::new(
    "rank-imbalance",
    Role::Weakness,
    "medians of throughput while all ranks were active, and from the first start to the last end",
)
.says("Not all ranks worked until the end{cell}: throughput was {0} while all were active, {2} more than from the first start to the last end ({1})", &[])
.advises("A stonewall would report the former.");
/// Clients whose page cache was not dropped before trials that were to read with a cold one.
pub static CACHE_KEPT: Kind = Kind::new(
    "cache-kept",
    Role::Weakness,
    "median over the trials of what the page cache of a client held, of the bytes that its ranks go over, before trials that read with a cold cache",
)
.says(
    "The page cache was not dropped before cold trials, whose reads are not cold",
    &[(Standing::Cached, "Share that it held of what the ranks of a client read")],
)
.advises("Set cache=direct, or shift=host so that ranks read what another host wrote.");
/// Cells whose interval is wider than the goal: more trials may help, or the level changed.
pub static BELOW_PRECISION: [Kind; 2] = [
    IMPRECISE.advises("{more_trials}"),
    IMPRECISE.advises("The level changed during the run, so that more trials do not help."),
];
/// Cells whose trials form two groups: a larger and a smaller one, or two of about one size.
pub static TWO_GROUPS: [Kind; 2] = [
    GROUPED.advises("The median describes the larger group."),
    GROUPED.advises("The median describes neither group."),
];
/// Cells that drift by more than the goal of precision over the run.
pub static DRIFT: Kind = Kind::new(
    "drift",
    Role::Weakness,
    "Mann and Kendall's test in each cell, with Holm's correction over the cells",
)
.says("The trials of {cells} drift over the run by up to {0}{cell}", &[]);
/// Cells whose trials have too few requests for a 99th percentile, where that is shown with another response, or is the response.
pub static TAIL_UNKNOWN: [Kind; 2] = [
    NO_TAIL.says("{Cells} had too few requests per trial to estimate the 99th percentile of latency ({0} are needed): p99 is close to the maximum of a trial there, and may be far from the true one", &[]),
    NO_TAIL.says("{Cells} had too few requests per trial to estimate the 99th percentile of latency ({0} are needed)", &[]),
];
/// Cells with traced trials whose stages are not known.
pub static NOT_JOINED: Kind = Kind::new(
    "not-joined",
    Role::Unshown,
    "the requests of each traced trial, joined with the kernel's events",
)
.says("{Cells} had traced trials without stages: {why}", &[]);
}
