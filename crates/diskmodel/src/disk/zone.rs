//! The order of a zone's blocks over its places.
//!
//! A place is a sector counted from the start of the zone, track by track. A slot is a position in the order of
//! blocks, reserved ones included. Slots go over the places in order and leave out spares and slipped places.
//! One formula and its inverse thus serve every way of sparing:
//!
//! - a unit of `unit` places has `slots` slots; its spares lie at its end or its front;
//! - slips within their unit move the following slots towards its spares;
//! - slips to the end move all following slots of the zone, over the spares of the units between.

use crate::definition::disk::{Geometry, Sparing, Zone};

/// Most sectors of a zone that are left out or replaced.
const LEFT_OUT_MAX: u64 = 1 << 24;

/// One zone, prepared for look-ups.
#[derive(Clone, Debug)]
pub(crate) struct ZoneMap {
    /// Places in the zone.
    pub(crate) places: u64,
    /// Slots at the front without data of the host.
    reserved: u64,
    /// Places of a unit.
    unit: u64,
    /// Slots of a whole unit with at most as many slips as spares.
    slots: u64,
    /// Spares at the front of each unit.
    front: u64,
    /// Whether slips are counted over the zone instead of within their unit.
    to_end: bool,
    /// Slipped places, ascending; with `to_end`, their positions in the order without spares.
    slips: Vec<u64>,
    /// Defective places and their replacements, ascending.
    defects: Vec<[u64; 2]>,
}

