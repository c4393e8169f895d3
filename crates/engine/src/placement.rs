//! CPUs and priorities of the workers of a trial.

use std::cmp::Reverse;
use std::io;
use std::path::Path;

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use iolab_storage::sysfs::value;
use iolab_workload::system_settings::{CPU_MAX, Cpus, Placement};
use iolab_workload::trial::{NICE, REALTIME, TrialSpec};
use iolab_workload::{Error, Result, usage_errors};

/// Folder in which the kernel lists the CPUs.
const CPU_FOLDER: &str = "/sys/devices/system/cpu";

/// Position of a CPU in the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seat {
    cpu: u32,
    /// Speed of the core relative to the fastest ones, which have 1024; 0 if the kernel knows no difference.
    capacity: u64,
    package: u64,
    core: u64,
}

/// Checks the CPUs of a trial against the machine.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a CPU that does not exist, or that this process may not use.
pub fn check(spec: &TrialSpec) -> Result<()> {
    if spec.cpus.is_some() || spec.placement != Placement::Float {
        cpus_of(spec, 0)?;
    }
    Ok(())
}

/// The CPUs that this process may use.
pub fn allowed() -> Cpus {
    let mask = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    members(&mask)
}

/// The CPUs of a mask.
fn members(mask: &CpuSet) -> Cpus {
    Cpus::new((0..=CPU_MAX).filter(|cpu| mask.is_set(*cpu as usize)))
}

/// The CPUs that worker number `worker` of a trial may run on.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the trial names one that is not there, or not allowed to this process.
pub fn cpus_of(spec: &TrialSpec, worker: u32) -> Result<Cpus> {
    let allowed = allowed();
    let cpus = spec.cpus.as_ref().unwrap_or(&allowed);
    let missing = cpus.without(&allowed);
    usage_errors! {
        !missing.is_empty() => format!("cpus={cpus}: CPU {missing} does not exist, or this process may not use it"),
            format!("choose among {allowed}; 'lscpu -e' shows where they lie");
    }
    if spec.placement == Placement::Float {
        return Ok(cpus.clone());
    }
    let seats: Vec<Seat> = cpus.numbers().iter().map(|cpu| seat(*cpu)).collect();
    let order = in_order(seats, spec.placement);
    let own = order.get(worker as usize % order.len().max(1)).copied();
    Ok(Cpus::new(own))
}

fn seat(cpu: u32) -> Seat {
    let folder = Path::new(CPU_FOLDER).join(format!("cpu{cpu}"));
    let topology = folder.join("topology");
    Seat {
        cpu,
        capacity: value(folder.join("cpu_capacity")).unwrap_or(0),
        package: value(topology.join("physical_package_id")).unwrap_or(0),
        // If the kernel does not report it, each CPU is a core of its own.
        core: value(topology.join("core_id")).unwrap_or(cpu.into()),
    }
}

/// The CPUs in the order in which workers take them.
fn in_order(mut seats: Vec<Seat>, placement: Placement) -> Vec<u32> {
    seats.sort_by_key(|seat| (Reverse(seat.capacity), seat.package, seat.core, seat.cpu));
    if placement == Placement::Spread {
        // Place among the hardware threads of its core, and of that core in its package.
        let ranked = seats.iter().map(|seat| {
            let before = seats.iter().take_while(|other| *other != seat);
            let of_core = |other: &&Seat| (other.package, other.core) == (seat.package, seat.core);
            let sibling = before.clone().filter(of_core).count();
            let mut cores: Vec<u64> = before
                .filter(|other| other.package == seat.package && other.core != seat.core)
                .map(|other| other.core)
                .collect();
            cores.dedup();
            (
                sibling,
                Reverse(seat.capacity),
                cores.len(),
                seat.package,
                seat.cpu,
            )
        });
        let mut ranked: Vec<_> = ranked.collect();
        ranked.sort_unstable();
        return ranked.into_iter().map(|(.., cpu)| cpu).collect();
    }
    seats.into_iter().map(|seat| seat.cpu).collect()
}

/// Has the calling thread run where worker number `worker` shall, with the priority of the trial. To be called before the worker
/// touches its buffers.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the kernel refuses it.
pub(crate) fn settle(spec: &TrialSpec, worker: u32) -> Result<()> {
    if spec.cpus.is_some() || spec.placement != Placement::Float {
        let cpus = cpus_of(spec, worker)?;
        restrict(&cpus).map_err(|error| {
            Error::usage(format!(
                "thread {} cannot run on CPU {cpus}: {error}",
                worker + 1
            ))
            .hint("choose other cpus; 'lscpu -e' shows which are online")
        })?;
    }
    if let Some(nice) = spec.nice {
        set_nice(nice)?;
    }
    spec.realtime.map_or(Ok(()), become_realtime)
}

/// Whether the kernel lets threads of this process have the highest nice value.
pub fn may_raise_nice() -> bool {
    is_possible(|| set_nice(*NICE.start()))
}

/// Whether the kernel lets threads of this process be real-time threads; in a control group without time for these it does not, not even as root.
pub fn may_be_realtime() -> bool {
    is_possible(|| become_realtime(*REALTIME.start()))
}

/// Whether a thread, which ends then, can do this.
fn is_possible(change: fn() -> Result<()>) -> bool {
    let thread = std::thread::Builder::new().spawn(change).ok();
    thread
        .and_then(|thread| thread.join().ok())
        .is_some_and(|changed| changed.is_ok())
}

