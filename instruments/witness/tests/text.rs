//! The first line of the evidence for a program.

use iolab_record::Observation;
use iolab_record::environment::{Environment, KEYS};
use iolab_record::{ServedBy, ServedVerdict};
use iolab_report::observation::{FiledObservation, Seen};
use iolab_report::report::StudyReport;
use iolab_witness::evidence::{
    Asked, Bounds, Claimed, Direction, Evidence, Flushes, OtherUse, ToolClaim, Witnessed,
};
use iolab_witness::observed::{
    Course, Moment, Observed, ObservedDevice, ObservedFile, OtherProcess, OtherProcesses, Subject,
    SyncTimes, Times, TracedProgram, TracedSyncs,
};
use iolab_workload::counters::{DeviceStat, DeviceWaits, NfsIo, ProcessIo};
use iolab_workload::region_state::Medium;

const MIB: u64 = 1 << 20;

fn direction(bytes: u64, served_by: ServedBy, share: Option<f64>) -> Direction {
    Direction {
        asked: Asked::Bytes(Bounds::exact(bytes)),
        moved: Some(bytes),
        by_calls: Some(Bounds::exact(bytes)),
        carried: Some(Bounds::exact(bytes)),
        verdict: Some(ServedVerdict {
            served_by,
            device_fraction: share,
            reason: "REASON".to_owned(),
        }),
    }
}

fn nothing() -> Direction {
    Direction {
        asked: Asked::Nothing,
        moved: Some(0),
        by_calls: None,
        carried: None,
        verdict: None,
    }
}

fn evidence(reads: Direction, writes: Direction) -> Evidence {
    Evidence {
        observed: Observed {
            subject: Subject::Program(vec!["/usr/bin/fio".to_owned()]),
            ..Observed::default()
        },
        devices: vec!["vda".to_owned()],
        reads,
        writes,
        flushes: Some(Flushes {
            disks: vec!["vda".to_owned()],
            completed: 240,
        }),
        owed: Some(0),
        others: OtherUse::None,
        claim: None,
    }
}

#[test]
fn first_line_states_the_conclusion() {
    let mixed = direction(1024 * MIB, ServedBy::Mixed, Some(0.12));
    let written = direction(64 * MIB, ServedBy::Device, Some(1.0));
    insta::assert_snapshot!(evidence(mixed.clone(), written).headline(), @"fio: 12 % of the 1 GiB that it read came from vda, and the rest from the page cache. 100 % of the 64 MiB that it sent to storage reached vda. vda completed 240 cache flushes, of all processes. Nothing else used vda.");
    let hot = direction(64 * MIB, ServedBy::PageCache, Some(0.0));
    insta::assert_snapshot!(evidence(hot, nothing()).headline(), @"fio: all of the 64 MiB that it read came from the page cache. Nothing else used vda.");
    let unknown = direction(64 * MIB, ServedBy::Unknown, None);
    insta::assert_snapshot!(evidence(unknown, nothing()).headline(), @"fio: where the 64 MiB that it read came from is unknown: REASON. Storage carried for it: 64 MiB. Nothing else used vda.");
    insta::assert_snapshot!(evidence(nothing(), nothing()).headline(), @"fio: storage carried less than 256 KiB for it.");
    let late = Evidence {
        owed: Some(60 * MIB),
        others: OtherUse::Some {
            read: Bounds::exact(0),
            written: Bounds {
                least: 0,
                most: 3 * MIB,
            },
        },
        ..evidence(
            nothing(),
            direction(64 * MIB, ServedBy::Mixed, Some(0.0625)),
        )
    };
    insta::assert_snapshot!(late.headline(), @"fio: 6.2 % of the 64 MiB that it sent to storage had reached vda at its end. Had still to be written back: 60 MiB. vda completed 240 cache flushes, of all processes. Others may have used vda. Written, by them or the file system: up to 3 MiB.");
    // A loop device carried all bytes, and left most of them in the page cache of its file.
    let mut in_file = evidence(
        nothing(),
        direction(64 * MIB, ServedBy::Mixed, Some(0.0625)),
    );
    in_file.observed.devices = vec![ObservedDevice {
        name: "loop0".to_owned(),
        in_file: true,
        ..ObservedDevice::default()
    }];
    insta::assert_snapshot!(in_file.headline(), @"fio: 6.2 % of the 64 MiB that it sent to storage had reached the disks below loop0 at its end. vda completed 240 cache flushes, of all processes. Nothing else used vda.");
    let shared = Evidence {
        others: OtherUse::Little { most: 36 << 10 },
        ..evidence(nothing(), direction(64 * MIB, ServedBy::Device, Some(1.0)))
    };
    insta::assert_snapshot!(shared.headline(), @"fio: 100 % of the 64 MiB that it sent to storage reached vda. vda completed 240 cache flushes, of all processes. Others read and wrote at most 36 KiB in all on vda.");
}

