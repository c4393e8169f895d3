//! Tests.

use std::fs;

use super::*;
use iolab_workload::Kind;
use needs::Tree;

#[test]
fn what_is_not_told_is_left_out() {
    let tree = Tree::empty();
    let read = || Processor::read(tree.path());
    assert_eq!((read().present, read().governor), (None, None));
    tree.files(
        "devices/system/cpu",
        &[
            ("present", "0-3,8-9"),
            ("cpu0/cpufreq/scaling_governor", "powersave"),
        ],
    );
    let governor = Some("powersave".to_owned());
    assert_eq!((read().present, read().governor), (Some(6), governor));
    assert_eq!(count_of("0-x"), None);
    assert_eq!(count_of("3-1"), None);
}

#[test]
fn realtime_threads_leave_a_cpu_or_kernel_reserve() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |threads, runtime: &str| {
        let write = |file: &str, text: &str| {
            fs::write(folder.path().join(file), text).expect("it is written");
        };
        write("sched_rt_runtime_us", runtime);
        write("sched_rt_period_us", "1000000\n");
        check(threads, 2, folder.path()).map_err(|error| error.kind())
    };
    assert_eq!(of(2, "950000\n"), Ok(()));
    assert_eq!(of(1, "-1\n"), Ok(()));
    assert_eq!(of(2, "-1\n"), Err(Kind::Refused));
    assert_eq!(of(3, "1000000\n"), Err(Kind::Refused));
    let nowhere = folder.path().join("nowhere");
    assert!(check(2, 2, &nowhere).is_err());
}

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
