//! Heads and platters: how long until a sector is under the head.
//!
//! Times of the controller and the bus, in nanoseconds.
//!
//! A bus shared by commands and data.

use super::layout::{Run, SectorPosition};
use crate::definition::disk::{Bus, Mechanics, Overhead, Seek};
use crate::model::{MILLISECOND, Ns, from_ms};

/// Tolerance for the rounding of times to 1 ns: the head may arrive this much after a sector's start and still read it.
const SLACK: Ns = 50;

/// The position of the heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Cylinder.
    pub cylinder: u32,
    /// The active head.
    pub head: u32,
}

impl From<SectorPosition> for Head {
    fn from(place: SectorPosition) -> Self {
        Self {
            cylinder: place.cylinder,
            head: place.head,
        }
    }
}

/// The mechanics of a disk in a form for fast computation.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Time of a revolution.
    pub period: Ns,
    /// Seek time by distance.
    seeks: Vec<u32>,
    head_switch: Ns,
    settle: i64,
    constant: Option<Ns>,
}

impl Arm {
    /// The mechanics of a disk with `cylinders` cylinders.
    ///
    /// # Errors
    ///
    /// A message about a speed of zero, a curve without points, or a curve with negative times.
    pub fn new(mechanics: &Mechanics, cylinders: u32) -> Result<Self, String> {
        if !(mechanics.rpm.is_finite() && mechanics.rpm > 0.0) {
            return Err(format!("rpm = {}: not a speed", mechanics.rpm));
        }
        // A constant access time replaces the times of seeks.
        let distances = match mechanics.constant_access_ms {
            Some(_) => 1..1,
            None => 1..cylinders.max(1),
        };
        let mut seeks = vec![0];
        for distance in distances {
            let ms = seek_ms(&mechanics.seek, distance, cylinders)?;
            let ns = ms * MILLISECOND;
            if !(0.0..4e9).contains(&ns) {
                return Err(format!("seek over {distance} cylinders takes {ms} ms"));
            }
            seeks.push(ns.round() as u32);
        }
        Ok(Self {
            period: (60e9 / mechanics.rpm).round() as Ns,
            seeks,
            head_switch: from_ms(mechanics.head_switch_ms),
            settle: (mechanics.write_settle_ms * MILLISECOND).round() as i64,
            constant: mechanics.constant_access_ms.map(from_ms),
        })
    }

    /// Time to move to a track: the longer of seek and change of head, and for a write that moves also the settling.
    pub fn reposition(&self, from: Head, to: Head, write: bool) -> Ns {
        if self.constant.is_some() {
            return 0;
        }
        let seek = Ns::from(self.seeks[from.cylinder.abs_diff(to.cylinder) as usize]);
        let switch = if from.head == to.head {
            0
        } else {
            self.head_switch
        };
        let time = seek.max(switch);
        if time == 0 || !write {
            time
        } else {
            time.saturating_add_signed(self.settle)
        }
    }

    /// Time from `at` until the angle passes the head, which is on the track.
    pub fn wait(&self, at: Ns, angle: f64) -> Ns {
        if let Some(constant) = self.constant {
            return constant;
        }
        let target = (angle * self.period as f64 + 0.5) as Ns;
        let wait = (target + self.period - at % self.period) % self.period;
        if wait + SLACK > self.period { 0 } else { wait }
    }

    /// Time in which `sectors` sectors pass the head, on a track of `of` sectors.
    pub fn pass(&self, sectors: u64, of: u32) -> Ns {
        if self.constant.is_some() {
            return 0;
        }
        sectors * self.period / u64::from(of)
    }

    /// Rotation since the start of the run last passed the head, in sectors rounded up. Where it is within the
    /// run, it is the index of the first sector of the run that the head can access.
    pub fn inside(&self, at: Ns, run: &Run) -> u64 {
        if self.constant.is_some() {
            return 0;
        }
        let wait = self.wait(at, run.place.angle);
        if wait == 0 {
            return 0;
        }
        let since = self.period - wait;
        (since * u64::from(run.sectors)).div_ceil(self.period)
    }

