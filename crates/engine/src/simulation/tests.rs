//! Trials on disks whose times all follow from their definition.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::list::{Issue, ListedRequest};
use crate::trial;
use iolab_storage::{Need, Target};
use iolab_workload::histogram::over_time::{BUCKETS, bucket};
use iolab_workload::trial::SyncPolicy;
use iolab_workload::virtual_disk::{Completion, Op, Request, ServedFrom};
use needs::settings;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A disk with a fixed number of servers, a fixed time per request and another per flush.
struct Fixed {
    request_ns: u64,
    flush_ns: u64,
    /// Time at which each of its servers becomes free.
    servers: Vec<u64>,
    under_way: VecDeque<(u64, u64)>,
    asked: Vec<(u64, Request)>,
}

impl Fixed {
    fn new(servers: usize, request_ns: u64, flush_ns: u64) -> Self {
        Self {
            request_ns,
            flush_ns,
            servers: vec![0; servers],
            under_way: VecDeque::new(),
            asked: Vec::new(),
        }
    }
}

impl Model for Fixed {
    fn capacity(&self) -> u64 {
        u64::MAX
    }

    fn submit(&mut self, now_ns: u64, tag: u64, request: &Request) {
        self.asked.push((now_ns, *request));
        let takes = match request.op {
            Op::Flush => self.flush_ns,
            _ => self.request_ns,
        };
        let free = self.servers.iter_mut().min().expect("a server");
        *free = now_ns.max(*free) + takes;
        let end = *free;
        let at = self.under_way.partition_point(|(other, _)| *other <= end);
        self.under_way.insert(at, (end, tag));
    }

    fn next_event(&self) -> Option<u64> {
        self.under_way.front().map(|(end, _)| *end)
    }

    fn advance(&mut self, until_ns: u64, done: &mut Vec<Completion>) {
        while let Some((finished, tag)) = self.under_way.pop_front_if(|(end, _)| *end <= until_ns) {
            done.push(Completion {
                tag,
                finished,
                served: ServedFrom::Miss,
            });
        }
    }
}

fn carry_out(spec: &TrialSpec, disk: &mut Fixed) -> Outcome {
    let (outcome, _) = run(spec, disk, 0, &AtomicBool::new(false)).expect("carried out");
    outcome
}

fn spec(sets: &str) -> TrialSpec {
    settings(&format!("region=1M pattern=rand {sets}"))
}

#[test]
fn the_closed_loop_keeps_threads_times_depth_outstanding() {
    for (threads, depth, servers) in [(1u32, 1u32, 1), (1, 8, 4), (3, 2, 6), (2, 4, 100)] {
        let all = format!("backend=io_uring threads={threads} depth={depth} bytes=960k");
        let spec = spec(&all);
        let outcome = carry_out(&spec, &mut Fixed::new(servers, 50 * US, 0));
        let at_once = u64::from(threads * depth);
        assert_eq!(
            (outcome.operations.read.requests, outcome.ended),
            (240, Ended::Done)
        );
        assert_eq!(outcome.operations.read.bytes, 240 * 4096);
        assert_eq!(
            outcome.elapsed_ns,
            240 * 50 * US / at_once.min(servers as u64)
        );
        // Little's law, to the three digits of the histogram.
        let mean = outcome.operations.read.latency.mean() * 240.0 / outcome.elapsed_ns as f64;
        let steady = at_once as f64;
        assert!(
            (mean / steady - 1.0).abs() < 0.03,
            "{mean} of {steady} in flight"
        );
        let in_flight = outcome.in_flight.expect("timed");
        assert!((in_flight / steady - 1.0).abs() < 0.03, "{in_flight}");
    }
}

#[test]
fn requests_in_flight_at_the_end_are_completed() {
    let one_pass = carry_out(&spec(""), &mut Fixed::new(1, 10 * US, 0));
    assert_eq!(one_pass.operations.read.requests, 256);
    let timed = carry_out(&spec("time=95us"), &mut Fixed::new(1, 10 * US, 0));
    assert_eq!((timed.requests(), timed.ended), (10, Ended::Time));
    assert_eq!(timed.elapsed_ns, 100 * US);
    assert_eq!(timed.series.total().read.requests, 10);
}

#[test]
fn a_batch_waits_for_its_completions() {
    let spec = spec("backend=io_uring depth=4 batch=all bytes=32k");
    let outcome = carry_out(&spec, &mut Fixed::new(1, 10 * US, 0));
    // Four requests one after the other are taken together, when the last is done.
    let near = |ns: u64| outcome.operations.read.latency.equivalent(ns, 40 * US);
    assert!(
        near(outcome.operations.read.latency.min()) && near(outcome.operations.read.latency.max())
    );
}

