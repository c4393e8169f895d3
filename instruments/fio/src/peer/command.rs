//! fio command line that is equivalent to a cell, or the reason why there is none.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use iolab_engine::placement;
use iolab_storage::procfs;
use iolab_workload::system_settings::Placement;
use iolab_workload::trial::{BufferMemory, FileLayout, Pattern, TrialSpec, share};

use iolab_runner::peers::CommandLine;

use crate::unsupported::check;
use crate::write_job::common;

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
    let of_a_trial = [
        "--output-format=json+", "--eta=never", "--name=global", "--allow_file_create=0",
        "--fallocate=none",
        // iolab has brought the page cache into its state.
        "--invalidate=0",
        // Without this fio takes the same offsets in every trial and ignores the seed (fixed after 3.33).
        "--randrepeat=0",
    ];
    words.extend(of_a_trial.map(OsString::from));
    words.push(format!("--randseed={}", spec.seed).into());
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
            bytes: procfs::bytes("Hugepagesize").unwrap_or(Self::USUAL),
            free: procfs::free_huge_bytes().unwrap_or(0),
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

/// The job of one worker: its part of the region, and its requests.
///
/// # Errors
/// A setting that fio has no words for.
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
        words.push(format!("--io_size={}", requests * spec.bs));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use iolab_workload::settings::Setting;

    use crate::options::{FileSize, Options, cell_or_faults, give};

    use super::*;

    /// Cells, each with its command line or the reason why fio cannot measure it.
    const CELLS: [&str; 11] = [
        "region=40k time=250ms",
        "region=40k time=250ms read_percent=0 pattern=rand threads=3 offset=8k sync=odsync cache=cold compressible=100 latency=false",
        "region=40k backend=io_uring pattern=rand-replace threads=4 depth=8 batch=50% read_percent=70 sync=odsync",
        "region=40k time=250ms pattern=strided skip=4k bytes=20k",
        "region=40k time=250ms pattern=strided skip=4k bytes=24k",
        "region=40k time=250ms pattern=strided skip=4k",
        "region=40k time=250ms pattern=reverse",
        "region=40k time=250ms rate=10",
        "region=40k time=250ms buffer_init=huge",
        "region=40k time=250ms read_percent=50 sync=fdatasync",
        "region=40k time=250ms first_offset=random",
    ];

    fn trial(sets: &str) -> TrialSpec {
        let trial = needs::settings(sets);
        trial.check().expect(sets);
        trial
    }

    #[test]
    fn each_cell_is_said_in_fios_words() {
        let told = CELLS.map(
            |sets| match arguments(&trial(sets), &["/data/a:b".into()]) {
                Ok(words) => {
                    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
                    format!("{sets}\n  {}\n", words.join(" "))
                }
                Err(gap) => format!("{sets}\n  cannot: {gap}\n"),
            },
        );
        insta::assert_snapshot!(told.concat());
    }

    #[test]
    fn contiguous_buffers_need_reserved_huge_pages() {
        let spec = TrialSpec {
            buffer_memory: BufferMemory::Contiguous,
            depth: 4,
            ..trial("bs=1M threads=2")
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
        assert_eq!(memory(&trial(""), &five), Ok(Vec::new()));
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
        let trial = trial(&format!("threads=2 region=1M {sets}"));
        arguments(&trial, &["/a".into(), "/b".into()]).expect(sets)
    }

    /// A setting that fio takes, but without an option, would be silently left out.
    #[test]
    fn every_setting_taken_has_a_fio_option() {
        // iolab does them around the program, or refuses where a run is planned what has no option.
        const AROUND: &str = "allocate hardware_counters arrivals rate_slack ranks hosts shift descriptors latency_over_time";
        // `bytes` is a bound like `time`; options for memory depend on the reserved pages of the machine.
        const OTHERWISE: [&str; 2] = ["bytes", "buffer_memory"];
        let source = include_str!("../unsupported.rs");
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
        setting.get(&cell_or_faults(&options, size).expect("a cell"))
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
