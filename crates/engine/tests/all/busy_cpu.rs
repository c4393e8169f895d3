//! Trials on a CPU that others use all the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use iolab_storage::Target;
use iolab_workload::trial::Backend;

use crate::files::{run, scratch};
use crate::skip;
use needs::settings;

const SIZE: u64 = 4 << 20;
/// Programs that use the CPU.
const SPINNERS: usize = 3;
/// Trials of each backend.
const ROUNDS: usize = 3;

fn bind(cpu: usize) {
    let mut one = rustix::thread::CpuSet::new();
    one.set(cpu);
    rustix::thread::sched_setaffinity(None, &one).expect("a CPU that it has");
}

/// Reads of each backend in turn on this CPU; `None` if one of them is not possible here.
fn reads_by_backend(cpu: usize, target: &Target) -> Option<Vec<[u64; 2]>> {
    let common = format!("cpus={cpu} depth=8 region=4M pattern=rand time=200ms");
    let reads = |backend: Backend| {
        let spec = settings(&format!("backend={backend} {common}"));
        let outcome = run(&spec, target).map_err(|error| skip(&spec, &error));
        Some(outcome.ok()?.operations.moved().read.requests)
    };
    let rounds = (0..ROUNDS).map(|_| Some([reads(Backend::IoUring)?, reads(Backend::Libaio)?]));
    rounds.collect()
}

/// A sleeper has the CPU back when its requests complete; a thread that gives it away while it looks has it back after the time slices of all
/// others, and made a hundredth of the requests.
#[test]
fn a_ring_does_not_give_its_cpu_away() {
    let (_folder, target) = scratch(SIZE);
    let all = rustix::thread::sched_getaffinity(None).expect("a mask");
    let cpu = (0..).find(|cpu| all.is_set(*cpu)).expect("a CPU");
    let over = AtomicBool::new(false);
    let rounds = thread::scope(|scope| {
        for _ in 0..SPINNERS {
            scope.spawn(|| {
                bind(cpu);
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let measured = scope.spawn(|| reads_by_backend(cpu, &target)).join();
        over.store(true, Ordering::Relaxed);
        measured.expect("no panic")
    });
    let Some(rounds) = rounds else {
        return;
    };
    let most = |backend: usize| rounds.iter().map(|round| round[backend]).max();
    let [ring, other] = [0, 1].map(|backend| most(backend).expect("rounds"));
    // The best round: in another, programs next to the spinners may have had the CPU or the disk.
    assert!(20 * ring > other, "{rounds:?}");
}
