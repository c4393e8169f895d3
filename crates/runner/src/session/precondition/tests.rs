//! The requests of passes, and which failures are refusals.

use iolab_workload::outcome::{FailedRank, FailedRequest};

use super::*;

const GIB: u64 = 1 << 30;

fn range(offset: u64, length: u64) -> Range {
    Range {
        offset,
        end: offset + length,
        cache: CacheState::Direct,
    }
}

fn parts(specs: &[TrialSpec]) -> Vec<(u64, u64, u64)> {
    let part = |spec: &TrialSpec| (spec.offset, spec.region, spec.bs);
    specs.iter().map(part).collect()
}

#[test]
fn a_pass_has_one_shorter_last_request() {
    let passes = |length, bs| parts(&range(4096, length).passes(Pattern::Seq, bs));
    assert_eq!(passes(8 << 20, 1 << 20), [(4096, 8 << 20, 1 << 20)]);
    let whole = 8 << 20;
    assert_eq!(
        passes(whole + 12_288, 1 << 20),
        [(4096, whole, 1 << 20), (4096 + whole, 12_288, 12_288)]
    );
    assert_eq!(passes(8192, 1 << 20), [(4096, 8192, 8192)]);
    assert_eq!(range(0, 512).round(Duration::from_secs(1)).bs, 512);
}

#[test]
fn trims_are_large_wherever_the_range_lies() {
    assert_eq!(
        parts(&range(8192, 5 * GIB + 512).trims()),
        [(8192, 5 * GIB, GIB), (8192 + 5 * GIB, 512, 512)]
    );
    for spec in range(512, 3 * GIB + 512).trims() {
        spec.check().expect("valid");
    }
}

#[test]
fn only_targets_without_trim_refuse_it() {
    let here = |errno: Errno| {
        is_refusal(&Failure::Request(FailedRequest {
            syscall: "ioctl(BLKDISCARD)",
            offset: 0,
            length: GIB,
            errno: errno.raw_os_error(),
        }))
    };
    let on_rank = |errno: Option<Errno>| {
        is_refusal(&Failure::Rank(FailedRank {
            place: "rank 1".to_owned(),
            message: "failed".to_owned(),
            remedy: String::new(),
            errno: errno.map(Errno::raw_os_error),
        }))
    };
    for errno in [Errno::OPNOTSUPP, Errno::INVAL, Errno::NOTTY] {
        assert!(here(errno) && on_rank(Some(errno)), "{errno}");
    }
    for errno in [Errno::IO, Errno::NOSPC, Errno::NODEV] {
        assert!(!here(errno) && !on_rank(Some(errno)), "{errno}");
    }
    assert!(!on_rank(None), "it does not answer");
    assert!(was_checked(&Error::usage("no discard")));
    assert!(!was_checked(&Error::failed("lost")));
}
