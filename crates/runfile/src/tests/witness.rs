//! Files of `iolab witness`: written observations are read back, and other files are not taken for one.

use iolab_record::Witnessed;
use iolab_record::tables::WITNESS;
use iolab_workload::counters::{DeviceStat, ProcessIo, ResourceUse, Traffic};
use iolab_workload::witness::{
    Course, DiskTraffic, Moment, ObservedDevice, ObservedEnd, ObservedFile, ObservedTarget,
    OtherProcess, Subject, SyncTimes, TracedProgram, UncountedWay,
};

use super::*;

/// An observation with a value in every column, one of each list, and a value for what may be unknown.
pub(super) fn full() -> Witnessed {
    let mut witnessed: Witnessed = filled(&WITNESS, &["observed"]);
    let observed = &mut witnessed.observed;
    observed.subject = Subject::Process {
        pid: 77,
        command: vec!["a b".to_owned(), "\"".to_owned()],
    };
    observed.end = ObservedEnd::Signal(9);
    observed.processes.io = Some(ProcessIo::default());
    observed.processes.usage = Some(ResourceUse::default());
    observed.ways.uncounted = [UncountedWay::Mmap].into();
    observed.files = vec![ObservedFile {
        path: "data".into(),
        after: Some(Default::default()),
        ..ObservedFile::default()
    }];
    observed.target = Some(ObservedTarget::default());
    let stat = DeviceStat {
        queue_ms: Some(5),
        ..DeviceStat::default()
    };
    observed.devices = vec![
        ObservedDevice::default(),
        ObservedDevice {
            traffic: Some(stat),
            below: Some(stat),
            ..ObservedDevice::default()
        },
    ];
    observed.disks = vec![DiskTraffic {
        of_group: Some(Default::default()),
        traced: Some(Default::default()),
        ..DiskTraffic::default()
    }];
    observed.others.active = vec![OtherProcess::default()];
    observed.limits.io = [(Traffic::WriteBytes, 7)].into();
    let mut trace = TracedProgram::default();
    trace.syncs.times = Some(SyncTimes::default());
    observed.trace = Some(trace);
    observed.course = Course {
        devices: vec!["vdb".to_owned(), "vda".to_owned()],
        moments: vec![Moment {
            devices: vec![stat; 2],
            ..Moment::default()
        }],
    };
    witnessed.environment = environment();
    witnessed
}

fn stored(witnessed: &Witnessed) -> (Fixture, PathBuf) {
    let fixture = Fixture::new();
    let path = create_witness(&fixture.path("w.iolab"), witnessed).unwrap();
    (fixture, path)
}

fn read_back(witnessed: &Witnessed) -> Witnessed {
    let (_folder, path) = stored(witnessed);
    match read_content(&path).unwrap() {
        Content::Witness(found) => *found,
        Content::Run(_) => panic!("it is no run"),
    }
}

#[test]
fn an_observation_is_read_as_it_was_written() {
    let all = full();
    assert_eq!(read_back(&all), all);
    let none = Witnessed::default();
    assert_eq!(read_back(&none), none);
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
        assert_eq!(read_back(&other), other);
    }
}

#[test]
fn a_witness_file_is_not_a_run() {
    let (_folder, path) = stored(&full());
    assert_eq!(read(&path).unwrap_err().kind(), Kind::Usage);
    assert_eq!(RunFile::open_resume(&path).unwrap_err().kind(), Kind::Usage);
    let before = std::fs::read(&path).unwrap();
    assert_eq!(
        create_witness(&path, &full()).unwrap_err().kind(),
        Kind::Refused
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let fixture = Fixture::new();
    let run = fixture.finished("r.iolab");
    assert!(matches!(read_content(&run).unwrap(), Content::Run(_)));
}

/// The file may come from a stranger.
#[test]
fn impossible_observations_are_refused() {
    let set = |what: &str| format!("UPDATE witness SET observed = json_set(observed, {what})");
    for change in [
        &set("'$.course.devices', json('[]')"),
        &set("'$.subject', 7"),
        &set("'$.ways.sources', json('[\"a disk\"]')"),
        &set("'$.limits.io', json('{\"bps\": 1}')"),
        &set("'$.elapsed_ns', 1 << 61"),
        &set("'$.target.medium', NULL"),
        &set("'$.files[0].after.resident_bytes', -1"),
        "UPDATE witness SET observed = '[1]'",
        "UPDATE witness SET reads_reason = NULL",
    ] {
        let (_folder, path) = stored(&full());
        alter(&path, change);
        let found = read_content(&path).map(drop);
        assert_eq!(
            found.map_err(|error| error.kind()),
            Err(Kind::Usage),
            "{change}"
        );
    }
}
