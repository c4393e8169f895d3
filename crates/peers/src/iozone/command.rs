//! The IOzone command line that means the same as a cell, or why there is none.

use std::ffi::OsString;
use std::path::PathBuf;

use iolab_workload::cpus::Placement;
use iolab_workload::trial::{
    Backend, BufferInit, BufferMemory, CacheState, Content, FileLayout, FirstOffset, Pattern,
    SyncPolicy, TrialSpec,
};

use crate::CommandLine;
use crate::refusal::{Refusal, first_refusal};

/// Most threads of IOzone as it is delivered (`MAXSTREAMS`).
const THREADS_MAX: u32 = 256;
/// Largest record of IOzone as it is delivered (`MAXBUFFERSIZE`), bytes.
const RECORD_MAX: u64 = 16 << 20;
/// The backends that make one request after the other.
const CALLS: [Backend; 3] = [Backend::Sync, Backend::Psync, Backend::Pvsync2];

/// The arguments of a run of IOzone: one pass by each thread over a file of its own.
///
/// # Errors
/// What IOzone cannot do, or would do otherwise.
pub(super) fn arguments(spec: &TrialSpec, files: &[PathBuf]) -> CommandLine {
    check(spec)?;
    let sequential = spec.pattern == Pattern::Seq;
    let given = [
        (spec.cache == CacheState::Direct, "-I"),
        (spec.writes() && spec.sync == SyncPolicy::End, "-e"),
        (spec.writes() && spec.sync == SyncPolicy::Osync, "-o"),
        (spec.writes() && spec.sync == SyncPolicy::Odsync, "-+D"),
        // Reads of files that are not its own, and nothing else; writes that leave their lengths alone.
        (!spec.writes(), "-+E"),
        (spec.writes(), "-+N"),
        (spec.writes(), "-i0"),
        (!spec.writes() && sequential, "-i1"),
        // Its random writes come after random reads, which expect what its first writes have written.
        (!sequential, "-i2"),
        // Each thread goes over all of its file: without this they all stop with the first.
        (spec.threads > 1, "-x"),
    ];
    let mut words: Vec<OsString> = ["-T", "-w", "-+n"].map(OsString::from).into();
    let given = given.into_iter().filter(|(given, _)| *given);
    words.extend(given.map(|(_, word)| word.into()));
    words.push(format!("-t{}", spec.threads).into());
    words.push(format!("-r{}k", spec.bs >> 10).into());
    words.push(format!("-s{}k", spec.private_bytes(0) >> 10).into());
    words.push("-F".into());
    words.extend(files.iter().map(OsString::from));
    Ok(words)
}

fn check(spec: &TrialSpec) -> Result<(), String> {
    // Every setting stands here, so that a new one is passed on or refused, and not forgotten.
    let TrialSpec {
        // iolab does these itself, around the program: the file with its space, what is counted, when others start.
        fresh: _,
        allocate: _,
        hardware_counters: _,
        // They say how ordered patterns, rates, trims, ranks, groups, stripes and rings go, which are refused, here or where a run is
        // planned.
        skip: _,
        skip_every: _,
        arrivals: _,
        trim_by: _,
        others: _,
        ranks: _,
        hosts: _,
        shift: _,
        stripe: _,
        start_delay: _,
        flow: _,
        ends_trial: _,
        batch: _,
        registered: _,
        sqpoll: _,
        sqpoll_cpu: _,
        sync_every: _,
        // It keeps a descriptor for each thread, visits blocks by its own random numbers, and reports no times.
        descriptors: _,
        seed: _,
        latency: _,
        series_ns: _,
        // Judged by `kinds`.
        backend: _,
        depth: _,
        read_percent: _,
        trim_percent: _,
        trim_first: _,
        sync: _,
        // Judged by `data`.
        content: _,
        compressible: _,
        dedup: _,
        dedup_set: _,
        buffer_memory: _,
        buffer_init: _,
        // Judged by `order`.
        pattern: _,
        random_every: _,
        first_offset: _,
        offset: _,
        limit: _,
        // Judged by `sizes`.
        bs: _,
        bs_mix: _,
        cache: _,
        thinktime: _,
        thinktime_every: _,
        thinktime_spin: _,
        bursts: _,
        // Judged by `files`.
        region: _,
        threads: _,
        layout: _,
        files: _,
        // Judged by `flags`.
        dontcache: _,
        atomic: _,
        nowait: _,
        fadvise: _,
        ioprio: _,
        write_hint: _,
        nice: _,
        realtime: _,
        noatime: _,
        iopoll: _,
        cpus: _,
        placement: _,
        memory_node: _,
        // Judged by `trials`.
        rate: _,
        segments: _,
        steady: _,
        trace: _,
        verify: _,
        latency_over_time: _,
    } = spec;
    first_refusal(&[
        &files(spec),
        &order(spec),
        &sizes(spec),
        &kinds(spec),
        &flags(spec),
        &trials(spec),
        &data(spec),
    ])
}

