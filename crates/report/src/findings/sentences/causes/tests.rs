use super::*;
use crate::findings::sentences::finding;
use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::{CellId, Estimate, Kind, Quantity, kind};
use iolab_analysis::doubt::DoubtKind;
use iolab_synthetic::size_curve;

/// A share that is gone without a write cache, with the ratio that is left.
fn point(standing: Standing, share: f64, interval: (f64, f64)) -> Point {
    Point {
        suspects: vec!["write-cache".to_owned()],
        ratio: Some(Estimate::of(0.348, None)),
        interval: Some(interval),
        ..Point::new(standing, Quantity::Share, share)
    }
}

fn claim<const N: usize>(kind: &'static Kind, points: [Point; N]) -> Claim {
    let phenomenon = "IOPS of reads is 40.0× lower than IOPS of writes";
    let mut claim = Claim::new(kind, vec![CellId { run: 0, cell: 0 }]).with_points(points);
    claim.held = vec![("phenomenon".to_owned(), phenomenon.to_owned())];
    claim
}

fn said(claim: &Claim) -> String {
    let run = analyse(&size_curve("why", &[("4KiB", 100.0)]));
    finding(claim, &[&run]).text
}

/// The share covers the part that can disappear, at most all: anything beyond is a reversal.
#[test]
fn difference_of_opposite_sign_is_reversed() {
    let all = (0.99, 1.0);
    let of = |standing| said(&claim(&kind::CAUSE, [point(standing, 1.0, all)]));
    insta::assert_snapshot!(of(Standing::Cause), @"Cause: a write cache: 100 % (99 to 100 %) of the difference is gone with sync=odsync (2.87× lower).");
    insta::assert_snapshot!(of(Standing::Reverses), @"Cause: a write cache: the difference is reversed with sync=odsync (2.87× lower).");
    let joint = |others: usize, standing| {
        let one = point(Standing::Joint, 0.01, (0.0, 0.02));
        let together = Point {
            suspects: vec!["write-cache".to_owned(); 2 + others],
            ..point(standing, 0.9, (0.85, 0.95))
        };
        said(&claim(&kind::JOINT_CAUSE, [one.clone(), one, together]))
    };
    insta::assert_snapshot!(joint(0, Standing::Together), @"Joint cause (each is enough): a write cache. The difference remains without one of them. Without all of them: 90 % (85 to 95 %) of the difference is gone (2.87× lower).");
    insta::assert_snapshot!(joint(0, Standing::TogetherReverse), @"Joint cause (each is enough): a write cache. The difference remains without one of them. Without all of them: the difference is reversed (2.87× lower).");
    insta::assert_snapshot!(joint(1, Standing::Together), @"Joint cause (each is enough): a write cache. The difference remains without one of them. Without all suspects: 90 % (85 to 95 %) of the difference is gone (2.87× lower). To measure without these alone: iolab why FILE --suspects write-cache,write-cache.");
}

#[test]
fn reproduced_part_is_named() {
    let text = |kind: &'static Kind, ratio: f64, part: Option<f64>| {
        let again = Point::count(Standing::Undecided, "block", 30);
        let mut claim = claim(kind, [again]);
        claim.ratio = Some(Estimate::of(ratio, Some((ratio, ratio))));
        claim.points.extend(part.map(|part| Point {
            interval: Some((part, part)),
            ..Point::new(Standing::Remains, Quantity::Share, part)
        }));
        said(&claim)
    };
    let gone = &kind::NOT_REPRODUCED[0];
    insta::assert_snapshot!(text(gone, 0.5, Some(0.19)), @"Not reproduced: IOPS of reads is 40.0× lower than IOPS of writes; here 2.00× lower in 30 blocks, 19 % of the difference on a log scale. The same settings alone do not make all of it: other trials of that run, what they left on the storage, a change since, or chance may have.");
    insta::assert_snapshot!(text(gone, 0.99, None), @"Not reproduced: IOPS of reads is 40.0× lower than IOPS of writes; here 1.01× lower in 30 blocks. The same settings alone do not make it: other trials of that run, what they left on the storage, a change since, or chance may have.");
    insta::assert_snapshot!(text(&kind::REPRODUCED[0], 0.1, None), @"Reproduced: IOPS of reads is 40.0× lower than IOPS of writes; here 10.0× lower in 30 blocks.");
    insta::assert_snapshot!(text(&kind::PERHAPS_AGAIN[3], 0.5, None), @"Cannot tell whether it is there again: IOPS of reads is 40.0× lower than IOPS of writes; here 2.00× lower in 30 blocks. A larger budget gives no more than 30 blocks: measure when the machine is idle.");
}

