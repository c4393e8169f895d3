//! Outcome of a trial on its way up the tree.

use iolab_cluster::clock::{Exchange, OtherClock, TimeInterval};
use iolab_cluster::link::{Gathered, decode, encode};
use iolab_cluster::shared_counters::{AccountShare, Shares};
use iolab_cluster::trial::{RankPart, TrialContribution};
use iolab_workload::counters::{
    Counters, DeviceStat, Pressure, ProcessIo, SharedAccount, SharedAccounts,
};
use iolab_workload::histogram::new_latency_histogram;
use iolab_workload::histogram::over_time::{BUCKETS, IntervalLatency, LatencyOverTime, bucket};
use iolab_workload::operation::{Moved, PerOperation};
use iolab_workload::outcome::{
    Ended, FailedRank, Failure, LatencySummary, Outcome, RequestSizes, SizeCount, Tally, Waits,
};
use iolab_workload::region_state::{FaultKind, Medium, Region, Residency, Verified};
use iolab_workload::series::{Interval, Series};
use iolab_workload::system_settings::Cpus;

/// Shares with the same value for every account.
const fn of_each(account: AccountShare) -> Shares {
    Shares {
        host: account,
        device: account,
        disks: account,
        nfs: account,
    }
}

/// Shares of a rank whose accounts an earlier rank reads.
const READ_BY_ANOTHER: Shares = of_each(AccountShare::Nothing);

fn reads(requests: u64, bytes: u64) -> PerOperation<Moved> {
    PerOperation {
        read: Moved { requests, bytes },
        ..PerOperation::default()
    }
}

/// Latencies for as many intervals as the series of a rank has, different in each.
fn latencies(rank: u64) -> LatencyOverTime {
    let interval = |number: u64| {
        let ns = 1000 * (rank + 1) + number;
        let mut counts = vec![0; BUCKETS];
        counts[bucket(ns)] = 1;
        IntervalLatency::new(&counts, ns)
    };
    LatencyOverTime {
        interval_ns: 100,
        span_ns: 100 * (rank + 1),
        intervals: (0..=rank).map(interval).collect(),
    }
}

fn operations(rank: u64) -> PerOperation<Tally> {
    let mut latency = new_latency_histogram();
    latency
        .record_n(1_000 * (rank + 1), 10 + rank)
        .expect("in range");
    let tally = Tally {
        requests: 10 + rank,
        bytes: 4096 * (10 + rank),
        short_transfers: rank,
        latency: latency.clone(),
        waits: Some(Waits {
            response: latency.clone(),
            lateness: latency.clone(),
        }),
    };
    PerOperation {
        read: tally.clone(),
        write: tally,
        sync: Tally {
            requests: rank,
            latency,
            ..Tally::default()
        },
        trim: Tally::default(),
    }
}

/// Part of rank `rank`: everything has a value, and differs between ranks. `first` says whether it is the first
/// to read its accounts.
fn deed(rank: u64, first: bool) -> TrialContribution {
    let mut verified = Verified::default();
    verified.count(FaultKind::Torn, 8192 * (rank + 1));
    let interval = |number: u64| Interval {
        start_ns: 100 * number,
        length_ns: 100,
        done: reads(rank + 1, 4096),
        drive_millidegrees: (number == 1).then_some(40_000 + rank),
    };
    let seen = Residency {
        looked_bytes: 1 << 20,
        resident_bytes: 4096 * rank,
        ..Residency::default()
    };
    let outcome = Outcome {
        operations: operations(rank),
        errors: rank,
        failure: (rank == 1).then(|| {
            Failure::Rank(FailedRank {
                place: "rank 1 on b".to_owned(),
                message: "pwrite failed".to_owned(),
                remedy: "free some space".to_owned(),
                errno: Some(28),
            })
        }),
        ended: if rank == 1 {
            Ended::Failed
        } else {
            Ended::Time
        },
        elapsed_ns: 1_000 + rank,
        all_active_ns: 900,
        in_flight: Some(rank as f64),
        end_sync_ns: 10 * rank,
        paused_ns: rank,
        clock_drift_ppm: 0.5,
        counters: Counters {
            process_io: Some(ProcessIo {
                rchar: rank + 1,
                ..ProcessIo::default()
            }),
            device: Some(DeviceStat {
                read_bytes: 7,
                ..DeviceStat::default()
            }),
            ..Counters::default()
        },
        region: Region {
            before: Some(seen),
            ..Region::default()
        },
        series: Series {
            intervals: (0..=rank).map(interval).collect(),
        },
        latency_over_time: Some(PerOperation::from_fn(|_| latencies(rank))),
        verified: Some(verified),
        request_sizes: RequestSizes::new([SizeCount {
            reads: true,
            bytes: 4096,
            requests: 10 + rank,
        }]),
        cpus_used: Cpus::new([rank as u32]),
        run_delay_ns: Some(10 * rank),
        ..Outcome::default()
    };
    TrialContribution {
        outcome,
        shares: of_each(match first {
            true => AccountShare::All,
            false => AccountShare::Nothing,
        }),
        apart: false,
        region_bytes: 1 << 20,
        clients: Vec::new(),
        parts: vec![RankPart {
            rank,
            started: TimeInterval::exactly(5),
            ended: TimeInterval::exactly(1_005),
            done: PerOperation {
                sync: Moved {
                    requests: rank,
                    bytes: 0,
                },
                ..reads(10 + rank, 4096)
            },
            errors: 0,
        }],
    }
}

