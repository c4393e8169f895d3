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

#[cfg(test)]
mod tests {
    use super::super::super::Severity::{Fine, WorthKnowing};
    use super::super::super::facts::TimeStamps;
    use super::super::testing::{is_silent, only};
    use super::*;
    use iolab_host::processor::Processor;
    use iolab_workload::cpus::Cpus;

    #[test]
    fn a_kernel_without_pressure_is_told_of() {
        let of = |memory_stall| Facts {
            load: Some(Load {
                memory_stall,
                ..Load::default()
            }),
            ..Facts::default()
        };
        assert!(pressure(&of(Some(0.0))).is_none() && pressure(&Facts::default()).is_none());
        let (severity, what, _) = only(pressure(&of(None)));
        assert_eq!(severity, WorthKnowing);
        insta::assert_snapshot!(what, @"the kernel does not report how long tasks wait for CPUs, I/O and memory (PSI): only waits and preemptions of iolab's own threads show a disturbance; psi=1 on the kernel's command line turns it on, if the kernel has it");
    }

    fn with(processor: Processor) -> Facts {
        Facts {
            processor,
            ..Facts::default()
        }
    }

    #[test]
    fn a_quiet_server_is_fine() {
        let facts = Facts {
            clock: Some(stamps("tsc", 11.0, 0.4)),
            hardware: Some(Ok(())),
            huge_pages: Some("madvise".to_owned()),
            ..with(Processor {
                usable: Some(8),
                present: Some(8),
                governor: Some("performance".to_owned()),
                boost: Some(true),
                smt: Some(true),
                throttled: Some(0),
                mitigations: vec![("spectre_v1".to_owned(), "usercopy barriers".to_owned())],
                system_call_ns: Some(90.0),
                on_battery: Some(false),
                ..Processor::default()
            })
        };
        for rule in [
            clock, count, core_kinds, frequency, battery, heat, mitigations, smt, huge_pages,
            events,
        ] as [fn(&Facts) -> Option<Said>; 10]
        {
            assert!(is_silent(rule(&facts)), "{:?}", rule(&facts));
        }
    }

    fn stamps(source: &str, cost_ns: f64, resolution_ns: f64) -> TimeStamps {
        TimeStamps {
            source: source.to_owned(),
            is_counter: true,
            cost_ns,
            resolution_ns,
        }
    }

    #[test]
    fn a_coarse_counter_is_told() {
        let severity = |resolution_ns| {
            let facts = Facts {
                clock: Some(stamps("cntvct", 20.0, resolution_ns)),
                ..Facts::default()
            };
            only(clock(&facts)).0
        };
        assert_eq!(severity(41.7), Fine);
        // A timer of 8 MHz.
        assert_eq!(severity(125.0), WorthKnowing);
    }

    #[test]
    fn another_clock_is_told_with_its_reason() {
        let facts = Facts {
            clock: Some(TimeStamps {
                is_counter: false,
                ..stamps("clock_monotonic_raw (no invariant counter)", 30.0, 1.0)
            }),
            ..Facts::default()
        };
        let (severity, what, _) = only(clock(&facts));
        assert_eq!(severity, WorthKnowing);
        insta::assert_snapshot!(what, @"requests are timed by clock_monotonic_raw (no invariant counter); one stamp takes 30 ns, resolution 1 ns: cells with requests that are not much longer are flagged");
    }

    #[test]
    fn fewer_cpus_than_there_are() {
        let mut facts = with(Processor {
            usable: Some(2),
            present: Some(8),
            ..Processor::default()
        });
        assert_eq!(only(count(&facts)).0, WorthKnowing);
        facts.cgroup.cpus = Some(2.0);
        assert_eq!(only(count(&facts)).0, Fine);
    }

    #[test]
    fn core_kinds_are_reported_with_the_fastest() {
        let kind = |first, last, capacity| CoreKind {
            cpus: Cpus::new(first..=last),
            model: None,
            capacity: Some(capacity),
            l1d: None,
            frequency_max_khz: None,
            governor: None,
        };
        let facts = with(Processor {
            kinds: vec![kind(0, 3, 446), kind(4, 5, 1024)],
            ..Processor::default()
        });
        let (severity, what, remedy) = only(core_kinds(&facts));
        assert_eq!(severity, WorthKnowing);
        insta::assert_snapshot!(what, @"the CPUs differ in speed (0-3, capacity 446; 4-5, capacity 1024): which of them a thread runs on changes what it measures");
        assert_eq!(
            remedy.as_deref(),
            Some("iolab run EXPERIMENT --set cpus=4-5")
        );
    }

    #[test]
    fn governors_that_follow_the_load_have_a_remedy() {
        for governor in ["powersave", "schedutil", "ondemand"] {
            let facts = with(Processor {
                governor: Some(governor.to_owned()),
                ..Processor::default()
            });
            let (severity, _, remedy) = only(frequency(&facts));
            assert_eq!(severity, WorthKnowing);
            assert!(remedy.is_some());
        }
        assert!(frequency(&Facts::default()).is_none());
    }

    #[test]
    fn battery_and_heat_are_told() {
        let facts = with(Processor {
            on_battery: Some(true),
            throttled: Some(3),
            ..Processor::default()
        });
        assert!(battery(&facts).is_some() && heat(&facts).is_some());
    }

    #[test]
    fn only_mitigations_on_kernel_entry_count() {
        let of = |what: &str, ns| {
            with(Processor {
                mitigations: vec![("flaw".to_owned(), what.to_owned())],
                system_call_ns: Some(ns),
                ..Processor::default()
            })
        };
        for what in [
            "PTI",
            "Clear CPU buffers; SMT vulnerable",
            "IBRS; IBPB: conditional",
        ] {
            assert_eq!(only(mitigations(&of(what, 90.0))).0, WorthKnowing, "{what}");
        }
        assert!(is_silent(mitigations(&of(
            "Enhanced / Automatic IBRS", 90.0
        ))));
        insta::assert_snapshot!(only(mitigations(&of("Retpolines", 900.0))).1, @"a system call takes 900 ns: small requests cost more than on machines without");
    }

    #[test]
    fn missing_events_say_why() {
        let of = |reason| Facts {
            hardware: Some(Err(reason)),
            ..Facts::default()
        };
        let (_, what, remedy) = only(events(&of(NoHardware::NotPermitted)));
        insta::assert_snapshot!(what, @"cycles and cache misses cannot be counted: the kernel does not let this user");
        assert!(remedy.is_some());
        assert_eq!(only(events(&of(NoHardware::NotOffered))).2, None);
    }
}
