//! The placement of blocks: cylinder, head, sector and angle.

use crate::definition::disk::{Geometry, Sparing, TrackOrder};

use super::zone::ZoneMap;

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
    /// Number of blocks, to the end of the track or to a replaced sector.
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
    order: TrackOrder,
    skewed_by: Skewed,
    zones: Vec<Placed>,
    /// First block of each zone.
    first: Vec<u64>,
    blocks: u64,
}

/// Slips that change the start angle of later tracks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Skewed {
    No,
    ByTrack,
    ByCylinder,
}

#[derive(Clone, Debug)]
struct Placed {
    map: ZoneMap,
    first_cylinder: u32,
    sectors: u64,
    offset: f64,
    track_skew: f64,
    cylinder_skew: f64,
    /// Slipped sectors, ascending.
    slips: Vec<u64>,
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
            order: geometry.order,
            skewed_by: match geometry.spares {
                Sparing::Track => Skewed::ByTrack,
                Sparing::Cylinder
                | Sparing::CylinderSlipToEnd
                | Sparing::CylinderFront
                | Sparing::CylinderFrontSlipToEnd => Skewed::ByCylinder,
                _ => Skewed::No,
            },
            zones: Vec::new(),
            first: Vec::new(),
            blocks: 0,
        };
        for zone in &geometry.zone {
            let map = ZoneMap::new(geometry, zone)?;
            layout.first.push(layout.blocks);
            layout.blocks += map.blocks();
            let sectors = f64::from(zone.sectors);
            let mut slips = zone.slips.clone();
            slips.sort_unstable();
            layout.zones.push(Placed {
                map,
                first_cylinder: zone.cylinders[0],
                sectors: u64::from(zone.sectors),
                offset: zone.offset.rem_euclid(sectors),
                track_skew: zone.track_skew.rem_euclid(sectors),
                cylinder_skew: zone.cylinder_skew.rem_euclid(sectors),
                slips,
            });
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

    fn zone(&self, block: u64) -> (&Placed, u64) {
        let at = self.first.partition_point(|&first| first <= block) - 1;
        (&self.zones[at], self.first[at])
    }

    /// The position of a block. `block` must be less than [`Layout::blocks`].
    pub fn place(&self, block: u64) -> SectorPosition {
        let (zone, first) = self.zone(block);
        self.at(zone, zone.map.place(block - first))
    }

    /// The blocks from `block` on that the head can access without a gap.
    pub fn run(&self, block: u64) -> Run {
        let (zone, first) = self.zone(block);
        let (place, blocks, span) = zone.map.run(block - first, zone.sectors);
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
        let place = zone.map.place(block - first);
        (first + zone.map.blocks_before(place / zone.sectors * zone.sectors)).min(block)
    }

    /// One past the last block on the track of `block`.
    pub fn track_end(&self, block: u64) -> u64 {
        let (zone, first) = self.zone(block);
        let place = zone.map.place(block - first);
        (first
            + zone
                .map
                .blocks_before((place / zone.sectors + 1) * zone.sectors))
        .max(block + 1)
    }

    /// One past the last block on the cylinder of `block`.
    pub fn cylinder_end(&self, block: u64) -> u64 {
        let (zone, first) = self.zone(block);
        let cylinder = zone.sectors * self.surfaces;
        let place = zone.map.place(block - first);
        (first + zone.map.blocks_before((place / cylinder + 1) * cylinder)).max(block + 1)
    }

    /// Cylinder, head, sector and angle of a place. The start of each track is offset against the previous one by the track skew,
    /// or by the cylinder skew where the cylinder changes.
    fn at(&self, zone: &Placed, place: u64) -> SectorPosition {
        let (track, sector) = (place / zone.sectors, place % zone.sectors);
        let (cylinder, turn) = (track / self.surfaces, track % self.surfaces);
        let slipped = match self.skewed_by {
            Skewed::No => 0,
            Skewed::ByTrack => zone
                .slips
                .partition_point(|&slip| slip < track * zone.sectors),
            Skewed::ByCylinder => zone
                .slips
                .partition_point(|&slip| slip < cylinder * self.surfaces * zone.sectors),
        };
        let behind = zone.offset
            + zone.track_skew * (turn + cylinder * (self.surfaces - 1)) as f64
            + zone.cylinder_skew * cylinder as f64
            + (slipped as u64 + sector) as f64;
        let turns = behind / zone.sectors as f64;
        let absolute = zone.first_cylinder + cylinder as u32;
        let back = match self.order {
            TrackOrder::Forward => false,
            TrackOrder::SerpentineZone => cylinder % 2 == 1,
            TrackOrder::SerpentineDisk => absolute % 2 == 1,
        };
        let head = if back { self.surfaces - 1 - turn } else { turn };
        SectorPosition {
            cylinder: absolute,
            head: head as u32,
            sector: sector as u32,
            angle: turns - f64::from(turns as u32),
        }
    }
}
