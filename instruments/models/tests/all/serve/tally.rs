//! Whether the answers came in time.

use iolab_models::serve::ServeStatistics;
use iolab_workload::virtual_disk::Op;

const US: u64 = 1000;

/// A hundred reads that take `service` us, of which two are `late` us late.
fn tally(service: u64, late: u64) -> ServeStatistics {
    let mut tally = ServeStatistics::default();
    for n in 0..100 {
        let due = service * US;
        let done = due + if n < 2 { late * US } else { 0 };
        tally.add(Op::Read, 4096, 0, due, done);
    }
    tally
}

#[test]
fn lateness_is_held_against_the_service_time() {
    // 2 % of 5 ms is 100 us; 2 % of 100 us is less than 50 us.
    for (service, late, kept) in [
        (5000, 99, true),
        (5000, 102, false),
        (100, 49, true),
        (100, 51, false),
    ] {
        let punctuality = tally(service, late).punctuality().unwrap();
        assert_eq!(punctuality.kept(), kept, "{punctuality:?}");
    }
    assert_eq!(ServeStatistics::default().punctuality(), None);
}

#[test]
fn kinds_are_counted_apart_and_together() {
    let mut tally = tally(100, 0);
    tally.add(Op::Flush, 0, 10, 20, 15);
    let kinds: Vec<(Op, u64, u64)> = tally
        .kinds()
        .map(|(op, kind)| (op, kind.requests, kind.bytes))
        .collect();
    assert_eq!(kinds, [(Op::Read, 100, 409_600), (Op::Flush, 1, 0)]);
    assert_eq!((tally.all().requests, tally.all().bytes), (101, 409_600));
    let flush = tally.kinds().last().unwrap().1;
    assert_eq!(flush.service.max(), 10);
    assert_eq!(flush.lateness.max(), 0);
}
