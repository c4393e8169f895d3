//! A process killed while it writes a run file loses nothing that it had added.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use iolab_plan::experiment::Experiment;
use iolab_record::environment::Environment;
use iolab_record::{
    Cell, Effective, Ended, ExperimentRecord, Moved, OperationSummary, PerOperation, Run,
    RunStatus, Sample, ServedBy, ServedVerdict,
};
use iolab_record::{ClockDomain, LatencyOf, Operation, TargetKind};
use iolab_runfile::{RunFile, read, read_latency};
use iolab_workload::histogram::new_latency_histogram;
use iolab_workload::settings::CellSpec;

/// Environment variable of the process to be killed: the run file that it writes.
const WRITER: &str = "IOLAB_TEST_WRITES";

#[test]
fn a_killed_writer_loses_nothing_it_had_added() {
    if let Some(path) = std::env::var_os(WRITER) {
        write_until_killed(Path::new(&path));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.iolab");
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "killed::a_killed_writer_loses_nothing_it_had_added",
            "--nocapture",
        ])
        .env(WRITER, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut added = 0;
    while added < 20 {
        let line = lines.next().expect("the writer goes on").unwrap();
        if let Some(number) = line.strip_prefix("added ") {
            added = number.parse().unwrap();
        }
    }
    writer.kill().unwrap();
    writer.wait().unwrap();

    let record = read(&path).unwrap();
    assert_eq!(record.run.status, RunStatus::Running);
    assert!(
        record.samples.len() >= added,
        "{} of {added}",
        record.samples.len()
    );
    assert_eq!(read_latency(&path).unwrap().count(), record.samples.len());
    let (file, resumed) = RunFile::open_resume(&path).unwrap();
    assert_eq!(resumed.samples, record.samples);
    file.finish(RunStatus::Done, "2025-11-21T10:00:00Z", None)
        .unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

fn write_until_killed(path: &Path) -> ! {
    let (run, experiment, cell) = plan();
    let mut file =
        RunFile::create(path, &run, &Environment::default(), &experiment, &[cell]).unwrap();
    let mut latency = new_latency_histogram();
    latency.record(1000).unwrap();
    let mut out = std::io::stdout();
    for block in 0.. {
        let id = file
            .add_sample(
                &sample(block),
                &[(LatencyOf::service(Operation::Read), &latency)],
                &Default::default(),
            )
            .unwrap();
        writeln!(out, "\nadded {id}").unwrap();
    }
    unreachable!("it is killed long before")
}

fn plan() -> (Run, ExperimentRecord, Cell) {
    let run = Run {
        status: RunStatus::Running,
        tool_version: "0".to_owned(),
        started_utc: String::new(),
        ended_utc: None,
        target: String::new(),
        target_kind: TargetKind::Scratch,
        target_bytes: 4096,
        seed: 1,
        clock_domain: ClockDomain::Real,
        clock_cost_ns: Some(1.0),
        clock_resolution_ns: Some(0.5),
        clock_source: String::new(),
        floor_ns: Some(1.0),
    };
    let mut definition = Experiment::find("read-size").unwrap();
    definition.apply_set("bs=4k").unwrap();
    let experiment = ExperimentRecord {
        name: definition.name.clone(),
        question: definition.question.clone(),
        response: definition.response,
        response_group: None,
        asked: None,
        toml: definition.to_toml().unwrap(),
        factors: Vec::new(),
        precision: 0.05,
        budget_ns: 1,
        trials_min: 1,
        trials_max: 1,
    };
    let cell = Cell {
        id: 0,
        levels: Vec::new(),
        spec: CellSpec::default(),
        ended_by: None,
        pilot: None,
    };
    (run, experiment, cell)
}

fn sample(block: u32) -> Sample {
    Sample {
        id: 0,
        group: 0,
        client: 0,
        start_ns: 0,
        cell: 0,
        block,
        visit: 0,
        position: 0,
        warmup: false,
        ok: true,
        started_utc: String::new(),
        operations: PerOperation {
            read: OperationSummary {
                requests: 1,
                bytes: 4096,
                ..OperationSummary::default()
            },
            ..PerOperation::default()
        },
        unsplit: Moved::default(),
        errors: 0,
        failure: None,
        ended: Ended::Done,
        elapsed_ns: 1000,
        all_active_ns: 1000,
        in_flight: None,
        together: None,
        end_sync_ns: 0,
        paused_ns: 0,
        wall_ns: 1000,
        clock_drift_ppm: Some(0.0),
        seed: 1,
        counters: Default::default(),
        region: Default::default(),
        rate_report: None,
        verified: None,
        traced: None,
        request_sizes: Default::default(),
        cpus_used: Default::default(),
        run_delay_ns: None,
        effective: Effective::default(),
        verdict: ServedVerdict {
            served_by: ServedBy::Unknown,
            device_fraction: None,
            reason: String::new(),
        },
    }
}