    /// Whether the model follows the angle of the platters.
    pub fn follows_rotation(&self) -> bool {
        self.constant.is_none()
    }
}

/// Time of a seek, in ms.
fn seek_ms(seek: &Seek, distance: u32, cylinders: u32) -> Result<f64, String> {
    let d = f64::from(distance);
    let n = f64::from(cylinders);
    Ok(match seek {
        Seek::Measured(points) => measured(points, d)?,
        Seek::Curve(curve) => {
            if let Some(ms) = curve.first.get(distance as usize - 1) {
                *ms
            } else if distance < curve.limit {
                curve.short[0] + curve.short[1] * d.sqrt()
            } else {
                curve.long[0] + curve.long[1] * d
            }
        }
        Seek::Lee([one, average, full]) => {
            let root = (-10.0 * one + 15.0 * average - 5.0 * full) / (3.0 * n.sqrt());
            let line = (7.0 * one - 15.0 * average + 8.0 * full) / (3.0 * n);
            root * (d - 1.0).sqrt() + line * (d - 1.0) + one
        }
    })
}

/// Linear interpolation between measured points: the first value before them, the last line beyond.
fn measured(points: &[[f64; 2]], d: f64) -> Result<f64, String> {
    let Some(first) = points.first() else {
        return Err("the measured seek curve has no points".into());
    };
    let next = points.partition_point(|point| point[0] < d);
    if next == 0 || points.len() == 1 {
        return Ok(first[1]);
    }
    let [x0, y0] = points[next.min(points.len() - 1) - 1];
    let [x1, y1] = points[next.min(points.len() - 1)];
    if x1 <= x0 {
        return Err(format!(
            "the measured seek curve goes back from {x0} to {x1} cylinders"
        ));
    }
    Ok(y0 + (y1 - y0) * (d - x0) / (x1 - x0))
}

/// Times of the controller and the bus. Pairs are for a request after a read, and after a write.
#[derive(Clone, Debug)]
pub(super) struct Costs {
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
    pub(super) fn new(o: &Overhead, bus: &Bus) -> Self {
        Self {
            read_hit: o.read_hit.map(from_ms),
            read_miss: o.read_miss.map(from_ms),
            write_hit: o.write_hit.map(from_ms),
            write_miss: o.write_miss.map(from_ms),
            read_complete: from_ms(o.read_complete),
            write_complete: from_ms(o.write_complete),
            preparation: from_ms(o.data_preparation),
            reselect: from_ms(o.reselect),
            reselect_again: from_ms(o.reselect_again),
            read_disconnect: o.read_disconnect.map(from_ms),
            write_disconnect: from_ms(o.write_disconnect),
            extra: o.extra_disconnect.map(|extra| Extra {
                leave: from_ms(extra.command + extra.disconnect),
                pause: from_ms(extra.pause),
                leave_again: from_ms(extra.disconnect_again),
                seek: from_ms(extra.command + extra.seek_delay),
            }),
            seek_least: from_ms(o.write_seek_least),
            read_block: from_ms(bus.read_block_ms),
            write_block: from_ms(bus.write_block_ms),
        }
    }
}

/// The times at which the bus is in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Timetable {
    /// Used spans in order; none had ended at the last call.
    taken: Vec<(Ns, Ns)>,
}

impl Timetable {
    /// Removes spans that ended by `now`.
    pub(super) fn forget(&mut self, now: Ns) {
        self.taken.retain(|span| span.1 > now);
    }

    /// The first time from `at` on at which the bus is free for `length`.
    pub(super) fn fit(&self, at: Ns, length: Ns) -> Ns {
        let mut start = at;
        for &(from, until) in &self.taken {
            if from < start + length.max(1) && until > start {
                start = until;
            }
        }
        start
    }

    /// Uses the bus from `from` to `until`.
    pub(super) fn take(&mut self, from: Ns, until: Ns) {
        if until > from {
            let at = self.taken.partition_point(|span| span.0 <= from);
            self.taken.insert(at, (from, until));
        }
    }
}
