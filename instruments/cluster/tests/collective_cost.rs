//! Cost of coordinating a trial as ranks grow, on computed networks: the tables of docs/CLUSTER.md.
//!
//!     cargo run --release -p iolab-cluster --example collective_cost [LATENCY_NS OVERHEAD_NS NS_PER_BYTE]
//!
//! With arguments, for a network measured by the example `clocks`. Every rank runs the code of a real run, on a
//! thread of its own, in virtual time.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "networks/virtual_network.rs"]
mod virtual_network;

use std::thread::{self, Builder};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::virtual_network::{Costs, Skew, Traffic, VirtualLink, network};
use iolab_cluster::clock::{Activity, ClockJumped, CumulativeBytes, OtherClock, TimeInterval};
use iolab_cluster::link;
use iolab_cluster::link::{FANOUT, Gathered, Link, Team};
use iolab_cluster::shared_counters::{AccountShare, Shares};
use iolab_cluster::trial::{Contribution, MergedTrial, RankPart, TrialContribution, TrialTimeouts};
use iolab_workload::counters::{Bottom, Counters, DeviceStat, ProcessIo, SharedAccounts};
use iolab_workload::histogram::{LatencyHistogram, new_latency_histogram};
use iolab_workload::operation::{Moved, PerOperation};
use iolab_workload::outcome::{Ended, Outcome, Tally};
use iolab_workload::region_state::{Extents, Medium, Region, Residency};
use iolab_workload::series::{INTERVAL_NS, Interval, Series};
use iolab_workload::system_settings::Cpus;

const HABITS: TrialTimeouts = TrialTimeouts {
    rounds: 8,
    timeout: Duration::from_secs(10),
    trial: Duration::from_secs(100),
};
/// Duration of a trial's I/O, ns.
const TRIAL_NS: i64 = 1_000_000_000;
/// Bytes per rank.
const BYTES: u64 = 1 << 30;
/// Stack size of a rank, bytes.
const STACK: usize = 128 << 10;

#[derive(Clone, Copy)]
struct Network {
    name: &'static str,
    latency_ns: u64,
    overhead_ns: u64,
    byte_ns: f64,
}

/// Latency of a message, its CPU time, and time per byte, as MPI shows on 100 Gbit/s InfiniBand, and over TCP
/// on 10 Gbit/s Ethernet, rounded up.
const NETWORKS: [Network; 2] = [
    Network {
        name: "InfiniBand",
        latency_ns: 1_500,
        overhead_ns: 300,
        byte_ns: 0.1,
    },
    Network {
        name: "Ethernet, TCP",
        latency_ns: 20_000,
        overhead_ns: 5_000,
        byte_ns: 1.0,
    },
];

impl Costs for Network {
    fn latency_ns(&self, from: usize, to: usize, count: u64) -> u64 {
        // Up to as much again for waiting in queues.
        let mixed = (from as u64 * 31 + to as u64 * 17 + count).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.latency_ns + (mixed >> 40) % self.latency_ns
    }

    fn overhead_ns(&self) -> u64 {
        self.overhead_ns
    }

    fn byte_ns(&self) -> f64 {
        self.byte_ns
    }
}

/// Contribution of a rank, computed on demand, because thousands of ranks share one memory here.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "TrialContribution", into = "TrialContribution")]
struct Yield {
    rank: u64,
    /// Begin and end of activity by the rank's own clock, ns.
    active: (i64, i64),
    deed: Option<TrialContribution>,
}

impl From<Yield> for TrialContribution {
    fn from(own: Yield) -> Self {
        let made = || deed(own.rank, own.active);
        own.deed.unwrap_or_else(made)
    }
}

impl From<TrialContribution> for Yield {
    fn from(deed: TrialContribution) -> Self {
        Self {
            rank: 0,
            active: (0, 0),
            deed: Some(deed),
        }
    }
}

