//! The fio command line that means the same as a cell, or why there is none.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use iolab_engine::placement;
use iolab_workload::cpus::Placement;
use iolab_workload::trial::share;
use iolab_workload::trial::{
    Backend, BufferMemory, CacheState, Content, FileLayout, IoPriority, Pattern, Sizes, SyncPolicy,
    TrialSpec, WriteHint,
};

use iolab_storage::meminfo;

use super::unsupported::check;
use crate::CommandLine;

/// Blocks of the random map above which fio needs more memory than it takes by itself: 16 MiB of bits are its pool.
const MAP_BLOCKS_MAX: u64 = 1 << 25;

/// The arguments of a run of fio on one file, or on a file for each worker. Every worker is a job of its own, so that the
/// parts of the region and the requests fall to them as to iolab's workers.
///
/// # Errors
/// What fio has no words for.
pub(super) fn arguments(spec: &TrialSpec, files: &[PathBuf]) -> CommandLine {
    check(spec)?;
    let mut words: Vec<OsString> = Vec::new();
    if !spec.writes() {
        words.push("--readonly".into());
    }
    let map_blocks = spec.region / spec.bs;
    if spec.pattern == Pattern::Rand && map_blocks > MAP_BLOCKS_MAX {
        words.push(format!("--alloc-size={}", map_blocks.div_ceil(4096)).into());
    }
    for word in memory(spec, &ReservedPages::read())? {
        words.push(word.into());
    }
    words.push("--output-format=json+".into());
    words.push("--eta=never".into());
    words.push("--name=global".into());
    let mut names: Vec<OsString> = files.iter().map(|file| file_option(file)).collect();
    if spec.layout != FileLayout::Private {
        words.append(&mut names);
    }
    words.extend(common(spec).into_iter().map(OsString::from));
    let mut names = names.into_iter();
    for worker in 0..spec.threads {
        words.push(format!("--name=worker{worker}").into());
        words.extend(names.next());
        words.extend(placed(spec, worker)?.map(OsString::from));
        words.extend(own(spec, worker)?.into_iter().map(OsString::from));
    }
    Ok(words)
}

/// Huge pages that are reserved on this machine (hugetlb).
#[derive(Debug, Clone, Copy)]
struct ReservedPages {
    /// Size of one, bytes.
    bytes: u64,
    /// Bytes of those that are free.
    free: u64,
}

impl ReservedPages {
    /// The size that x86-64 has, and that fio is not told.
    const USUAL: u64 = 2 << 20;

    fn read() -> Self {
        Self {
            bytes: meminfo::bytes("Hugepagesize").unwrap_or(Self::USUAL),
            free: meminfo::free_huge_bytes().unwrap_or(0),
        }
    }
}

/// The memory of its buffers: fio has no other huge pages than reserved ones, and rounds the buffers of a thread up to one.
fn memory(spec: &TrialSpec, reserved: &ReservedPages) -> Result<Vec<String>, String> {
    if spec.buffer_memory == BufferMemory::Kernel {
        return Ok(Vec::new());
    }
    let page = reserved.bytes.max(1);
    let pages = u64::from(spec.threads)
        * ((spec.largest_request() * u64::from(spec.depth)).div_ceil(page) + 1);
    if pages.saturating_mul(page) > reserved.free {
        return Err(format!(
            "contiguous buffers take {pages} reserved huge pages (as root: sysctl vm.nr_hugepages={pages}; or set buffer_memory=kernel)"
        ));
    }
    let size = (page != ReservedPages::USUAL).then(|| format!("--hugepage-size={page}"));
    let words = ["--mem=mmaphuge".to_owned()].into_iter();
    Ok(words.chain(size).collect())
}

/// `filename`, in which fio takes a colon for the end of a name. Of the paths that it is given no byte means anything else.
fn file_option(file: &Path) -> OsString {
    let mut option = b"--filename=".to_vec();
    for byte in file.as_os_str().as_bytes() {
        if *byte == b':' {
            option.push(b'\\');
        }
        option.push(*byte);
    }
    OsString::from_vec(option)
}

