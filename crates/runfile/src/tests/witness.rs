//! Files of `iolab witness`: written observations are read back, and other files are not taken for one.

use iolab_record::tables::{
    WITNESS, WITNESS_DEVICE, WITNESS_DISK, WITNESS_FILE, WITNESS_MOMENT, WITNESS_MOMENT_DEVICE,
    WITNESS_PROCESS,
};
use iolab_record::witness::Witnessed;
use iolab_workload::witness::{Course, Moment, ObservedDevice, ObservedEnd, ObservedFile, Subject};

use super::*;

/// An observation with a value in every column, and one row of each list.
pub(super) fn one_of_each() -> Witnessed {
    let mut witnessed: Witnessed = filled(
        &WITNESS,
        &["subject", "command", "pid", "ended", "ended_by"],
    );
    let observed = &mut witnessed.observed;
    observed.subject = Subject::Process {
        pid: 77,
        command: vec!["a b".to_owned(), "\"".to_owned()],
    };
    observed.end = ObservedEnd::Signal(9);
    observed.files = vec![filled(&WITNESS_FILE, &[])];
    observed.devices = vec![filled(&WITNESS_DEVICE, &[])];
    observed.disks = vec![filled(&WITNESS_DISK, &[])];
    observed.others.active = vec![filled(&WITNESS_PROCESS, &[])];
    let moment = |start_ns| Moment {
        start_ns,
        devices: vec![filled(&WITNESS_MOMENT_DEVICE, &[]).did; 2],
        ..filled(&WITNESS_MOMENT, &[])
    };
    observed.course = Course {
        devices: vec!["vdb".to_owned(), "vda".to_owned()],
        moments: vec![moment(1), moment(2)],
    };
    witnessed.environment = environment();
    witnessed
}

/// As [`one_of_each`], with rows that lack what may be unknown.
fn full() -> Witnessed {
    let mut witnessed = one_of_each();
    witnessed.observed.files.push(ObservedFile::default());
    witnessed.observed.devices.push(ObservedDevice::default());
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
    for change in [
        "DELETE FROM witness_moment_device WHERE device = 'vda'",
        "UPDATE witness_moment_device SET device = 'vdc' WHERE device = 'vda'",
        "UPDATE witness SET course_devices = '[\"vda\"]'",
        "UPDATE witness SET command = '[1]'",
        "UPDATE witness SET subject = 'devices'",
        "UPDATE witness SET pid = NULL",
        "UPDATE witness SET sources = '[\"a disk\"]'",
        "UPDATE witness SET limit_io = '[[\"bps\", 1]]'",
        "UPDATE witness SET reads_reason = NULL",
        "UPDATE witness SET target_medium = NULL",
        "UPDATE witness SET trace_syncs = NULL",
        "UPDATE witness SET trace_sync_p50_ns = NULL",
        "UPDATE witness_disk SET traced_read_bytes = NULL",
        "UPDATE witness_disk SET group_write_bytes = NULL",
        "UPDATE witness_device SET read_ios = NULL WHERE id = 1",
        "UPDATE witness_file SET after_bytes = NULL WHERE id = 1",
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
