use super::{of_suspects, *};
use iolab_analysis::claim::{CauseVerdict, Suspected, Suspects, of_causes};

fn suspected(share: f64, interval: (f64, f64)) -> Suspected {
    Suspected {
        suspect: "write-cache".to_owned(),
        share: Some(Share {
            share,
            interval: Some(interval),
        }),
        by_itself: false,
        with_others: false,
        ratio_without: Some(0.348),
        blocks_needed: None,
        is_reversed: false,
        request_time: None,
        untried: None,
        doubts: Vec::new(),
    }
}

fn text(verdict: CauseVerdict, share: f64, interval: (f64, f64)) -> String {
    of_suspects(
        &Suspects {
            verdict,
            suspects: vec![suspected(share, interval)],
            blocks: 30,
        },
        usize::MAX,
    )
}

/// The share covers the part that can disappear, at most all: anything beyond is a reversal.
#[test]
fn difference_of_opposite_sign_is_reversed() {
    let reversed = Suspected {
        is_reversed: true,
        ..suspected(1.0, (0.99, 1.0))
    };
    let of = |verdict, one: &Suspected| {
        of_suspects(
            &Suspects {
                verdict,
                suspects: vec![one.clone(), one.clone()],
                blocks: 30,
            },
            usize::MAX,
        )
    };
    insta::assert_snapshot!(of(CauseVerdict::Cause, &reversed), @"Cause: a write cache: with sync=odsync the difference is reversed (2.87× lower).");
    insta::assert_snapshot!(of(CauseVerdict::Joint, &reversed), @"Joint cause: a write cache. The difference remains without one of them: without all of them the difference is reversed.");
    let among_others = Suspected {
        with_others: true,
        ..suspected(0.9, (0.85, 0.95))
    };
    insta::assert_snapshot!(of(CauseVerdict::Joint, &among_others), @"Joint cause: a write cache. The difference remains without one of them: without all suspects 90 % (85 to 95 %) of the difference is gone. To measure without these alone: iolab why FILE --suspects write-cache,write-cache.");
    insta::assert_snapshot!(text(CauseVerdict::Cause, 1.0, (0.99, 1.0)), @"Cause: a write cache: 100 % (99 to 100 %) of the difference is gone with sync=odsync (2.87× lower).");
}

#[test]
fn reproduced_part_is_named() {
    let found = |ratio: f64, again| Reproduction {
        phenomenon: "IOPS of reads is 40.0× lower than IOPS of writes".to_owned(),
        seen: 0.025,
        expected: 1.0,
        ratio: Some(ratio),
        interval: Some((ratio, ratio)),
        blocks: 30,
        shorter_ns: None,
        idle_ns: None,
        level_changed: false,
        again,
        unexplained: None,
        unexplained_without: None,
        doubts: Vec::new(),
        is_explained: true,
    };
    let text = |ratio, again| {
        let claims = of_causes(found(ratio, again), Vec::new(), &[]);
        finding(&claims[0], &[]).text
    };
    insta::assert_snapshot!(text(0.5, Again::NotReproduced), @"Not reproduced: IOPS of reads is 40.0× lower than IOPS of writes; here 2.00× lower in 30 blocks, 19 % of the difference on a log scale. The same settings alone do not make all of it: other trials of that run, what they left on the storage, a change since, or chance may have.");
    insta::assert_snapshot!(text(0.99, Again::NotReproduced), @"Not reproduced: IOPS of reads is 40.0× lower than IOPS of writes; here 1.01× lower in 30 blocks. The same settings alone do not make it: other trials of that run, what they left on the storage, a change since, or chance may have.");
    let higher = Reproduction {
        seen: 40.0,
        ..found(1.01, Again::NotReproduced)
    };
    let none = finding(&of_causes(higher, Vec::new(), &[])[0], &[]).text;
    assert!(none.contains("alone do not make it:"), "{none}");
    insta::assert_snapshot!(text(2.0, Again::NotReproduced), @"Not reproduced: IOPS of reads is 40.0× lower than IOPS of writes; here 2.00× higher in 30 blocks. The same settings alone do not make it: other trials of that run, what they left on the storage, a change since, or chance may have.");
    insta::assert_snapshot!(text(0.1, Again::Reproduced), @"Reproduced: IOPS of reads is 40.0× lower than IOPS of writes; here 10.0× lower in 30 blocks.");
    insta::assert_snapshot!(text(0.5, Again::CannotTell), @"Cannot tell whether it is there again: IOPS of reads is 40.0× lower than IOPS of writes; here 2.00× lower in 30 blocks. A larger budget gives no more than 30 blocks: measure when the machine is idle.");
    insta::assert_snapshot!(text(0.026, Again::Reproduced), @"Reproduced: IOPS of reads is 40.0× lower than IOPS of writes; here 38.5× lower in 30 blocks.");
}

#[test]
fn a_cleared_suspect_has_its_share() {
    assert_eq!(
        text(CauseVerdict::Cleared, 0.12, (0.08, 0.16)),
        "Not the main cause: a write cache (12 % (8 to 16 %) of the difference is gone)."
    );
    assert_eq!(
        text(CauseVerdict::Cleared, -0.12, (-0.16, -0.08)),
        "Not the main cause: a write cache (without it the difference is 12 % (8 to 16 %) greater)."
    );
    assert_eq!(
        text(CauseVerdict::Cleared, -0.001, (-0.002, 0.001)),
        "Cleared: a write cache."
    );
}

#[test]
fn larger_budget_is_recommended_only_for_more_blocks() {
    insta::assert_snapshot!(blocks_for_verdict(30, 20), @" (about 30 blocks, here 20: increase --budget)");
    insta::assert_snapshot!(blocks_for_verdict(60, 28), @" (about 60 blocks, and a run has at most 30)");
}

#[test]
fn each_obstacle_has_words() {
    let because = |untried| Suspected {
        suspect: "write-cache".to_owned(),
        share: None,
        by_itself: false,
        with_others: false,
        ratio_without: None,
        blocks_needed: None,
        is_reversed: false,
        request_time: None,
        untried: Some(untried),
        doubts: Vec::new(),
    };
    let left = |check, before, left| WhyUntried::NotRemoved {
        check,
        before,
        left,
    };
    let reasons = [
        WhyUntried::Unchecked(Check::FromStorage),
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
        WhyUntried::LevelChanged {
            idle_ns: 1_500_000_000,
        },
        WhyUntried::Unchecked(Check::InFlight),
        left(Check::InFlight, 16.0, 3.04),
        WhyUntried::Unchecked(Check::FewerFaults),
        left(Check::FewerFaults, 8192.0, 4096.0),
        WhyUntried::Unchecked(Check::FewerDeviceIos),
        left(Check::FewerDeviceIos, 2.1, 2.0),
        WhyUntried::Unchecked(Check::LessCpuWait),
        left(Check::LessCpuWait, 0.3, 0.2),
        left(Check::SameVolume, 140e9, 80e9),
    ];
    let text = of_suspects(
        &Suspects {
            verdict: CauseVerdict::NotTried,
            suspects: reasons.map(because).to_vec(),
            blocks: 30,
        },
        usize::MAX,
    );
    insta::assert_snapshot!(text.replace(". Not", ".\nNot"), @"
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
