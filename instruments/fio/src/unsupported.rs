//! Settings that fio does not have, or gives another meaning; what it does between passes.

use iolab_workload::settings::Consumer;
use iolab_workload::table;
use iolab_workload::trial::{
    Advice, Backend, CacheState, FileLayout, FirstOffset, Pattern, SyncPolicy, TrialSpec, share,
};

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

/// Refuses settings that fio cannot carry out, or would carry out differently.
///
/// # Errors
/// The reason.
pub(crate) fn check(spec: &TrialSpec) -> Result<(), String> {
    SETTINGS.check(spec)
}

/// Settings as fio takes them: `write_job` writes them, iolab does them around the program, or they say how something goes that is
/// refused where a run is planned.
const SETTINGS: Consumer = Consumer {
    takes: "bs skip offset region threads cpus placement depth batch read_percent layout sync_every cache buffer_memory compressible \
            bytes time thinktime latency sqpoll iopoll allocate hardware_counters arrivals rate_slack ranks hosts shift descriptors \
            latency_over_time",
    lacks: &[
        (
            "rate",
            "its latencies at a given rate do not count from the intended start",
        ),
        (
            "files",
            "it draws the sizes of several files itself, and is given one for each thread",
        ),
        ("trace", "iolab traces its own requests only"),
        ("trim_percent", "iolab has not tried how it trims"),
        ("verify", "iolab cannot verify what it writes"),
        (
            "buffer_init",
            "the preparation of its buffers cannot be chosen",
        ),
        (
            "nice",
            "it adds its nice value to the nice value of the process",
        ),
        ("realtime", "it has no option for real-time threads"),
    ],
    cannot,
};

fn cannot(spec: &TrialSpec) -> Vec<(&'static str, bool, &'static str)> {
    let (pattern, sizes) = (spec.pattern, spec.bs_mix.as_ref());
    let follows_writes = spec.sync.follows_writes();
    table! {
        ("backend", !ENGINES.contains(&spec.backend), "it has no such engine");
        ("pattern", pattern == Pattern::Reverse, "its backward reads wrap at the end of the file, not of the region");
        ("pattern", pattern == Pattern::Strided && !ends_within_first_phase(spec),
         "at the end of a strided pass it reads the same blocks again, where iolab takes those between (bound the trial by bytes within one pass)");
        ("pattern", pattern == Pattern::Zipf(1.0), "its Zipf distribution has no exponent of 1");
        ("pattern", has_one_place(spec), "in an ordered mix each direction has a place of its own in the file");
        ("bs_mix", pattern == Pattern::Rand && sizes.is_some(),
         "it shortens requests of several sizes if its map of visited blocks has no room for them (set pattern=rand-replace)");
        ("bs_mix", sizes.is_some_and(|mix| mix.has_ranges() && !mix.is_single()), "it has a range of sizes, or sizes with shares, and not both");
        ("first_offset", spec.first_offset != FirstOffset::Zero && spec.pattern.is_ordered(), "it begins an ordered pass at the start of the region: set first_offset=zero");
        ("fadvise", matches!(spec.fadvise, Some(Advice::Normal | Advice::NoReuse)), "its only advice is sequential or random");
        ("sync", spec.reads() && spec.writes() && follows_writes, "in a mix it syncs after reads too");
        ("sync", spec.sync == SyncPolicy::RwfDsync, "it has no option for RWF_DSYNC");
        ("sync", spec.backend == Backend::Mmap && follows_writes, "its mmap engine makes single pages durable, not the file");
    }
    .to_vec()
}

/// Whether ordered reads and writes share one place in the file, while fio keeps one for each direction.
pub(super) fn has_one_place(trial: &TrialSpec) -> bool {
    trial.pattern.is_ordered() && trial.reads() && trial.writes()
}

/// Whether every worker ends within its first pass of strides.
fn ends_within_first_phase(spec: &TrialSpec) -> bool {
    let Some(bound) = spec.requests_bound() else {
        return false;
    };
    let blocks = spec.region / spec.bs;
    (0..spec.threads).all(|worker| {
        let bytes = share(blocks, worker, spec.threads).1 * spec.bs;
        let stride = spec.bs.saturating_add(spec.skip);
        let room = bytes / stride * spec.bs + (bytes % stride).min(spec.bs);
        share(bound, worker, spec.threads).1 <= room / spec.bs
    })
}

/// Bytes of a block of a file system as mkfs makes it by default, which the kernel reads before a buffered write of a part of it.
const BLOCK: u64 = 4096;

/// Whether it shows in a trial that fio, with `invalidate=1`, has the page cache drop the file before each pass over it, and
/// iolab before the trial alone.
pub(super) fn drops_at_each_pass(spec: &TrialSpec) -> bool {
    let blocks = spec.region / spec.bs.max(1);
    let passes = match spec.layout {
        FileLayout::Overlapping => u64::from(spec.threads),
        FileLayout::Shared | FileLayout::Interleaved | FileLayout::Private => 1,
    };
    let one_pass = blocks.saturating_mul(passes);
    let again = spec.requests_bound().is_none_or(|bound| bound > one_pass);
    // Reads wait for uncached data, and so do writes of parts of it.
    let waits = spec.reads() || !spec.bs.is_multiple_of(BLOCK) || spec.bs_mix.is_some();
    spec.cache == CacheState::Cold && again && waits
}
