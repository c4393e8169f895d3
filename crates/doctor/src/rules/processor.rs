//! Clock and processors.

use iolab_host::load::Load;
use iolab_host::processor::CoreKind;
use iolab_workload::counters::NoHardware;

use super::{Facts, Said, fine, worth_knowing};
use iolab_workload::quantity::format_ns;

/// Cost or resolution of a stamp above which it shows in the latency of fast requests, ns.
const STAMP_DEAR_NS: f64 = 100.0;
/// Time of a system call above which it shows in small buffered requests, ns.
const CALL_DEAR_NS: f64 = 500.0;

/// Reports the clock that times requests.
pub(super) fn clock(facts: &Facts) -> Option<Said> {
    let clock = facts.clock.as_ref()?;
    let what = format!(
        "requests are timed by {}; one stamp takes {}, resolution {}",
        clock.source,
        format_ns(clock.cost_ns),
        format_ns(clock.resolution_ns)
    );
    let is_fine = clock.is_counter && clock.cost_ns.max(clock.resolution_ns) <= STAMP_DEAR_NS;
    Some(if is_fine {
        fine(what)
    } else {
        let finding = worth_knowing(format!(
            "{what}: cells with requests that are not much longer are flagged"
        ));
        finding.remedy("cat /sys/devices/system/clocksource/clocksource0/current_clocksource")
    })
}

/// Reports the number of usable CPUs.
pub(super) fn count(facts: &Facts) -> Option<Said> {
    let processor = &facts.processor;
    let usable = processor.usable?;
    Some(match processor.present {
        // A separate rule reports the quota of a control group.
        Some(present) if usable < present && facts.cgroup.cpus.is_none() => worth_knowing(format!("{usable} of {present} CPUs may be used (affinity or cpuset): more threads than that share them"))
        .remedy("taskset -pc $$"),
        _ => {
            let noun = if usable == 1 { "CPU" } else { "CPUs" };
            fine(format!("{usable} {noun} may be used"))
        }
    })
}

/// Reports cores of several kinds.
pub(super) fn core_kinds(facts: &Facts) -> Option<Said> {
    let kinds = &facts.processor.kinds;
    if kinds.is_empty() {
        return None;
    }
    let texts: Vec<String> = kinds.iter().map(CoreKind::to_string).collect();
    let finding = worth_knowing(format!(
        "the CPUs differ in speed ({}): which of them a thread runs on changes what it measures",
        texts.join("; ")
    ));
    let fastest = kinds.iter().max_by_key(|kind| kind.capacity);
    Some(match fastest.filter(|kind| kind.capacity.is_some()) {
        Some(kind) => finding.remedy(format!("iolab run EXPERIMENT --set cpus={}", kind.cpus)),
        None => finding,
    })
}

/// Reports frequencies that follow the load.
pub(super) fn frequency(facts: &Facts) -> Option<Said> {
    let processor = &facts.processor;
    let boost = match processor.boost {
        Some(true) => "; boost is on: the frequency depends on heat and on how many cores work",
        Some(false) => "; boost is off",
        None => "",
    };
    Some(match processor.governor.as_deref() {
        None if facts.is_virtual == Some(true) => fine("the host controls the CPU frequency; this guest cannot see it"),
        None => return None,
        Some("performance") => fine(format!("the governor is performance{boost}")),
        Some(governor) => worth_knowing(format!("the governor is {governor}: waiting for a device lets the frequency drop, which lengthens short requests{boost}"))
        .remedy("sudo cpupower frequency-set -g performance"),
    })
}

/// Reports battery power.
pub(super) fn battery(facts: &Facts) -> Option<Said> {
    let is_on = facts.processor.on_battery == Some(true);
    is_on.then(|| {
        worth_knowing("the machine runs on battery: processor and disk may be slowed down; connect it to power")
    })
}

/// Reports heat.
pub(super) fn heat(facts: &Facts) -> Option<Said> {
    let times = facts.processor.throttled.filter(|times| *times > 0)?;
    Some(worth_knowing(format!(
        "heat has throttled the processors {times} times since the machine was started"
    )))
}

