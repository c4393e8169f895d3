//! Files of `iolab witness`: written observations are read back, and other files are not taken for one.

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;

use iolab_record::witness::{Claimed, ToolClaim, Witnessed};
use iolab_record::{Extents, Region, Residency, ServedBy, ServedVerdict};
use iolab_workload::counters::Traffic;
use iolab_workload::medium::Medium;
use iolab_workload::witness::{
    Course, DiskTraffic, GroupHolds, GroupLimits, GroupTraffic, InFlight, IoWays, Moment,
    NoStorage, Observed, ObservedDevice, ObservedEnd, ObservedFile, ObservedTarget, OpenWays,
    OtherProcess, OtherProcesses, ProcessTotals, Subject, SyncTimes, Times, TracedDisk,
    TracedProgram, TracedRequests, TracedSyncs, UncountedWay,
};

use super::rows::counted;
use super::*;

/// Numbers that differ from each other, so that no column can stand for another.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }

    /// Each counter of a set, however many there are.
    fn counters<T: Default + Serialize + DeserializeOwned>(&mut self) -> T {
        counted(std::iter::repeat_with(|| self.next()))
    }

    fn times(&mut self) -> Times {
        Times {
            mean_ns: self.next() as f64 + 0.5,
            p50_ns: self.next(),
            p99_ns: self.next(),
        }
    }

    fn requests(&mut self) -> TracedRequests {
        TracedRequests {
            requests: self.next(),
            bytes: self.next(),
            queue: Some(self.times()),
            device: Some(self.times()),
        }
    }

    fn residency(&mut self) -> Residency {
        Residency {
            looked_bytes: self.next(),
            resident_bytes: self.next(),
            dirty_bytes: Some(self.next()),
            writeback_bytes: Some(self.next()),
        }
    }

    fn processes(&mut self) -> ProcessTotals {
        ProcessTotals {
            collected: self.next(),
            cut_short: self.next(),
            unread: self.next(),
            running: self.next(),
            ignores_children: true,
            is_complete: false,
            io: Some(self.counters()),
            cancelled_write_bytes: self.next(),
            fault_bytes: Some(self.next()),
            usage: Some(self.counters()),
            run_delay_ns: self.next(),
        }
    }

    fn target(&mut self) -> ObservedTarget {
        ObservedTarget {
            path: "/data/file".into(),
            medium: Medium::Elsewhere,
            bytes: Some(self.next()),
            is_device: true,
            region: Region {
                before: Some(self.residency()),
                after: Some(self.residency()),
                extents: Some(Extents {
                    looked_bytes: self.next(),
                    hole_bytes: self.next(),
                    unwritten_bytes: Some(self.next()),
                }),
                ..Region::default()
            },
        }
    }

    fn moment(&mut self) -> Moment {
        Moment {
            start_ns: self.next(),
            length_ns: self.next(),
            program: Some(self.counters()),
            devices: vec![self.counters(), self.counters()],
        }
    }

    fn devices(&mut self) -> Vec<ObservedDevice> {
        vec![
            ObservedDevice {
                name: "dm-0".to_owned(),
                disks: vec!["vda".to_owned(), "vdb".to_owned()],
                traffic: Some(self.counters()),
                waits: Some(self.counters()),
                below: Some(self.counters()),
                in_file: true,
                passes_on: true,
                is_read: true,
                is_written: true,
                in_flight: InFlight {
                    reads: true,
                    writes: false,
                },
            },
            ObservedDevice::default(),
        ]
    }

    fn disks(&mut self) -> Vec<DiskTraffic> {
        vec![DiskTraffic {
            name: "vda".to_owned(),
            number: (254, 16),
            traffic: self.counters(),
            of_group: Some(GroupTraffic {
                read_bytes: self.next(),
                write_bytes: self.next(),
            }),
            traced: Some(TracedDisk {
                reads: self.requests(),
                writes: self.requests(),
                others: self.next(),
            }),
            in_flight: InFlight {
                reads: false,
                writes: true,
            },
        }]
    }

    fn observed(&mut self) -> Observed {
        Observed {
            subject: Subject::Process {
                pid: 77,
                command: vec!["a b".to_owned(), "\"".to_owned()],
            },
            end: ObservedEnd::Signal(9),
            elapsed_ns: self.next(),
            observed_ns: self.next(),
            observer_cpu_ns: self.next(),
            processes: self.processes(),
            ways: IoWays {
                looks: self.next(),
                reads: OpenWays {
                    direct: true,
                    buffered: false,
                },
                writes: OpenWays {
                    direct: false,
                    buffered: true,
                },
                uncounted: BTreeSet::from([UncountedWay::Libaio, UncountedWay::Mmap]),
                uncounted_reads: OpenWays {
                    direct: false,
                    buffered: true,
                },
                sources: BTreeSet::from([NoStorage::CharDevice]),
                sinks: BTreeSet::from([NoStorage::Pipe, NoStorage::Memory]),
                inner_pipes: true,
            },
            files: vec![
                ObservedFile {
                    path: "/data/file".into(),
                    medium: Medium::Memory,
                    bytes: self.next(),
                    allocated_bytes: Some(self.next()),
                    is_read: true,
                    is_written: false,
                    has_device: true,
                    after: Some(self.residency()),
                },
                ObservedFile::default(),
            ],
            target: Some(self.target()),
            devices: self.devices(),
            disks: self.disks(),
            others: OtherProcesses {
                active: vec![OtherProcess {
                    pid: 4711,
                    name: "dd".to_owned(),
                    is_kernel: false,
                    has_ended: true,
                    read_bytes: self.next(),
                    write_bytes: self.next(),
                }],
                unread: self.next(),
                sees_ended: true,
            },
            dirty_before_bytes: Some(self.next()),
            nfs: Some(self.counters()),
            pressure: self.counters(),
            course: Course {
                devices: vec!["vdb".to_owned(), "vda".to_owned()],
                moments: vec![self.moment(), self.moment()],
            },
            limits: GroupLimits {
                cpus: Some(1.5),
                memory_bytes: Some(self.next()),
                io: vec![(Traffic::WriteBytes, self.next())],
            },
            group: Some(GroupHolds::ProgramAndObserver),
            trace: Some(TracedProgram {
                syncs: TracedSyncs {
                    syncs: self.next(),
                    timed: self.next(),
                    flushed: self.next(),
                    uncached: self.next(),
                    commits: self.next(),
                    times: Some(SyncTimes {
                        whole: self.times(),
                        flush_ns: self.next() as f64,
                        journal_ns: self.next() as f64,
                        write_ns: self.next() as f64,
                        host_ns: self.next() as f64,
                    }),
                },
                lost: self.next(),
                until_ns: Some(self.next()),
            }),
        }
    }
}

