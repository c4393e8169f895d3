//! Tests of files that no look saw and of bytes that no account counts.

use super::*;

/// Storage carried none of the reads of `/dev/zero`, whether or not a look saw it open. A small file read as
/// well was not their source.
#[test]
fn uncarried_reads_do_not_depend_on_looks() {
    for sources in [&[][..], &[NoStorage::CharDevice]] {
        let mut observed = reader(64 * MIB, 0, 0, 0);
        observed.devices.clear();
        observed.ways.reads = OpenWays::default();
        observed.ways.sources = sources.iter().copied().collect();
        assert_eq!(Reading::of(&observed).asked_reads(), Asked::Nothing);
        observed.ways.reads.buffered = true;
        observed.files = vec![file_of(Medium::Storage, 4096)];
        assert_eq!(Reading::of(&observed).asked_reads(), Asked::Nothing);
        observed.ways.uncounted.insert(UncountedWay::Mmap);
        assert_eq!(Reading::of(&observed).asked_reads(), Asked::Nothing);
    }
}

/// Many small files are a source as a large one is.
#[test]
fn small_files_can_be_what_was_read() {
    let mut observed = reader(64 * MIB, 0, 0, 0);
    observed.files = vec![file_of(Medium::Storage, NOTEWORTHY / 2); 2];
    let asked = |observed: &Observed| Reading::of(observed).asked_reads();
    assert_eq!(asked(&observed), Asked::Bytes(Bounds::exact(64 * MIB)));
    observed.files.truncate(1);
    assert_eq!(asked(&observed), Asked::Nothing);
}

/// Bytes of some processes may be missing: no share is stated, and the rest is not attributed to others.
#[test]
fn an_account_that_may_lack_processes_decides_nothing() {
    let mut observed = reader(64 * MIB, 64 * MIB, 96 * MIB, 0);
    assert!(matches!(
        Reading::of(&observed).asked_reads(),
        Asked::Bytes(_)
    ));
    observed.processes.ignores_children = true;
    observed.others.unread = 1;
    assert_eq!(
        Reading::of(&observed).asked_reads(),
        unknown(Unknown::Missing, None)
    );
    let OtherUse::Some { read, .. } = Reading::of(&observed).others() else {
        panic!("others can have read 32 MiB");
    };
    assert_eq!((read.least, read.most), (0, 32 * MIB));
    observed.processes.is_complete = true;
    assert!(matches!(
        Reading::of(&observed).asked_reads(),
        Asked::Bytes(_)
    ));
    observed.processes.unread = 1;
    assert_eq!(
        Reading::of(&observed).asked_reads(),
        unknown(Unknown::Missing, None)
    );
}

/// Nothing was seen that it reads: what no disk has carried, and what file servers sent meanwhile, may be what it read.
#[test]
fn unseen_source_is_not_taken_for_storage() {
    let asked = |vda, nfs: Option<u64>| {
        let mut observed = reader(64 * MIB, 64 * MIB, vda, 0);
        observed.devices.clear();
        observed.nfs = nfs.map(|read_bytes| NfsIo {
            read_bytes,
            write_bytes: 0,
        });
        Reading::of(&observed).asked_reads()
    };
    let exact = Asked::Bytes(Bounds::exact(64 * MIB));
    assert_eq!(asked(64 * MIB, None), exact);
    assert_eq!(asked(64 * MIB, Some(0)), exact);
    assert_eq!(asked(64 * MIB, Some(MIB)), unknown(Unknown::NotSeen, None));
    assert_eq!(asked(32 * MIB, None), unknown(Unknown::NotSeen, None));
}