/// What all workers have in common.
pub(super) fn common(spec: &TrialSpec) -> Vec<String> {
    let mut words = vec![
        "--allow_file_create=0".to_owned(),
        "--fallocate=none".to_owned(),
        "--thread".to_owned(),
        "--group_reporting".to_owned(),
        format!("--ioengine={}", spec.backend),
        format!("--rw={}", order(spec)),
        format!("--iodepth={}", spec.depth),
        format!("--direct={}", u8::from(spec.cache == CacheState::Direct)),
        // iolab has brought the page cache into its state, and gives no advice.
        "--invalidate=0".to_owned(),
        match spec.fadvise {
            Some(advice) => format!("--fadvise_hint={advice}"),
            None => "--fadvise_hint=0".to_owned(),
        },
        // Without this fio takes the same offsets in every trial and ignores the seed (fixed after 3.33).
        "--randrepeat=0".to_owned(),
        format!("--randseed={}", spec.seed),
    ];
    words.extend(zones(spec));
    words.extend(choices(spec).into_iter().map(str::to_owned));
    words.extend(sizes_and_pauses(spec));
    let every = spec.sync_every;
    match spec.sync {
        SyncPolicy::Each => words.push(format!("--fsync={every}")),
        SyncPolicy::Fdatasync => words.push(format!("--fdatasync={every}")),
        _ => {}
    }
    let wait = spec.batch.wait_for(spec.depth);
    if wait > 1 {
        words.push(format!("--iodepth_batch={wait}"));
        words.push(format!("--iodepth_batch_complete_min={wait}"));
    }
    match spec.pattern {
        Pattern::Zipf(_) | Pattern::Pareto(_) | Pattern::Normal(_) => {
            words.push(format!("--random_distribution={}", spec.pattern));
        }
        Pattern::Zoned(zones) => words.push(format!("--random_distribution=zoned:{zones}")),
        // A sequence was refused before.
        Pattern::Sequence(_)
        | Pattern::Seq
        | Pattern::Strided
        | Pattern::Reverse
        | Pattern::Rand
        | Pattern::RandReplace => {}
    }
    if spec.reads() && spec.writes() {
        words.push(format!("--rwmixread={}", spec.read_percent));
    }
    if let Some(time) = spec.limit.time {
        words.push(format!("--runtime={}us", time.as_micros()));
        if spec.requests_bound().is_none() {
            words.push("--time_based".to_owned());
        }
    }
    words
}

/// How large requests are, what their data is like, which priority and memory the threads have, and when they pause.
fn sizes_and_pauses(spec: &TrialSpec) -> Vec<String> {
    let mut words = Vec::new();
    match &spec.bs_mix {
        None => words.push(format!("--bs={}", spec.bs)),
        Some(mix) => {
            let split = |sizes: &Sizes| {
                let shares = sizes.shares().iter();
                let shares = shares.map(|share| format!("{}/{}", share.bytes, share.percent));
                shares.collect::<Vec<_>>().join(":")
            };
            let range = |sizes: &Sizes| {
                let shares = sizes.shares().iter();
                let shares = shares.map(|share| format!("{}-{}", share.bytes, share.largest()));
                shares.collect::<String>()
            };
            words.push(match mix.has_ranges() {
                true => format!("--bsrange={},{}", range(&mix.reads), range(&mix.writes)),
                false => format!("--bssplit={},{}", split(&mix.reads), split(&mix.writes)),
            });
            words.push(format!("--blockalign={}", spec.bs));
        }
    }
    for (name, percent) in [
        ("buffer_compress_percentage", spec.compressible),
        ("dedupe_percentage", spec.dedup),
    ] {
        if percent > 0 {
            words.push(format!("--{name}={percent}"));
        }
    }
    let priority = match spec.ioprio {
        None => None,
        Some(IoPriority::RealTime(level)) => Some((1, level)),
        Some(IoPriority::BestEffort(level)) => Some((2, level)),
        Some(IoPriority::Idle) => Some((3, 0)),
    };
    if let Some((class, level)) = priority {
        words.push(format!("--prioclass={class}"));
        words.push(format!("--prio={level}"));
    }
    if let Some(hint) = spec.write_hint {
        let name = match hint {
            WriteHint::Unspecific => "none",
            WriteHint::Short | WriteHint::Medium | WriteHint::Long | WriteHint::Extreme => {
                hint.name()
            }
        };
        words.push(format!("--write_hint={name}"));
    }
    if let Some(cpu) = spec.sqpoll_cpu {
        words.push(format!("--sqthread_poll_cpu={cpu}"));
    }
    if let Some(node) = spec.memory_node {
        words.push(format!("--numa_mem_policy=bind:{node}"));
    }
    if let Some(think) = spec.thinktime {
        words.push(format!("--thinktime={}us", think.as_micros()));
        words.push(format!("--thinktime_blocks={}", spec.thinktime_every));
        if !spec.thinktime_spin.is_zero() {
            let spin = spec.thinktime_spin.as_micros();
            words.push(format!("--thinktime_spin={spin}us"));
        }
    }
    if let Some(bursts) = spec.bursts {
        words.push(format!("--thinktime={}us", bursts.off.as_micros()));
        words.push(format!("--thinktime_iotime={}us", bursts.on.as_micros()));
    }
    words
}

