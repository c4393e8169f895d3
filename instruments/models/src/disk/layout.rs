//! Positions of blocks, and the time until a sector is under the head.
//!
//! A place is a sector counted from the start of the zone, track by track. A slot is a position in the order of
//! blocks, reserved ones included. Slots go over the places in order and leave out spares and slipped places.
//! One formula and its inverse thus serve every way of sparing: a unit of `unit` places has `slots` slots with its spares at its
//! end, and slips within the unit move the following slots towards its spares.

use std::sync::{Arc, Mutex, PoisonError};

use super::super::{MILLISECOND, from_ms};
use crate::definition::parts::{Geometry, Mechanics, Seek, Sparing, Zone};
use iolab_workload::virtual_disk::Ns;

/// The position of a sector on the disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SectorPosition {
    /// Cylinder, counted from the outermost.
    pub cylinder: u32,
    /// Head.
    pub head: u32,
    /// Sector of the track, counted from the first of the track.
    pub sector: u32,
    /// Angle of the sector's start after the index, in revolutions, 0 up to 1.
    pub angle: f64,
}

/// Consecutive blocks on one track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Position of the first block.
    pub place: SectorPosition,
    /// Number of blocks, to the end of the track.
    pub blocks: u64,
    /// Number of sectors; more than `blocks` where a sector between them is left out.
    pub span: u64,
    /// Sectors of the track.
    pub sectors: u32,
}

/// Maps blocks to positions.
#[derive(Clone, Debug)]
pub struct Layout {
    surfaces: u64,
    cylinders: u32,
    serpentine: bool,
    /// Whether slips change the start angle of later tracks.
    skewed_by_slips: bool,
    zones: Vec<ZoneMap>,
    /// First block of each zone.
    first: Vec<u64>,
    blocks: u64,
}

impl Layout {
    /// The layout of a geometry.
    ///
    /// # Errors
    ///
    /// A zone that is outside the disk, is empty, or has more slips than spares; in words.
    pub fn new(geometry: &Geometry) -> Result<Self, String> {
        let mut layout = Self {
            surfaces: u64::from(geometry.surfaces),
            cylinders: geometry.cylinders,
            serpentine: geometry.serpentine,
            skewed_by_slips: geometry.spares == Sparing::Track,
            zones: Vec::new(),
            first: Vec::new(),
            blocks: 0,
        };
        for zone in &geometry.zone {
            let map = ZoneMap::new(geometry, zone)?;
            layout.first.push(layout.blocks);
            layout.blocks += map.blocks();
            layout.zones.push(map);
        }
        if layout.zones.is_empty() {
            return Err("a disk needs a zone".into());
        }
        Ok(layout)
    }

    /// Blocks that the host can address.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Cylinders of the disk.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    fn zone(&self, block: u64) -> (&ZoneMap, u64) {
        let at = self.first.partition_point(|&first| first <= block) - 1;
        (&self.zones[at], self.first[at])
    }

    /// The position of a block. `block` must be less than [`Layout::blocks`].
    pub fn place(&self, block: u64) -> SectorPosition {
        let (zone, first) = self.zone(block);
        self.at(zone, zone.place(block - first))
    }

    /// The blocks from `block` on that the head can access without a gap.
    pub fn run(&self, block: u64) -> Run {
        let (zone, first) = self.zone(block);
        let (place, blocks, span) = zone.run(block - first);
        Run {
            place: self.at(zone, place),
            blocks,
            span,
            sectors: zone.sectors as u32,
        }
    }

    /// The first block on the track of `block`.
    pub fn track_start(&self, block: u64) -> u64 {
        let (zone, first) = self.zone(block);
        let place = zone.place(block - first);
        (first + zone.blocks_before(place / zone.sectors * zone.sectors)).min(block)
    }

    /// One past the last block on the track of `block`.
    pub fn track_end(&self, block: u64) -> u64 {
        let (zone, first) = self.zone(block);
        let place = zone.place(block - first);
        let next = (place / zone.sectors + 1) * zone.sectors;
        (first + zone.blocks_before(next)).max(block + 1)
    }

    /// Cylinder, head, sector and angle of a place. The start of each track is offset against the previous one by the track skew,
    /// or by the cylinder skew where the cylinder changes.
    fn at(&self, zone: &ZoneMap, place: u64) -> SectorPosition {
        let (track, sector) = (place / zone.sectors, place % zone.sectors);
        let (cylinder, turn) = (track / self.surfaces, track % self.surfaces);
        let before = |&slip: &u64| slip < track * zone.sectors;
        let slipped = match self.skewed_by_slips {
            true => zone.slips.partition_point(before),
            false => 0,
        };
        let behind = zone.offset
            + zone.track_skew * (turn + cylinder * (self.surfaces - 1)) as f64
            + zone.cylinder_skew * cylinder as f64
            + (slipped as u64 + sector) as f64;
        let turns = behind / zone.sectors as f64;
        let back = self.serpentine && cylinder % 2 == 1;
        let head = if back { self.surfaces - 1 - turn } else { turn };
        SectorPosition {
            cylinder: zone.first_cylinder + cylinder as u32,
            head: head as u32,
            sector: sector as u32,
            angle: turns - f64::from(turns as u32),
        }
    }
}

