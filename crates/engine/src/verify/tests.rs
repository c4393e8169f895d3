//! Tests that write blocks as a worker does and tamper with the file: reading back must report the change.

use iolab_workload::verify::FaultKind;
use iolab_workload::verify::Faults;
use iolab_workload::verify::FaultyBlock;
use iolab_workload::verify::Verified;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::signer::{Signed, Signer};
use iolab_workload::trial::TrialSpec;

use super::*;
use crate::buffer::Buffers;
use iolab_storage::{Need, Target};
use iolab_workload::pattern::Offsets;
use iolab_workload::trial::{CacheState, Pattern};
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

fn bench(spec: TrialSpec) -> Fixture {
    let folder = tempfile::tempdir().expect("a folder");
    let need = Need::writing(BS * BLOCKS);
    let target = Target::open(folder.path(), &need).expect("a scratch file");
    target
        .fill(1, &AtomicBool::new(false), &mut |_| {})
        .expect("filled");
    let file = target.file().try_clone().expect("another descriptor");
    let spec = TrialSpec {
        bs: BS,
        region: BS * BLOCKS,
        read_percent: 0,
        cache: CacheState::Cold,
        verify: true,
        ..spec
    };
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

    /// The only kind of fault there is, with its blocks and its first byte, and the first fault.
    #[track_caller]
    fn only(&self) -> (FaultKind, Faults, FaultyBlock) {
        let (verified, first) = self.look();
        let kinds: Vec<_> = FaultKind::ALL
            .into_iter()
            .filter(|kind| verified.of(*kind).blocks > 0)
            .collect();
        let first = first.unwrap_or_else(|| panic!("nothing was found: {verified:?}"));
        assert_eq!(kinds, [first.kind], "{verified:?}");
        (first.kind, verified.of(first.kind), first)
    }

    fn block(&self, offset: u64) -> Vec<u8> {
        let mut block = vec![0; BS as usize];
        self.file.read_exact_at(&mut block, offset).expect("read");
        block
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

#[test]
fn written_blocks_are_found() {
    let mut bench = bench(TrialSpec::default());
    bench.write_all();
    let (verified, first) = bench.look();
    assert_eq!(first, None);
    assert_eq!((verified.blocks, verified.bytes), (BLOCKS, BLOCKS * BS));
}

#[test]
fn only_written_blocks_are_read() {
    let spec = TrialSpec {
        pattern: Pattern::Rand,
        ..TrialSpec::default()
    };
    let mut bench = bench(spec);
    bench.write(0, TRIAL, 10, |file, _, offset, block| {
        store(file, offset, block)
    });
    let (verified, first) = bench.look();
    assert_eq!((verified.blocks, first), (10, None));
}

#[test]
fn a_changed_byte_is_corrupted() {
    let mut bench = bench(TrialSpec::default());
    bench.write_all();
    for at in [5 * BS + 700, 9 * BS, 20 * BS + 511] {
        let mut byte = [0];
        bench.file.read_exact_at(&mut byte, at).expect("read");
        store(&bench.file, at, &[!byte[0]]);
    }
    let (kind, found, first) = bench.only();
    assert_eq!(
        (kind, found),
        (FaultKind::Corrupted, faults(3, 5 * BS + 512))
    );
    assert_eq!(
        (first.wanted, first.found),
        (write(0, 5), FoundInstead::Damaged)
    );
}

#[test]
fn a_block_in_the_wrong_place_is_misplaced() {
    let mut bench = bench(TrialSpec::default());
    bench.write_all();
    let block = bench.block(9 * BS);
    store(&bench.file, 3 * BS, &block);
    let (kind, found, first) = bench.only();
    assert_eq!((kind, found), (FaultKind::Misplaced, faults(1, 3 * BS)));
    assert_eq!(first.found, FoundInstead::MadeFor(9 * BS));
}

#[test]
fn a_lost_write_of_pass_two_is_stale() {
    let mut bench = bench(TrialSpec::default());
    bench.write(0, TRIAL, 2 * BLOCKS, |file, number, offset, block| {
        if ![BLOCKS + 7, BLOCKS + 8].contains(&number) {
            store(file, offset, block);
        }
    });
    let (kind, found, first) = bench.only();
    assert_eq!((kind, found), (FaultKind::Stale, faults(2, 7 * BS)));
    assert_eq!(first.wanted, write(0, BLOCKS + 7));
    assert_eq!(first.found, FoundInstead::Written(write(0, 7)));
}

#[test]
fn data_of_an_earlier_trial_is_stale() {
    let mut bench = bench(TrialSpec::default());
    bench.write(0, TRIAL - 1, BLOCKS, |file, _, offset, block| {
        store(file, offset, block)
    });
    bench.signed.clear();
    bench.write(0, TRIAL, BLOCKS, |file, number, offset, block| {
        if number != 30 {
            store(file, offset, block);
        }
    });
    let (kind, found, first) = bench.only();
    assert_eq!((kind, found), (FaultKind::Stale, faults(1, 30 * BS)));
    assert_eq!(first.found, FoundInstead::Earlier);
}

#[test]
fn half_a_write_is_torn_whatever_was_there() {
    let half = |file: &File, number: u64, offset: u64, block: &[u8], torn: u64| {
        let length = if number == torn { 2048 } else { block.len() };
        store(file, offset, &block[..length]);
    };
    // Over what an earlier trial wrote, over an earlier pass, over the fill of the scratch file.
    let mut over_trial = bench(TrialSpec::default());
    over_trial.write(0, TRIAL - 1, BLOCKS, |file, _, offset, block| {
        store(file, offset, block)
    });
    over_trial.signed.clear();
    let mut over_fill = bench(TrialSpec::default());
    for (bench, found) in [
        (&mut over_trial, FoundInstead::Earlier),
        (&mut over_fill, FoundInstead::Unknown),
    ] {
        bench.write(0, TRIAL, BLOCKS, |file, number, offset, block| {
            half(file, number, offset, block, 11);
        });
        let (kind, torn, first) = bench.only();
        assert_eq!((kind, torn), (FaultKind::Torn, faults(1, 11 * BS + 2048)));
        assert_eq!((first.wanted, first.found), (write(0, 11), found));
    }
    let mut over_pass = bench(TrialSpec::default());
    over_pass.write(0, TRIAL, 2 * BLOCKS, |file, number, offset, block| {
        half(file, number, offset, block, BLOCKS + 11);
    });
    let (kind, torn, first) = over_pass.only();
    assert_eq!((kind, torn), (FaultKind::Torn, faults(1, 11 * BS + 2048)));
    assert_eq!(first.wanted, write(0, BLOCKS + 11));
    assert_eq!(first.found, FoundInstead::Written(write(0, 11)));
}

#[test]
fn a_write_that_never_arrived_is_lost() {
    for (fill, found) in [
        (None, FoundInstead::Unknown),
        (Some([0; BS as usize]), FoundInstead::Zeros),
    ] {
        let mut bench = bench(TrialSpec::default());
        bench.write(0, TRIAL, BLOCKS, |file, number, offset, block| {
            match (number, fill) {
                (12, Some(zeros)) => store(file, offset, &zeros),
                (12, None) => {}
                _ => store(file, offset, block),
            }
        });
        let (kind, lost, first) = bench.only();
        assert_eq!((kind, lost), (FaultKind::Lost, faults(1, 12 * BS)));
        assert_eq!((first.wanted, first.found), (write(0, 12), found));
    }
}

#[test]
fn all_kinds_are_counted_apart() {
    let mut bench = bench(TrialSpec::default());
    bench.write(
        0,
        TRIAL,
        2 * BLOCKS,
        |file, number, offset, block| match number.checked_sub(BLOCKS) {
            Some(1) => {}
            Some(2) => store(file, offset, &block[..1024]),
            Some(3) => store(file, offset - BS, block),
            Some(4) => store(file, offset, &[0; BS as usize]),
            Some(5) => store(file, offset, &[&block[..4000], &[0; 96]].concat()),
            _ => store(file, offset, block),
        },
    );
    let (verified, first) = bench.look();
    let counts = FaultKind::ALL.map(|kind| verified.of(kind).blocks);
    // The fourth write went over the torn one, and left what was there before in its own place.
    assert_eq!(counts, [1, 1, 2, 0, 1]);
    assert_eq!(first.map(|first| first.offset), Some(BS));
}

#[test]
fn either_of_two_overlapping_writes_may_come_last() {
    let older_last = |overlap| {
        let spec = TrialSpec {
            pattern: Pattern::RandReplace,
            ..TrialSpec::default()
        };
        let mut bench = bench(spec);
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
fn writes_of_several_threads_come_in_any_order() {
    let spec = TrialSpec {
        pattern: Pattern::Zipf(1.2),
        threads: 3,
        ..TrialSpec::default()
    };
    let mut bench = bench(spec);
    for worker in [2, 0, 1] {
        bench.write(worker, TRIAL, 200, |file, _, offset, block| {
            store(file, offset, block)
        });
    }
    let (verified, first) = bench.look();
    assert!(verified.blocks > 10);
    assert_eq!(first, None);
}

#[test]
fn blocks_with_odd_gaps_are_verified() {
    let spec = TrialSpec {
        pattern: Pattern::Strided,
        skip: 5 * 512,
        threads: 2,
        ..TrialSpec::default()
    };
    let mut bench = bench(spec);
    for worker in 0..2 {
        bench.write(worker, TRIAL, 40, |file, number, offset, block| {
            if number != 25 || worker != 1 {
                store(file, offset, block);
            }
        });
    }
    let (kind, faulty, first) = bench.only();
    // A pass has fewer than 25 writes, so that the block was written before and its older data is found.
    assert_eq!((kind, faulty.blocks), (FaultKind::Stale, 1));
    assert_eq!(first.wanted, write(1, 25));
    let mut offsets = Offsets::new(&bench.spec, 1);
    let place = (0..=25).map(|_| offsets.next_offset()).last();
    assert_eq!(place, Some(first.offset));
}

#[test]
fn a_raised_flag_ends_reading() {
    let mut bench = bench(TrialSpec::default());
    bench.write_all();
    let stop = AtomicBool::new(true);
    let result = read_back(&bench.spec, &bench.target, TRIAL, &bench.signed, &stop);
    let kind = result.err().map(|error| error.kind());
    assert_eq!(kind, Some(iolab_workload::Kind::Interrupted));
}

#[test]
fn an_unreadable_block_is_a_failed_request() {
    let mut bench = bench(TrialSpec::default());
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
