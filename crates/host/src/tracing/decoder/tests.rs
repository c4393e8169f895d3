//! Records as the kernel writes them.

use super::*;
use crate::tracing::event::kernel_number;
use crate::tracing::recorded_events::{
    BEGAN_SOURCE, BLOCK_SOURCES, FILE_SERVER_SOURCES, FUSE_SOURCES, MOVED_SOURCE, NO_FILTER,
    SYNC_CALL_SOURCES, SYNC_SOURCES, THREAD_SOURCES, TracedPlaces, TracedThreads,
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
    let seen = |record: &[u8]| {
        let mut all = Vec::new();
        all.extend(decoder.event(record));
        all
    };
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
    assert_eq!(seen(&issue), [block]);
    let switch = record(372, &[(56, &9u32.to_le_bytes())]);
    assert_eq!(seen(&switch), [TraceEventKind::Runs(9)]);
    assert_eq!(seen(&record(1, &[])), []);
    assert_eq!(seen(&issue[..20]), []);
    // A kernel without a needed field is refused.
    let old = ISSUE.replace("nr_sector", "sectors");
    assert!(Decoder::default().add(BLOCK_SOURCES[1], &old).is_err());
}

#[test]
fn new_thread_is_read_with_its_maker() {
    let format = "name: task_newtask\nID: 205\nformat:\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n";
    let mut decoder = Decoder::default();
    decoder.add(BEGAN_SOURCE, format).expect("a format");
    let began = record(205, &[(4, &7u32.to_le_bytes()), (8, &9u32.to_le_bytes())]);
    let mut all = Vec::new();
    all.extend(decoder.event(&began));
    assert_eq!(all, [TraceEventKind::Began { thread: 9, by: 7 }]);
}

#[test]
fn sync_is_read_with_file_and_thread() {
    let format = "name: ext4_sync_file_exit\nID: 900\nformat:\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:ino_t ino;\toffset:16;\tsize:8;\tsigned:0;\n";
    let mut decoder = Decoder::default();
    decoder.add(SYNC_SOURCES[1], format).expect("a format");
    let (disk, inode) = (kernel_number((7, 3)), 1u64 << 33);
    let fields: [(usize, &[u8]); 3] = [
        (4, &7u32.to_le_bytes()),
        (8, &disk.to_le_bytes()),
        (16, &inode.to_le_bytes()),
    ];
    let mut all = Vec::new();
    all.extend(decoder.event(&record(900, &fields)));
    let exit = TraceEventKind::Sync {
        edge: Edge::End,
        file_system: disk,
        inode,
        thread: 7,
    };
    assert_eq!(all, [exit]);
}

#[test]
fn fuse_request_is_read_with_its_thread() {
    // Formats stated by Linux 6.18.
    let common = "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t connection;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:uint64_t unique;\toffset:16;\tsize:8;\tsigned:0;\n";
    let send = format!(
        "name: fuse_request_send\nID: 1293\nformat:\n{common}\
        \tfield:enum fuse_opcode opcode;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:uint32_t len;\toffset:28;\tsize:4;\tsigned:0;\n"
    );
    let end = format!(
        "name: fuse_request_end\nID: 1292\nformat:\n{common}\
        \tfield:uint32_t len;\toffset:24;\tsize:4;\tsigned:0;\n"
    );
    let mut decoder = Decoder::default();
    decoder.add(FUSE_SOURCES[0], &send).expect("a format");
    decoder.add(FUSE_SOURCES[1], &end).expect("a format");
    let mut all = Vec::new();
    for (operation, transfer) in [
        (15u32, Transfer::Read),
        (16, Transfer::Write),
        (20, Transfer::Flush),
        (3, Transfer::Other),
    ] {
        let own = record(
            1293,
            &[
                (4, &7u32.to_le_bytes()),
                (8, &39u32.to_le_bytes()),
                (16, &416u64.to_le_bytes()),
                (24, &operation.to_le_bytes()),
                (28, &80u32.to_le_bytes()),
            ],
        );
        all.extend(decoder.event(&own));
        let expected = TraceEventKind::FuseSend {
            connection: 39,
            number: 416,
            transfer,
            message: 80,
            thread: 7,
        };
        assert_eq!(all.pop(), Some(expected));
    }
    let answer = record(
        1292,
        &[
            (8, &39u32.to_le_bytes()),
            (16, &416u64.to_le_bytes()),
            (24, &4112u32.to_le_bytes()),
        ],
    );
    all.extend(decoder.event(&answer));
    let expected = TraceEventKind::FuseEnd {
        connection: 39,
        number: 416,
        message: 4112,
    };
    assert_eq!(all, [expected]);
}

