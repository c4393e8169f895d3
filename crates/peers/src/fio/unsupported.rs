//! Settings that fio does not have, or gives another meaning.

use iolab_workload::trial::{
    Advice, Backend, BufferInit, FirstOffset, Pattern, SyncPolicy, TrialSpec, share,
};

use crate::refusal::{Refusal, first_refusal};

/// The backends that are engines of fio, by the same names.
const ENGINES: [Backend; 7] = [
    Backend::Sync,
    Backend::Psync,
    Backend::Pvsync2,
    Backend::Mmap,
    Backend::Libaio,
    Backend::IoUring,
    Backend::Null,
];

/// Refuses what fio cannot do, or would do otherwise.
pub(super) fn check(spec: &TrialSpec) -> Result<(), String> {
    // Every setting stands here, so that a new one is passed on or refused, and not forgotten.
    let TrialSpec {
        // Options of the same meaning say these.
        bs: _,
        skip: _,
        skip_every: _,
        random_every: _,
        write_hint: _,
        sqpoll_cpu: _,
        offset: _,
        region: _,
        threads: _,
        cpus: _,
        placement: _,
        memory_node: _,
        depth: _,
        batch: _,
        read_percent: _,
        layout: _,
        sync_every: _,
        cache: _,
        buffer_memory: _,
        content: _,
        compressible: _,
        dedup: _,
        limit: _,
        thinktime: _,
        thinktime_every: _,
        thinktime_spin: _,
        bursts: _,
        latency: _,
        seed: _,
        registered: _,
        sqpoll: _,
        iopoll: _,
        ioprio: _,
        // iolab does these itself, around the program: the file with its space, what is counted, when others start.
        fresh: _,
        allocate: _,
        hardware_counters: _,
        // They say how a rate, trims, ranks, groups and stripes go, which are refused, here or where a run is planned.
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
        // It keeps a descriptor for each job, and no series that iolab reads.
        descriptors: _,
        series_ns: _,
        // Judged by `trials`.
        rate: _,
        segments: _,
        files: _,
        steady: _,
        trace: _,
        trim_percent: _,
        trim_first: _,
        verify: _,
        // Judged by `buffers` and `syncs`.
        dedup_set: _,
        buffer_init: _,
        backend: _,
        sync: _,
        // Judged by `order`.
        pattern: _,
        bs_mix: _,
        first_offset: _,
        // Judged by `flags`.
        dontcache: _,
        atomic: _,
        nowait: _,
        noatime: _,
        fadvise: _,
        nice: _,
        realtime: _,
        // Latencies over time are kept of iolab's own requests.
        latency_over_time: _,
    } = spec;
    first_refusal(&[
        &trials(spec),
        &buffers(spec),
        &order(spec),
        &flags(spec),
        &syncs(spec),
    ])
}

/// What ends its trials, and what of them iolab reads.
fn trials(spec: &TrialSpec) -> [Refusal; 7] {
    [
        (
            spec.rate.is_some(),
            "its latencies at a given rate do not count from the intended start",
        ),
        (
            spec.steady.is_some(),
            "iolab does not read at what time it was steady",
        ),
        (
            spec.segments.is_some(),
            "it has no segments with gaps between them",
        ),
        (
            spec.files.is_some(),
            "it draws the sizes of several files itself, and is given one for each thread",
        ),
        (spec.trace, "iolab traces its own requests only"),
        (
            spec.trim_percent > 0 || spec.trim_first,
            "iolab has not tried how it trims",
        ),
        (spec.verify, "iolab cannot verify what it writes"),
    ]
}

fn buffers(spec: &TrialSpec) -> [Refusal; 3] {
    [
        (
            spec.dedup_set.is_some(),
            "not every version of it repeats data of several blocks (dedupe_global)",
        ),
        (
            spec.buffer_init != BufferInit::Random,
            "the preparation of its buffers cannot be chosen",
        ),
        (!ENGINES.contains(&spec.backend), "it has no such engine"),
    ]
}