#[test]
fn sync_policies_flush_when_they_say() {
    let of = |sync| {
        let spec = spec(&format!("read_percent=0 sync={sync} bytes=20k"));
        let mut disk = Fixed::new(1, 10 * US, 7 * US);
        let outcome = carry_out(&spec, &mut disk);
        let flushes = disk.asked.iter().filter(|(_, ask)| ask.op == Op::Flush);
        (
            flushes.count(),
            outcome.operations.sync.requests,
            outcome.elapsed_ns / US,
            outcome.operations.write.latency.max() / US,
            outcome.end_sync_ns / US,
        )
    };
    assert_eq!(of(SyncPolicy::None), (0, 0, 50, 10, 0));
    assert_eq!(of(SyncPolicy::End), (1, 1, 57, 10, 7));
    assert_eq!(of(SyncPolicy::Each), (5, 5, 85, 17, 0));
    assert_eq!(of(SyncPolicy::Fdatasync), (5, 5, 85, 17, 0));
    // Equal cost, without a call of fsync.
    assert_eq!(of(SyncPolicy::Osync), (5, 0, 85, 17, 0));
}

#[test]
fn response_time_counts_from_the_intended_start() {
    let at = |rate: &str| spec(&format!("backend=io_uring depth=4 rate={rate}"));
    // One request every 100 us, 10 us each: nothing waits.
    let easy = carry_out(&at("10000 time=10ms"), &mut Fixed::new(1, 10 * US, 0));
    let waits = easy
        .operations
        .read
        .waits
        .as_ref()
        .expect("recorded at a rate");
    assert_eq!(easy.operations.read.requests, 100);
    assert_eq!((waits.response.max() / US, waits.lateness.max()), (10, 0));
    let rate_report = easy.rate_report.expect("at a rate");
    assert_eq!(
        (rate_report.rate_achieved, rate_report.backlog_end),
        (10_000.0, 0)
    );
    // One every 5 us, of which the disk does half: the queue grows, and the rate report says so.
    let hard = carry_out(&at("200000 time=10ms"), &mut Fixed::new(1, 10 * US, 0));
    let rate_report = hard.rate_report.expect("at a rate");
    assert!((rate_report.rate_achieved / 100_000.0 - 1.0).abs() < 0.01);
    assert!(
        (990..=1000).contains(&rate_report.backlog_end),
        "{rate_report:?}"
    );
    let waits = hard.operations.read.waits.expect("recorded at a rate");
    assert!(waits.response.max() > 4_900 * US && hard.operations.read.latency.max() < 45 * US);
    // A limit of requests shows the missed rate too: the last one starts when twice as many were due.
    let limited = carry_out(&at("200000 bytes=4000k"), &mut Fixed::new(1, 10 * US, 0));
    let rate_report = limited.rate_report.expect("at a rate");
    assert_eq!(limited.ended, Ended::Done);
    assert!(rate_report.backlog_end >= 900, "{rate_report:?}");
}