#[test]
fn file_server_requests_are_read_with_their_transfer() {
    // Formats stated by Linux 6.1.
    let common = "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:u64 fileid;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:loff_t offset;\toffset:24;\tsize:8;\tsigned:1;\n";
    let initiate = format!(
        "name: nfs_initiate_write\nID: 71\nformat:\n{common}\
        \tfield:u32 count;\toffset:32;\tsize:4;\tsigned:0;\n"
    );
    let done = format!(
        "name: nfs_writeback_done\nID: 72\nformat:\n{common}\
        \tfield:u32 arg_count;\toffset:32;\tsize:4;\tsigned:0;\n\
        \tfield:u32 res_count;\toffset:36;\tsize:4;\tsigned:0;\n"
    );
    let commit = format!("name: nfs_commit_done\nID: 73\nformat:\n{common}");
    let mut decoder = Decoder::default();
    for (number, format) in [(2, &initiate), (3, &done), (5, &commit)] {
        let source = FILE_SERVER_SOURCES[number];
        decoder.add(source, format).expect("a format");
    }
    let (transferred, asked) = (512u32.to_le_bytes(), 4096u32.to_le_bytes());
    let fields: [(usize, &[u8]); 5] = [
        (8, &39u32.to_le_bytes()),
        (16, &(1u64 << 33).to_le_bytes()),
        (24, &8192u64.to_le_bytes()),
        (32, &asked),
        (36, &transferred),
    ];
    let (write, flush) = (Transfer::Write, Transfer::Flush);
    for (id, edge, count, transfer) in [
        (71, Edge::Begin, 4096, write),
        (72, Edge::End, 512, write),
        (73, Edge::End, 0, flush),
    ] {
        let mut all = Vec::new();
        all.extend(decoder.event(&record(id, &fields)));
        let expected = TraceEventKind::FileServer {
            edge,
            mount: 39,
            inode: 1 << 33,
            first: 8192,
            count,
            transfer,
        };
        assert_eq!(all, [expected]);
    }
}

#[test]
fn btrfs_extent_is_read_with_its_place() {
    // Format stated by Linux 6.18, with fields in another order.
    let format = "name: btrfs_ordered_extent_add\nID: 2014\nformat:\n\
        \tfield:u8 fsid[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:u64 ino;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:u64 file_offset;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:u64 start;\toffset:40;\tsize:8;\tsigned:0;\n\
        \tfield:u64 len;\toffset:48;\tsize:8;\tsigned:0;\n\
        \tfield:u64 disk_len;\toffset:56;\tsize:8;\tsigned:0;\n\
        \tfield:u64 root_objectid;\toffset:64;\tsize:8;\tsigned:0;\n";
    let mut decoder = Decoder::default();
    decoder.add(MOVED_SOURCE, format).expect("a format");
    // Words 1, 2, 4 and 8, in network byte order.
    let uuid: Vec<u8> = [1u32, 2, 4, 8]
        .iter()
        .flat_map(|word| word.to_be_bytes())
        .collect();
    for (bytes_there, place) in [(4096u64, Some(1 << 30)), (2048, None)] {
        let mut bytes = vec![0; 72];
        let fields: [(usize, &[u8]); 8] = [
            (0, &2014u16.to_le_bytes()),
            (8, &uuid),
            (24, &257u64.to_le_bytes()),
            (32, &8192u64.to_le_bytes()),
            (40, &(1u64 << 30).to_le_bytes()),
            (48, &4096u64.to_le_bytes()),
            (56, &bytes_there.to_le_bytes()),
            (64, &((3u64 << 32) | 5).to_le_bytes()),
        ];
        for (offset, own) in fields {
            bytes[offset..offset + own.len()].copy_from_slice(own);
        }
        let mut all = Vec::new();
        all.extend(decoder.event(&bytes));
        let expected = TraceEventKind::Moved {
            file_system: (2 ^ 8 ^ 5) << 32 | (1 ^ 4 ^ 3),
            inode: 257,
            offset: 8192,
            bytes: 4096,
            place,
        };
        assert_eq!(all, [expected]);
    }
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
    let filters = BLOCK_SOURCES.map(|source| source.filter(&places).unwrap_or_default());
    assert_eq!(filters[0], "dev == 8388608");
    assert_eq!(filters[3], "dev == 265289729");
    let of_others = FUSE_SOURCES.into_iter().chain(FILE_SERVER_SOURCES);
    let of_syncs = SYNC_SOURCES.into_iter().chain(SYNC_CALL_SOURCES);
    for source in of_syncs.chain(of_others).chain([MOVED_SOURCE]) {
        assert_eq!(source.filter(&places), None);
    }
    let one = TracedPlaces {
        disks: vec![((8, 0), true)],
        connections: vec![(0, 39)],
        servers: vec![(0, 40)],
        moving: vec![257, 1 << 40],
        file_systems: vec![(8, 1), (8, 2)],
        threads: TracedThreads::All,
        sync_calls: true,
    };
    assert_eq!(BLOCK_SOURCES[3].filter(&one), None);
    for source in FUSE_SOURCES {
        let filter = source.filter(&one);
        assert_eq!(filter.as_deref(), Some("connection == 39"));
    }
    for source in FILE_SERVER_SOURCES {
        assert_eq!(source.filter(&one).as_deref(), Some("dev == 40"));
    }
    assert_eq!(
        MOVED_SOURCE.filter(&one).as_deref(),
        Some("ino == 257 || ino == 1099511627776")
    );
    // The kernel takes less than a page.
    let moving = |count: u64| TracedPlaces {
        moving: (1 << 20..(1 << 20) + count).collect(),
        ..TracedPlaces::default()
    };
    let filter = |count: u64| MOVED_SOURCE.filter(&moving(count)).unwrap_or_default();
    assert!((2000..4096).contains(&filter(150).len()));
    assert_eq!(filter(300), NO_FILTER);
    for source in SYNC_SOURCES {
        let filter = source.filter(&one);
        assert_eq!(filter.as_deref(), Some("dev == 8388609 || dev == 8388610"));
    }
    for source in SYNC_CALL_SOURCES {
        assert_eq!(source.filter(&one).as_deref(), Some(NO_FILTER));
    }
    // Either events of trial threads, or the start of any thread.
    for (places, of_trials) in [(&places, true), (&one, false)] {
        for source in THREAD_SOURCES {
            assert_eq!(source.filter(places).is_some(), of_trials);
        }
        assert_eq!(BEGAN_SOURCE.filter(places).is_some(), !of_trials);
    }
}
