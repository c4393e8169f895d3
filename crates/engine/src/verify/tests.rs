//! Tests that write blocks as a worker does and tamper with the file: reading back must report the change.

use iolab_workload::region_state::{FaultKind, Faults, FaultyBlock, Verified};
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::signer::{Signed, Signer};
use iolab_workload::trial::TrialSpec;

use super::*;
use crate::buffer::Buffers;
use iolab_storage::{Need, Target};
use iolab_workload::pattern::Offsets;
use needs::settings;
use std::sync::atomic::AtomicBool;

const BS: u64 = 4096;
const BLOCKS: u64 = 64;
const TRIAL: u64 = 77;

struct Fixture {
    _folder: tempfile::TempDir,
    target: Target,
    file: File,
    spec: TrialSpec,
    signed: Vec<Signed>,
}

fn bench(sets: &str) -> Fixture {
    let folder = tempfile::tempdir().expect("a folder");
    let need = Need::writing(BS * BLOCKS);
    let target = Target::open(folder.path(), &need).expect("a scratch file");
    target
        .fill(1, &AtomicBool::new(false), &mut |_| {})
        .expect("filled");
    let file = target.file().try_clone().expect("another descriptor");
    let common = "region=256k read_percent=0 cache=cold verify=true";
    let spec = settings(&format!("{common} {sets}"));
    Fixture {
        _folder: folder,
        target,
        file,
        spec,
        signed: Vec::new(),
    }
}

impl Fixture {
    /// Writes as worker number `worker` of a trial. `put` stores a block; the worker notices nothing of what it does.
    fn write(
        &mut self,
        worker: u32,
        trial: u64,
        writes: u64,
        put: impl Fn(&File, u64, u64, &[u8]),
    ) {
        let mut buffers = Buffers::new(&self.spec, worker).expect("memory");
        let mut signer = Signer::new(&self.spec, worker, trial, &mut buffers);
        let mut offsets = Offsets::new(&self.spec, worker);
        let mut slot = buffers.take().expect("a slot");
        for number in 0..writes {
            let offset = offsets.next_offset();
            signer.sign(&mut slot, offset, &[]);
            put(&self.file, number, offset, slot.bytes());
        }
        buffers.put(slot);
        self.signed.push(signer.finish());
    }

    fn write_all(&mut self) {
        self.write(0, TRIAL, BLOCKS, |file, _, offset, block| {
            store(file, offset, block)
        });
    }

    fn look(&self) -> (Verified, Option<FaultyBlock>) {
        let stop = AtomicBool::new(false);
        match read_back(&self.spec, &self.target, TRIAL, &self.signed, &stop) {
            Ok(Reading::Done(verified, first)) => (verified, first),
            Ok(Reading::Failed(failed)) => panic!("{failed:?}"),
            Err(error) => panic!("{error}"),
        }
    }
}

fn store(file: &File, offset: u64, bytes: &[u8]) {
    file.write_all_at(bytes, offset).expect("written");
}

fn faults(blocks: u64, first_offset: u64) -> Faults {
    Faults {
        blocks,
        first_offset,
    }
}

fn write(thread: u32, number: u64) -> Write {
    Write { thread, number }
}

/// Fault of a storage that should store a block.
type Fault = fn(&File, u64, &[u8]);