#[test]
fn reads_from_several_disks_bound_bytes_of_one() {
    let of = |served_by, share, carried| {
        let mut reads = direction(64 * MIB, served_by, Some(share));
        reads.carried = Some(carried);
        evidence(reads, nothing()).headline()
    };
    let between = |least: u64, most: u64| Bounds {
        least: least * MIB,
        most: most * MIB,
    };
    insta::assert_snapshot!(of(ServedBy::Device, 1.0, between(43, 64)), @"fio: 100 % of the 64 MiB that it read came from storage. From vda: 43 to 64 MiB. Nothing else used vda.");
    insta::assert_snapshot!(of(ServedBy::Device, 1.0, between(0, 64)), @"fio: 100 % of the 64 MiB that it read came from storage. From vda: up to 64 MiB. Nothing else used vda.");
    insta::assert_snapshot!(of(ServedBy::Device, 1.0, between(32, 32)), @"fio: 100 % of the 64 MiB that it read came from storage. From vda: 32 MiB. Nothing else used vda.");
    insta::assert_snapshot!(of(ServedBy::Mixed, 0.5, between(10, 64)), @"fio: 50 % of the 64 MiB that it read came from storage, and the rest from the page cache. From vda: 10 to 64 MiB. Nothing else used vda.");
    insta::assert_snapshot!(of(ServedBy::PageCache, 0.0, between(0, 1)), @"fio: all of the 64 MiB that it read came from the page cache. Nothing else used vda.");
}

#[test]
fn bytes_from_file_server_are_listed_with_cache() {
    let of = |reads: bool| {
        let mut of_note = direction(64 * MIB, ServedBy::Mixed, None);
        of_note.carried = None;
        let (reads, writes) = match reads {
            true => (of_note, nothing()),
            false => (nothing(), of_note),
        };
        let mut evidence = evidence(reads, writes);
        (evidence.devices, evidence.flushes) = (Vec::new(), None);
        evidence.observed.nfs = Some(NfsIo {
            read_bytes: 40 * MIB,
            write_bytes: 48 * MIB,
        });
        evidence.observed.processes.io = Some(ProcessIo {
            read_bytes: 24 * MIB,
            write_bytes: 64 * MIB,
            ..ProcessIo::default()
        });
        evidence.observed.files = vec![ObservedFile {
            medium: Medium::Elsewhere,
            bytes: 64 * MIB,
            is_read: true,
            is_written: true,
            ..ObservedFile::default()
        }];
        evidence.headline()
    };
    insta::assert_snapshot!(of(true), @"fio: 24 MiB of the 64 MiB that it read came over the network from a file server, and the rest from the page cache.");
    insta::assert_snapshot!(of(false), @"fio: 48 MiB of the 64 MiB that it wrote had gone over the network to a file server at its end.");
}