/// Options that are there or not.
fn choices(spec: &TrialSpec) -> Vec<&'static str> {
    let ring = spec.backend == Backend::IoUring;
    let choices = [
        (spec.pattern.shares_region(), "--norandommap"),
        (
            spec.sync == SyncPolicy::End && spec.writes(),
            "--end_fsync=1",
        ),
        (spec.sync == SyncPolicy::Osync, "--sync=sync"),
        (spec.sync == SyncPolicy::Odsync, "--sync=dsync"),
        (spec.content == Content::Repeated, "--scramble_buffers=0"),
        (spec.content == Content::Zero, "--zero_buffers"),
        (ring && spec.registered, "--fixedbufs"),
        (ring && spec.registered, "--registerfiles"),
        (ring && spec.sqpoll, "--sqthread_poll"),
        (spec.iopoll && spec.backend != Backend::Null, "--hipri"),
        (spec.latency, "--lat_percentiles=1"),
        (spec.latency, "--clat_percentiles=0"),
        (!spec.latency, "--gtod_reduce=1"),
    ];
    let given = choices.into_iter().filter(|(given, _)| *given);
    given.map(|(_, word)| word).collect()
}

/// `rw`: order and direction.
fn order(spec: &TrialSpec) -> String {
    let direction = match (spec.reads(), spec.writes()) {
        (true, false) => "read",
        (false, true) => "write",
        _ => "rw",
    };
    match spec.pattern {
        Pattern::Seq | Pattern::Reverse => direction.to_owned(),
        // A number here would be skipped after each request.
        Pattern::Strided if spec.skip_every.is_some() => direction.to_owned(),
        Pattern::Strided => format!("{direction}:{}", spec.skip),
        Pattern::Rand
        | Pattern::RandReplace
        | Pattern::Zipf(_)
        | Pattern::Pareto(_)
        | Pattern::Normal(_)
        | Pattern::Zoned(_)
        | Pattern::Sequence(_) => match spec.random_every {
            1 => format!("rand{direction}"),
            every => format!("rand{direction}:{every}"),
        },
    }
}

/// Runs of blocks with others left out between them.
fn zones(spec: &TrialSpec) -> Vec<String> {
    match (spec.pattern, spec.skip_every) {
        (Pattern::Strided, Some(run)) => vec![
            "--zonemode=strided".to_owned(),
            format!("--zonesize={run}"),
            format!("--zoneskip={}", spec.skip),
        ],
        _ => Vec::new(),
    }
}

/// The CPUs of one worker, where they are chosen.
fn placed(spec: &TrialSpec, worker: u32) -> Result<Option<String>, String> {
    if spec.cpus.is_none() && spec.placement == Placement::Float {
        return Ok(None);
    }
    let cpus = placement::cpus_of(spec, worker).map_err(|error| error.message().to_owned())?;
    Ok(Some(format!("--cpus_allowed={cpus}")))
}