fn flags(spec: &TrialSpec) -> [Refusal; 4] {
    let has_flags = spec.dontcache
        || spec.atomic
        || spec.nowait
        || spec.fadvise.is_some()
        || spec.ioprio.is_some()
        || spec.write_hint.is_some()
        || spec.nice.is_some()
        || spec.realtime.is_some();
    let is_placed =
        spec.cpus.is_some() || spec.placement != Placement::Float || spec.memory_node.is_some();
    [
        (
            has_flags,
            "its requests have no such flag, advice or priority",
        ),
        (
            spec.noatime,
            "it opens files without O_NOATIME: set noatime=false",
        ),
        (spec.iopoll, "it does not poll"),
        (is_placed, "its threads cannot be placed"),
    ]
}

fn trials(spec: &TrialSpec) -> [Refusal; 5] {
    [
        (spec.rate.is_some(), "it has no rate"),
        (spec.steady.is_some(), "it does not end when it is steady"),
        (
            spec.segments.is_some(),
            "it has no segments with gaps between them",
        ),
        (spec.trace, "iolab traces its own requests only"),
        (spec.verify, "iolab cannot verify what it writes"),
    ]
}

/// What its requests do and how many go on at once.
fn kinds(spec: &TrialSpec) -> [Refusal; 4] {
    [
        (
            !CALLS.contains(&spec.backend) || spec.depth > 1,
            "it makes one request after the other, by read and write",
        ),
        (
            !matches!(spec.read_percent, 0 | 100),
            "it cannot mix reads with writes",
        ),
        (spec.trim_percent > 0 || spec.trim_first, "it does not trim"),
        (
            spec.sync.follows_writes() || spec.sync == SyncPolicy::RwfDsync,
            "it syncs at the end only, or with O_SYNC or O_DSYNC",
        ),
    ]
}

/// What its buffers hold and where they lie.
fn data(spec: &TrialSpec) -> [Refusal; 4] {
    [
        (
            spec.writes() && spec.content == Content::Unique,
            "it writes the same data into every record: set content=repeated",
        ),
        (
            spec.compressible > 0 || spec.dedup > 0,
            "what it writes cannot be chosen",
        ),
        (
            spec.buffer_memory == BufferMemory::Contiguous,
            "its buffers lie in whatever pages the kernel gives (set buffer_memory=kernel)",
        ),
        (
            spec.buffer_init != BufferInit::Random,
            "the preparation of its buffers cannot be chosen",
        ),
    ]
}

fn files(spec: &TrialSpec) -> [Refusal; 4] {
    let blocks = spec.region / spec.bs;
    [
        (
            spec.threads > 1 && spec.layout != FileLayout::Private,
            "each of its threads takes a file of its own: set layout=private",
        ),
        (spec.files.is_some(), "each of its threads has one file"),
        (spec.threads > THREADS_MAX, "it has at most 256 threads"),
        (
            !blocks.is_multiple_of(u64::from(spec.threads)),
            "all its files have the same size: choose a --size that threads times bs divides",
        ),
    ]
}

