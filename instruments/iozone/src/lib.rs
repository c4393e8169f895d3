//! iolab-iozone: IOzone in throughput mode (`-T`): its command line and its output.
//!
//! Files to begin with: `lib.rs` a cell as a command line, or the reason why there is none; `report.rs` the output; `import.rs` results
//! of earlier runs.

mod import;
mod report;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use iolab_runner::peers::{CommandLine, Need, Peer, needed};
use iolab_workload::counters::Counters;
use iolab_workload::operation::PerOperation;
use iolab_workload::outcome::{Outcome, Tally};
use iolab_workload::settings::{Consumer, Tool};
use iolab_workload::trial::{Backend, CacheState, FileLayout, Pattern, SyncPolicy, TrialSpec};
use iolab_workload::units::format_size;
use iolab_workload::{Error, Result, table};
use report::{IozoneReport, IozoneResult, IozoneTest};

const IOZONE: Tool = Tool::named("iozone").expect("letters");

/// IOzone as a peer.
pub static PEER: Peer = Peer {
    tool: IOZONE,
    about: "IOzone in throughput mode",
    version_option: "-v",
    // First version that reads foreign files (`-+E`) and leaves the length of existing ones alone (`-+N`).
    oldest: (3, 432),
    takes_devices: false,
    overhead,
    arguments,
    needs,
    take_over,
    report: "iozone's standard output",
    report_in: |_| None,
    recognises: |text| text.contains("ozone") || text.contains("Children see"),
    import: import::import,
    transferred: import::transferred,
};

/// IOzone sleeps for about two seconds at its start and at each of its tests. Random writes are the third of three.
fn overhead(spec: &TrialSpec) -> Duration {
    let seconds = match (spec.writes(), spec.pattern) {
        (_, Pattern::Seq) => 4.2,
        (true, _) => 12.3,
        (false, _) => 6.2,
    };
    Duration::from_secs_f64(seconds)
}

/// Takes over IOzone's result of the cell's test.
fn take_over(text: &str, spec: &TrialSpec, outcome: &mut Outcome) -> Result<()> {
    let report = IozoneReport::parse(text)?;
    let row = result(&report, spec)?;
    if report.rows.len() > 1 {
        // Counts over several tests mean nothing for one.
        outcome.counters = Counters {
            pressure: outcome.counters.pressure,
            ..Counters::default()
        };
        outcome.effective.note =
            "(what was counted is of all its tests together, and is left out)".to_owned();
    }
    let done = Tally {
        requests: spec.region / spec.bs,
        bytes: spec.region,
        ..Tally::default()
    };
    outcome.operations = PerOperation::default();
    match row.test.writes() {
        true => outcome.operations.write = done,
        false => outcome.operations.read = done,
    }
    outcome.elapsed_ns = (spec.region as f64 * 1e9 / row.bytes_per_s) as u64;
    Ok(())
}

/// The one result of the cell.
fn result(report: &IozoneReport, spec: &TrialSpec) -> Result<IozoneResult> {
    let test = wanted(spec);
    let mut rows = report.rows.iter().filter(|row| row.test == test);
    let (Some(row), None) = (rows.next(), rows.next()) else {
        return Err(Error::usage(format!(
            "of its {} results not exactly one is of the test that was started",
            report.rows.len()
        )));
    };
    let told = (row.threads, row.record_bytes, row.file_bytes);
    if told != (spec.threads, spec.bs, spec.private_bytes(0)) {
        return Err(Error::usage(
            "it reports other threads, records or files than requested",
        ));
    }
    Ok(*row)
}

/// Test whose result is the cell's.
fn wanted(spec: &TrialSpec) -> IozoneTest {
    match (spec.writes(), spec.pattern == Pattern::Seq) {
        (true, true) => IozoneTest::Write,
        (true, false) => IozoneTest::RandomWrite,
        (false, true) => IozoneTest::Read,
        (false, false) => IozoneTest::RandomRead,
    }
}

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
fn arguments(spec: &TrialSpec, files: &[PathBuf]) -> CommandLine {
    SETTINGS.check(spec)?;
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
const SETTINGS: Consumer = Consumer {
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

/// Settings that have to change so that IOzone can run these trials.
fn needs(specs: &[&TrialSpec]) -> Vec<Need> {
    let any = |of: fn(&TrialSpec) -> bool| specs.iter().any(|spec| of(spec));
    let mut needs = needed([
        (any(|s| s.limit.time.is_some()), ("time", "none")),
        (any(|s| s.limit.bytes.is_some()), ("bytes", "none")),
        (
            any(|s| s.threads > 1 && s.layout != FileLayout::Private),
            ("layout", "private"),
        ),
    ]);
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
    use super::*;

    const OUTPUT: &str = "\tFile size set to 1024 kB\n\tRecord Size 4 kB\n\tChildren see throughput for  4 initial writers \t=  100000.00 kB/sec\n\tChildren see throughput for 4 random readers \t=   50000.00 kB/sec\n\tChildren see throughput for 4 random writers \t=   40960.00 kB/sec\n";

    fn asked() -> TrialSpec {
        TrialSpec {
            read_percent: 0,
            pattern: Pattern::Rand,
            threads: 4,
            region: 4 << 20,
            ..TrialSpec::default()
        }
    }

    #[test]
    fn only_the_result_of_the_requested_test_counts() {
        let report = IozoneReport::parse(OUTPUT).expect("a report");
        let row = result(&report, &asked()).expect("a result");
        let told = (row.test, row.bytes_per_s);
        assert_eq!(told, (IozoneTest::RandomWrite, 40960.0 * 1024.0));
        let threads = TrialSpec {
            threads: 2,
            ..asked()
        };
        let read = TrialSpec {
            read_percent: 100,
            pattern: Pattern::Seq,
            ..asked()
        };
        for spec in [threads, read] {
            result(&report, &spec).expect_err("of no use");
        }
        let twice = IozoneReport::parse(&OUTPUT.repeat(2)).expect("a report");
        result(&twice, &asked()).expect_err("twice");
    }

    /// Cells, each with its command line or the reason why IOzone cannot measure it.
    const CELLS: [&str; 10] = [
        "bs=64k region=4M",
        // Its buffers are aligned to the record; the target's support of such direct I/O is checked before.
        "bs=1k region=4M",
        "bs=64k region=4M pattern=rand cache=cold",
        "bs=64k region=4M read_percent=0 sync=osync",
        "bs=64k region=4M read_percent=0 pattern=rand threads=4 layout=private",
        "bs=64k region=4M time=1s",
        "bs=64k region=4M threads=2",
        "bs=512 region=4M",
        "bs=64k region=4M threads=3 layout=private",
        "bs=32M region=64M",
    ];

    #[test]
    fn each_cell_is_said_in_iozones_words() {
        let told =
            CELLS.map(
                |sets| match arguments(&needs::settings(sets), &["/data/file".into()]) {
                    Ok(words) => {
                        let words: Vec<_> =
                            words.iter().map(|word| word.to_string_lossy()).collect();
                        format!("{sets}\n  {}\n", words.join(" "))
                    }
                    Err(gap) => format!("{sets}\n  cannot: {gap}\n"),
                },
            );
        insta::assert_snapshot!(told.concat());
    }
}