#[test]
fn refuses_a_timeless_disk_and_obeys_an_interrupt() {
    let stop = AtomicBool::new(false);
    for limit in ["time=10us", "bytes=400k"] {
        let error = run(&spec(limit), &mut Fixed::new(1, 0, 0), 0, &stop).unwrap_err();
        insta::allow_duplicates! { insta::assert_snapshot!(error.to_string(), @r"
        requests take no time on this model, so it has no throughput
          put latency, limit or server around it in its definition
        ") };
    }
    stop.store(true, Ordering::Relaxed);
    let (outcome, _) =
        run(&spec("time=1s"), &mut Fixed::new(1, 10 * US, 0), 0, &stop).expect("cut off");
    assert_eq!(outcome.ended, Ended::Interrupted);
}

#[test]
fn threads_pause_in_virtual_time() {
    for latency in ["latency=true", "latency=false"] {
        let spec = spec(&format!("thinktime=30us bytes=12k {latency}"));
        let mut disk = Fixed::new(1, 10 * US, 0);
        let outcome = carry_out(&spec, &mut disk);
        let starts: Vec<u64> = disk.asked.iter().map(|(at, _)| at / US).collect();
        assert_eq!(starts, [0, 40, 80]);
        assert_eq!((outcome.elapsed_ns, outcome.paused_ns), (90 * US, 60 * US));
    }
}

#[test]
fn requests_of_several_sizes_ask_for_their_bytes() {
    // With latencies recorded, without, and at a rate.
    for way in ["latency=true", "latency=false", "rate=1000000000"] {
        for (bytes, threads) in [(1u64 << 20, 1u32), (2 << 20, 2)] {
            let mix = "bs_mix=4k:50,64k:50/8k:100 read_percent=60";
            let limit = if threads == 1 {
                "none".to_owned()
            } else {
                bytes.to_string()
            };
            let spec = spec(&format!("{mix} {way} threads={threads} bytes={limit}"));
            let mut disk = Fixed::new(1, 10 * US, 0);
            let outcome = carry_out(&spec, &mut disk);
            let mut sums = [0; 2];
            for (_, ask) in &disk.asked {
                match ask.op {
                    Op::Read => sums[0] += ask.len,
                    Op::Write => sums[1] += ask.len,
                    _ => panic!("{ask:?}"),
                }
            }
            let counts = outcome.request_sizes.counts();
            for (reads, tally, asked) in [
                (true, &outcome.operations.read, sums[0]),
                (false, &outcome.operations.write, sums[1]),
            ] {
                let own = counts.iter().filter(|count| count.reads == reads);
                let (requests, sum) = own.fold((0, 0), |(requests, sum), count| {
                    (
                        requests + count.requests,
                        sum + count.requests * count.bytes,
                    )
                });
                assert_eq!((tally.requests, tally.bytes), (requests, sum));
                assert_eq!(sum, asked);
            }
            assert_eq!(counts.len(), 3);
            let most = bytes + u64::from(threads) * 65_536;
            assert!((bytes..most).contains(&(sums[0] + sums[1])));
        }
    }
}

fn group(number: u32, trial: TrialSpec, follows: bool) -> GroupTrial {
    GroupTrial {
        group: number,
        target: None,
        trial,
        follows,
    }
}

fn run_together(groups: &[GroupTrial], disk: &mut Fixed) -> Outcome {
    let stop = AtomicBool::new(false);
    run_groups(groups, disk, 0, &stop).expect("carried out").0
}

#[test]
fn groups_share_a_disk_that_is_computed() {
    // One request at a time, 100 us each: the two take turns.
    let (reader, writer) = (spec("bytes=40k"), spec("bytes=40k read_percent=0"));
    let groups = [group(1, reader, false), group(2, writer, false)];
    let outcome = run_together(&groups, &mut Fixed::new(1, 100 * US, 0));
    assert_eq!(
        (
            outcome.operations.read.requests,
            outcome.operations.write.requests
        ),
        (10, 10)
    );
    assert_eq!(outcome.elapsed_ns, 2000 * US);
    let [reads, writes] = outcome.groups.as_slice() else {
        panic!("two groups");
    };
    assert_eq!(reads.outcome.elapsed_ns, 1900 * US);
    assert_eq!(writes.outcome.elapsed_ns, 2000 * US);
    assert_eq!(reads.outcome.operations.read.latency.len(), 10);
}

#[test]
fn a_following_group_follows_in_virtual_time() {
    let (reader, rated) = (
        spec("bytes=40k"),
        spec("read_percent=0 rate=20480000B time=1h"),
    );
    let groups = [group(1, reader, false), group(2, rated, true)];
    let outcome = run_together(&groups, &mut Fixed::new(8, 100 * US, 0));
    let [reader, rated] = outcome.groups.as_slice() else {
        panic!("two groups");
    };
    assert_eq!(reader.outcome.elapsed_ns, 1000 * US);
    assert_eq!(rated.outcome.ended, Ended::Time);
    // At 100, 300, 500, 700 and 900 us.
    assert_eq!(rated.outcome.operations.write.requests, 5);
    let again = run_together(&groups, &mut Fixed::new(8, 100 * US, 0));
    assert_eq!(again.series.intervals, outcome.series.intervals);
}

/// Reads of 4 KiB with these gaps, and how they were issued. Before one of them the list itself has to be waited for.
#[derive(Default)]
struct Gaps {
    left: Vec<u64>,
    at_ns: u64,
    given: usize,
    slow: Option<(usize, Duration)>,
    issues: Vec<Issue>,
}

impl Gaps {
    fn of(gaps: &[u64]) -> Self {
        Self {
            left: gaps.iter().rev().copied().collect(),
            ..Self::default()
        }
    }
}

impl RequestList for Gaps {
    fn next(&mut self) -> Option<ListedRequest> {
        if let Some((number, time)) = self.slow
            && number == self.given
        {
            std::thread::sleep(time);
        }
        self.given += 1;
        self.at_ns += self.left.pop()?;
        Some(ListedRequest {
            at_ns: self.at_ns,
            writes: false,
            offset: 4096 * (self.given as u64 % 16),
            bytes: 4096,
        })
    }

    fn issued(&mut self, issue: Issue) {
        self.issues.push(issue);
    }
}

const UNPACED: &str = "region=1M cache=cold time=60s";
const PACED: &str = "region=1M cache=cold time=60s rate=100";

#[test]
fn waits_for_a_slot_count_as_the_queue() {
    let mut list = Gaps::of(&[MS, 4 * MS, 50 * MS]);
    let stop = AtomicBool::new(false);
    let disk = || Fixed::new(1, 10 * MS, 0);
    let (outcome, end) = run_list(&settings(PACED), &mut list, &mut disk(), 0, &stop).unwrap();
    assert_eq!((outcome.operations.read.requests, end), (3, 65 * MS));
    let times = list
        .issues
        .iter()
        .map(|one| [one.intended_ns, one.started_ns, one.queue_ns].map(|ns| ns / MS));
    assert_eq!(
        times.collect::<Vec<_>>(),
        [[1, 1, 0], [5, 11, 6], [55, 55, 0]]
    );
    // As fast as the depth allows, the times of the list do not matter.
    let mut list = Gaps::of(&[MS, 4 * MS, 50 * MS]);
    let (_, end) = run_list(&settings(UNPACED), &mut list, &mut disk(), 0, &stop).unwrap();
    assert_eq!((end, list.issues.len()), (30 * MS, 0));
}

#[test]
fn a_slow_list_counts_as_a_late_client() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::open(folder.path(), &Need::writing(1 << 20)).unwrap();
    let stop = AtomicBool::new(false);
    let late = Duration::from_millis(40);
    let list = Mutex::new(Gaps {
        slow: Some((5, late)),
        ..Gaps::of(&[MS / 10; 20])
    });
    // More slots than requests: a full queue cannot be what makes them wait.
    let spec = settings(&format!("{PACED} backend=pool depth=32"));
    let outcome = trial::run_list(&spec, &list, &target, &Clock::calibrate(), &stop).unwrap();
    assert_eq!(outcome.operations.read.requests, 20);
    let list = list.into_inner().unwrap();
    assert_eq!(list.issues.len(), 20);
    let by_client = |one: &Issue| one.started_ns - one.intended_ns - one.queue_ns;
    let most = list.issues.iter().map(by_client).max();
    assert!(most > Some(30 * MS), "{most:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn latencies_over_time_sum_to_the_trial(
        seed in any::<u64>(),
        seconds in 1u64..130,
        threads in 1u32..4,
        depth in 1u32..4,
        read_percent in 0u8..=100,
        rate in prop::option::of(20u64..400),
        syncs in any::<bool>(),
    ) {
        let rate = rate.map_or("none".to_owned(), |rate| rate.to_string());
        let sync = if syncs { "fdatasync" } else { "none" };
        let load = format!("threads={threads} depth={depth} read_percent={read_percent}");
        let ends = format!("rate={rate} sync={sync} time={seconds}s latency_over_time=true");
        let spec = TrialSpec { seed, ..spec(&format!("backend=io_uring {load} {ends}")) };
        let outcome = carry_out(&spec, &mut Fixed::new(2, 9_000 * US, 1_000 * US));
        let over_time = outcome.latency_over_time.expect("kept");
        for (operation, own) in over_time.iter() {
            let tally = &outcome.operations[operation];
            let waits = tally.waits.as_ref().map(|waits| &waits.response);
            let all = waits.unwrap_or(&tally.latency);
            prop_assert_eq!(own.total(), all.len());
            if own.intervals.is_empty() {
                prop_assert!(all.is_empty());
                continue;
            }
            for share in [0.5, 0.9, 0.99, 1.0] {
                let fine = all.value_at_quantile(share);
                // The last bucket has no upper end.
                let is_bounded = bucket(fine) + 1 < BUCKETS;
                if let Some(coarse) = own.whole().quantile_ns(share).filter(|_| is_bounded) {
                    let off = coarse as f64 / fine as f64;
                    prop_assert!((0.998..1.064).contains(&off), "{share}: {coarse} {fine}");
                }
            }
            // Interval by interval, what the series counts.
            prop_assert!(own.intervals.len() <= 512);
            let mut rest = outcome.series.intervals.as_slice();
            for (number, interval) in own.intervals.iter().enumerate() {
                let (start, end) = own.bounds_ns(number);
                let count = rest.partition_point(|one| one.end_ns() <= end);
                let (these, others) = rest.split_at(count);
                rest = others;
                prop_assert_eq!(these.first().map(|one| one.start_ns), Some(start));
                prop_assert_eq!(these.last().map(|one| one.end_ns()), Some(end));
                let requests: u64 = these.iter().map(|one| one.done[operation].requests).sum();
                prop_assert_eq!(requests, interval.total());
            }
            prop_assert!(rest.is_empty());
        }
    }
}
