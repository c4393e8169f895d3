//! Ranks on threads.

use std::thread;

use crate::virtual_network::{Delays, Skew, VirtualLink, network};
use iolab_cluster::link::Team;

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
