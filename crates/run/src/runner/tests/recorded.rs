//! Runs of every built-in experiment on a machine that is made up ([`super::machine`]), against the run files that are
//! stored: by each schema version that has written some. So every experiment's cells, the samples made of their
//! outcomes, the writer, and the readers of all versions are held to what they were.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use rusqlite::Connection;

use super::machine::{Machine, fit_cell};
use super::unpack::unpack;
use super::*;
use iolab_record::{ClockDomain, SCHEMA_VERSION};

/// Name of the stored file, the experiment, and what is set in it.
const RUNS: [(&str, &str, &[&str]); 18] = [
    ("read-size", "read-size", &["trials_max=8"]),
    ("write-size", "write-size", &["bs=4k,64k,1M,16M"]),
    (
        "read-stride",
        "read-stride",
        &["bs=4k,64k,1M", "skip=0,4k,64k,1M"],
    ),
    (
        "write-stride",
        "write-stride",
        &["bs=4k,64k,1M", "skip=0,4k,64k,1M", "sync=osync"],
    ),
    ("read-random", "read-random", &["bs=4k,64k,1M,16M"]),
    (
        "write-random",
        "write-random",
        &["bs=4k,64k,1M,16M", "fresh=true", "sync=end"],
    ),
    (
        "load-latency",
        "load-latency",
        &["rate=1000,4000,16000,64000"],
    ),
    ("disk-grid", "disk-grid", &["bs=4k,1M", "threads=1,8"]),
    ("why-serialised", "why-serialised", &["descriptors=private"]),
    ("write-vs-read", "write-vs-read", &[]),
    ("buffer-size", "buffer-size", &["bs=4k,2M,8M"]),
    (
        "linkage",
        "linkage",
        &["region=4k,64k,1M,16M", "trials_min=6"],
    ),
    // The same question to another machine, for comparisons.
    (
        "read-size-again",
        "read-size",
        &["trials_max=8", "bs=4k,64k,1M", "buffer_init=huge"],
    ),
    (
        "read-size-refined",
        "read-size",
        &["bs=4k,64k,1M,16M", "refine=4"],
    ),
    (
        "read-size-tools",
        "read-size",
        &["bs=4k,64k,1M", "tool=iolab,fio,iozone"],
    ),
    ("read-size-interrupted", "read-size", &["bs=4k,64k,1M"]),
    (
        "uring-depth",
        "read-random",
        &[
            "bs=4k,2M",
            "backend=io_uring,libaio",
            "depth=1,16",
            "hardware_counters=true",
        ],
    ),
    (
        "mixed-verified",
        "write-random",
        &["bs=4k,64k", "read_percent=70,0", "verify=true", "threads=4"],
    ),
];

/// Runs that have fewer cells now: reads are no longer crossed with sync policies, under which they are all the same.
const REPLANNED: [&str; 1] = ["write-vs-read"];

/// What the machine is, as far as findings and figures look at it.
const ENVIRONMENT: [(&str, &str); 26] = [
    ("iolab_version", "0.1.0"),
    ("machine_is_virtual", "false"),
    ("cpu_model", "Made-up 9000"),
    ("cpu_usable_count", "4"),
    ("memory_bytes", "17179869184"),
    ("memory_available_bytes", "12884901888"),
    ("page_bytes", "4096"),
    ("huge_page_bytes", "2097152"),
    ("cache_l1d_bytes", "32768"),
    ("cache_l2_bytes", "1048576"),
    ("cache_l3_bytes", "33554432"),
    ("tlb_l1d_reach_bytes", "262144"),
    ("tlb_l2_reach_bytes", "6291456"),
    ("kernel_release", "6.12.1"),
    ("architecture", "x86_64"),
    ("file_system", "ext4"),
    ("mount_options", "rw,relatime"),
    ("device", "nvme0n1p2"),
    ("device_disk", "nvme0n1"),
    ("device_rotational", "0"),
    ("device_read_ahead_kib", "128"),
    ("device_requests_max", "1023"),
    ("device_request_max_kib", "1024"),
    ("device_segments_max", "127"),
    ("device_logical_block_bytes", "512"),
    ("device_transport", "nvme"),
];