#[test]
fn each_fault_is_reported_by_kind_and_place() {
    use FaultKind::{Corrupted, Lost, Misplaced, Stale, Torn};
    use FoundInstead::{Damaged, Earlier, MadeFor, Unknown, Written, Zeros};
    const FAULTY: u64 = 11;
    let drop: Fault = |_, _, _| {};
    let halve: Fault = |file, offset, block| store(file, offset, &block[..2048]);
    let zeros: Fault = |file, offset, _| store(file, offset, &[0; BS as usize]);
    let flip: Fault = |file, offset, block| {
        store(file, offset, block);
        store(file, offset + 700, &[!block[700]]);
    };
    let shift: Fault = |file, offset, block| {
        store(file, offset, block);
        store(file, offset - BS, block);
    };
    let earlier = write(0, FAULTY);
    // Over the fill of the scratch file, over what an earlier trial wrote, over an earlier pass of this one.
    for (over, fault, kind, at, found) in [
        ("fill", drop, Lost, 0, Unknown),
        ("fill", zeros, Lost, 0, Zeros),
        ("fill", halve, Torn, 2048, Unknown),
        ("fill", flip, Corrupted, 512, Damaged),
        ("trial", drop, Stale, 0, Earlier),
        ("trial", halve, Torn, 2048, Earlier),
        ("pass", drop, Stale, 0, Written(earlier)),
        ("pass", halve, Torn, 2048, Written(earlier)),
        ("pass", shift, Misplaced, 0, MadeFor(FAULTY * BS)),
    ] {
        let mut bench = bench("");
        if over == "trial" {
            bench.write(0, TRIAL - 1, BLOCKS, |file, _, offset, block| {
                store(file, offset, block)
            });
            bench.signed.clear();
        }
        let passes = if over == "pass" { 2 } else { 1 };
        let wrong = (passes - 1) * BLOCKS + FAULTY;
        bench.write(0, TRIAL, passes * BLOCKS, |file, number, offset, block| {
            if number == wrong {
                fault(file, offset, block);
            } else {
                store(file, offset, block);
            }
        });
        let (verified, first) = bench.look();
        // What was shifted lies over the block before it.
        let number = wrong - u64::from(kind == Misplaced);
        let place = number % BLOCKS * BS + at;
        assert_eq!(verified.of(kind), faults(1, place), "{over} {kind:?}");
        assert_eq!(verified.faulty_blocks(), 1, "{over} {kind:?}");
        let first = first.expect("a fault");
        assert_eq!((first.wanted, first.found), (write(0, number), found));
    }
}

#[test]
fn either_of_two_overlapping_writes_may_come_last() {
    let older_last = |overlap| {
        let mut bench = bench("pattern=rand-replace");
        // The last two writes to some block, at some distance.
        let mut offsets = Offsets::new(&bench.spec, 0);
        let order: Vec<_> = (0..1000).map(|_| offsets.next_offset()).collect();
        let last = order.iter().rposition(|offset| *offset == order[999]);
        let before = order[..999]
            .iter()
            .rposition(|offset| *offset == order[999]);
        let distance = (last.expect("a last") - before.expect("one before")) as u64;
        bench.write(0, TRIAL, 1000, |file, number, offset, block| {
            if number != 999 {
                store(file, offset, block);
            }
        });
        bench.signed[0].overlap = distance + 1 - overlap;
        bench.look().0.faulty_blocks()
    };
    assert_eq!(older_last(1), 0, "the two may have overlapped");
    assert_eq!(older_last(2), 1, "the older one was over by then");
}

#[test]
fn blocks_with_odd_gaps_are_verified() {
    let mut bench = bench("pattern=strided skip=2560 threads=2");
    for worker in 0..2 {
        bench.write(worker, TRIAL, 40, |file, number, offset, block| {
            if number != 25 || worker != 1 {
                store(file, offset, block);
            }
        });
    }
    let (verified, first) = bench.look();
    let first = first.expect("a fault");
    // A pass has fewer than 25 writes, so that the block was written before and its older data is found.
    assert_eq!(first.kind, FaultKind::Stale);
    assert_eq!(verified.faulty_blocks(), 1);
    assert_eq!(first.wanted, write(1, 25));
    let mut offsets = Offsets::new(&bench.spec, 1);
    let place = (0..=25).map(|_| offsets.next_offset()).last();
    assert_eq!(place, Some(first.offset));
}

#[test]
fn a_raised_flag_ends_reading() {
    let mut bench = bench("");
    bench.write_all();
    let stop = AtomicBool::new(true);
    let result = read_back(&bench.spec, &bench.target, TRIAL, &bench.signed, &stop);
    let kind = result.err().map(|error| error.kind());
    assert_eq!(kind, Some(iolab_workload::Kind::Interrupted));
}

#[test]
fn an_unreadable_block_is_a_failed_request() {
    let mut bench = bench("");
    bench.write_all();
    bench.file.set_len(10 * BS).expect("cut");
    let stop = AtomicBool::new(false);
    match read_back(&bench.spec, &bench.target, TRIAL, &bench.signed, &stop) {
        Ok(Reading::Failed(failed)) => assert_eq!((failed.errno, failed.offset), (0, 10 * BS)),
        _ => panic!("the end of the file is not an answer"),
    }
}

#[test]
fn no_two_trials_are_the_same() {
    let first = identity(5);
    std::thread::sleep(std::time::Duration::from_micros(10));
    assert_ne!(first, identity(5));
}
