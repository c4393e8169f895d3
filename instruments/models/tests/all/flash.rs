//! Solid-state disks: write amplification against theory, TRIM, caches, rates.

use crate::{built_in, rate};
use iolab_models::definition::{PartDefinition, SsdDefinition};
use iolab_models::ssd::Ssd;
use iolab_models::{build, serve};
use iolab_workload::virtual_disk::{Model, Request, ServedFrom};
use proptest::prelude::*;
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

fn ssd_of(name: &str) -> SsdDefinition {
    match built_in(name).model {
        PartDefinition::Ssd(ssd) => *ssd,
        _ => unreachable!(),
    }
}

/// One die of many blocks, one slot a page: all blocks hold data, and there is no time to model.
fn small(pages: u32, over_provisioning: f64) -> SsdDefinition {
    // Little over-provisioning takes many blocks, so that those which are being filled do not matter.
    let slots = if over_provisioning < 0.1 {
        400_000
    } else {
        100_000
    };
    let mut ssd = ssd_of("nvme-970pro");
    (ssd.flash.channels, ssd.flash.chips) = (1, 1);
    (ssd.flash.pages, ssd.flash.page, ssd.flash.blocks) = (pages, 4096, slots / pages);
    (ssd.over_provisioning, ssd.free_blocks) = (over_provisioning, 1);
    ssd
}

fn write_slot(ssd: &mut Ssd, now: &mut u64, slot: u64) {
    *now = serve(ssd, *now, &Request::write(slot * 4096, 4096)).finished;
}

/// Slots written to flash for each that is written at random, once that is steady.
fn amplification(ssd: &mut Ssd, passes: u64) -> f64 {
    let slots = ssd.ftl().logical();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut now = 0;
    for slot in 0..slots {
        write_slot(ssd, &mut now, slot);
    }
    let mut measured = (0, 0);
    for n in 0..passes * slots {
        if n == (passes - 1) * slots {
            measured = ssd.ftl().written();
        }
        write_slot(ssd, &mut now, random.next_u64() % slots);
    }
    let (host, all) = ssd.ftl().written();
    (all - measured.1) as f64 / (host - measured.0) as f64
}

/// `a / (a + W0(-a e^-a))`, a = physical / logical: Xiang and Kurkoski, arXiv 1110.4245.
fn theory(a: f64) -> f64 {
    let x = -a * (-a).exp();
    // The principal branch by Newton's iteration on w e^w = x.
    let mut w = -0.5f64;
    for _ in 0..100 {
        w -= (w * w.exp() - x) / (w.exp() * (w + 1.0));
    }
    a / (a + w)
}

#[test]
fn the_theory_is_that_of_the_paper() {
    // The abstract of that paper: 2.36 for an over-provisioning factor of 0.3.
    assert!((theory(1.3) - 2.36).abs() < 0.005, "{}", theory(1.3));
}

#[test]
fn collection_amplifies_as_theory_says() {
    for (over_provisioning, passes) in [(0.07, 4), (0.15, 4), (0.28, 3), (0.5, 3), (1.0, 3)] {
        let definition = small(256, over_provisioning);
        let mut ssd = Ssd::new(&definition).unwrap();
        let found = amplification(&mut ssd, passes);
        let physical = definition.flash.blocks * 256;
        let expected = theory(f64::from(physical) / ssd.ftl().logical() as f64);
        let error = found / expected - 1.0;
        assert!(
            error.abs() < 0.03,
            "{over_provisioning}: {found:.3}, theory {expected:.3}, {error:+.3}"
        );
    }
}