/// The part as it goes up if the rank is a client by itself.
fn with_client(mut deed: TrialContribution) -> TrialContribution {
    let rank = deed.parts[0].rank as usize;
    let shared = SharedAccounts {
        device: Some(SharedAccount {
            first: 0,
            clients: 3,
        }),
        ..SharedAccounts::default()
    };
    let client = deed.client(rank, Medium::Elsewhere, shared);
    deed.clients.push(client);
    deed
}

fn sent(deed: &TrialContribution) -> TrialContribution {
    let bytes = encode(deed);
    // Cuts near the ends and far from them.
    for length in (0..bytes.len())
        .step_by(97)
        .chain(bytes.len() - 9..bytes.len())
    {
        let cut = decode::<TrialContribution>(&bytes[..length]);
        assert!(cut.is_none(), "cut at {length} of {}", bytes.len());
    }
    decode(&bytes).expect("a deed")
}

#[test]
fn what_is_sent_is_what_arrives() {
    for rank in 0..3 {
        let deed = with_client(deed(rank, true));
        let arrived = sent(&deed);
        assert!(encode(&arrived) == encode(&deed), "rank {rank}");
        let latency = |deed: &TrialContribution| deed.outcome.operations.read.latency.clone();
        assert_eq!(latency(&arrived), latency(&deed));
        assert_eq!(arrived.clients, deed.clients);
    }
}

#[test]
fn ranks_are_added_up_and_hosts_counted_once() {
    // Ranks 0 and 1 share a host, rank 2 has its own.
    let all = [(0, true), (1, false), (2, true)].map(|(rank, first)| deed(rank, first));
    let [a, b, c] = all;
    let backwards = c.clone().join(sent(&b)).join(sent(&a));
    let whole = a.join(sent(&b)).join(sent(&c));
    let outcome = &whole.outcome;
    assert_eq!(outcome.operations.read.requests, 33);
    assert_eq!(outcome.operations.read.bytes, 33 * 4096);
    assert_eq!(outcome.operations.read.latency.len(), 33);
    let waits = outcome.operations.write.waits.as_ref().expect("at a rate");
    assert_eq!((waits.response.len(), waits.lateness.len()), (33, 33));
    assert_eq!(outcome.operations.sync.latency.len(), 33);
    // Ranks end with their syncs, each when its sync is done.
    assert_eq!((outcome.end_sync_ns, outcome.paused_ns), (20, 3));
    assert_eq!(outcome.counters.device.map(|d| d.read_bytes), Some(14));
    assert_eq!(outcome.counters.process_io.map(|io| io.rchar), Some(6));
    assert_eq!(outcome.ended, Ended::Failed);
    let Some(Failure::Rank(failed)) = &outcome.failure else {
        panic!("{:?}", outcome.failure);
    };
    assert_eq!(failed.place, "rank 1 on b");
    // All ranks observe the same region: the reading with the most cached pages counts.
    let before = outcome.region.before.expect("seen");
    assert_eq!(
        (before.looked_bytes, before.resident_bytes),
        (1 << 20, 8192)
    );
    assert_eq!(whole.region_bytes, 1 << 20);
    let verified = outcome.verified.expect("read back");
    let torn = verified.of(FaultKind::Torn);
    assert_eq!((torn.blocks, torn.first_offset), (3, 8192));
    let intervals = outcome.series.intervals.iter();
    let requests = intervals.map(|interval| interval.done.read.requests);
    assert!(requests.eq([6, 5, 3]));
    assert_eq!(outcome.run_delay_ns, None);
    assert_eq!(outcome.cpus_used, Cpus::new([0, 1, 2]));
    assert!(whole.parts.iter().map(|part| part.rank).eq([0, 1, 2]));
    let merged = whole.outcome.latency_over_time.as_ref().expect("latencies");
    let merged = &merged.read;
    assert_eq!((merged.span_ns, merged.total()), (300, 6));
    let last = merged.intervals.last().expect("three");
    assert_eq!((last.total(), last.max_ns), (1, 3002));
    // The order of the ranks does not matter.
    let outcome = &backwards.outcome;
    assert_eq!(outcome.end_sync_ns, 20);
    assert_eq!(outcome.ended, Ended::Failed);
    assert_eq!(outcome.verified, Some(verified));
}

