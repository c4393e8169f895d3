//! Threads that wait for a CPU which other programs use.

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::NICE;

use super::{ActsOn, Check, Compared, Counted, Intervention, Obstacle, Sides, Suspect};

/// Above the real-time priorities of ordinary systems, below the kernel's own.
const REALTIME: u8 = 50;
/// The share of their time in which threads wait for others on any machine.
const USUAL: f64 = 0.05;

pub(super) const SUSPECT: Suspect = Suspect {
    name: "cpu-waiting",
    what: "threads that wait for a CPU which others use",
    change: "nice=-20, or realtime=50 with --change-system",
    acts_on: ActsOn::Worse,
    order: 2,
    counted: Some(Counted::CpuWait),
    check: Check::LessCpuWait,
    explains: &[Compared::Cells, Compared::Quantiles],
    take_off,
};

fn take_off(sides: &Sides) -> Intervention {
    let waited = sides.machine.cpu_wait.is_some_and(|share| share > USUAL);
    if sides.is_model || !waited {
        return Intervention::Irrelevant;
    }
    // A nice value is none among real-time threads, before which only others of their kind come; these can keep all else from a CPU.
    // With a kernel thread that polls, threads of that kind keep it from the CPU; and they have no nice value.
    let excludes = |cell: &CellSpec| cell.trial.sqpoll || cell.trial.nice.is_some();
    let machine = &sides.machine;
    if machine.may_change_system
        && machine.may_be_realtime
        && !excludes(&sides.base)
        && !excludes(&sides.other)
    {
        return sides.changed(|cell| cell.trial.realtime = Some(REALTIME));
    }
    match sides.changed(|cell| cell.trial.nice = Some(*NICE.start())) {
        Intervention::Settings(_) if !machine.may_raise_nice => {
            Intervention::Lacks(Obstacle::NeedsRoot)
        }
        intervention => intervention,
    }
}