fn flags(spec: &TrialSpec) -> [Refusal; 5] {
    [
        (
            spec.dontcache || spec.atomic || spec.nowait,
            "not every version of it has options for dontcache and atomic, and it counts a request that would wait (nowait) as an error",
        ),
        (
            spec.noatime,
            "it opens files without O_NOATIME: set noatime=false",
        ),
        (
            matches!(spec.fadvise, Some(Advice::Normal | Advice::NoReuse)),
            "its only advice is sequential or random",
        ),
        (
            spec.nice.is_some(),
            "its nice value is added to that of the process",
        ),
        (
            spec.realtime.is_some(),
            "it has no option for real-time threads",
        ),
    ]
}

fn order(spec: &TrialSpec) -> [Refusal; 8] {
    let (pattern, sizes) = (spec.pattern, spec.bs_mix.as_ref());
    [
        (
            pattern == Pattern::Reverse,
            "its backward reads wrap at the end of the file, not of the region",
        ),
        (
            pattern == Pattern::Strided && !ends_within_first_phase(spec),
            "at the end of a strided pass it reads the same blocks again, where iolab takes those between (bound the trial by bytes within one pass)",
        ),
        (
            pattern == Pattern::Rand && sizes.is_some(),
            "it shortens requests of several sizes if its map of visited blocks has no room for them (set pattern=rand-replace)",
        ),
        (
            sizes.is_some_and(|mix| mix.has_ranges() && !mix.is_single()),
            "it has a range of sizes, or sizes with shares, and not both",
        ),
        (
            pattern == Pattern::Zipf(1.0),
            "its Zipf distribution has no exponent of 1",
        ),
        (
            spec.first_offset != FirstOffset::Zero,
            "it begins an ordered pass at the start of the region: set first_offset=zero",
        ),
        (
            matches!(pattern, Pattern::Sequence(_)),
            "only versions after 3.42 have sequences of blocks",
        ),
        (
            has_one_place(spec),
            "in an ordered mix each direction has a place of its own in the file",
        ),
    ]
}

fn syncs(spec: &TrialSpec) -> [Refusal; 3] {
    [
        (
            spec.reads() && spec.writes() && spec.sync.follows_writes(),
            "in a mix it syncs after reads too",
        ),
        (
            spec.sync == SyncPolicy::RwfDsync,
            "it has no option for RWF_DSYNC",
        ),
        (
            spec.backend == Backend::Mmap && spec.sync.follows_writes(),
            "its mmap engine makes single pages durable, not the file",
        ),
    ]
}

/// Whether ordered reads and writes share one place in the file, where fio keeps one for each direction.
pub(super) fn has_one_place(trial: &TrialSpec) -> bool {
    let is_ordered = match trial.pattern {
        Pattern::Seq | Pattern::Strided | Pattern::Reverse => true,
        Pattern::Rand
        | Pattern::RandReplace
        | Pattern::Zipf(_)
        | Pattern::Pareto(_)
        | Pattern::Normal(_)
        | Pattern::Zoned(_) => trial.random_every > 1,
        Pattern::Sequence(_) => true,
    };
    is_ordered && trial.reads() && trial.writes()
}

/// Whether no worker comes to the end of its first pass of strides.
fn ends_within_first_phase(spec: &TrialSpec) -> bool {
    let Some(bound) = spec.requests_bound() else {
        return false;
    };
    let blocks = spec.region / spec.bs;
    (0..spec.threads).all(|worker| {
        let bytes = share(blocks, worker, spec.threads).1 * spec.bs;
        let run = spec.skip_every.unwrap_or(spec.bs).max(1);
        let stride = run.saturating_add(spec.skip);
        let room = bytes / stride * run + (bytes % stride).min(run);
        share(bound, worker, spec.threads).1 <= room / spec.bs
    })
}