fn order(spec: &TrialSpec) -> [Refusal; 5] {
    let is_pass = spec.limit.time.is_none()
        && spec.requests_bound() == Some(spec.region / spec.bs)
        && spec.region.is_multiple_of(spec.bs);
    [
        (
            !matches!(spec.pattern, Pattern::Seq | Pattern::Rand),
            "it has the patterns seq and rand only",
        ),
        (
            spec.random_every > 1,
            "it has no runs of requests between random offsets: set random_every=1",
        ),
        (
            !is_pass,
            "it makes one pass over its file, whatever the time: set time=none and bytes=none",
        ),
        (spec.offset > 0, "it begins at the start of its file"),
        (
            spec.first_offset != FirstOffset::Zero,
            "it begins an ordered pass at the start of its file: set first_offset=zero",
        ),
    ]
}

fn sizes(spec: &TrialSpec) -> [Refusal; 3] {
    let is_direct = spec.cache == CacheState::Direct;
    [
        (
            !spec.bs.is_multiple_of(1024) || is_direct && !spec.bs.is_multiple_of(4096),
            "its record sizes are whole KiB, with direct I/O multiples of 4 KiB",
        ),
        (spec.bs > RECORD_MAX, "its largest record has 16 MiB"),
        (
            spec.bs_mix.is_some() || spec.pauses(),
            "its requests have one size, and follow each other without a pause",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use iolab_workload::trial::TrialLimit;

    use super::*;

    fn pass() -> TrialSpec {
        TrialSpec {
            bs: 65536,
            region: 4 << 20,
            ..TrialSpec::default()
        }
    }

    fn line(spec: &TrialSpec) -> Result<String, String> {
        let words = arguments(spec, &["/data/file".into()])?;
        let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn a_pass_is_said_in_iozones_words() {
        let reads = line(&pass()).expect("possible");
        assert!(
            reads.starts_with("-T -w -+n -I -+E -i1 -t1 -r64k -s4096k -F /"),
            "{reads}"
        );
        let random = TrialSpec {
            pattern: Pattern::Rand,
            cache: CacheState::Cold,
            ..pass()
        };
        let random = line(&random).expect("possible");
        assert!(random.starts_with("-T -w -+n -+E -i2 "), "{random}");
        let writes = TrialSpec {
            read_percent: 0,
            content: Content::Repeated,
            sync: SyncPolicy::Osync,
            ..pass()
        };
        let writes = line(&writes).expect("possible");
        assert!(
            writes.starts_with("-T -w -+n -I -o -+N -i0 -t1 "),
            "{writes}"
        );
        let many = TrialSpec {
            read_percent: 0,
            pattern: Pattern::Rand,
            content: Content::Repeated,
            threads: 4,
            layout: FileLayout::Private,
            ..pass()
        };
        let many = line(&many).expect("possible");
        assert!(
            many.starts_with("-T -w -+n -I -+N -i0 -i2 -x -t4 -r64k -s1024k "),
            "{many}"
        );
    }

    #[test]
    fn what_iozone_would_do_otherwise_is_a_gap() {
        let timed = TrialSpec {
            limit: TrialLimit {
                time: Some(Duration::from_secs(1)),
                ..TrialLimit::default()
            },
            ..pass()
        };
        let threads = TrialSpec {
            threads: 2,
            ..pass()
        };
        let unique = TrialSpec {
            read_percent: 0,
            ..pass()
        };
        let small = TrialSpec { bs: 512, ..pass() };
        let uneven = TrialSpec {
            threads: 3,
            layout: FileLayout::Private,
            ..pass()
        };
        let large = TrialSpec {
            bs: 32 << 20,
            region: 64 << 20,
            ..pass()
        };
        let runs = TrialSpec {
            pattern: Pattern::Rand,
            random_every: 8,
            ..pass()
        };
        for spec in [timed, threads, unique, small, uneven, large, runs] {
            line(&spec).expect_err("a gap");
        }
    }
}
