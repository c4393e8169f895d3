//! Flags and findings from reading data back.

use iolab_analysis::analysis::{Analysis, DoubtKind, analyse};
use iolab_record::{FaultKind, Faults, RunRecord, RunStatus, Sample, Verified};
use iolab_report::findings::Finding;

use crate::named;
use iolab_synthetic::{add_cell, add_trial, around, record};
use iolab_workload::units::counted;

/// The levels of a cell that writes.
const WRITES: [&str; 2] = ["bs=4KiB", "read_percent=0"];
/// Data that was kept, and came from storage.
const CORRECT: Verified = Verified {
    blocks: 256,
    bytes: 1 << 20,
    cached_bytes: Some(0),
    faults: [Faults {
        blocks: 0,
        first_offset: 0,
    }; FaultKind::ALL.len()],
};

fn verified_run() -> RunRecord {
    let mut record = record("write-size", &["bs"]);
    add_cell(&mut record, &WRITES, &around(100.0));
    for sample in &mut record.samples {
        sample.verified = Some(CORRECT);
    }
    record
}

fn told(analysis: &Analysis) -> Vec<Finding> {
    let mut found = named("verified", analysis);
    found.extend(named("verify-failed", analysis));
    found
}

fn only(record: &RunRecord) -> (&'static str, String) {
    let mut findings = told(&analyse(record));
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = findings.remove(0);
    assert!(!finding.kind.basis.is_empty());
    (finding.kind.name, finding.text)
}

#[test]
fn bytes_from_memory_are_bounded_if_known() {
    let mut record = verified_run();
    let last = record.samples.iter_mut().rev();
    for (sample, cached) in last.zip([Some(1 << 20), None]) {
        sample.verified.as_mut().expect("verified").cached_bytes = cached;
    }
    let (_, text) = only(&record);
    insta::assert_snapshot!(text, @"The data that was read back is correct: 8 MiB. All data of 8 of 8 trials was read back. From the page cache, which does not verify storage, at most: 1 MiB. Share of the page cache unknown: 1 trial.");
}

#[test]
fn lost_data_is_flagged_and_reported_first() {
    let mut record = verified_run();
    record.run.status = RunStatus::Failed;
    let sample = add_trial(&mut record, 0, 100.0, false);
    sample.ok = false;
    let mut faulty = Verified {
        blocks: 256,
        bytes: 1 << 20,
        ..Verified::default()
    };
    let faults = |blocks| Faults {
        blocks,
        first_offset: 0,
    };
    faulty.faults[FaultKind::Stale as usize] = faults(3);
    faulty.faults[FaultKind::Torn as usize] = faults(1);
    sample.verified = Some(faulty);
    let (rule, text) = only(&record);
    assert_eq!(rule, "verify-failed");
    insta::assert_snapshot!(text, @"This storage did NOT keep what was written to it in 1 of 1 cell: 4 of 2304 blocks that were read back are wrong. Faults: 3 stale; 1 torn. The first places are in the run file. Do not use any result before the cause is found.");
    let flags = &analyse(&record).cells[0].flags;
    assert!(flags.contains(&DoubtKind::VerifyFailed) && flags.contains(&DoubtKind::Errors));
}

/// Result of reading back the data of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// All of it was read back and is correct.
    Correct,
    /// All data was read back and is correct, from an unknown origin.
    OfUnknownOrigin,
    /// A request failed before anything was read back.
    NotReadBack,
    /// One group's data was read back, then another one failed.
    ReadBackInPart,
    /// A block of its data is wrong.
    Wrong,
}

impl Fate {
    const ALL: [Self; 5] = [
        Self::Correct,
        Self::OfUnknownOrigin,
        Self::NotReadBack,
        Self::ReadBackInPart,
        Self::Wrong,
    ];

    fn is_correct(self) -> bool {
        matches!(self, Self::Correct | Self::OfUnknownOrigin)
    }

    fn befall(self, sample: &mut Sample) {
        let mut wrong = CORRECT;
        wrong.count(FaultKind::Lost, 4096);
        let unknown = Verified {
            cached_bytes: None,
            ..CORRECT
        };
        (sample.ok, sample.verified) = match self {
            Self::Correct => (true, Some(CORRECT)),
            Self::OfUnknownOrigin => (true, Some(unknown)),
            Self::NotReadBack => (false, None),
            Self::ReadBackInPart => (false, Some(CORRECT)),
            Self::Wrong => (false, Some(wrong)),
        };
    }
}

/// Adds a cell whose trials had these fates, the first of them as a warm-up.
fn add_trials(record: &mut RunRecord, fates: &[Fate]) {
    let cell = add_cell(record, &WRITES, &vec![100.0; fates.len() - 1]) as i64;
    let own = record.samples.iter_mut().filter(|s| s.cell == cell);
    for (sample, fate) in own.zip(fates) {
        fate.befall(sample);
    }
}

/// All combinations of results for the data of two cells, with a warm-up and two trials each.
#[test]
fn data_is_called_correct_only_if_all_is() {
    let combinations = (0..5_usize.pow(4)).map(|number| {
        let fate = |place: u32| Fate::ALL[number / 5_usize.pow(place) % 5];
        [fate(0), fate(1), fate(2), fate(3)]
    });
    for [warm_up, first, second, other] in combinations {
        let mut record = record("write-size", &["bs"]);
        let cells = [[warm_up, first, second], [Fate::Correct, other, other]];
        for fates in &cells {
            add_trials(&mut record, fates);
        }
        // A warm-up counts only if its data is not shown to be correct.
        let counts = |fates: &[Fate; 3]| match fates[0].is_correct() {
            true => fates[1..].to_vec(),
            false => fates.to_vec(),
        };
        let all: Vec<Fate> = cells.iter().flat_map(counts).collect();
        let with = |is: fn(Fate) -> bool| all.iter().filter(|fate| is(**fate)).count();
        let found = told(&analyse(&record));
        let context = format!("{all:?}: {found:?}");
        if with(|fate| fate == Fate::NotReadBack) == all.len() {
            assert!(found.is_empty(), "{context}");
            continue;
        }
        let [finding] = found.as_slice() else {
            panic!("{context}");
        };
        let is_wrong = with(|fate| fate == Fate::Wrong) > 0;
        assert_eq!(finding.kind.name == "verify-failed", is_wrong, "{context}");
        if is_wrong {
            continue;
        }
        let says = |text: &str| finding.text.contains(text);
        let in_part = with(|fate| fate == Fate::ReadBackInPart);
        let unread = with(|fate| fate == Fate::NotReadBack);
        let unknown = with(|fate| fate == Fate::OfUnknownOrigin);
        let whole = all.len() - in_part - unread;
        let text = format!("All data of {whole} of {}", counted(all.len(), "trial"));
        assert!(says(&text), "{context}");
        assert_eq!(
            says("Share of the page cache unknown"),
            unknown > 0,
            "{context}"
        );
    }
}