#[test]
fn trim_restores_a_worn_in_drive() {
    let mut ssd = Ssd::new(&small(256, 0.07)).unwrap();
    let worn = amplification(&mut ssd, 2);
    assert!(worn > 3.0, "{worn}");
    let (capacity, slots) = (ssd.capacity(), ssd.ftl().logical());
    serve(&mut ssd, u64::MAX / 4, &Request::trim(0, capacity));
    assert_eq!(ssd.ftl().mapped(), 0);
    let before = ssd.ftl().written();
    let mut now = u64::MAX / 4;
    for slot in 0..slots {
        write_slot(&mut ssd, &mut now, slot);
    }
    let after = ssd.ftl().written();
    assert_eq!(after.1 - before.1, after.0 - before.0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// On drives of a few blocks with hardly any room, no data is lost, and collection always finds a block.
    #[test]
    fn exactly_the_written_slots_have_a_place(
        seed in any::<u64>(),
        blocks in 6u32..20,
        dies in 1u32..4,
        page in 1u64..5,
        trims in 0u64..20,
    ) {
        let mut definition = small(4, 0.07);
        (definition.flash.channels, definition.flash.chips) = (dies, 1);
        (definition.flash.blocks, definition.flash.page) = (blocks, page * 4096);
        // Capacity that is left when three blocks of each die hold nothing.
        definition.over_provisioning = f64::from(blocks) / (f64::from(blocks) - 3.0) - 1.0 + 1e-9;
        definition.controller.buffer = definition.flash.page * 2;
        let mut ssd = Ssd::new(&definition).unwrap();
        let slots = ssd.ftl().logical();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut holds = std::collections::HashSet::new();
        let mut now = 0;
        for _ in 0..slots * 20 {
            let slot = random.next_u64() % slots;
            if random.next_u64() % 100 < trims {
                now = serve(&mut ssd, now, &Request::trim(slot * 4096, 4096)).finished;
                holds.remove(&slot);
            } else {
                write_slot(&mut ssd, &mut now, slot);
                holds.insert(slot);
            }
        }
        prop_assert_eq!(ssd.ftl().mapped(), holds.len() as u64);
        for slot in 0..slots {
            prop_assert_eq!(ssd.ftl().spot(slot).is_some(), holds.contains(&slot));
        }
    }
}

#[test]
fn requests_to_970_pro_take_published_times() {
    let definition = built_in("nvme-970pro");
    let mut model = build(&definition, 0).unwrap();
    // Firmware 21.5 us, lower page 29.76 us, 4 KiB over a channel of 800 MB/s and a link of 3,360 MB/s.
    let completion = serve(&mut *model, 0, &Request::read(0, 4096));
    assert_eq!(completion.finished, 21_500 + 29_760 + 5_120 + 1_219);
    assert_eq!(completion.served, ServedFrom::Miss);
    // A write: 4 us, 0.46 us for its 4 KiB, and the link. Then it is read from the buffer.
    let at = 1_000_000;
    assert_eq!(
        serve(&mut *model, at, &Request::write(0, 4096)).finished,
        at + 4_000 + 460 + 1_219
    );
    let read = serve(&mut *model, 2 * at, &Request::read(0, 4096));
    assert_eq!(
        (read.finished, read.served),
        (2 * at + 21_500 + 1_219, ServedFrom::Hit)
    );
    // A flush programs the page: 32 KiB over the channel and 185 us.
    let flush = serve(&mut *model, 3 * at, &Request::flush());
    assert_eq!(flush.finished, 3 * at + 40_960 + 185_000);
}

#[test]
fn sata_ssd_reaches_its_data_sheet_values() {
    let definition = built_in("sata-ssd");
    let build = || build(&definition, 0).unwrap();
    let reads = rate(&mut *build(), false, 1 << 20, 8, 500, 0, 0).0;
    let writes = rate(&mut *build(), true, 1 << 20, 8, 500, 0, 0).0;
    assert!((530.0..=551.0).contains(&reads), "{reads} MB/s");
    assert!((500.0..=551.0).contains(&writes), "{writes} MB/s");
    // Depth 1, 4 KiB: 10,000 reads and 42,000 writes per second, within a tenth.
    let mut model = build();
    let mut now = 0;
    for (of, least, most) in [
        (Request::read as fn(u64, u64) -> Request, 9_000.0, 11_000.0),
        (Request::write, 38_000.0, 46_000.0),
    ] {
        let start = now;
        for n in 0..2000u64 {
            let request = of(n * 7_919 % 200_000 * 4096, 4096);
            now = serve(&mut *model, now, &request).finished;
        }
        let iops = 2000.0 / ((now - start) as f64 / 1e9);
        assert!((least..most).contains(&iops), "{iops} requests/s");
    }
}

#[test]
fn writes_pass_reads_that_wait_for_flash() {
    let definition = built_in("sata-ssd");
    let build = || build(&definition, 0).unwrap();
    let alone = serve(&mut *build(), 0, &Request::write(1 << 20, 4096)).finished;
    let mut model = build();
    model.submit(0, 0, &Request::read(0, 4096));
    model.submit(0, 1, &Request::write(1 << 20, 4096));
    let mut done = Vec::new();
    model.advance(u64::MAX, &mut done);
    let write = done.iter().find(|one| one.tag == 1).unwrap();
    // The commands follow each other; the transfer does not wait for the flash.
    assert_eq!(write.finished, alone + 10_200);
}

#[test]
fn slc_cache_fills_and_empties_while_idle() {
    let mut ssd = ssd_of("qlc-slc-cached");
    let slc = ssd.slc.as_mut().unwrap();
    (slc.fixed, slc.of_free) = (1_000_000_000, 0.0);
    let mut model = Ssd::new(&ssd).unwrap();
    let (before, now) = rate(&mut model, true, 1 << 20, 8, 900, 0, 0);
    let (after, now) = rate(&mut model, true, 1 << 20, 8, 400, 1 << 30, now);
    assert!((1_700.0..1_850.0).contains(&before), "{before} MB/s");
    assert!((95.0..160.0).contains(&after), "{after} MB/s");
    // 5.05 s of idle time at 100 MB/s empty half of it.
    let (again, now) = rate(
        &mut model,
        true,
        1 << 20,
        8,
        450,
        2 << 30,
        now + 5_100_000_000,
    );
    assert!(again > 1_600.0, "{again} MB/s");
    let (full, _) = rate(&mut model, true, 1 << 20, 8, 200, 3 << 30, now);
    assert!(full < 200.0, "{full} MB/s");
}

#[test]
fn read_ahead_hides_flash_from_sequential_reads() {
    let mut ssd = ssd_of("sata-ssd");
    let ahead = rate(&mut Ssd::new(&ssd).unwrap(), false, 4096, 1, 2000, 0, 0).0;
    ssd.controller.read_ahead = 0;
    let without = rate(&mut Ssd::new(&ssd).unwrap(), false, 4096, 1, 2000, 0, 0).0;
    assert!(ahead > 2.0 * without, "{ahead} and {without} MB/s");
}

#[test]
fn a_definition_that_makes_no_drive_says_why() {
    let mut ssd = small(64, 0.0);
    insta::assert_snapshot!(Ssd::new(&ssd)
            .err()
            .unwrap(), @"over-provisioning of 0 leaves 0 slots, and open and spare blocks take 192");
    ssd.over_provisioning = 0.07;
    ssd.controller.buffer = 100;
    insta::assert_snapshot!(Ssd::new(&ssd)
            .err()
            .unwrap(), @"a buffer of 100 bytes does not hold a page of 4096");
}