fn full() -> Witnessed {
    let mut numbers = Numbers(0);
    let verdict = |served_by, share| ServedVerdict {
        served_by,
        device_fraction: share,
        reason: "why".to_owned(),
    };
    Witnessed {
        tool_version: "1".to_owned(),
        started_utc: "2026-01-02T03:04:05Z".to_owned(),
        observed: numbers.observed(),
        reads: Some(verdict(ServedBy::Mixed, Some(0.25))),
        writes: Some(verdict(ServedBy::Unknown, None)),
        claim: Some(ToolClaim {
            tool: "fio".to_owned(),
            reads: Some(Claimed {
                bytes: numbers.next(),
                rate: Some((2.5, numbers.next())),
            }),
            writes: Some(Claimed {
                bytes: numbers.next(),
                rate: None,
            }),
        }),
        environment: environment(),
    }
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
        "UPDATE witness SET course_devices = 'vda'",
        "UPDATE witness SET command = '[1]'",
        "UPDATE witness SET subject = 'devices'",
        "UPDATE witness SET pid = NULL",
        "UPDATE witness SET ended_by = 300",
        "UPDATE witness SET sources = '[\"a disk\"]'",
        "UPDATE witness SET limit_io = '[[\"bps\", 1]]'",
        "UPDATE witness SET reads_reason = NULL",
        "UPDATE witness SET reads_device_fraction = 1.5",
        "UPDATE witness SET target_medium = NULL",
        "UPDATE witness SET observed_ns = -1",
        "UPDATE witness SET group_holds = 'nothing'",
        "UPDATE witness SET trace_syncs = NULL",
        "UPDATE witness SET trace_sync_p50_ns = NULL",
        "UPDATE witness_disk SET traced_read_bytes = NULL",
        "UPDATE witness_disk SET group_write_bytes = NULL",
        "UPDATE witness_device SET read_ios = NULL WHERE name = 'dm-0'",
        "UPDATE witness_file SET after_bytes = NULL WHERE path = '/data/file'",
    ] {
        let (_folder, path) = stored(&full());
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(&format!(
                "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF; {change}"
            ))
            .unwrap();
        drop(connection);
        let found = read_content(&path).map(drop);
        assert_eq!(
            found.map_err(|error| error.kind()),
            Err(Kind::Usage),
            "{change}"
        );
    }
}
