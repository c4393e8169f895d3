//! IOzone command line that is equivalent to a cell, or the reason why there is none.

use std::ffi::OsString;
use std::path::PathBuf;

use iolab_workload::settings::Consumer;
use iolab_workload::table;
use iolab_workload::trial::{Backend, CacheState, FileLayout, Pattern, SyncPolicy, TrialSpec};
use iolab_workload::units::format_size;

use crate::{CommandLine, Need};

/// Most threads of IOzone as distributed (`MAXSTREAMS`).
const THREADS_MAX: u32 = 256;
/// Largest record of IOzone as distributed (`MAXBUFFERSIZE`), bytes.
const RECORD_MAX: u64 = 16 << 20;
/// Backends that make one request after another.
const CALLS: [Backend; 3] = [Backend::Sync, Backend::Psync, Backend::Pvsync2];
const ONE_REQUEST: &str = "it makes one request after the other, by read and write";

/// Arguments of a run of IOzone: one pass by each thread over a separate file.
///
/// # Errors
/// Settings that IOzone lacks, or handles differently.
pub(super) fn arguments(spec: &TrialSpec, files: &[PathBuf]) -> CommandLine {
    IOZONE.check(spec)?;
    let sequential = spec.pattern == Pattern::Seq;
    let given = [
        (spec.cache == CacheState::Direct, "-I"),
        (spec.writes() && spec.sync == SyncPolicy::End, "-e"),
        (spec.writes() && spec.sync == SyncPolicy::Osync, "-o"),
        (spec.writes() && spec.sync == SyncPolicy::Odsync, "-+D"),
        // Reads of foreign files, and nothing else; writes that keep their lengths.
        (!spec.writes(), "-+E"),
        (spec.writes(), "-+N"),
        (spec.writes(), "-i0"),
        (!spec.writes() && sequential, "-i1"),
        // IOzone's random writes come after random reads, which expect the data of its first writes.
        (!sequential, "-i2"),
        // Each thread covers its whole file: otherwise all would stop with the first.
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

/// Settings as IOzone takes them: they are in the command line, iolab does them around the program, or they say how something
/// goes that is refused, here or where a run is planned.
const IOZONE: Consumer = Consumer {
    takes: "cache allocate hardware_counters skip arrivals rate_slack ranks hosts shift batch sqpoll sync_every descriptors latency \
            latency_over_time time",
    lacks: &[
        ("files", "each of its threads has one file"),
        ("offset", "it begins at the start of its file"),
        (
            "first_offset",
            "it begins an ordered pass at the start of its file: set first_offset=zero",
        ),
        (
            "bs_mix thinktime",
            "its requests have one size, and follow each other without a pause",
        ),
        ("depth", ONE_REQUEST),
        ("trim_percent", "it does not trim"),
        (
            "fadvise nice realtime",
            "its requests have no such flag, advice or priority",
        ),
        ("iopoll", "it does not poll"),
        ("cpus placement", "its threads cannot be placed"),
        ("rate", "it has no rate"),
        ("trace", "iolab traces its own requests only"),
        ("verify", "iolab cannot verify what it writes"),
        ("compressible", "what it writes cannot be chosen"),
        (
            "buffer_memory",
            "its buffers lie in whatever pages the kernel gives (set buffer_memory=kernel)",
        ),
        (
            "buffer_init",
            "the preparation of its buffers cannot be chosen",
        ),
    ],
    cannot,
};

fn cannot(spec: &TrialSpec) -> Vec<(&'static str, bool, &'static str)> {
    let blocks = spec.region / spec.bs;
    let is_pass = spec.limit.time.is_none()
        && spec.requests_bound() == Some(blocks)
        && spec.region.is_multiple_of(spec.bs);
    let syncs_apart = spec.sync.follows_writes() || spec.sync == SyncPolicy::RwfDsync;
    table! {
        ("layout", spec.threads > 1 && spec.layout != FileLayout::Private, "each of its threads takes a file of its own: set layout=private");
        ("threads", spec.threads > THREADS_MAX, "it has at most 256 threads");
        ("region", !blocks.is_multiple_of(u64::from(spec.threads)), "all its files have the same size: choose a --size that threads times bs divides");
        ("pattern", !matches!(spec.pattern, Pattern::Seq | Pattern::Rand), "it has the patterns seq and rand only");
        ("bytes", !is_pass, "it makes one pass over its file, whatever the time: set time=none and bytes=none");
        ("bs", !spec.bs.is_multiple_of(1024), "its record sizes are whole KiB");
        ("bs", spec.bs > RECORD_MAX, "its largest record has 16 MiB");
        ("backend", !CALLS.contains(&spec.backend), ONE_REQUEST);
        ("read_percent", !matches!(spec.read_percent, 0 | 100), "it cannot mix reads with writes");
        ("sync", syncs_apart, "it syncs at the end only, or with O_SYNC or O_DSYNC");
    }
    .to_vec()
}

/// Size of a pass, unless the requests are larger: it has to be short, because time cannot end it.
const PASS: u64 = 64 << 20;

/// Implementation of [`Peer::needs`](crate::Peer::needs).
pub(super) fn needs(specs: &[&TrialSpec]) -> Vec<Need> {
    let any = |of: fn(&TrialSpec) -> bool| specs.iter().any(|spec| of(spec));
    let flags = [
        (any(|s| s.limit.time.is_some()), ("time", "none")),
        (any(|s| s.limit.bytes.is_some()), ("bytes", "none")),
        (
            any(|s| s.threads > 1 && s.layout != FileLayout::Private),
            ("layout", "private"),
        ),
    ];
    let needed = flags.into_iter().filter(|(needed, _)| *needed);
    let mut needs: Vec<Need> = needed
        .map(|(_, (name, value))| (name, value.to_owned()))
        .collect();
    if let Some(region) = region(specs) {
        needs.push(("region", format_size(region)));
    }
    needs
}

/// Region for all trials: short to cover, and divided evenly by as many of them as possible; `None` if it
/// already is.
fn region(specs: &[&TrialSpec]) -> Option<u64> {
    let parts = |spec: &TrialSpec| spec.bs.saturating_mul(u64::from(spec.threads));
    let largest = specs.iter().map(|spec| spec.bs).max()?;
    let most = PASS.max(largest);
    let suits = |spec: &&TrialSpec| spec.region <= most && spec.region.is_multiple_of(parts(spec));
    if specs.iter().all(suits) {
        return None;
    }
    let mut wanted: Vec<u64> = specs.iter().map(|spec| parts(spec)).collect();
    wanted.push(largest);
    wanted.sort_unstable();
    wanted.dedup();
    let unit = wanted
        .into_iter()
        .fold(largest, |unit, parts| match common_multiple(unit, parts) {
            Some(both) if both <= most => both,
            _ => unit,
        });
    Some(most - most % unit)
}

fn common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).checked_mul(b)
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
        // Its buffers are aligned to the record; the target's support of such direct I/O is checked before.
        let small = TrialSpec { bs: 1024, ..pass() };
        let small = line(&small).expect("possible");
        assert!(small.contains(" -I -+E -i1 -t1 -r1k "), "{small}");
        let random = TrialSpec {
            pattern: Pattern::Rand,
            cache: CacheState::Cold,
            ..pass()
        };
        let random = line(&random).expect("possible");
        assert!(random.starts_with("-T -w -+n -+E -i2 "), "{random}");
        let writes = TrialSpec {
            read_percent: 0,
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
        for spec in [timed, threads, small, uneven, large] {
            line(&spec).expect_err("a gap");
        }
    }
}
