//! Times of the controller and the bus, in nanoseconds.

use crate::definition::disk::{Bus, Overhead};

use crate::model::{MILLISECOND, Ns, from_ms};

/// Times of the controller and the bus. Pairs are for a request after a read, and after a write.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    pub(super) request: Ns,
    pub(super) read_hit: [Ns; 2],
    pub(super) read_miss: [Ns; 2],
    pub(super) write_hit: [Ns; 2],
    pub(super) write_miss: [Ns; 2],
    pub(super) read_complete: Ns,
    pub(super) write_complete: Ns,
    pub(super) preparation: Ns,
    pub(super) reselect: Ns,
    pub(super) reselect_again: Ns,
    pub(super) read_disconnect: [Ns; 2],
    pub(super) write_disconnect: Ns,
    pub(super) extra: Option<Extra>,
    pub(super) seek_least: Ns,
    pub(super) read_block: Ns,
    pub(super) write_block: Ns,
}

/// The extra disconnect of a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extra {
    /// Time from the command until the bus is released.
    pub(super) leave: Ns,
    /// Time off the bus.
    pub(super) pause: Ns,
    /// Time to leave the bus after the data.
    pub(super) leave_again: Ns,
    /// Time from the command until the heads may move.
    pub(super) seek: Ns,
}

impl Costs {
    pub(super) fn new(overhead: &Overhead, bus: &Bus) -> Self {
        let scale = if overhead.scale == 0.0 {
            1.0
        } else {
            overhead.scale
        };
        let one = |ms: f64| from_ms(ms * scale);
        let two = |pair: [f64; 2]| pair.map(one);
        let o = overhead;
        Self {
            request: one(o.request),
            read_hit: two(o.read_hit),
            read_miss: two(o.read_miss),
            write_hit: two(o.write_hit),
            write_miss: two(o.write_miss),
            read_complete: one(o.read_complete),
            write_complete: one(o.write_complete),
            preparation: one(o.data_preparation),
            reselect: one(o.reselect),
            reselect_again: one(o.reselect_again),
            read_disconnect: two(o.read_disconnect),
            write_disconnect: one(o.write_disconnect),
            extra: o.extra_disconnect.map(|extra| Extra {
                leave: one(extra.command + extra.disconnect),
                pause: (extra.pause * MILLISECOND).round() as Ns,
                leave_again: one(extra.disconnect_again),
                seek: one(extra.command + extra.seek_delay),
            }),
            seek_least: from_ms(o.write_seek_least),
            read_block: from_ms(bus.read_block_ms),
            write_block: from_ms(bus.write_block_ms),
        }
    }
}
