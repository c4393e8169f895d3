//! Parts of trials: files, zones, mixes of sizes, CPUs, rates, counts.

use iolab_workload::outcome::{Ended, RequestSizes, SizeCount};
use iolab_workload::system_settings::Cpus;
use iolab_workload::trial::{Rate, SizeMix, Zone, Zones};

use crate::cells::trial;

#[test]
fn zones_are_consecutive() {
    let zones: Zones = "50/5:0/15:50/".parse().expect("zones");
    let zone = |up_to, first, blocks| Zone {
        up_to,
        first,
        blocks,
    };
    assert_eq!(zones.of(1000), [zone(50, 0, 50), zone(100, 200, 800)]);
    // A part smaller than a block gets one within the region.
    assert_eq!(zones.of(1), [zone(50, 0, 1), zone(100, 0, 1)]);
    assert_eq!(zones.of(10), [zone(50, 0, 1), zone(100, 2, 8)]);
}

#[test]
fn every_draw_of_a_mix_has_its_size() {
    let mix: SizeMix = "4k:60,64k:30,1M:10".parse().expect("a mix");
    let mut counts = [0; 3];
    (0..100).for_each(|draw| counts[mix.reads.place(draw)] += 1);
    assert_eq!(counts, [60, 30, 10]);
    assert_eq!(mix.reads.mean(), 4096.0 * (0.6 + 4.8 + 25.6));
    let range: SizeMix = "4k-64k".parse().expect("a range");
    assert_eq!(range.reads.mean(), 34.0 * 1024.0);
    let mixed = trial("region=1M bs_mix=4k:50,64k:50");
    assert_eq!(
        (mixed.largest_request(), mixed.bytes_bound()),
        (65536, Some(1 << 20))
    );
    let trims = trial("read_percent=0 trim_percent=100");
    assert!(trims.trims() && trims.writes() && !trims.writes_data());
}

#[test]
fn a_byte_rate_converts_to_requests() {
    assert_eq!(Rate::Bytes(50_000_000).per_second(1e6), 50.0);
    assert_eq!(Rate::Requests(50).per_second(1e6), 50.0);
}

#[test]
fn sets_of_cpus_are_joined_and_reduced() {
    let (a, b) = (Cpus::new([0, 1, 2]), Cpus::new([2, 3]));
    assert_eq!(a.plus(&b).to_string(), "0-3");
    assert_eq!(a.without(&b).to_string(), "0-1");
}

#[test]
fn counts_of_sizes_add_up_in_order() {
    let of = |text: &str| text.parse::<RequestSizes>().expect(text);
    let sum = of("read 4096 1,write 4096 2").plus(of("write 4096 3,read 512 4"));
    assert_eq!(sum.to_string(), "read 512 4,read 4096 1,write 4096 5");
    // One worker draws sizes in the order of its mix.
    let drawn = [65536, 4096].map(|bytes| SizeCount {
        reads: true,
        bytes,
        requests: 1,
    });
    assert_eq!(
        RequestSizes::new(drawn).to_string(),
        "read 4096 1,read 65536 1"
    );
}

/// A bad end outweighs a good one.
#[test]
fn ends_stand_in_the_order_of_their_gravity() {
    assert!(Ended::ALL.is_sorted_by_key(|ended| !ended.is_whole()));
    assert_eq!(Ended::ALL.iter().copied().max(), Some(Ended::Failed));
    assert!(Ended::Done < Ended::Time);
}