impl ZoneMap {
    pub(crate) fn new(geometry: &Geometry, zone: &Zone) -> Result<Self, String> {
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
            Sparing::None | Sparing::EndOfZone => (places, 0),
            Sparing::Tracks => (places, zone.spares * sectors),
            Sparing::Track => (sectors, zone.spares),
            Sparing::Cylinder
            | Sparing::CylinderSlipToEnd
            | Sparing::CylinderFront
            | Sparing::CylinderFrontSlipToEnd => (cylinder, zone.spares),
            Sparing::Range => (cylinder * u64::from(geometry.range.max(1)), zone.spares),
            Sparing::Zone | Sparing::ZoneSlipToEnd => (places, zone.spares),
        };
        if spares >= unit {
            return Err(format!(
                "zone of cylinders {first} to {last}: {spares} spares leave nothing of {unit} sectors"
            ));
        }
        let at_front = matches!(
            geometry.spares,
            Sparing::CylinderFront | Sparing::CylinderFrontSlipToEnd
        );
        let to_end = matches!(
            geometry.spares,
            Sparing::CylinderSlipToEnd
                | Sparing::CylinderFrontSlipToEnd
                | Sparing::ZoneSlipToEnd
                | Sparing::EndOfZone
        );
        let mut map = Self {
            places,
            reserved: zone.reserved,
            unit,
            slots: unit - spares,
            front: if at_front { spares } else { 0 },
            to_end,
            slips: Vec::new(),
            defects: Vec::new(),
        };
        // A slipped or defective track means all its sectors.
        let each = match geometry.spares {
            Sparing::Tracks => sectors,
            _ => 1,
        };
        map.leave_out(zone, each)
            .map_err(|why| format!("zone of cylinders {first} to {last}: {why}"))?;
        Ok(map)
    }

    /// Leaves out slipped places and replaces defective ones; each place that the zone names means `each`
    /// places.
    fn leave_out(&mut self, zone: &Zone, each: u64) -> Result<(), String> {
        let whole = |place: u64| place * each..(place + 1) * each;
        let inside = self.places / each;
        let is_inside = |place: &u64| *place < inside;
        let named = zone.slips.iter().chain(zone.defects.iter().flatten());
        if named.filter(|place| is_inside(place)).count() as u64 * each > LEFT_OUT_MAX {
            return Err(format!(
                "more than {LEFT_OUT_MAX} sectors slipped or replaced"
            ));
        }
        let mut slips: Vec<u64> = zone
            .slips
            .iter()
            .copied()
            .filter(is_inside)
            .flat_map(whole)
            .collect();
        slips.sort_unstable();
        slips.dedup();
        self.slips = match self.to_end {
            true => self.slips_to_end(&slips),
            false => self.slips_within(slips)?,
        };
        for [bad, good] in &zone.defects {
            if bad != good && is_inside(bad) && is_inside(good) {
                let sectors = whole(*bad).zip(whole(*good));
                self.defects.extend(sectors.map(|(bad, good)| [bad, good]));
            }
        }
        self.defects.sort_unstable();
        match self.slots_before(self.places) <= self.reserved {
            true => Err("holds no block".to_owned()),
            false => Ok(()),
        }
    }

    /// Positions of the slips in the order without spares; slips among the spares take no slot.
    fn slips_to_end(&self, slips: &[u64]) -> Vec<u64> {
        slips
            .iter()
            .filter(|&&p| self.in_order(p + 1) > self.in_order(p))
            .map(|&p| self.in_order(p))
            .collect()
    }

    /// The slips that move slots of their unit. A zone with more slips than spares loses blocks; a smaller unit cannot.
    fn slips_within(&mut self, mut slips: Vec<u64>) -> Result<Vec<u64>, String> {
        let (unit, front) = (self.unit, self.front);
        slips.retain(|p| p % unit >= front);
        if unit == self.places {
            let left = (unit - front).saturating_sub(slips.len() as u64);
            self.slots = self.slots.min(left);
            return Ok(slips);
        }
        let spares = (unit - self.slots) as usize;
        let mut units = slips.chunk_by(|a, b| a / unit == b / unit);
        match units.find_map(|of_unit| of_unit.get(spares)) {
            Some(slip) => Err(format!("more slips than spares at place {slip}")),
            None => Ok(slips),
        }
    }

    /// Blocks that the host can address.
    pub(crate) fn blocks(&self) -> u64 {
        self.slots_before(self.places) - self.reserved
    }

    /// Number of places before `place` that are not spares.
    fn in_order(&self, place: u64) -> u64 {
        let (unit, within) = (place / self.unit, place % self.unit);
        unit * self.slots + within.saturating_sub(self.front).min(self.slots)
    }

    /// Slots that lie before `place`.
    fn slots_before(&self, place: u64) -> u64 {
        if self.to_end {
            let order = self.in_order(place);
            return order - self.slips.partition_point(|&slip| slip < order) as u64;
        }
        let (start, slips) = self.unit_slips(place / self.unit);
        let front = self.front.saturating_sub(slips.len() as u64);
        let slipped = slips.partition_point(|&slip| slip < place) as u64;
        let usable = (place - start)
            .saturating_sub(front)
            .saturating_sub(slipped);
        start / self.unit * self.slots + usable.min(self.slots)
    }

    /// The start of a unit, and its slips. With spares at the front, slips move the unit's first block forward.
    fn unit_slips(&self, unit: u64) -> (u64, &[u64]) {
        let start = unit * self.unit;
        let first = self.slips.partition_point(|&slip| slip < start);
        let last = self.slips.partition_point(|&slip| slip < start + self.unit);
        (start, &self.slips[first..last])
    }

    /// The place of a slot, before replacement.
    fn place_of_slot(&self, slot: u64) -> u64 {
        if self.slips.is_empty() && self.slots == self.unit {
            return slot;
        }
        if self.to_end {
            let order = slot + shift(&self.slips, 0, slot);
            return order / self.slots * self.unit + self.front + order % self.slots;
        }
        let (start, slips) = self.unit_slips(slot / self.slots);
        let wanted = self.front.saturating_sub(slips.len() as u64) + slot % self.slots;
        start + wanted + shift(slips, start, wanted)
    }

    /// The final place of the zone's block `n`, after replacement.
    pub(crate) fn place(&self, n: u64) -> u64 {
        let place = self.place_of_slot(n + self.reserved);
        match self
            .defects
            .binary_search_by_key(&place, |defect| defect[0])
        {
            Ok(at) => self.defects[at][1],
            Err(_) => place,
        }
    }

    /// The place of block `n`, the number of consecutive blocks from there to the end of its track, and the number of sectors
    /// that they span.
    pub(crate) fn run(&self, n: u64, sectors: u64) -> (u64, u64, u64) {
        let slot = n + self.reserved;
        let place = self.place_of_slot(slot);
        let mut end = (place / sectors + 1) * sectors;
        if !self.defects.is_empty() {
            match self
                .defects
                .binary_search_by_key(&place, |defect| defect[0])
            {
                Ok(at) => return (self.defects[at][1], 1, 1),
                Err(next) => {
                    end = self
                        .defects
                        .get(next)
                        .map_or(end, |defect| defect[0].min(end))
                }
            }
        }
        let blocks = self.slots_before(end.min(self.places)) - slot;
        let span = if self.slips.is_empty() {
            blocks
        } else {
            self.place_of_slot(slot + blocks - 1) - place + 1
        };
        (place, blocks, span)
    }

    /// Number of blocks of the zone before `place`, without replaced ones.
    pub(crate) fn blocks_before(&self, place: u64) -> u64 {
        self.slots_before(place).saturating_sub(self.reserved)
    }
}

/// How far the slips, counted from `start`, move position `n`.
fn shift(slips: &[u64], start: u64, n: u64) -> u64 {
    let (mut low, mut high) = (0, slips.len());
    while low < high {
        let middle = (low + high) / 2;
        if slips[middle] - start - middle as u64 <= n {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low as u64
}