impl Gathered for Yield {
    fn seen_through(self, clock: &OtherClock) -> Result<Self, ClockJumped> {
        TrialContribution::from(self)
            .seen_through(clock)
            .map(Self::from)
    }

    fn join(self, other: Self) -> Self {
        TrialContribution::from(self).join(other.into()).into()
    }
}

/// A trial of 10,000 reads, without a rate: every counter and all region properties have a value.
fn deed(rank: u64, (begins, ends): (i64, i64)) -> TrialContribution {
    const REQUESTS: u64 = 10_000;
    let seen = Residency {
        looked_bytes: BYTES,
        resident_bytes: BYTES / 7,
        dirty_bytes: Some(0),
        writeback_bytes: Some(0),
    };
    let device = DeviceStat {
        read_ios: REQUESTS,
        read_bytes: BYTES,
        busy_ms: 990,
        queue_ms: Some(3_870),
        ..DeviceStat::default()
    };
    let interval = |number: u64| Interval {
        start_ns: number * INTERVAL_NS,
        length_ns: INTERVAL_NS,
        done: reads(REQUESTS / 10, BYTES / 10),
        drive_millidegrees: None,
    };
    let outcome = Outcome {
        operations: PerOperation {
            read: Tally {
                requests: REQUESTS,
                bytes: BYTES,
                latency: latencies(rank),
                ..Tally::default()
            },
            ..PerOperation::default()
        },
        ended: Ended::Time,
        elapsed_ns: ends.abs_diff(begins),
        all_active_ns: ends.abs_diff(begins),
        clock_drift_ppm: 0.5,
        counters: Counters {
            process_io: Some(ProcessIo {
                rchar: BYTES,
                syscr: REQUESTS,
                read_bytes: BYTES,
                ..ProcessIo::default()
            }),
            usage: each(12_345_678),
            device: Some(device),
            bottom: Some(Bottom {
                stat: device,
                in_file: false,
                passes_on: false,
            }),
            pressure: each(1_234_567),
            ..Counters::default()
        },
        region: Region {
            before: Some(seen),
            after: Some(seen),
            extents: Some(Extents {
                looked_bytes: BYTES,
                hole_bytes: 0,
                unwritten_bytes: Some(0),
            }),
            ..Region::default()
        },
        series: Series {
            intervals: (0..10).map(interval).collect(),
        },
        cpus_used: Cpus::new([(rank % 64) as u32]),
        ..Outcome::default()
    };
    let mut deed = TrialContribution {
        outcome,
        shares: Shares {
            host: AccountShare::All,
            device: AccountShare::All,
            disks: AccountShare::All,
            nfs: AccountShare::All,
        },
        apart: true,
        region_bytes: BYTES,
        clients: Vec::new(),
        parts: vec![RankPart {
            rank,
            started: TimeInterval::exactly(begins),
            ended: TimeInterval::exactly(ends),
            done: reads(REQUESTS, BYTES),
            errors: 0,
        }],
    };
    // Each rank is on a separate host.
    let client = deed.client(rank as usize, Medium::Elsewhere, SharedAccounts::default());
    deed.clients.push(client);
    deed
}

/// Counters that all have this value.
fn each<T: Default + Serialize + DeserializeOwned>(value: u64) -> T {
    let plain = serde_json::to_value(T::default()).expect("JSON");
    let names = plain.as_object().expect("counters").keys().cloned();
    let counters: serde_json::Map<_, _> = names.zip(std::iter::repeat(value.into())).collect();
    serde_json::from_value(counters.into()).expect("a value for each")
}

fn reads(requests: u64, bytes: u64) -> PerOperation<Moved> {
    PerOperation {
        read: Moved { requests, bytes },
        ..PerOperation::default()
    }
}

