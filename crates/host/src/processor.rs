//! The processors: how many are usable, and their frequency.
//! Sources: Documentation/admin-guide/pm/cpufreq.rst and cputopology.rst of Linux.
//!
//! Check that real-time threads leave CPUs to other programs. Source:
//! Documentation/scheduler/sched-rt-group.rst of Linux.
//!
//! Memory that the data TLBs cover with small pages, as the processor describes them (CPUID).

#[cfg(test)]
mod tests;
use std::path::Path;

use crate::text_of;
use iolab_workload::{Error, Result};

/// Description of the processors; properties that the system does not report are `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Processor {
    /// Number of CPUs that this process may use.
    pub usable: Option<u64>,
    /// Number of CPUs present.
    pub present: Option<u64>,
    /// Frequency governor: `performance`, `powersave`, `schedutil`.
    pub governor: Option<String>,
}

impl Processor {
    /// Reads `sys` (`/sys`).
    pub fn read(sys: &Path) -> Self {
        let cpus = sys.join("devices/system/cpu");
        let cpu0 = cpus.join("cpu0");
        Self {
            usable: usable(),
            present: text_of(cpus.join("present")).and_then(|text| count_of(&text)),
            governor: governor(&cpu0),
        }
    }
}

/// Number of CPUs that this process may use.
pub fn usable() -> Option<u64> {
    let count = std::thread::available_parallelism().ok()?;
    Some(count.get() as u64)
}

/// Frequency governor of a CPU, by its folder.
pub fn governor(cpu: &Path) -> Option<String> {
    text_of(cpu.join("cpufreq/scaling_governor"))
}

/// Number of CPUs in a list such as `0-3,8`.
fn count_of(list: &str) -> Option<u64> {
    list.split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .sum()
}

const FOLDER: &str = "/proc/sys/kernel";

/// Refuses to start as many real-time threads as there are CPUs, or more, unless the kernel reserves time for
/// ordinary threads.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused).
pub fn check_realtime(threads: u64) -> Result<()> {
    check(threads, usable().unwrap_or(1), Path::new(FOLDER))
}

fn check(threads: u64, cpus: u64, folder: &Path) -> Result<()> {
    let number = |file: &str| text_of(folder.join(file))?.parse::<i64>().ok();
    let runtime = number("sched_rt_runtime_us");
    // A runtime of -1 means unlimited; an unreadable value may mean that as well.
    let reserves = runtime
        .zip(number("sched_rt_period_us"))
        .is_some_and(|(runtime, period)| (0..period).contains(&runtime));
    if threads < cpus || reserves {
        return Ok(());
    }
    Err(Error::refused(format!(
        "refusing to start {threads} real-time threads on {cpus} CPUs: the kernel reserves no time for other programs"
    ))
    .hint("set fewer threads than CPUs, or limit them: sysctl kernel.sched_rt_runtime_us=950000"))
}

/// Page size that the entries are counted for, bytes.
const SMALL_PAGE: u64 = 4096;

/// Most descriptions read; processors have fewer than ten.
const DESCRIPTIONS_MAX: u32 = 32;

/// The four registers that CPUID answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Registers {
    eax: u32,
    ebx: u32,
    ecx: u32,
    edx: u32,
}

/// Memory covered without a TLB miss, bytes. A level that the processor does not describe is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// Coverage of the first-level data TLB.
    pub l1d: Option<u64>,
    /// Coverage of the second level.
    pub l2: Option<u64>,
}

/// Coverage of this processor's data TLBs; empty on machines other than x86-64.
pub fn reach() -> Reach {
    #[cfg(target_arch = "x86_64")]
    let reach = reach_by(|leaf, subleaf| {
        let answer = std::arch::x86_64::__cpuid_count(leaf, subleaf);
        Registers {
            eax: answer.eax,
            ebx: answer.ebx,
            ecx: answer.ecx,
            edx: answer.edx,
        }
    });
    #[cfg(not(target_arch = "x86_64"))]
    let reach = Reach::default();
    reach
}

/// Coverage by a processor's CPUID answers. Leaf 18h describes one TLB per subleaf (Intel SDM vol. 2A, CPUID);
/// leaves 8000_0005h and 8000_0006h are AMD's (APM vol. 3, appendix E).
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
fn reach_by(cpuid: impl Fn(u32, u32) -> Registers) -> Reach {
    if cpuid(0, 0).eax >= 0x18 {
        let first = cpuid(0x18, 0);
        let described: Vec<Registers> = (1..=first.eax.min(DESCRIPTIONS_MAX - 1))
            .map(|subleaf| cpuid(0x18, subleaf))
            .chain([first])
            .collect();
        let reach = from_descriptions(&described);
        if reach != Reach::default() {
            return reach;
        }
    }
    let last = cpuid(0x8000_0000, 0).eax;
    let answer = |leaf: u32| (last >= leaf).then(|| cpuid(leaf, 0).ebx);
    Reach {
        l1d: answer(0x8000_0005).and_then(amd_l1d),
        l2: answer(0x8000_0006).and_then(amd_l2),
    }
}

/// Coverage by leaf 18h, one TLB per answer. EBX bit 0: holds small pages; EBX 31..16: ways; ECX: sets. EDX
/// 4..0: kind (1 data, 3 unified, 4 loads only); EDX 7..5: level. Several TLBs of a level add up.
fn from_descriptions(described: &[Registers]) -> Reach {
    let level = |wanted: u32| {
        described
            .iter()
            .filter(|r| matches!(r.edx & 0x1f, 1 | 3 | 4) && r.ebx & 1 != 0)
            .filter(|r| (r.edx >> 5) & 7 == wanted)
            .map(|r| u64::from(r.ebx >> 16) * u64::from(r.ecx))
            .fold(0, u64::saturating_add)
    };
    Reach {
        l1d: bytes(level(1)),
        l2: bytes(level(2)),
    }
}

/// Entries for small pages: 8000_0005h, EBX 23..16.
fn amd_l1d(ebx: u32) -> Option<u64> {
    bytes(u64::from((ebx >> 16) & 0xff))
}

/// Entries for small pages: 8000_0006h, EBX 27..16. EBX 31..28, the associativity, is 0 where there is no such
/// TLB.
fn amd_l2(ebx: u32) -> Option<u64> {
    (ebx >> 28 != 0)
        .then_some(u64::from((ebx >> 16) & 0xfff))
        .and_then(bytes)
}

fn bytes(entries: u64) -> Option<u64> {
    entries.checked_mul(SMALL_PAGE).filter(|bytes| *bytes > 0)
}