/// Gives this thread a nice value.
fn set_nice(nice: i8) -> Result<()> {
    // For Linux the process of number 0 is the calling thread.
    setpriority_process(None, nice.into()).map_err(|errno| {
        Error::usage(format!("the kernel refuses nice={nice}: {errno}"))
            .hint("a value below the nice value of the process needs CAP_SYS_NICE: run as root, or choose a greater one")
    })
}

/// Makes this thread a real-time thread.
fn become_realtime(priority: u8) -> Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority.into(),
    };
    // Threads that the kernel starts for this one, such as workers of io_uring, are ordinary ones.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameters outlive the call, which changes nothing but the scheduling of this thread.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => {
            let why = io::Error::last_os_error();
            Err(Error::usage(format!("the kernel refuses realtime={priority}: {why}"))
                .hint("real-time threads need CAP_SYS_NICE (run as root), and a control group that may have them"))
        }
    }
}

/// The CPUs that a thread was seen on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen(CpuSet);

impl Seen {
    /// Notes the CPU that this thread runs on now.
    #[inline(never)]
    pub(crate) fn look(&mut self) {
        let cpu = sched_getcpu();
        if cpu <= CPU_MAX as usize {
            self.0.set(cpu);
        }
    }

    /// The numbers of the CPUs.
    pub(crate) fn cpus(&self) -> Cpus {
        members(&self.0)
    }
}

/// Restricts this thread to these CPUs.
///
/// # Errors
/// The kernel's error.
fn restrict(cpus: &Cpus) -> rustix::io::Result<()> {
    let mut mask = CpuSet::new();
    cpus.numbers()
        .iter()
        .for_each(|cpu| mask.set(*cpu as usize));
    sched_setaffinity(None, &mask)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use needs::settings;

    /// Two packages of two cores with two hardware threads, numbered as most machines do.
    fn machine() -> Vec<Seat> {
        let seat = |cpu: u32| Seat {
            cpu,
            capacity: 0,
            package: u64::from(cpu / 2 % 2),
            core: u64::from(cpu % 2),
        };
        (0..8).map(seat).collect()
    }

    #[test]
    fn the_nice_value_applies_to_the_thread_alone() {
        let spec = settings("nice=19");
        let nice = || rustix::process::getpriority_process(None).expect("known");
        let of_worker = thread::scope(|scope| {
            let worker = scope.spawn(|| settle(&spec, 0).map(|()| nice()));
            worker.join().expect("no panic")
        });
        assert_eq!(of_worker.expect("raising needs no privilege"), 19);
        assert!(nice() < 19);
    }

    #[test]
    fn packed_threads_share_cores_and_spread_do_not() {
        assert_eq!(
            in_order(machine(), Placement::Packed),
            [0, 4, 1, 5, 2, 6, 3, 7]
        );
        assert_eq!(
            in_order(machine(), Placement::Spread),
            [0, 2, 1, 3, 4, 6, 5, 7]
        );
    }

    #[test]
    fn the_fastest_cores_are_taken_first() {
        // Four slow cores in one cluster, then two fast ones; and a fast core with two hardware threads next to two others.
        let cluster = |cpu: u32| Seat {
            cpu,
            capacity: if cpu < 4 { 446 } else { 1024 },
            package: u64::from(cpu / 4),
            core: u64::from(cpu % 4),
        };
        let hybrid = |cpu: u32| Seat {
            cpu,
            capacity: if cpu < 2 { 1024 } else { 600 },
            package: 0,
            core: u64::from(cpu.max(1)),
        };
        for placement in [Placement::Spread, Placement::Packed] {
            assert_eq!(
                in_order((0..6).map(cluster).collect(), placement),
                [4, 5, 0, 1, 2, 3]
            );
        }
        let seats = || (0..4).map(hybrid).collect();
        assert_eq!(in_order(seats(), Placement::Packed), [0, 1, 2, 3]);
        assert_eq!(in_order(seats(), Placement::Spread), [0, 2, 3, 1]);
    }

    #[test]
    fn every_worker_has_a_cpu_of_the_list() {
        let all = allowed();
        for placement in Placement::ALL {
            let spec = settings(&format!("threads=64 placement={placement} cpus={all}"));
            for worker in 0..spec.threads {
                let cpus = cpus_of(&spec, worker).expect("allowed");
                assert!(cpus.without(&all).is_empty() && !cpus.is_empty());
                assert_eq!(
                    cpus.numbers().len() == 1,
                    *placement != Placement::Float || all.numbers().len() == 1
                );
            }
        }
    }

    #[test]
    fn a_missing_cpu_is_refused_by_number() {
        let spec = settings(&format!("cpus={CPU_MAX}"));
        if !allowed().numbers().contains(&CPU_MAX) {
            let error = check(&spec).expect_err("no machine has 8192 CPUs");
            insta::assert_snapshot!(error.message(), @"cpus=1023: CPU 1023 does not exist, or this process may not use it");
        }
    }

    #[test]
    fn restricts_a_thread_to_a_cpu_and_back() {
        let all = allowed();
        let last = Cpus::new(all.numbers().last().copied());
        let seen = thread::scope(|scope| {
            let thread = scope.spawn(|| {
                restrict(&last).expect("allowed");
                let restricted = allowed();
                restrict(&all).expect("allowed");
                (restricted, allowed())
            });
            thread.join().expect("no panic")
        });
        assert_eq!(seen, (last, all));
    }
}