/// Latencies of 10,000 requests, about 100 us with a tail.
fn latencies(rank: u64) -> LatencyHistogram {
    let mut histogram = new_latency_histogram();
    for i in 0..10_000u64 {
        let mixed = (i + rank * 7919).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        let tail = if mixed.is_multiple_of(100) { 8 } else { 1 };
        histogram.saturating_record(60_000 + mixed % 80_000 * tail);
    }
    histogram
}

struct Cost {
    traffic: Traffic,
    coordination_ns: i64,
    whole: MergedTrial<Yield>,
    message: usize,
}

fn rank(seat: VirtualLink) -> Option<Cost> {
    let number = seat.rank();
    let mut team = Team::new(Box::new(seat), FANOUT);
    let start = team.start(HABITS, Ok(())).expect("no rank is lost");
    let link = team.link();
    link.work_until(start);
    let begins = link.now_ns();
    link.work(TRIAL_NS);
    let ends = link.now_ns();
    let part = Contribution {
        activity: Activity::of([(begins, ends)].into_iter()).expect("a worker"),
        cumulative: CumulativeBytes::new(begins, [(ends, BYTES)].into_iter()),
        rest: Yield {
            rank: number as u64,
            active: (begins, ends),
            deed: None,
        },
    };
    let whole = team
        .conclude(HABITS, Some(part))
        .expect("no rank is lost")?;
    let message = link::encode(&whole.rest);
    Some(Cost {
        traffic: team.link().traffic(),
        coordination_ns: team.link().true_ns() - TRIAL_NS,
        message: message.len(),
        whole,
    })
}

fn cost(network_of: Network, ranks: usize) -> Cost {
    let clocks: Vec<_> = (0..ranks)
        .map(|rank| Skew {
            offset_ns: (rank as i64 * 7_919_777_777) % 10_000_000_000,
            drift_ppm: (rank * 37 % 100) as f64 - 50.0,
        })
        .collect();
    let seats = network(&clocks, network_of);
    let threads: Vec<_> = seats
        .into_iter()
        .map(|seat| {
            let thread = Builder::new().stack_size(STACK);
            thread.spawn(move || rank(seat)).expect("a thread")
        })
        .collect();
    let costs = threads.into_iter().map(thread::JoinHandle::join);
    let mut costs = costs.map(|cost| cost.expect("no panic"));
    let root = costs.next().flatten().expect("the root's");
    costs.for_each(drop);
    root
}

/// Network given by the arguments; `None` without any.
fn measured() -> Option<Network> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() {
        return None;
    }
    let numbers: Vec<f64> = words.iter().flat_map(|word| word.parse()).collect();
    let &[latency_ns, overhead_ns, byte_ns] = &numbers[..] else {
        panic!("three numbers are expected, as `clocks` prints them: {words:?}");
    };
    Some(Network {
        name: "measured",
        latency_ns: (latency_ns as u64).max(1),
        overhead_ns: overhead_ns as u64,
        byte_ns,
    })
}

fn main() {
    let networks = measured().map_or(NETWORKS.to_vec(), |network| vec![network]);
    for network in networks {
        println!(
            "\n{} ({} ns + {} ns/B, {} ns of CPU each way)\n",
            network.name, network.latency_ns, network.byte_ns, network.overhead_ns
        );
        println!(
            "| ranks | levels | messages | bytes | last message up | time per trial | start skew | bound of the clocks |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        for ranks in [2, 16, 64, 256, 1024, 4096, 10_000] {
            let cost = cost(network, ranks);
            let skew = cost.whole.activity.skew_ns();
            println!(
                "| {ranks} | {} | {} | {:.2} MB | {:.1} KB | {:.2} ms | at most {:.1} µs | {:.1} µs |",
                link::Tree::new(ranks, FANOUT).height(0),
                cost.traffic.messages,
                cost.traffic.bytes as f64 / 1e6,
                cost.message as f64 / 1e3,
                cost.coordination_ns as f64 / 1e6,
                skew.greatest / 1e3,
                cost.whole.activity.elapsed_ns().error() / 1e3,
            );
        }
    }
}
