//! Trials whose requests come from a list.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_engine::list::{Issue, ListedRequest, RequestList};
use iolab_engine::simulation::{self, Ask, Disk};
use iolab_engine::trial;

use crate::files::{clock, scratch};
use needs::settings;

const MS: u64 = 1_000_000;
const REGION: u64 = 1 << 20;

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

/// A disk that takes 10 ms for each request, one after the other.
#[derive(Default)]
struct TenMs {
    free: u64,
    queue: std::collections::VecDeque<(u64, u64)>,
}

impl Disk for TenMs {
    fn submit(&mut self, now_ns: u64, tag: u64, _ask: Ask) {
        self.free = self.free.max(now_ns) + 10 * MS;
        self.queue.push_back((self.free, tag));
    }

    fn next_event(&self) -> Option<u64> {
        self.queue.front().map(|(end, _)| *end)
    }

    fn advance(&mut self, until_ns: u64, done: &mut Vec<u64>) {
        while let Some((_, tag)) = self.queue.pop_front_if(|(end, _)| *end <= until_ns) {
            done.push(tag);
        }
    }
}

#[test]
fn waits_for_a_slot_count_as_the_queue() {
    let mut list = Gaps::of(&[MS, 4 * MS, 50 * MS]);
    let stop = AtomicBool::new(false);
    let (outcome, end) =
        simulation::run_list(&settings(PACED), &mut list, &mut TenMs::default(), 0, &stop).unwrap();
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
    let (_, end) = simulation::run_list(
        &settings(UNPACED),
        &mut list,
        &mut TenMs::default(),
        0,
        &stop,
    )
    .unwrap();
    assert_eq!((end, list.issues.len()), (30 * MS, 0));
}

#[test]
fn a_slow_list_counts_as_a_late_client() {
    let (_folder, target) = scratch(REGION);
    let stop = AtomicBool::new(false);
    let late = Duration::from_millis(40);
    let list = Mutex::new(Gaps {
        slow: Some((5, late)),
        ..Gaps::of(&[MS / 10; 20])
    });
    // More slots than requests: a full queue cannot be what makes them wait.
    let spec = settings(&format!("{PACED} backend=pool depth=32"));
    let outcome = trial::run_list(&spec, &list, &target, clock(), &stop).unwrap();
    assert_eq!(outcome.operations.read.requests, 20);
    let list = list.into_inner().unwrap();
    assert_eq!(list.issues.len(), 20);
    let by_client = |one: &Issue| one.started_ns - one.intended_ns - one.queue_ns;
    let most = list.issues.iter().map(by_client).max();
    assert!(most > Some(30 * MS), "{most:?}");
}