#[test]
fn a_cleared_suspect_has_its_share() {
    let of = |standing, share, interval| {
        said(&claim(&kind::CLEARED, [point(standing, share, interval)]))
    };
    insta::assert_snapshot!(of(Standing::Minor, 0.12, (0.08, 0.16)), @"Not the main cause: a write cache: 12 % (8 to 16 %) of the difference is gone with sync=odsync (2.87× lower).");
    insta::assert_snapshot!(of(Standing::Minor, -0.12, (-0.16, -0.08)), @"Not the main cause: a write cache: the difference is 12 % (8 to 16 %) greater with sync=odsync (2.87× lower).");
    insta::assert_snapshot!(of(Standing::Cleared, -0.001, (-0.002, 0.001)), @"Cleared: a write cache.");
}

#[test]
fn open_verdict_names_blocks_or_doubts() {
    let open = |needed| Point {
        of: Some(needed),
        ..point(Standing::MoreBlocks, 0.3, (0.1, 0.5))
    };
    let doubtful = Point {
        doubts: vec![DoubtKind::Suspended.into()],
        ..point(Standing::Undecided, 0.9, (0.85, 0.95))
    };
    let other_side = point(Standing::OtherSide, 0.9, (0.85, 0.95));
    let undecided = point(Standing::Undecided, 0.3, (0.1, 0.5));
    insta::assert_snapshot!(said(&claim(&kind::SUSPECTS_OPEN, [open(30.0), doubtful, other_side, undecided])), @"Cannot tell (about 30 blocks needed: increase --budget): a write cache. Cannot tell: a write cache. Cannot tell (the machine slept, or iolab was stopped, during trials): a write cache. Cannot tell (less than half of the change is on the side that it acts on): a write cache.");
    insta::assert_snapshot!(said(&claim(&kind::SUSPECTS_OPEN, [open(60.0)])), @"Cannot tell (about 60 blocks needed, and a run has at most 30): a write cache.");
}

#[test]
fn each_obstacle_has_words() {
    let shown = |check, before, left| WhyUntried::Unchecked(check, Some((before, left)));
    let reasons = [
        WhyUntried::Unchecked(Check::FromStorage, None),
        WhyUntried::Planned(Obstacle::IsTheDifference),
        WhyUntried::Planned(Obstacle::KeepsState),
        WhyUntried::Planned(Obstacle::NeedsChangeSystem),
        WhyUntried::Planned(Obstacle::NeedsRoot),
        WhyUntried::Planned(Obstacle::NotAskedFor),
        WhyUntried::Planned(Obstacle::NoTime {
            budget_s: 720,
            idle_ns: 1_000_000_000,
        }),
        WhyUntried::Planned(Obstacle::Conflict {
            error: "depth=16 needs an asynchronous backend".to_owned(),
        }),
        WhyUntried::NoTrial,
        WhyUntried::LevelChanged(1_500_000_000),
        WhyUntried::Unchecked(Check::InFlight, None),
        shown(Check::InFlight, 16.0, 3.04),
        WhyUntried::Unchecked(Check::FewerFaults, None),
        shown(Check::FewerFaults, 8192.0, 4096.0),
        WhyUntried::Unchecked(Check::FewerDeviceIos, None),
        shown(Check::FewerDeviceIos, 2.1, 2.0),
        WhyUntried::Unchecked(Check::LessCpuWait, None),
        shown(Check::LessCpuWait, 0.3, 0.2),
        shown(Check::SameVolume, 140e9, 80e9),
    ];
    let text = reasons.map(|why| {
        let untried = point(Standing::NotTried, 0.0, (0.0, 0.0));
        let mut claim = claim(&kind::SUSPECTS_NOT_TRIED, [untried]);
        claim.payload = Some(Payload::NotTried(why));
        said(&claim)
    });
    insta::assert_snapshot!(text.join("\n"), @"
    Not tried (without it the bytes of a side still did not come from storage): a write cache.
    Not tried (the two sides differ in nothing else): a write cache.
    Not tried (the level of throughput of a side changes during a run, and idle time does not restore it: run the experiment with --precondition, then explain that run): a write cache.
    Not tried (it needs --change-system, as root): a write cache.
    Not tried (raising the priority of threads takes root (CAP_SYS_NICE)): a write cache.
    Not tried (not among --suspects): a write cache.
    Not tried (no time within the budget for 1 s of idle time before each trial to restore the level of throughput: it takes 12min): a write cache.
    Not tried (depth=16 needs an asynchronous backend): a write cache.
    Not tried (no trial without it succeeded): a write cache.
    Not tried (the level of throughput still changed, with 1.5 s of idle time before each trial): a write cache.
    Not tried (how many requests were in flight is not known): a write cache.
    Not tried (3.0 of 16 requests were in flight): a write cache.
    Not tried (how many page faults there were is not known): a write cache.
    Not tried (4096 of 8192 page faults were left): a write cache.
    Not tried (how many I/Os of the device a request takes is not known): a write cache.
    Not tried (a request still takes 2.00 I/Os of the device, before 2.10): a write cache.
    Not tried (how long threads waited for a CPU that others used is not known): a write cache.
    Not tried (threads still waited for a CPU that others used in 20 % of their time, before in 30 %): a write cache.
    Not tried (without it a trial moved 74.5 GiB instead of 130 GiB, so that the fall is elsewhere in it or beyond its end): a write cache.
    ");
}
