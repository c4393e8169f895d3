//! Records as the kernel writes them.

use super::*;
use crate::tracing::event::{
    BEGAN_SOURCE, BLOCK_SOURCES, Edge, NO_FILTER, SYNC_CALL_SOURCES, SYNC_SOURCES, Step,
    THREAD_SOURCES, TracedPlaces, TracedThreads, kernel_number,
};

/// Format stated by Linux 6.18, without the print format.
const ISSUE: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
    \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
    \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n";
const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
    \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n";

fn record(id: u16, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut record = vec![0; 64];
    record[..2].copy_from_slice(&id.to_le_bytes());
    for (offset, bytes) in fields {
        record[*offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    record
}

#[test]
fn records_are_read_by_their_events_formats() {
    let mut decoder = Decoder::default();
    decoder.add(BLOCK_SOURCES[1], ISSUE).expect("a format");
    decoder.add(THREAD_SOURCES[1], SWITCH).expect("a format");
    let disk = kernel_number((254, 0));
    let issue = record(
        2104,
        &[
            (8, &disk.to_le_bytes()),
            (16, &(1u64 << 40).to_le_bytes()),
            (24, &8u32.to_le_bytes()),
            (34, b"FWFSM"),
        ],
    );
    let block = TraceEventKind::Block {
        step: Step::Issue,
        disk,
        first: 1 << 40,
        count: 8,
        transfer: Transfer::Write,
        metadata: true,
        thread: 0,
    };
    assert_eq!(decoder.event(&issue), Some(block));
    let switch = record(372, &[(56, &9u32.to_le_bytes())]);
    let runs = TraceEventKind::Scheduled(9, ThreadMoment::Runs);
    assert_eq!(decoder.event(&switch), Some(runs));
    assert_eq!(decoder.event(&record(1, &[])), None);
    assert_eq!(decoder.event(&issue[..20]), None);
    // A kernel without a needed field is refused.
    let old = ISSUE.replace("nr_sector", "sectors");
    assert!(Decoder::default().add(BLOCK_SOURCES[1], &old).is_err());
}

#[test]
fn syncs_and_new_threads_name_their_thread() {
    let format = "name: ext4_sync_file_exit\nID: 900\nformat:\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:ino_t ino;\toffset:16;\tsize:8;\tsigned:0;\n";
    let mut decoder = Decoder::default();
    decoder.add(SYNC_SOURCES[1], format).expect("a format");
    let began_format = "name: task_newtask\nID: 205\nformat:\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n";
    decoder.add(BEGAN_SOURCE, began_format).expect("a format");
    let (disk, inode) = (kernel_number((7, 3)), 1u64 << 33);
    let fields: [(usize, &[u8]); 3] = [
        (4, &7u32.to_le_bytes()),
        (8, &disk.to_le_bytes()),
        (16, &inode.to_le_bytes()),
    ];
    let mut all = Vec::new();
    all.extend(decoder.event(&record(900, &fields)));
    let began = record(205, &[(4, &7u32.to_le_bytes()), (8, &9u32.to_le_bytes())]);
    all.extend(decoder.event(&began));
    let exit = TraceEventKind::Sync {
        edge: Edge::End,
        file_system: disk,
        inode,
        thread: 7,
    };
    assert_eq!(all, [exit, TraceEventKind::Began { thread: 9, by: 7 }]);
}

#[test]
fn first_letters_of_a_request_name_its_transfer() {
    for (flags, expected) in [
        (&b"R\0"[..], Transfer::Read),
        (b"RA", Transfer::Read),
        (b"WS", Transfer::Write),
        (b"FWS", Transfer::Write),
        (b"FF", Transfer::Flush),
        (b"F\0", Transfer::Flush),
        (b"D", Transfer::Other),
        (b"", Transfer::Other),
    ] {
        assert_eq!(transfer(flags), expected, "{flags:?}");
    }
    for (flags, expected) in [(&b"WSM\0"[..], true), (b"FWFSM", true), (b"WS\0M", false)] {
        assert_eq!(is_metadata(flags), expected, "{flags:?}");
    }
}

#[test]
fn only_disks_with_such_events_are_traced() {
    let places = TracedPlaces {
        disks: vec![((8, 0), true), ((253, 1), false)],
        ..TracedPlaces::default()
    };
    let filters = BLOCK_SOURCES.map(|(_, kind)| kind.filter(&places).unwrap_or_default());
    assert_eq!(filters[0], "dev == 8388608");
    assert_eq!(filters[3], "dev == 265289729");
    for source in SYNC_SOURCES.into_iter().chain(SYNC_CALL_SOURCES) {
        assert_eq!(source.1.filter(&places), None);
    }
    let one = TracedPlaces {
        disks: vec![((8, 0), true)],
        file_systems: vec![(8, 1), (8, 2)],
        threads: TracedThreads::All,
        sync_calls: true,
    };
    assert_eq!(BLOCK_SOURCES[3].1.filter(&one), None);
    for source in SYNC_SOURCES {
        let filter = source.1.filter(&one);
        assert_eq!(filter.as_deref(), Some("dev == 8388609 || dev == 8388610"));
    }
    for source in SYNC_CALL_SOURCES {
        assert_eq!(source.1.filter(&one).as_deref(), Some(NO_FILTER));
    }
    // Either events of trial threads, or the start of any thread.
    for (places, of_trials) in [(&places, true), (&one, false)] {
        for source in THREAD_SOURCES {
            assert_eq!(source.1.filter(places).is_some(), of_trials);
        }
        assert_eq!(BEGAN_SOURCE.1.filter(places).is_some(), !of_trials);
    }
}
