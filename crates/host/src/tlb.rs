//! Memory that the data TLBs cover with small pages, as the processor describes them (CPUID).

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

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    /// Coverage by recorded answers, with zeros for everything else, as processors do.
    fn recorded(answers: &[((u32, u32), [u32; 4])]) -> Reach {
        reach_by(|leaf, subleaf| {
            let found = answers.iter().find(|(key, _)| *key == (leaf, subleaf));
            let [eax, ebx, ecx, edx] = found.map_or([0; 4], |(_, registers)| *registers);
            Registers { eax, ebx, ecx, edx }
        })
    }

    /// Recorded on an AMD EPYC of the third generation (family 25, model 1): 64 and 2048 entries.
    #[test]
    fn amd_counts_its_entries() {
        let reach = recorded(&[
            ((0, 0), [0x0d, 0x6874_7541, 0x444d_4163, 0x6974_6e65]),
            (
                (0x8000_0000, 0),
                [0x8000_0021, 0x6874_7541, 0x444d_4163, 0x6974_6e65],
            ),
            (
                (0x8000_0005, 0),
                [0xff40_ff40, 0xff40_ff40, 0x2008_0140, 0x2008_0140],
            ),
            (
                (0x8000_0006, 0),
                [0x4800_2200, 0x6800_4200, 0x0200_6140, 0x0800_9140],
            ),
        ]);
        assert_eq!(reach.l1d, Some(256 * KIB));
        assert_eq!(reach.l2, Some(8192 * KIB));
    }

    /// Composed by the manual's layout: 64 entries for loads and 16 for stores at the first level, two arrays
    /// of 1024 at the second. TLBs for instructions or only for large pages do not count.
    #[test]
    fn intel_describes_each_tlb() {
        let reach = recorded(&[
            ((0, 0), [0x1b, 0x756e_6547, 0x6c65_746e, 0x4965_6e69]),
            ((0x18, 0), [8, 0, 0, 0]),
            ((0x18, 1), [0, 0x0008_0001, 0x10, 0x4022]),
            ((0x18, 2), [0, 0x0008_0006, 0x02, 0x4022]),
            ((0x18, 3), [0, 0x0010_000f, 0x01, 0x4125]),
            ((0x18, 4), [0, 0x0004_0001, 0x10, 0x4024]),
            ((0x18, 5), [0, 0x0004_0006, 0x08, 0x4024]),
            ((0x18, 6), [0, 0x0008_0008, 0x01, 0x4124]),
            ((0x18, 7), [0, 0x0008_0007, 0x80, 0x4043]),
            ((0x18, 8), [0, 0x0008_0009, 0x80, 0x4043]),
        ]);
        assert_eq!(reach.l1d, Some(64 * 4 * KIB));
        assert_eq!(reach.l2, Some(2048 * 4 * KIB));
    }

    #[test]
    fn undescribed_tlb_levels_are_left_out() {
        assert_eq!(recorded(&[]), Reach::default());
        // A hypervisor that offers the leaf and leaves it empty; an AMD processor without a second level.
        let reach = recorded(&[
            ((0, 0), [0x20, 0, 0, 0]),
            ((0x8000_0000, 0), [0x8000_0008, 0, 0, 0]),
            ((0x8000_0005, 0), [0, 0x0020_0020, 0, 0]),
            ((0x8000_0006, 0), [0, 0x0200_0200, 0, 0]),
        ]);
        assert_eq!(reach.l1d, Some(128 * KIB));
        assert_eq!(reach.l2, None);
    }
}