/// Most sectors of a zone that are left out.
const LEFT_OUT_MAX: u64 = 1 << 24;

/// One zone, prepared for look-ups.
#[derive(Clone, Debug)]
struct ZoneMap {
    first_cylinder: u32,
    sectors: u64,
    offset: f64,
    track_skew: f64,
    cylinder_skew: f64,
    /// Places in the zone.
    places: u64,
    /// Slots at the front without data of the host.
    reserved: u64,
    /// Places of a unit.
    unit: u64,
    /// Slots of a whole unit with at most as many slips as spares.
    slots: u64,
    /// Slipped places, ascending.
    slips: Vec<u64>,
}

impl ZoneMap {
    fn new(geometry: &Geometry, zone: &Zone) -> Result<Self, String> {
        let sectors = u64::from(zone.sectors);
        let [first, last] = zone.cylinders;
        if first > last || last >= geometry.cylinders || zone.sectors == 0 || geometry.surfaces == 0
        {
            return Err(format!(
                "zone of cylinders {first} to {last}: not a range of the disk's cylinders, or empty tracks"
            ));
        }
        let cylinder = sectors * u64::from(geometry.surfaces);
        let places = cylinder * u64::from(last - first + 1);
        let (unit, spares) = match geometry.spares {
            Sparing::None => (places, 0),
            Sparing::Tracks => (places, zone.spares * sectors),
            Sparing::Track => (sectors, zone.spares),
            Sparing::Range => (cylinder * u64::from(geometry.range.max(1)), zone.spares),
            Sparing::Zone => (places, zone.spares),
        };
        if spares >= unit {
            return Err(format!(
                "zone of cylinders {first} to {last}: {spares} spares leave nothing of {unit} sectors"
            ));
        }
        let turn = f64::from(zone.sectors);
        let mut map = Self {
            first_cylinder: first,
            sectors,
            offset: zone.offset.rem_euclid(turn),
            track_skew: zone.track_skew.rem_euclid(turn),
            cylinder_skew: zone.cylinder_skew.rem_euclid(turn),
            places,
            reserved: zone.reserved,
            unit,
            slots: unit - spares,
            slips: Vec::new(),
        };
        // A slipped track means all its sectors.
        let each = match geometry.spares {
            Sparing::Tracks => sectors,
            _ => 1,
        };
        map.leave_out(zone, each)
            .map_err(|why| format!("zone of cylinders {first} to {last}: {why}"))?;
        Ok(map)
    }

    /// Leaves out slipped places; each place that the zone names means `each` places. A zone with more slips than spares loses
    /// blocks; a smaller unit cannot.
    fn leave_out(&mut self, zone: &Zone, each: u64) -> Result<(), String> {
        let slips = zone.slips.iter().copied();
        let slips = slips.filter(|place| *place < self.places / each);
        if slips.clone().count() as u64 * each > LEFT_OUT_MAX {
            return Err(format!("more than {LEFT_OUT_MAX} sectors slipped"));
        }
        self.slips = slips
            .flat_map(|place| place * each..(place + 1) * each)
            .collect();
        self.slips.sort_unstable();
        self.slips.dedup();
        let spares = (self.unit - self.slots) as usize;
        if self.unit == self.places {
            let left = self.unit.saturating_sub(self.slips.len() as u64);
            self.slots = self.slots.min(left);
        } else {
            let mut units = self.slips.chunk_by(|a, b| a / self.unit == b / self.unit);
            if let Some(slip) = units.find_map(|of_unit| of_unit.get(spares)) {
                return Err(format!("more slips than spares at place {slip}"));
            }
        }
        match self.slots_before(self.places) <= self.reserved {
            true => Err("holds no block".to_owned()),
            false => Ok(()),
        }
    }

