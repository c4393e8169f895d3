//! Grades of claims on reads and writes: against each other, mixed, and on reads after writes that storage may
//! still hold. `claims.rs` explains how the table of docs/METHODS.md is made.

use iolab_analysis::claim::Contrast;
use iolab_record::RunRecord;
use iolab_synthetic::{At, Disturbance, Disturber, Evidence, Noise, Scenario, Truth};

use super::claims::{SAID_MIN, TRIALS, compared, hold, hold_made, hold_runs, runs_beside, shapes};

fn is_direction(contrast: &Contrast) -> bool {
    matches!(contrast, Contrast::Direction)
}

fn is_share_of_reads(contrast: &Contrast) -> bool {
    matches!(contrast, Contrast::Levels { factor, .. } if factor == "read_percent")
}

fn is_scaling(contrast: &Contrast) -> bool {
    matches!(contrast, Contrast::Levels { factor, .. } if factor == "threads")
}

/// Random reads and writes in one grid.
fn grid(noise: Noise, trials: u32) -> Scenario {
    Scenario::of("disk-grid", &["workload=RR,WR", "bs=4k,64k", "threads=1,8"])
        .drifting(noise, trials)
}

/// Reads, writes, and both in every trial.
fn mixed(noise: Noise, trials: u32) -> Scenario {
    Scenario::of("read-random", &["bs=4k,64k", "read_percent=0,50,100"]).drifting(noise, trials)
}

#[test]
fn equal_reads_and_writes_are_rarely_distinguished() {
    for (name, noise) in shapes() {
        for trials in TRIALS {
            let kind = "writes against reads, none";
            let equal = grid(noise, trials);
            hold(kind, &equal, name, |run| compared(run, is_direction));
            let kind = "share of reads, none";
            let equal = mixed(noise, trials);
            hold(kind, &equal, name, |run| compared(run, is_share_of_reads));
        }
    }
}

#[test]
fn large_differences_between_reads_and_writes_are_said() {
    let little = Noise::Lognormal { sigma: 0.03 };
    for trials in TRIALS {
        for ratio in [2.0, 0.5] {
            let name = format!("lognormal 3 %, ratio {ratio}");
            let writes = Scenario {
                effects: vec![(At::levels("workload=WR"), ratio)],
                ..grid(little, trials)
            };
            let score = hold("writes against reads", &writes, &name, |run| {
                compared(run, is_direction)
            });
            assert!(score.is_true_at_least(SAID_MIN), "{score}");
            let both = Scenario {
                effects: vec![(At::levels("read_percent=50"), ratio)],
                ..mixed(little, trials)
            };
            let score = hold("share of reads", &both, &name, |run| {
                compared(run, is_share_of_reads)
            });
            assert!(score.is_true_at_least(SAID_MIN), "{score}");
        }
    }
}

/// The run as recorded by a version that did not write out the rest of unsynced writes after each trial.
fn not_written_out((mut record, truth): (RunRecord, Truth)) -> (RunRecord, Truth) {
    for sample in &mut record.samples {
        sample.region.owed_sync_ns = None;
    }
    (record, truth)
}

/// Reads slowed because storage still writes other cells' data: only the missing write-out shows that.
#[test]
fn what_writes_leave_is_claimed_of_no_read() {
    let slowed = Scenario {
        disturbances: vec![Disturbance {
            by: Disturber::Traffic,
            at: At::levels("workload=RR,threads=8"),
            share: 1.0,
            ratio: 0.65,
            evidence: Evidence::Hidden,
        }],
        ..grid(Noise::Lognormal { sigma: 0.03 }, 12)
    };
    let run = slowed.runs();
    hold_made(
        ("reads after writes", "not written out, some slowed to 0.65"),
        runs_beside(1),
        |seed| not_written_out(run(seed)),
        |run| compared(run, is_scaling),
    );
    let faster = Scenario {
        effects: vec![(At::levels("threads=8"), 2.0)],
        ..grid(Noise::Lognormal { sigma: 0.03 }, 12)
    };
    let score = hold_runs(
        "reads after writes",
        &faster,
        "written out, ratio 2",
        runs_beside(1),
        |run| compared(run, is_scaling),
    );
    assert!(score.is_true_at_least(SAID_MIN), "{score}");
}
