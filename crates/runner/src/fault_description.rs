//! Describes data that was read back in place of other written data.

use iolab_workload::verify::{FaultKind, FaultyData, FoundInstead, Verified};

/// Everything that is wrong, and the first place in full.
pub(super) fn describe(faulty: &FaultyData) -> String {
    let (verified, first) = (&faulty.verified, &faulty.first);
    format!(
        "verify failed: {} of {} blocks read back are not as they were written ({}); the first at byte {} ({}) should hold write {} of thread {} and holds {}",
        verified.faulty_blocks(),
        verified.blocks,
        kinds(verified),
        first.offset,
        first.kind.name(),
        first.wanted.number,
        first.wanted.thread,
        holds(first.found),
    )
}

/// The kinds of faults that there are, with their numbers.
fn kinds(verified: &Verified) -> String {
    let kinds = FaultKind::ALL.map(|kind| (verified.of(kind).blocks, kind.name()));
    let found = kinds.into_iter().filter(|(blocks, _)| *blocks > 0);
    let words: Vec<String> = found
        .map(|(blocks, name)| format!("{blocks} {name}"))
        .collect();
    words.join(", ")
}

fn holds(found: FoundInstead) -> String {
    match found {
        FoundInstead::Damaged => "data whose checksum is wrong".to_owned(),
        FoundInstead::MadeFor(offset) => format!("what was written for byte {offset}"),
        FoundInstead::Earlier => "what an earlier trial or run wrote".to_owned(),
        FoundInstead::Written(write) => {
            format!(
                "write {} of thread {}, an earlier one",
                write.number, write.thread
            )
        }
        FoundInstead::Zeros => "zeros".to_owned(),
        FoundInstead::Unknown => "data that iolab did not write for verification".to_owned(),
    }
}

/// The user's next step.
pub(super) fn remedy(faulty: &FaultyData) -> &'static str {
    match faulty.first.kind {
        FaultKind::Corrupted => {
            "trust this storage with no data: look into the kernel's log (dmesg) and the drive's own (smartctl -a), test the memory, then run it again on another cable, port or machine to see which part is at fault"
        }
        FaultKind::Misplaced => {
            "trust this storage with no data: a layer writes to wrong places. Make sure that no other process writes to the target, look into the kernel's log (dmesg), update firmware and drivers, then run it again without layers such as RAID, LVM or a cache"
        }
        FaultKind::Stale | FaultKind::Torn | FaultKind::Lost => {
            "trust this storage with no data: writes that it reported as done are not there. Make sure that no other process writes to the target, look into the kernel's log (dmesg) and the drive's own (smartctl -a), then run it again with --set sync=each to see whether it is a cache that loses them"
        }
    }
}

#[cfg(test)]
mod tests {
    use iolab_workload::verify::{Faults, FaultyBlock, Write};

    use super::*;

    #[test]
    fn the_message_says_what_where_and_what_instead() {
        let mut verified = Verified {
            blocks: 512,
            ..Verified::default()
        };
        let faults = |blocks, first_offset| Faults {
            blocks,
            first_offset,
        };
        verified.faults[FaultKind::Corrupted as usize] = faults(1, 8704);
        verified.faults[FaultKind::Stale as usize] = faults(2, 65536);
        let faulty = FaultyData {
            verified,
            first: FaultyBlock {
                kind: FaultKind::Corrupted,
                offset: 8704,
                wanted: Write {
                    thread: 1,
                    number: 17,
                },
                found: FoundInstead::Damaged,
            },
        };
        assert_eq!(
            describe(&faulty),
            "verify failed: 3 of 512 blocks read back are not as they were written (1 corrupted, 2 stale); the first at byte 8704 (corrupted) should hold write 17 of thread 1 and holds data whose checksum is wrong"
        );
        insta::assert_snapshot!(remedy(&faulty), @"trust this storage with no data: look into the kernel's log (dmesg) and the drive's own (smartctl -a), test the memory, then run it again on another cable, port or machine to see which part is at fault");
    }

    #[test]
    fn everything_that_can_be_found_has_words() {
        let write = Write {
            thread: 2,
            number: 5,
        };
        let told = [
            FoundInstead::MadeFor(4096),
            FoundInstead::Earlier,
            FoundInstead::Written(write),
            FoundInstead::Zeros,
            FoundInstead::Unknown,
        ]
        .map(holds);
        insta::assert_snapshot!(told.join("\n"), @r"
        what was written for byte 4096
        what an earlier trial or run wrote
        write 5 of thread 2, an earlier one
        zeros
        data that iolab did not write for verification
        ");
    }
}
