//! A network with different delays for each pair of ranks and each direction.

use std::thread;

use crate::virtual_network::{Costs, Skew, VirtualLink, network};
use iolab_cluster::link::Team;

/// Delays between `least_ns` and `greatest_ns`: one part is fixed per pair and direction, the rest varies per
/// message.
pub(crate) struct Delays {
    pub(crate) least_ns: u64,
    pub(crate) greatest_ns: u64,
    pub(crate) seed: u64,
}

impl Costs for Delays {
    fn latency_ns(&self, from: usize, to: usize, count: u64) -> u64 {
        let range = (self.greatest_ns - self.least_ns).max(2);
        let of_way = scrambled(self.seed ^ (from as u64) << 40 ^ (to as u64) << 20);
        let of_message = scrambled(of_way ^ count);
        self.least_ns + of_way % (range / 2) + of_message % (range / 2)
    }

    fn overhead_ns(&self) -> u64 {
        500
    }

    fn byte_ns(&self) -> f64 {
        0.1
    }
}

/// SplitMix64's output function.
pub(crate) fn scrambled(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Runs each rank's part on a separate thread; results in the order of ranks.
pub(crate) fn together<R: Send, E: Send>(
    clocks: &[Skew],
    delays: Delays,
    fanout: usize,
    part: impl Fn(Team<VirtualLink>) -> Result<R, E> + Sync,
) -> Vec<Result<R, E>> {
    let seats = network(clocks, delays);
    thread::scope(|scope| {
        let part = &part;
        let ranks: Vec<_> = seats
            .into_iter()
            .map(|seat| scope.spawn(move || part(Team::new(Box::new(seat), fanout))))
            .collect();
        let joined = ranks.into_iter().map(|rank| rank.join().expect("no panic"));
        joined.collect()
    })
}