#[test]
fn impossible_claim_is_in_the_first_line() {
    let claimed = |rate: Option<(f64, u64)>| ToolClaim {
        tool: "fio".to_owned(),
        reads: Some(Claimed {
            bytes: 64 * MIB,
            mb_s: rate.map(|(mb_s, _)| mb_s),
            elapsed_ns: rate.map(|(_, elapsed_ns)| elapsed_ns),
        }),
        writes: None,
    };
    let of = |carried: u64, claim| {
        let mut reads = direction(64 * MIB, ServedBy::PageCache, Some(0.0));
        reads.carried = Some(Bounds::exact(carried));
        let mut evidence = evidence(reads, nothing());
        evidence.claim = Some(claim);
        let text = evidence.text(200);
        let rows = text.lines().filter(|line| line.starts_with("claim"));
        let rows: Vec<&str> = rows.collect();
        format!("{}\n{}", evidence.headline(), rows.join("\n"))
    };
    let rate = Some((5712.0, 11_750_000));
    insta::assert_snapshot!(of(MIB, claimed(rate)), @"
    fio: all of the 64 MiB that it read came from the page cache. Nothing else used vda. fio says that it read 64 MiB, of which vda carried at most 1 MiB. Reported: 5712 MB/s. Carried at most: 89.2 MB/s.
    claim      fio says that it read 64 MiB, of which vda carried at most 1 MiB. Reported: 5712 MB/s. Carried at most: 89.2 MB/s.
    ");
    insta::assert_snapshot!(of(MIB, claimed(None)), @"
    fio: all of the 64 MiB that it read came from the page cache. Nothing else used vda. fio says that it read 64 MiB, of which vda carried at most 1 MiB.
    claim      fio says that it read 64 MiB, of which vda carried at most 1 MiB.
    ");
    insta::assert_snapshot!(of(64 * MIB, claimed(rate)), @"
    fio: all of the 64 MiB that it read came from the page cache. Nothing else used vda.
    claim      fio says that it read 64 MiB, of which vda carried at most 64 MiB. Reported: 5712 MB/s. Carried at most: 5711 MB/s.
    ");
}

#[test]
fn traced_syncs_are_shown_with_their_flushes() {
    let of = |syncs, timed, flushed, uncached, until_ns, lost| {
        let mut written = evidence(nothing(), direction(64 * MIB, ServedBy::Device, Some(1.0)));
        written.observed.trace = Some(TracedProgram {
            syncs: TracedSyncs {
                syncs,
                timed,
                flushed,
                uncached,
                commits: 0,
                times: (timed > 0).then(|| SyncTimes {
                    whole: Times {
                        p50_ns: 1_200_000,
                        ..Times::default()
                    },
                    ..SyncTimes::default()
                }),
            },
            lost,
            until_ns,
        });
        let line = written.headline();
        let (_, syncs) = line.split_once(". ").unwrap();
        syncs.replace(" Nothing else used vda.", "")
    };
    insta::assert_snapshot!(of(240, 240, 12, 0, Some(4_200_000_000), 0), @"The median of its 240 syncs took 1.20 ms. Timed: 240 of 240 syncs. With a cache flush of the disk within: 12 of 240 syncs. Traced only for the first: 4.20 s.");
    insta::assert_snapshot!(of(240, 240, 0, 240, None, 3), @"The median of its 240 syncs took 1.20 ms. Timed: 240 of 240 syncs. On a disk without a volatile cache that needs a flush: 240 of 240 syncs. Missing, syncs perhaps among them: 3 events.");
    insta::assert_snapshot!(of(1, 1, 0, 0, None, 0), @"The median of its 1 sync took 1.20 ms. With a cache flush of the disk within: 0 of 1 sync.");
    insta::assert_snapshot!(of(48, 47, 47, 0, None, 0), @"The median of its 48 syncs took 1.20 ms. Timed: 47 of 48 syncs. With a cache flush of the disk within: 47 of 47 syncs.");
    insta::assert_snapshot!(of(1, 0, 0, 0, None, 0), @"File systems received 1 sync from it.");
    insta::assert_snapshot!(of(0, 0, 0, 0, None, 0), @"vda completed 240 cache flushes, of all processes.");
}

/// Text about one disk that was observed for 2 s.
fn of_disk(traffic: DeviceStat, waits: Option<DeviceWaits>, others: OtherProcesses) -> String {
    let observed = Observed {
        subject: Subject::Devices,
        observed_ns: 2_000_000_000,
        devices: vec![ObservedDevice {
            name: "vda".to_owned(),
            traffic: Some(traffic),
            waits,
            ..ObservedDevice::default()
        }],
        others,
        ..Observed::default()
    };
    let evidence = Evidence {
        observed,
        ..evidence(nothing(), nothing())
    };
    evidence.text(200)
}

#[test]
fn devices_are_shown_with_their_users() {
    let traffic = DeviceStat {
        read_ios: 1000,
        read_bytes: 4_096_000,
        busy_ms: 2000,
        queue_ms: Some(8000),
        ..DeviceStat::default()
    };
    let waits = DeviceWaits {
        read_ms: 250,
        write_ms: 0,
    };
    let others = OtherProcesses {
        active: vec![
            OtherProcess {
                pid: 7,
                name: "dd".to_owned(),
                has_ended: true,
                read_bytes: 4_096_000,
                ..OtherProcess::default()
            },
            OtherProcess {
                pid: 8,
                name: "kworker/u8:1".to_owned(),
                is_kernel: true,
                write_bytes: 4096,
                ..OtherProcess::default()
            },
        ],
        unread: 0,
        sees_ended: true,
    };
    insta::assert_snapshot!(of_disk(traffic, Some(waits), others), @"
    vda over 2.00 s. Reads, with their mean time: 500/s; 2.05 MB/s; 250 µs. In flight on average: 4 requests. Busy, which at 100 % does not limit a device that serves requests in parallel: 100 %. Most I/O
    on any disk: dd (1 process, PID 7) read 3.91 MiB, wrote 0 B. Ended: 1 of 1 process.

    device  vda: read 3.91 MiB in 1000 requests, wrote 0 B in 0 requests, 0 cache flushes, busy 2.00 s
    other   dd (1 process, PID 7) read 3.91 MiB, wrote 0 B, on any disk. Ended: 1 of 1 process.
    other   kworker/u8:1 (1 kernel thread, PID 8) read 0 B, wrote 4 KiB, on any disk.
    CPU     observing took 0 ns
    ");
}

/// A file that an attacker made: names with markup and control characters.
pub(crate) fn kept() -> FiledObservation {
    let of = |start_ns, read_bytes| Moment {
        start_ns,
        length_ns: 100_000_000,
        program: Some(ProcessIo {
            rchar: 2 * read_bytes,
            ..ProcessIo::default()
        }),
        devices: vec![DeviceStat {
            read_bytes,
            ..DeviceStat::default()
        }],
    };
    let mut environment = Environment::default();
    environment.put(&KEYS.cpu_model, "a <b>CPU</b>".to_owned());
    FiledObservation {
        path: "e.iolab".into(),
        kept: Observation {
            tool_version: "1".to_owned(),
            started_utc: "2026-01-02T03:04:05Z".to_owned(),
            environment,
            ..Observation::default()
        },
        seen: Box::new(Evidence::of(Witnessed {
            observed: Observed {
                subject: Subject::Program(vec!["<script>x\u{1b}[2J".to_owned(), "it's".to_owned()]),
                others: OtherProcesses {
                    active: vec![OtherProcess {
                        pid: 7,
                        name: "<img>".to_owned(),
                        read_bytes: 4 * MIB,
                        ..OtherProcess::default()
                    }],
                    unread: 2,
                    sees_ended: false,
                },
                course: Course {
                    devices: vec!["vda".to_owned()],
                    moments: vec![of(0, 4 * MIB), of(100_000_000, 8 * MIB)],
                },
                ..Observed::default()
            },
            ..Witnessed::default()
        })),
    }
}

#[test]
fn report_shows_line_course_and_other_processes() {
    let inputs = [kept()];
    let report = StudyReport {
        programs: &inputs,
        ..StudyReport::new(&[])
    };
    let page = report.html().unwrap();
    for foreign in ["<script>x", "<img>", "<b>CPU", "\u{1b}"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert_eq!(page.matches("<svg").count(), 1);
    let markdown = report.markdown("r").unwrap();
    insta::assert_snapshot!("observation_markdown", markdown.text);
    let latex = report.latex("r").unwrap();
    for (bundle, end) in [(markdown, ".svg"), (latex, ".pdf")] {
        assert_eq!(bundle.figures.len(), 1);
        let (name, content) = &bundle.figures[0];
        assert!(name.ends_with(end) && !content.is_empty());
        assert!(bundle.text.contains(name.as_str()));
    }
}

#[test]
fn command_that_observes_the_same_is_pasteable() {
    let of = |subject| {
        let observed = Observed {
            subject,
            observed_ns: 2_000_100_000,
            devices: vec![ObservedDevice {
                name: "vda".to_owned(),
                ..ObservedDevice::default()
            }],
            ..Observed::default()
        };
        Evidence::of(Witnessed {
            observed,
            ..Witnessed::default()
        })
        .command()
    };
    let words = ["sh", "-c", "a $b"].map(str::to_owned).to_vec();
    insta::assert_snapshot!(of(Subject::Program(words)), @"iolab witness -- sh -c 'a $b'");
    let joined = Subject::Process {
        pid: 7,
        command: vec!["dd".to_owned()],
    };
    insta::assert_snapshot!(of(joined), @"iolab witness -p 7");
    insta::assert_snapshot!(of(Subject::Devices), @"iolab witness --device vda --for 2.001s");
}