    /// Blocks that the host can address.
    fn blocks(&self) -> u64 {
        self.slots_before(self.places) - self.reserved
    }

    /// Slots that lie before `place`.
    fn slots_before(&self, place: u64) -> u64 {
        let (start, slips) = self.unit_slips(place / self.unit);
        let slipped = slips.partition_point(|&slip| slip < place) as u64;
        let usable = (place - start).saturating_sub(slipped);
        start / self.unit * self.slots + usable.min(self.slots)
    }

    /// The start of a unit, and its slips.
    fn unit_slips(&self, unit: u64) -> (u64, &[u64]) {
        let start = unit * self.unit;
        let first = self.slips.partition_point(|&slip| slip < start);
        let last = self.slips.partition_point(|&slip| slip < start + self.unit);
        (start, &self.slips[first..last])
    }

    /// The place of a slot.
    fn place_of_slot(&self, slot: u64) -> u64 {
        if self.slips.is_empty() && self.slots == self.unit {
            return slot;
        }
        let (start, slips) = self.unit_slips(slot / self.slots);
        let wanted = slot % self.slots;
        start + wanted + shift(slips, start, wanted)
    }

    /// The place of the zone's block `n`.
    fn place(&self, n: u64) -> u64 {
        self.place_of_slot(n + self.reserved)
    }

    /// The place of block `n`, the number of consecutive blocks from there to the end of its track, and the number of sectors
    /// that they span.
    fn run(&self, n: u64) -> (u64, u64, u64) {
        let slot = n + self.reserved;
        let place = self.place_of_slot(slot);
        let end = (place / self.sectors + 1) * self.sectors;
        let blocks = self.slots_before(end.min(self.places)) - slot;
        let span = if self.slips.is_empty() {
            blocks
        } else {
            self.place_of_slot(slot + blocks - 1) - place + 1
        };
        (place, blocks, span)
    }

    /// Number of blocks of the zone before `place`.
    fn blocks_before(&self, place: u64) -> u64 {
        self.slots_before(place).saturating_sub(self.reserved)
    }
}

/// How far the slips, counted from `start`, move position `n`.
fn shift(slips: &[u64], start: u64, n: u64) -> u64 {
    let is_behind = |at: u64| {
        let slip = slips.get(at as usize);
        slip.is_none_or(|slip| slip - start - at > n)
    };
    first_true(0, slips.len() as u64, is_behind)
}

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
    /// Seek time by distance; empty where accesses take a constant time.
    seeks: Arc<[u32]>,
    head_switch: Ns,
    settle: i64,
    constant: Option<Ns>,
}

impl Arm {
    /// The mechanics of a disk with `cylinders` cylinders.
    ///
    /// # Errors
    ///
    /// A message about a curve without points, or with negative times.
    pub fn new(mechanics: &Mechanics, cylinders: u32) -> Result<Self, String> {
        let seeks = match mechanics.constant_access_ms {
            Some(_) => Arc::default(),
            None => seek_table(&mechanics.seek, cylinders)?,
        };
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

/// A curve, a number of cylinders, and the seek time by distance that follows from them.
type SeekTable = (Seek, u32, Arc<[u32]>);

/// The table of the last disk: each trial of a run makes a new disk of the same definition, and a disk of today has 300,000 distances.
static LAST_TABLE: Mutex<Option<SeekTable>> = Mutex::new(None);

/// Seek time by distance.
fn seek_table(seek: &Seek, cylinders: u32) -> Result<Arc<[u32]>, String> {
    let mut last = LAST_TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, over, table)) = &*last
        && of == seek
        && *over == cylinders
    {
        return Ok(table.clone());
    }
    let mut table = vec![0];
    for distance in 1..cylinders {
        let ms = seek_ms(seek, distance, cylinders)?;
        let ns = ms * MILLISECOND;
        if !(0.0..4e9).contains(&ns) {
            return Err(format!("seek over {distance} cylinders takes {ms} ms"));
        }
        table.push(ns.round() as u32);
    }
    let table: Arc<[u32]> = table.into();
    *last = Some((seek.clone(), cylinders, table.clone()));
    Ok(table)
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

/// The least of `low..=high` that satisfies a condition, which must hold for `high` and be monotone.
pub(super) fn first_true(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = (low + high) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
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
