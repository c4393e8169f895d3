//! A transport within one process in computed time: each rank is a thread, and its time advances only by
//! messages and by [`VirtualLink::work`]. Clocks and delays are made up, so that the ranks' findings can be
//! compared with the truth.
//!
//! A receive names its sender, so the outcome does not depend on the scheduling of the threads (Kahn,
//! Information Processing 74 (1974) 471-475).

#![allow(dead_code, reason = "each program uses a part")]

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use iolab_cluster::link::{Link, LossReason, LostRank};

/// A made-up clock: its reading at a moment of true time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Skew {
    /// Reading at time 0, ns.
    pub(crate) offset_ns: i64,
    /// Drift: excess of its rate, parts per million.
    pub(crate) drift_ppm: f64,
}

impl Skew {
    /// Reading at a moment of true time, ns.
    pub(crate) fn reading(self, true_ns: i64) -> i64 {
        self.offset_ns + true_ns + (true_ns as f64 * self.drift_ppm * 1e-6).round() as i64
    }
}

/// Time that a rank spends on sending or receiving, ns.
const OVERHEAD_NS: i64 = 500;
/// Time per byte of a message, ns.
const BYTE_NS: f64 = 0.1;

/// Delays between `least_ns` and `greatest_ns`, different for each pair of ranks and each direction: one part is
/// fixed per pair and direction, the rest varies per message.
pub(crate) struct Delays {
    pub(crate) least_ns: u64,
    pub(crate) greatest_ns: u64,
    pub(crate) seed: u64,
}

impl Delays {
    /// Transit time of message number `count` from one rank to another, ns.
    fn latency_ns(&self, from: usize, to: usize, count: u64) -> u64 {
        let range = (self.greatest_ns - self.least_ns).max(2);
        let of_way = scrambled(self.seed ^ (from as u64) << 40 ^ (to as u64) << 20);
        let of_message = scrambled(of_way ^ count);
        self.least_ns + of_way % (range / 2) + of_message % (range / 2)
    }
}

/// SplitMix64's output function.
pub(crate) fn scrambled(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// State shared by all ranks.
struct Shared {
    inboxes: Vec<Sender<Parcel>>,
    delays: Delays,
}

struct Parcel {
    from: usize,
    /// Arrival, true time; `None` means that nothing more will come.
    arrival: Option<i64>,
    message: Vec<u8>,
}

/// One rank's end of the network.
pub(crate) struct VirtualLink {
    shared: Arc<Shared>,
    rank: usize,
    clock: Skew,
    /// True time at this rank, ns.
    now: i64,
    inbox: Receiver<Parcel>,
    waiting: HashMap<usize, VecDeque<(i64, Vec<u8>)>>,
    silent: HashSet<usize>,
    sent: HashMap<usize, u64>,
}

/// Ends of a network with these clocks, one for each rank.
pub(crate) fn network(clocks: &[Skew], delays: Delays) -> Vec<VirtualLink> {
    let (inboxes, receivers): (Vec<_>, Vec<_>) = clocks.iter().map(|_| channel()).unzip();
    let shared = Arc::new(Shared { inboxes, delays });
    let seat = |(rank, (clock, inbox)): (usize, (&Skew, Receiver<Parcel>))| VirtualLink {
        shared: shared.clone(),
        rank,
        clock: *clock,
        now: 0,
        inbox,
        waiting: HashMap::new(),
        silent: HashSet::new(),
        sent: HashMap::new(),
    };
    clocks.iter().zip(receivers).enumerate().map(seat).collect()
}

impl VirtualLink {
    /// Advances true time at this rank.
    pub(crate) fn work(&mut self, ns: i64) {
        self.now += ns;
    }

    /// True time at this rank, ns.
    pub(crate) fn true_ns(&self) -> i64 {
        self.now
    }

    /// Lets true time pass until the clock of this rank shows `reading`; no time if it already does.
    pub(crate) fn work_until(&mut self, reading: i64) {
        let rate = 1.0 + self.clock.drift_ppm * 1e-6;
        let at = ((reading - self.clock.offset_ns) as f64 / rate).round() as i64;
        self.now = self.now.max(at);
    }

    /// Sets the clock of this rank forward.
    pub(crate) fn jump(&mut self, ns: i64) {
        self.clock.offset_ns += ns;
    }

    /// Never sends anything again, like a rank that was killed or stopped; waiting ranks notice that only by
    /// waiting.
    pub(crate) fn fall_silent(&self) {
        self.say_so();
    }

    fn say_so(&self) {
        for inbox in &self.shared.inboxes {
            // A rank that is gone need not be notified.
            let _ = inbox.send(Parcel {
                from: self.rank,
                arrival: None,
                message: Vec::new(),
            });
        }
    }
}

impl Drop for VirtualLink {
    /// A test that fails in one rank must not leave the others waiting.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.say_so();
        }
    }
}

impl Link for VirtualLink {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.inboxes.len()
    }

    fn now_ns(&self) -> i64 {
        self.clock.reading(self.now)
    }

    fn send(&mut self, to: usize, message: &[u8], _patience: Duration) -> Result<(), LostRank> {
        let shared = &self.shared;
        let count = self.sent.entry(to).or_default();
        self.now += OVERHEAD_NS;
        let way =
            shared.delays.latency_ns(self.rank, to, *count) as f64 + message.len() as f64 * BYTE_NS;
        *count += 1;
        // A rank that is gone receives nothing, as over a real network.
        let _ = shared.inboxes[to].send(Parcel {
            from: self.rank,
            arrival: Some(self.now + way as i64),
            message: message.to_vec(),
        });
        Ok(())
    }

    fn receive(&mut self, from: usize, timeout: Duration) -> Result<Vec<u8>, LostRank> {
        let latest = self.now + timeout.as_nanos() as i64;
        loop {
            let queue = self.waiting.entry(from).or_default();
            if let Some((arrival, message)) = queue.pop_front() {
                if arrival <= latest {
                    self.now = self.now.max(arrival) + OVERHEAD_NS;
                    return Ok(message);
                }
                queue.push_front((arrival, message));
                break;
            }
            if self.silent.contains(&from) {
                break;
            }
            // The network lives as long as this end, so there is always a sender.
            let Ok(parcel) = self.inbox.recv() else { break };
            match parcel.arrival {
                Some(at) => {
                    let queue = self.waiting.entry(parcel.from).or_default();
                    queue.push_back((at, parcel.message));
                }
                None => {
                    self.silent.insert(parcel.from);
                }
            }
        }
        self.now = latest;
        Err(LostRank {
            rank: from,
            why: LossReason::Silent(timeout),
        })
    }
}
