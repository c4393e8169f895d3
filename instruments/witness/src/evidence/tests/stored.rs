//! Observations as files keep them: read as they were written, and refused where they cannot be.

use crate::observed::{Moment, ObservedEnd, SyncTimes, TracedProgram};
use iolab_workload::counters::{ResourceUse, Traffic};
use serde_json::{Value, json};

use super::*;

/// An observation with one of each list, and a value for what may be unknown.
fn full() -> Witnessed {
    let verdict = ServedVerdict {
        served_by: ServedBy::Mixed,
        device_fraction: Some(0.992_593_362_152_110_1),
        reason: "a \"reason\"".to_owned(),
    };
    let claimed = Claimed {
        bytes: 7,
        mb_s: Some(0.1),
        elapsed_ns: Some(9),
    };
    let mut trace = TracedProgram::default();
    trace.syncs.times = Some(SyncTimes::default());
    let stat = DeviceStat {
        queue_ms: Some(5),
        ..DeviceStat::default()
    };
    let mut observed = Observed {
        subject: Subject::Process {
            pid: 77,
            command: vec!["a b".to_owned(), "\"".to_owned()],
        },
        end: ObservedEnd::Signal(9),
        files: vec![ObservedFile {
            path: "data".into(),
            after: Some(Default::default()),
            ..ObservedFile::default()
        }],
        target: Some(ObservedTarget::default()),
        devices: vec![
            ObservedDevice::default(),
            ObservedDevice {
                traffic: Some(stat),
                below: Some(stat),
                ..ObservedDevice::default()
            },
        ],
        disks: vec![DiskTraffic {
            of_group: Some(Default::default()),
            traced: Some(Default::default()),
            ..DiskTraffic::default()
        }],
        trace: Some(trace),
        course: Course {
            devices: vec!["vdb".to_owned(), "vda".to_owned()],
            moments: vec![Moment {
                devices: vec![stat; 2],
                ..Moment::default()
            }],
        },
        ..Observed::default()
    };
    observed.processes.io = Some(ProcessIo::default());
    observed.processes.usage = Some(ResourceUse::default());
    observed.ways.uncounted = [UncountedWay::Mmap].into();
    observed.others.active = vec![OtherProcess::default()];
    observed.limits.io = [(Traffic::WriteBytes, 7)].into();
    Witnessed {
        observed,
        reads: Some(verdict.clone()),
        writes: Some(verdict),
        claim: Some(ToolClaim {
            tool: "fio".to_owned(),
            reads: Some(claimed),
            writes: Some(claimed),
        }),
    }
}

fn read_back(witnessed: &Witnessed) -> Option<Witnessed> {
    Witnessed::of(&json!(witnessed).to_string())
}

#[test]
fn an_observation_is_read_as_it_was_written() {
    let none = Witnessed::default();
    for written in [full(), none] {
        assert_eq!(read_back(&written), Some(written));
    }
    for (subject, end) in [
        (
            Subject::Program(vec!["fio".to_owned()]),
            ObservedEnd::Code(3),
        ),
        (Subject::Devices, ObservedEnd::Running),
        (Subject::Program(Vec::new()), ObservedEnd::Gone),
    ] {
        let mut other = full();
        (other.observed.subject, other.observed.end) = (subject, end);
        assert_eq!(read_back(&other), Some(other));
    }
}

/// The file may come from a stranger.
#[test]
fn impossible_observations_are_refused() {
    let whole = json!(full());
    for (place, value) in [
        ("/course/devices", json!([])),
        (
            "/course/moments",
            json!(vec![&whole["course"]["moments"][0]; 1025]),
        ),
        ("/subject", json!(7)),
        ("/ways/sources", json!(["a disk"])),
        ("/limits/io", json!({"bps": 1})),
        ("/target/medium", Value::Null),
        ("/files/0/after/resident_bytes", json!(-1)),
        ("/reads/reason", Value::Null),
        ("/reads/served_by", json!("a disk")),
        ("/writes/device_fraction", json!(1.5)),
        ("/claim/reads/throughput_mb_s", json!(-1.0)),
        ("/claim/writes/bytes", json!("7")),
        ("/claim/tool", Value::Null),
        ("", json!([1])),
    ] {
        let mut changed = whole.clone();
        *changed.pointer_mut(place).expect(place) = value;
        assert_eq!(Witnessed::of(&changed.to_string()), None, "{place}");
    }
    assert_eq!(Witnessed::of("{"), None);
}
