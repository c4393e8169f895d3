//! What coordinating a trial costs as ranks grow, on networks that are computed: the tables of docs/CLUSTER.md.
//!
//!     cargo run --release -p iolab-cluster --example cost
//!
//! Every rank runs the code that a run uses, on a thread of its own, in virtual time.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::thread::{self, Builder};
use std::time::Duration;

use iolab_cluster::clock::{ClockJumped, OtherClock};
use iolab_cluster::histogram;
use iolab_cluster::link::Link;
use iolab_cluster::span::{Activity, CumulativeBytes};
use iolab_cluster::team::{Gathered, Team};
use iolab_cluster::tree::FANOUT;
use iolab_cluster::trial::{Habits, Part, Whole};
use iolab_cluster::virtual_network::{Costs, Seat, Skew, Traffic, network};
use iolab_cluster::wire::{Reader, Writer};
use iolab_spec::histogram::{LatencyHistogram, new_latency_histogram};

const HABITS: Habits = Habits {
    rounds: 8,
    patience: Duration::from_secs(10),
    trial: Duration::from_secs(100),
};
/// A trial's I/O, ns.
const TRIAL_NS: i64 = 1_000_000_000;
/// Stack of a rank, bytes.
const STACK: usize = 128 << 10;

#[derive(Clone, Copy)]
struct Network {
    name: &'static str,
    latency_ns: u64,
    overhead_ns: u64,
    byte_ns: f64,
}

/// Latency of a message, time of the CPU for it, and time of a byte: what MPI shows on 100 Gbit/s InfiniBand, and over TCP
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
        // Up to as much again is waiting in queues.
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

/// What a rank sends of a trial: its latencies, which are merged on the way, and 6 numbers of its own, which are not.
struct Yield {
    /// Of the first rank alone they are made up when they are needed: thousands of ranks share one memory here.
    latency: Option<LatencyHistogram>,
    ranks: Vec<[u64; 6]>,
}

impl Yield {
    fn first_rank(&self) -> usize {
        self.ranks[0][0] as usize
    }
}

impl Gathered for Yield {
    fn write(&self, to: &mut Writer) {
        match &self.latency {
            Some(latency) => histogram::write(latency, to),
            None => histogram::write(&latencies(self.first_rank()), to),
        }
        to.number(self.ranks.len() as u64);
        self.ranks
            .iter()
            .flatten()
            .for_each(|number| to.number(*number));
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let latency = Some(histogram::read(from)?);
        let mut ranks = vec![[0; 6]; from.length()?];
        for number in ranks.iter_mut().flatten() {
            *number = from.number()?;
        }
        Some(Self { latency, ranks })
    }

    fn seen_through(self, _clock: &OtherClock) -> Result<Self, ClockJumped> {
        Ok(self)
    }

    fn join(mut self, other: Self) -> Self {
        let first = self.first_rank();
        let sum = self.latency.get_or_insert_with(|| latencies(first));
        if let Some(latency) = &other.latency {
            sum.add(latency).expect("the same bounds");
        }
        self.ranks.extend(other.ranks);
        self
    }
}

/// 10,000 requests of about 100 us with a tail.
fn latencies(rank: usize) -> LatencyHistogram {
    let mut histogram = new_latency_histogram();
    for i in 0..10_000u64 {
        let mixed = (i + rank as u64 * 7919).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        let tail = if mixed.is_multiple_of(100) { 8 } else { 1 };
        histogram.saturating_record(60_000 + mixed % 80_000 * tail);
    }
    histogram
}

struct Cost {
    traffic: Traffic,
    coordination_ns: i64,
    whole: Whole<Yield>,
    message: usize,
}

fn rank(seat: Seat) -> Option<Cost> {
    let number = seat.rank();
    let mut team = Team::new(seat, FANOUT);
    let start = team.start(HABITS, Ok(())).expect("no rank is lost");
    let link = team.link();
    link.work_until(start);
    let begins = link.now_ns();
    link.work(TRIAL_NS);
    let ends = link.now_ns();
    let part = Part {
        activity: Activity::of([(begins, ends)].into_iter()).expect("a worker"),
        cumulative: CumulativeBytes::new(begins, [(ends, 1 << 30)].into_iter()),
        bytes: 1 << 30,
        rest: Yield {
            latency: None,
            ranks: vec![[
                number as u64,
                10_000,
                1 << 30,
                1_000_000_000,
                12_345,
                50_000,
            ]],
        },
    };
    let whole = team
        .conclude(HABITS, Some(part))
        .expect("no rank is lost")?;
    let mut message = Writer::default();
    whole.rest.write(&mut message);
    Some(Cost {
        traffic: team.link().traffic(),
        coordination_ns: team.link().true_ns() - TRIAL_NS,
        message: message.into_bytes().len(),
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

fn main() {
    for network in NETWORKS {
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
                "| {ranks} | {} | {} | {:.2} MB | {:.1} KB | {:.2} ms | at most {:.1} us | {:.1} us |",
                iolab_cluster::tree::Tree::new(ranks, FANOUT).height(0),
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