/// Runs `sets` on the made-up machine into a new file.
fn make(path: &Path, experiment: &str, sets: &[&str]) {
    let mut asked = Experiment::find(experiment).expect("built in");
    for set in ["trials_max=7", "budget=1h"].iter().chain(sets) {
        asked.apply_set(set).expect("a valid setting");
    }
    // What is stored has the question as it was before any change, whatever was changed.
    asked.question = Experiment::find(experiment).expect("built in").question;
    let mut plan = Plan::of(asked).expect("cells");
    plan.cells.iter_mut().for_each(fit_cell);
    let rows = fit::records(&plan.cells);
    let run = Run {
        status: RunStatus::Running,
        tool_version: "0.1.0".to_owned(),
        started_utc: String::new(),
        ended_utc: None,
        target: "/mnt/data".to_owned(),
        target_kind: iolab_record::TargetKind::Scratch,
        target_bytes: 10 << 30,
        seed: 42,
        clock_domain: ClockDomain::Real,
        clock_cost_ns: 11.5,
        clock_source: "tsc".to_owned(),
        floor_ns: 30.25,
    };
    let facts = ENVIRONMENT.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let environment = facts.into_iter().collect();
    let record = experiment_record(plan.experiment()).expect("a definition");
    let file = RunFile::create(path, &run, &environment, &record, &rows).expect("a new file");
    let mut machine = Machine::new();
    let interrupted = path.to_string_lossy().contains("interrupted");
    machine.interrupted_at = interrupted.then_some(17);
    let mut observer = Silent;
    let finished = Session::new(plan, 42, file, ClockDomain::Real, &mut observer)
        .carry_out(&mut machine, &AtomicBool::new(false));
    assert_eq!(finished.is_err(), interrupted, "{path:?}: {finished:?}");
    forget_when(path);
}

/// When it was made, and how long that took, is all that differs between two runs on the made-up machine.
fn forget_when(path: &Path) {
    let connection = Connection::open(path).expect("a run file");
    connection
        .execute_batch(
            "UPDATE run SET started_utc = '2026-01-02T03:04:05Z', ended_utc = '2026-01-02T03:34:05Z';
             UPDATE sample SET started_utc = printf('2026-01-02T03:%02d:%02dZ', 4 + id / 60 % 30, id % 60),
                 wall_ns = elapsed_ns + 1000000;
             UPDATE event SET at_utc = '2026-01-02T03:04:05Z';
             VACUUM;",
        )
        .expect("can be changed");
}

fn stored(version: i64) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../runfile/tests/golden/version-{version}"))
}

/// Everything that a run file holds.
fn all(path: &Path) -> (RunRecord, Vec<iolab_record::SampleLatency>) {
    let record = iolab_runfile::read(path).expect("a run file");
    let latencies = iolab_runfile::read_latency(path).expect("latencies");
    (record, latencies.map(|l| l.expect("a histogram")).collect())
}

#[test]
fn the_runs_of_the_made_up_machine_are_what_every_version_has_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let versions: Vec<i64> = (1..=SCHEMA_VERSION)
        .filter(|v| stored(*v).exists())
        .collect();
    assert_eq!(versions.first(), Some(&4));
    for (name, experiment, sets) in RUNS {
        let path = folder.path().join(format!("{name}.iolab"));
        make(&path, experiment, sets);
        let made = all(&path);
        for version in &versions {
            let unpacked = folder.path().join(format!("{name}-{version}.iolab"));
            unpack(*version, name, &unpacked);
            let stored = all(&unpacked);
            if REPLANNED.contains(&name) {
                let had = |levels| stored.0.cells.iter().any(|cell| &cell.levels == levels);
                assert!(made.0.cells.iter().all(|cell| had(&cell.levels)), "{name}");
                continue;
            }
            assert!(made == stored, "{name} differs from version {version}");
        }
    }
}

#[test]
#[ignore = "stores the runs in this build's schema version: once, when the version is new"]
fn store() {
    let folder = stored(SCHEMA_VERSION);
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, experiment, sets) in RUNS {
        let path = folder.join(format!("{name}.iolab"));
        make(&path, experiment, sets);
        let packed =
            File::create_new(folder.join(format!("{name}.iolab.gz"))).expect("not stored yet");
        let mut packed = GzEncoder::new(packed, Compression::best());
        packed
            .write_all(&std::fs::read(&path).expect("made"))
            .expect("room");
        packed.finish().expect("room");
        std::fs::remove_file(path).expect("made");
    }
}