/// The job of one worker: its part of the region, and its requests.
fn own(spec: &TrialSpec, worker: u32) -> Result<Vec<String>, String> {
    let blocks = spec.region / spec.bs;
    let (first, count) = match spec.layout {
        FileLayout::Private => (0, spec.private_bytes(worker) / spec.bs),
        FileLayout::Overlapping => (0, blocks),
        _ if spec.pattern.shares_region() => (0, blocks),
        _ => share(blocks, worker, spec.threads),
    };
    let mut words = vec![
        format!("--offset={}", spec.offset + first * spec.bs),
        format!("--size={}", count * spec.bs),
    ];
    if let Some(bytes) = spec.bytes_bound() {
        words.push(format!(
            "--io_size={}",
            share(bytes, worker, spec.threads).1
        ));
    } else if let Some(bound) = spec.requests_bound() {
        let requests = share(bound, worker, spec.threads).1;
        if requests == 0 {
            return Err(
                "it has no worker that makes no request, and there are fewer requests than workers"
                    .to_owned(),
            );
        }
        words.push(match spec.bs_mix {
            None => format!("--io_size={}", requests * spec.bs),
            Some(_) => format!("--number_ios={requests}"),
        });
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use iolab_workload::trial::{Batch, BufferInit, FirstOffset, Rate, TrialLimit};

    use super::*;

    fn line(spec: &TrialSpec) -> String {
        let words = arguments(spec, &["/data/a:b".into()]).expect("possible");
        let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
        format!("{} ", words.join(" "))
    }

    fn timed() -> TrialSpec {
        TrialSpec {
            region: 10 * 4096,
            limit: TrialLimit {
                time: Some(Duration::from_millis(250)),
                ..TrialLimit::default()
            },
            ..TrialSpec::default()
        }
    }

    #[test]
    fn a_cell_is_said_in_fios_words() {
        let reads = line(&timed());
        for part in [
            "--readonly ",
            "--filename=/data/a\\:b ",
            "--rw=read ",
            "--bs=4096 ",
            "--ioengine=psync ",
            "--direct=1 ",
            "--randrepeat=0 --randseed=",
            "--runtime=250000us --time_based ",
            "--name=worker0 --offset=0 --size=40960 ",
        ] {
            assert!(reads.contains(part), "{part} in {reads}");
        }
        let writes = line(&TrialSpec {
            read_percent: 0,
            pattern: Pattern::Rand,
            threads: 3,
            offset: 8192,
            sync: SyncPolicy::Odsync,
            cache: CacheState::Cold,
            content: Content::Zero,
            latency: false,
            ..timed()
        });
        for part in [
            "--rw=randwrite ",
            "--direct=0 ",
            "--sync=dsync ",
            "--zero_buffers ",
            "--gtod_reduce=1 ",
            "--name=worker0 --offset=8192 --size=16384 ",
            "--name=worker2 --offset=36864 --size=12288 ",
        ] {
            assert!(writes.contains(part), "{part} in {writes}");
        }
        assert!(!writes.contains("--readonly"), "{writes}");
    }

    #[test]
    fn bounds_and_queues_are_those_of_the_cell() {
        let pass = TrialSpec {
            limit: TrialLimit::default(),
            backend: Backend::IoUring,
            pattern: Pattern::RandReplace,
            threads: 4,
            depth: 8,
            batch: Batch::Percent(50),
            read_percent: 70,
            sync: SyncPolicy::Odsync,
            ..timed()
        };
        let mixed = line(&pass);
        for part in [
            "--rw=randrw ",
            "--rwmixread=70 ",
            "--norandommap ",
            "--sync=dsync ",
            "--iodepth=8 ",
            "--iodepth_batch=4 --iodepth_batch_complete_min=4 ",
            "--fixedbufs --registerfiles ",
            "--name=worker0 --offset=0 --size=40960 --io_size=12288 ",
            "--name=worker3 --offset=0 --size=40960 --io_size=8192 ",
        ] {
            assert!(mixed.contains(part), "{part} in {mixed}");
        }
        assert!(!mixed.contains("--time_based"), "{mixed}");
    }

    #[test]
    fn contiguous_buffers_are_reserved_huge_pages_or_a_gap() {
        let spec = TrialSpec {
            buffer_memory: BufferMemory::Contiguous,
            bs: 1 << 20,
            depth: 4,
            threads: 2,
            ..timed()
        };
        let six = |bytes: u64| ReservedPages {
            bytes,
            free: 6 * bytes,
        };
        let words = memory(&spec, &six(2 << 20)).expect("enough");
        assert_eq!(words, ["--mem=mmaphuge"]);
        // Of an ARM kernel with pages of 16 KiB: two pages for each thread.
        let words = memory(&spec, &six(32 << 20)).expect("enough");
        assert_eq!(words, ["--mem=mmaphuge", "--hugepage-size=33554432"]);
        let five = ReservedPages {
            free: 5 * (2 << 20),
            ..six(2 << 20)
        };
        let why = memory(&spec, &five).expect_err("too few");
        insta::assert_snapshot!(why, @"contiguous buffers take 6 reserved huge pages (as root: sysctl vm.nr_hugepages=6; or set buffer_memory=kernel)");
        assert_eq!(memory(&timed(), &five), Ok(Vec::new()));
    }

    #[test]
    fn what_fio_would_do_otherwise_is_a_gap() {
        let strided = TrialSpec {
            pattern: Pattern::Strided,
            skip: 4096,
            ..timed()
        };
        let bounded = |requests| TrialSpec {
            limit: TrialLimit {
                requests: Some(requests),
                ..TrialLimit::default()
            },
            ..strided.clone()
        };
        insta::assert_snapshot!(line(&bounded(5)), @r"--readonly --output-format=json+ --eta=never --name=global --filename=/data/a\:b --allow_file_create=0 --fallocate=none --thread --group_reporting --ioengine=psync --rw=read:4096 --iodepth=1 --direct=1 --invalidate=0 --fadvise_hint=0 --randrepeat=0 --randseed=1 --lat_percentiles=1 --clat_percentiles=0 --bs=4096 --name=worker0 --offset=0 --size=40960 --io_size=20480");
        let reverse = TrialSpec {
            pattern: Pattern::Reverse,
            ..timed()
        };
        let open = TrialSpec {
            rate: Some(Rate::Requests(10)),
            ..timed()
        };
        let huge = TrialSpec {
            buffer_init: BufferInit::Huge,
            ..timed()
        };
        let mixed = TrialSpec {
            read_percent: 50,
            sync: SyncPolicy::Fdatasync,
            ..timed()
        };
        let noatime = TrialSpec {
            noatime: true,
            ..timed()
        };
        let turned = TrialSpec {
            first_offset: FirstOffset::Random,
            ..timed()
        };
        for spec in [
            strided.clone(),
            bounded(6),
            reverse,
            open,
            huge,
            mixed,
            noatime,
            turned,
        ] {
            arguments(&spec, &["/x".into()]).expect_err("a gap");
        }
    }
}
