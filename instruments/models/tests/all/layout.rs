//! The placement of blocks: exact positions, and the properties of every sparing scheme.

use std::collections::HashSet;

use iolab_models::definition::parts::{Geometry, Sparing, Zone};
use iolab_models::disk::Layout;
use proptest::prelude::*;

fn zone(first: u32, last: u32, sectors: u32) -> Zone {
    Zone {
        cylinders: [first, last],
        sectors,
        offset: 0.0,
        track_skew: 0.0,
        cylinder_skew: 0.0,
        reserved: 0,
        spares: 0,
        slips: Vec::new(),
    }
}

fn geometry(spares: Sparing, zones: Vec<Zone>) -> Geometry {
    let cylinders = zones
        .iter()
        .map(|zone| zone.cylinders[1] + 1)
        .max()
        .unwrap_or(1);
    Geometry {
        surfaces: 2,
        cylinders,
        serpentine: false,
        spares,
        range: 2,
        zone: zones,
    }
}

fn place(layout: &Layout, block: u64) -> (u32, u32, u32) {
    let place = layout.place(block);
    (place.cylinder, place.head, place.sector)
}

#[test]
fn serpentine_keeps_head_where_cylinder_changes() {
    let mut geometry = geometry(Sparing::None, vec![zone(0, 2, 10), zone(3, 4, 10)]);
    geometry.serpentine = true;
    let layout = Layout::new(&geometry).unwrap();
    let heads: Vec<u32> = (0..10).map(|track| layout.place(track * 10).head).collect();
    assert_eq!(heads, [0, 1, 1, 0, 0, 1, 0, 1, 1, 0]);
}

#[test]
fn slips_move_blocks_by_scheme() {
    let mut one = zone(0, 1, 10);
    (one.spares, one.slips) = (2, vec![3]);
    // Within the track: the spare takes the last block of it, and the next track starts where it did.
    let layout = Layout::new(&geometry(Sparing::Track, vec![one.clone()])).unwrap();
    assert_eq!(layout.blocks(), 32);
    assert_eq!(
        [2, 3, 7, 8].map(|block| place(&layout, block)),
        [(0, 0, 2), (0, 0, 4), (0, 0, 8), (0, 1, 0)]
    );
    // Within both cylinders of a range.
    let layout = Layout::new(&geometry(Sparing::Range, vec![one.clone()])).unwrap();
    assert_eq!(layout.blocks(), 38);
    assert_eq!(
        [3, 37].map(|block| place(&layout, block)),
        [(0, 0, 4), (1, 1, 8)]
    );
    // Whole tracks: track 1 is left out.
    (one.spares, one.slips) = (2, vec![1]);
    let layout = Layout::new(&geometry(Sparing::Tracks, vec![one])).unwrap();
    assert_eq!(layout.blocks(), 20);
    assert_eq!(
        [0, 10].map(|block| place(&layout, block)),
        [(0, 0, 0), (1, 0, 0)]
    );
}

fn sparing() -> impl Strategy<Value = Sparing> {
    use Sparing::*;
    prop::sample::select(vec![None, Tracks, Track, Range, Zone])
}

prop_compose! {
    fn layouts()(
        scheme in sparing(),
        serpentine: bool,
        zones in prop::collection::vec((3u32..8, 6u32..20, 0u64..4, 0u64..5, prop::collection::vec(0u64..200, 0..4)), 1..4),
    ) -> Geometry {
        let mut first = 0;
        let mut list = Vec::new();
        for (cylinders, sectors, spares, reserved, mut slips) in zones {
            let mut one = zone(first, first + cylinders - 1, sectors);
            (one.spares, one.reserved) = (spares, reserved);
            slips.sort_unstable();
            slips.dedup();
            if scheme == Sparing::None { slips.clear(); }
            one.slips = slips;
            first += cylinders;
            list.push(one);
        }
        let mut geometry = geometry(scheme, list);
        geometry.serpentine = serpentine;
        geometry
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_block_has_its_place_and_run(geometry in layouts()) {
        // More slips than spares give an error, not a layout.
        let Ok(layout) = Layout::new(&geometry) else { return Ok(()) };
        let mut seen = HashSet::new();
        for block in 0..layout.blocks() {
            let place = layout.place(block);
            let zone = geometry.zone.iter().find(|zone| (zone.cylinders[0]..=zone.cylinders[1]).contains(&place.cylinder)).unwrap();
            prop_assert!(place.head < geometry.surfaces && place.sector < zone.sectors);
            prop_assert!((0.0..1.0).contains(&place.angle));
            prop_assert!(seen.insert((place.cylinder, place.head, place.sector)), "block {block} shares its place");
        }
        // Runs are ascending blocks on one track.
        let mut block = 0;
        while block < layout.blocks() {
            let run = layout.run(block);
            prop_assert!(run.blocks >= 1 && run.span >= run.blocks);
            prop_assert!(block + run.blocks <= layout.blocks());
            let mut last = run.place;
            for next in block + 1..block + run.blocks {
                let place = layout.place(next);
                prop_assert_eq!((place.cylinder, place.head), (last.cylinder, last.head));
                prop_assert!(place.sector > last.sector);
                last = place;
            }
            prop_assert_eq!(u64::from(last.sector - run.place.sector) + 1, run.span);
            prop_assert!(layout.track_start(block) <= block);
            prop_assert!(layout.track_end(block) > block);
            block += run.blocks;
        }
    }
}
