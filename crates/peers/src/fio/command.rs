//! fio command line that is equivalent to a cell, or the reason why there is none.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use iolab_engine::placement;
use iolab_fio::unsupported::check;
use iolab_fio::words::{common, own};
use iolab_storage::meminfo;
use iolab_workload::cpus::Placement;
use iolab_workload::trial::{BufferMemory, FileLayout, Pattern, TrialSpec};

use crate::CommandLine;

/// Most blocks of the random map before fio needs more than its default memory, a pool of 16 MiB of bits.
const MAP_BLOCKS_MAX: u64 = 1 << 25;

/// Arguments of a run of fio on one file, or on a file for each worker. Every worker is a separate job, so that
/// parts of the region and requests are assigned as to iolab's workers.
///
/// # Errors
/// Settings that fio cannot express.
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

/// Reserved huge pages of this machine (hugetlb).
#[derive(Debug, Clone, Copy)]
struct ReservedPages {
    /// Size of a page, bytes.
    bytes: u64,
    /// Free ones among them, bytes.
    free: u64,
}

impl ReservedPages {
    /// Size on x86-64, which fio assumes by default, bytes.
    const USUAL: u64 = 2 << 20;

    fn read() -> Self {
        Self {
            bytes: meminfo::bytes("Hugepagesize").unwrap_or(Self::USUAL),
            free: meminfo::free_huge_bytes().unwrap_or(0),
        }
    }
}

/// Memory options for its buffers: fio uses only reserved huge pages, and rounds each thread's buffers up to
/// one.
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

/// Option `filename`, in which fio takes a colon for the end of a name. No other byte in the paths has a
/// special meaning.
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

/// CPUs of one worker, if they are chosen.
fn placed(spec: &TrialSpec, worker: u32) -> Result<Option<String>, String> {
    if spec.cpus.is_none() && spec.placement == Placement::Float {
        return Ok(None);
    }
    let cpus = placement::cpus_of(spec, worker).map_err(|error| error.message().to_owned())?;
    Ok(Some(format!("--cpus_allowed={cpus}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use iolab_fio::options::{FileSize, Options, cell_of, give};
    use iolab_workload::settings::{CellSpec, Setting};
    use iolab_workload::trial::{
        Backend, Batch, BufferInit, CacheState, FirstOffset, Rate, SyncPolicy, TrialLimit,
    };

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
            compressible: 100,
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
    fn contiguous_buffers_need_reserved_huge_pages() {
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
        // An ARM kernel with pages of 16 KiB: two pages for each thread.
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
        let bounded = |requests: u64| TrialSpec {
            limit: TrialLimit {
                bytes: Some(requests * 4096),
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
            turned,
        ] {
            arguments(&spec, &["/x".into()]).expect_err("a gap");
        }
    }

    /// For each field of `same`, settings that make a command line, and a change that must alter it.
    const CHANGES: &[(&str, &str)] = &[
        ("", "bs=8k"),
        ("pattern=strided bytes=8k", "skip=64k"),
        ("", "offset=4k"),
        ("", "region=8M"),
        ("", "threads=1"),
        ("", "cpus=0"),
        ("", "placement=spread"),
        ("backend=libaio", "depth=8"),
        ("backend=libaio depth=8", "batch=all"),
        ("pattern=rand", "read_percent=50"),
        ("", "layout=private"),
        ("read_percent=0 sync=each", "sync_every=2"),
        ("", "cache=cold"),
        ("read_percent=0", "compressible=100"),
        ("", "time=1s"),
        ("", "thinktime=1ms"),
        ("", "latency=false"),
        ("backend=io_uring", "sqpoll=true"),
        ("backend=io_uring", "iopoll=true"),
    ];

    fn line_of(sets: &str) -> Vec<OsString> {
        let mut cell = CellSpec::default();
        for set in format!("threads=2 region=1M {sets}").split_whitespace() {
            let (name, value) = set.split_once('=').expect(set);
            let setting = Setting::find(name).expect(set);
            setting.set(&mut cell, value).expect(set);
        }
        cell.trial.check().expect(sets);
        arguments(&cell.trial, &["/a".into(), "/b".into()]).expect(sets)
    }

    /// A setting that fio takes, but without an option, would be silently left out.
    #[test]
    fn every_setting_taken_has_a_fio_option() {
        // iolab does them around the program, or refuses where a run is planned what has no option.
        const AROUND: &str = "allocate hardware_counters arrivals rate_slack ranks hosts shift descriptors latency_over_time";
        // `bytes` is a bound like `time`; options for memory depend on the reserved pages of the machine.
        const OTHERWISE: [&str; 2] = ["bytes", "buffer_memory"];
        let source = include_str!("../../../fio/src/unsupported.rs");
        let list = source.split("takes: \"").nth(1).expect("its settings");
        let names = list.split('"').next().expect("their end");
        let names = names.split_whitespace().filter(|name| *name != "\\");
        let is_around = |name: &&str| AROUND.split(' ').any(|around| around == *name);
        for setting in names.filter(|name| !is_around(name) && !OTHERWISE.contains(name)) {
            let is_of = |change: &str| change.split('=').next() == Some(setting);
            let row = CHANGES.iter().find(|(_, change)| is_of(change));
            let (base, change) = row.unwrap_or_else(|| panic!("CHANGES has no row of {setting}"));
            assert_ne!(
                line_of(base),
                line_of(&format!("{base} {change}")),
                "{change}"
            );
        }
    }

    /// Value of a setting in a job file with these options.
    fn read_in_a_job(line: &[OsString], setting: &Setting) -> String {
        let mut options = Options::new();
        for word in line {
            let option = word.to_str().expect("UTF-8").trim_start_matches("--");
            let (name, value) = option.split_once('=').unwrap_or((option, "1"));
            give(&mut options, name.to_owned(), value.to_owned());
        }
        let size = FileSize {
            known: None,
            otherwise: 1 << 20,
        };
        setting.get(&cell_of(&options, size).expect("a cell"))
    }

    /// An option in fio's command line that job files may have too would be ignored there if it is not read.
    #[test]
    fn every_fio_option_is_read_in_jobs() {
        // Settings expressed by several jobs together, or by a list of CPUs for each.
        const BY_JOBS: [&str; 3] = ["threads", "layout", "placement"];
        for (base, change) in CHANGES {
            let name = change.split('=').next().expect("its name");
            let setting = Setting::find(name).expect(name);
            let read = |sets: &str| read_in_a_job(&line_of(sets), setting);
            let same = read(base) == read(&format!("{base} {change}"));
            assert_eq!(same, BY_JOBS.contains(&name), "{change}");
        }
    }
}