#[test]
fn intervals_are_summed_in_the_longer_ones() {
    let with = |length_ns: u64, count: u64| {
        let mut deed = deed(0, true);
        let interval = |number| Interval {
            start_ns: length_ns * number,
            length_ns,
            done: reads(number + 1, 0),
            drive_millidegrees: None,
        };
        deed.outcome.series.intervals = (0..count).map(interval).collect();
        deed
    };
    for (a, b) in [(with(100, 4), with(200, 2)), (with(200, 2), with(100, 4))] {
        let sum = a.join(b).outcome.series.intervals.into_iter();
        let sum = sum.map(|one| (one.start_ns, one.length_ns, one.done.read.requests));
        assert!(sum.eq([(0, 200, 1 + 2 + 1), (200, 200, 3 + 4 + 2)]));
    }
}

#[test]
fn moments_are_bounded_by_the_observing_clock() {
    let mut clock = OtherClock::default();
    clock.learn(vec![Exchange {
        asked: 100,
        stamp: 1_000_000,
        answered: 300,
    }]);
    let mut deed = deed(0, true);
    deed.parts[0].started = TimeInterval::exactly(1_000_000);
    deed.parts[0].ended = TimeInterval::exactly(1_000_050);
    let seen = deed.seen_through(&clock).expect("steady");
    // Whole ns on both sides.
    let near = |moment: TimeInterval, from: i64, to: i64| {
        let (early, late) = (from - moment.earliest, moment.latest - to);
        assert!(
            (0..=3).contains(&early) && (0..=3).contains(&late),
            "{moment:?}"
        );
    };
    near(seen.parts[0].started, 100, 300);
    near(seen.parts[0].ended, 150, 350);
}

#[test]
fn client_latencies_are_merged_before_quantiles() {
    let all = [(0, true), (1, false), (2, false)].map(|(rank, first)| deed(rank, first));
    let mut latency = new_latency_histogram();
    for deed in &all {
        latency
            .add(&deed.outcome.operations.read.latency)
            .expect("the same bounds");
    }
    let whole = all
        .into_iter()
        .reduce(TrialContribution::join)
        .expect("three");
    let client = whole.client(0, Medium::Storage, SharedAccounts::default());
    let summary = LatencySummary::of(&latency).map(Box::new);
    assert_eq!(client.operations.read.latency, summary);
    assert_eq!(client.operations.read.requests, latency.len());
    // The device of the host counts once; the processes' own counts are added.
    let counters = client.counters;
    assert_eq!(counters.device.map(|device| device.read_bytes), Some(7));
    assert_eq!(counters.process_io.map(|io| io.rchar), Some(6));
}

#[test]
fn observations_of_separate_bytes_add_up() {
    let apart = |rank| TrialContribution {
        apart: true,
        region_bytes: 1 << 19,
        ..deed(rank, true)
    };
    let whole = apart(1).join(sent(&apart(2)));
    assert_eq!(whole.region_bytes, 1 << 20);
    let before = whole.outcome.region.before.expect("seen");
    assert_eq!(
        (before.looked_bytes, before.resident_bytes),
        (2 << 20, 3 * 4096)
    );
}

#[test]
fn unknown_reading_makes_the_sum_unknown() {
    let mut other = deed(1, true);
    other.outcome.counters.device = None;
    assert_eq!(
        deed(0, true).join(other.clone()).outcome.counters.device,
        None
    );
    // A rank whose accounts another one reads does not matter.
    other.shares = READ_BY_ANOTHER;
    assert!(deed(0, true).join(other).outcome.counters.device.is_some());
}

#[test]
fn the_host_that_was_worse_off_counts() {
    let under = |cpu_khz, steal_ns| {
        let mut deed = deed(0, true);
        deed.outcome.counters.pressure = Pressure {
            cpu_khz,
            steal_ns,
            ..Pressure::default()
        };
        deed
    };
    let of = |a: TrialContribution, b: TrialContribution| {
        let pressure = a.join(b).outcome.counters.pressure;
        (pressure.cpu_khz, pressure.steal_ns)
    };
    let (slow, fast) = (Some(800_000), Some(3_000_000));
    // A throttled host is not hidden by one that is not, whichever comes first.
    for (a, b) in [(slow, fast), (fast, slow)] {
        assert_eq!(of(under(a, Some(5)), under(b, Some(9))), (slow, Some(9)));
    }
    assert_eq!(of(under(None, None), under(fast, Some(1))), (fast, Some(1)));
}

/// Ctrl-Z at one rank of a host, which the kernel does not count for the others.
#[test]
fn longest_stopped_rank_counts_for_its_host() {
    let stopped = |rank: u64, first, ns| {
        let mut deed = deed(rank, first);
        deed.outcome.counters.pressure.suspended_ns = ns;
        deed
    };
    for (a, b) in [(Some(0), Some(7)), (Some(7), Some(0)), (Some(7), None)] {
        let both = stopped(0, true, a).join(stopped(1, false, b));
        assert_eq!(both.outcome.counters.pressure.suspended_ns, Some(7));
    }
}