/// Reports mitigations that make every call into the kernel slower.
pub(super) fn mitigations(facts: &Facts) -> Option<Said> {
    let processor = &facts.processor;
    let dear: Vec<&str> = processor
        .mitigations
        .iter()
        .filter_map(|(flaw, what)| is_dear(what).then_some(flaw.as_str()))
        .collect();
    let call = processor.system_call_ns;
    let took = call.map_or(String::new(), |ns| {
        format!("a system call takes {}", format_ns(ns))
    });
    let is_slow = call.is_some_and(|ns| ns > CALL_DEAR_NS);
    if dear.is_empty() && !is_slow {
        return call.map(|_| fine(took));
    }
    let why = match dear.as_slice() {
        [] => String::new(),
        some => format!(
            "CPU vulnerability mitigations are active ({})",
            some.join(", ")
        ),
    };
    let what = [took, why].into_iter().filter(|part| !part.is_empty());
    let what = what.collect::<Vec<_>>().join("; ");
    Some(
        worth_knowing(format!(
            "{what}: small requests cost more than on machines without"
        ))
        .remedy("grep . /sys/devices/system/cpu/vulnerabilities/*"),
    )
}

/// Whether a mitigation acts whenever the kernel is entered or left (Documentation/admin-guide/hw-vuln).
fn is_dear(what: &str) -> bool {
    let starts = [
        "PTI", "Clear CPU buffers", "IBRS", "untrained return thunk", "Safe RET", "IBPB",
    ];
    starts.iter().any(|start| what.starts_with(start))
}

/// Reports two CPUs on one core.
pub(super) fn smt(facts: &Facts) -> Option<Said> {
    match facts.processor.smt {
        Some(true) => Some(fine(
            "pairs of CPUs share a core: using all of them does not double the speed",
        )),
        _ => None,
    }
}

/// Reports the use of huge pages for buffers.
pub(super) fn huge_pages(facts: &Facts) -> Option<Said> {
    let meaning = match facts.huge_pages.as_deref() {
        Some("always") => "always: large buffers get them unless buffer_init=nohuge",
        Some("madvise") => "madvise: buffers of direct I/O get them",
        Some("never") => "never: buffer_init=huge changes nothing",
        _ => return None,
    };
    Some(fine(format!("transparent huge pages are set to {meaning}")))
}

/// Reports whether the processor counts its events.
pub(super) fn events(facts: &Facts) -> Option<Said> {
    let reason = match facts.hardware {
        None => return None,
        Some(Ok(())) => {
            return Some(fine("cycles, instructions and cache misses can be counted"));
        }
        Some(Err(reason)) => reason,
    };
    let (why, remedy) = match reason {
        NoHardware::NotPermitted => (
            "the kernel does not let this user",
            Some("sudo sysctl kernel.perf_event_paranoid=1"),
        ),
        NoHardware::Busy => ("another program holds the counters", None),
        NoHardware::NoKernelSupport => ("the kernel was built without perf events", None),
        NoHardware::NotOffered | NoHardware::NotAsked => {
            ("the processor, or the hypervisor below, offers none", None)
        }
    };
    let what = format!("cycles and cache misses cannot be counted: {why}");
    let finding = worth_knowing(what);
    Some(match remedy {
        Some(command) => finding.remedy(command),
        None => finding,
    })
}

/// Reports missing pressure stall information, without which waits of the whole machine are unknown.
pub(super) fn pressure(facts: &Facts) -> Option<Said> {
    let is_told = |load: &Load| load.memory_stall.is_some();
    match facts.load.as_ref().map(is_told) {
        None | Some(true) => None,
        Some(false) => Some(worth_knowing(
            "the kernel does not report how long tasks wait for CPUs, I/O and memory (PSI): only waits and preemptions of iolab's own threads show a disturbance; psi=1 on the kernel's command line turns it on, if the kernel has it",
        )),
    }
}
