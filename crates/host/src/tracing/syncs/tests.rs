//! Syncs and the activity during them, made up together.

use proptest::prelude::*;

use super::*;
use iolab_workload::stages::Stage;

const DISK: u32 = 7 << 20;
const FILE_SYSTEM: u32 = DISK + 1;

fn sync(start: u64, end: u64, thread: u32) -> TracedSync {
    TracedSync {
        start,
        end,
        thread,
        disk: DISK,
        file_system: Some(FILE_SYSTEM),
        inode: 12,
        journal: Journal::Commits,
    }
}

fn span(start: u64, end: u64) -> Span {
    Span {
        device: DISK,
        end,
        start,
    }
}

fn call(at: u64, edge: Edge, thread: u32) -> Event {
    let kind = TraceEventKind::Sync {
        edge,
        file_system: FILE_SYSTEM,
        inode: 12,
        thread,
    };
    Event { at, kind }
}

fn commit(at: u64, edge: Edge) -> Event {
    let kind = TraceEventKind::Commit {
        edge,
        file_system: FILE_SYSTEM,
    };
    Event { at, kind }
}

/// Times in the order of [`Stage::SYNC`].
fn times(stages: &PerStage<u64>) -> [u64; 6] {
    Stage::SYNC.map(|stage| stages[stage])
}

#[test]
fn every_moment_of_a_sync_has_one_stage() {
    let events = [
        call(110, Edge::Begin, 7),
        commit(130, Edge::Begin),
        commit(190, Edge::End),
        call(195, Edge::End, 7),
    ];
    let background = Background {
        // A flush within the commit, and one that ends after the sync.
        flushes: vec![span(150, 170), span(180, 400)],
        // Journal writes, which are a part of the commit.
        metadata: vec![span(132, 188)],
        // Data before the commit.
        data: vec![span(112, 118)],
    };
    let joined = join_syncs(&[sync(100, 200, 7)], &events, background);
    // 12 ticks in between: 2 before the data and 12 after it.
    assert_eq!(times(&joined.stages[0]), [10, 14, 6, 40, 20, 10]);
    let expected = SyncCounts {
        syncs: 1,
        commits: 1,
        shared_commits: 0,
        flushes: 1,
        shared_flushes: 0,
    };
    assert_eq!(joined.counts([0]), expected);
    assert!(joined.are_entered([0]));
}

#[test]
fn metadata_counts_as_journal_only_without_commit_events() {
    let of = |journal| {
        let own = TracedSync {
            journal,
            ..sync(100, 200, 7)
        };
        let background = Background {
            metadata: vec![span(120, 150)],
            ..Background::default()
        };
        let joined = join_syncs(&[own], &[], background);
        let stages = joined.stages[0];
        assert!(!joined.are_entered([0]));
        (stages.sync_journal, stages.sync_write)
    };
    assert_eq!(of(Journal::MetadataWrites), (30, 0));
    assert_eq!(of(Journal::Absent), (0, 30));
    assert_eq!(of(Journal::Commits), (0, 30));
}

#[test]
fn commit_is_shared_by_waiting_not_delayed_syncs() {
    // The first two syncs join one commit; the third begins while it runs, and waits for the next one.
    let events = [
        commit(120, Edge::Begin),
        commit(180, Edge::End),
        commit(200, Edge::Begin),
        commit(260, Edge::End),
    ];
    let syncs = [sync(100, 190, 7), sync(110, 195, 8), sync(150, 280, 9)];
    let background = Background {
        flushes: vec![span(160, 170), span(240, 250)],
        ..Background::default()
    };
    let joined = join_syncs(&syncs, &events, background);
    let all = joined.counts(0..3);
    assert_eq!((all.commits, all.shared_commits), (2, 1));
    assert_eq!((all.flushes, all.shared_flushes), (2, 1));
    assert_eq!(joined.counts([2]).shared_commits, 0);
    // 30 of the first commit, of which 10 flush, and 60 of its own.
    assert_eq!(
        (joined.stages[2].sync_journal, joined.stages[2].sync_flush),
        (70, 20)
    );
}

#[test]
fn sync_without_activity_is_system_time_until_return() {
    let events = [call(110, Edge::Begin, 7), call(190, Edge::End, 7)];
    let entered = join_syncs(&[sync(100, 200, 7)], &events, Background::default());
    assert_eq!(times(&entered.stages[0]), [10, 80, 0, 0, 0, 10]);
    let unknown = join_syncs(&[sync(100, 200, 7)], &[], Background::default());
    assert_eq!(times(&unknown.stages[0]), [0, 100, 0, 0, 0, 0]);
}

#[test]
fn kernel_thread_calls_match_syncs_in_order() {
    let events = [
        // Two calls for thread 7 by other threads; one that thread 8 makes itself; one of another program.
        call(50, Edge::Begin, 60),
        call(90, Edge::End, 60),
        call(105, Edge::Begin, 70),
        call(110, Edge::Begin, 8),
        call(115, Edge::Begin, 71),
        call(150, Edge::End, 70),
        call(160, Edge::End, 8),
        call(170, Edge::End, 71),
    ];
    let syncs = [sync(100, 180, 7), sync(100, 155, 7), sync(100, 165, 8)];
    let joined = join_syncs(&syncs, &events, Background::default());
    let admission: Vec<u64> = joined
        .stages
        .iter()
        .map(|stages| stages.sync_admission)
        .collect();
    assert_eq!(admission, [15, 5, 10]);
}

proptest! {
    #[test]
    fn stages_add_up_to_the_syncs_time(
        starts in proptest::collection::vec((0u64..500, 1u64..300, 0u32..3, 0usize..3), 1..20),
        spans in proptest::collection::vec((0u64..700, 1u64..200, 0u32..3), 0..40),
        calls in proptest::collection::vec((0u64..700, any::<bool>(), 0u32..4), 0..40),
    ) {
        let syncs: Vec<TracedSync> = starts.iter().map(|(start, time, thread, journal)| TracedSync {
            journal: Journal::ALL[*journal],
            ..sync(*start, start + time, *thread)
        }).collect();
        let of_kind = |kind| -> Vec<Span> {
            let own = spans.iter().filter(|(.., of)| *of == kind);
            own.map(|(start, time, _)| span(*start, start + time)).collect()
        };
        let background = Background { flushes: of_kind(0), metadata: of_kind(1), data: of_kind(2) };
        let mut events: Vec<Event> = calls.iter().map(|(at, begins, thread)| {
            let edge = if *begins { Edge::Begin } else { Edge::End };
            match thread {
                3 => commit(*at, edge),
                thread => call(*at, edge, *thread),
            }
        }).collect();
        events.sort_by_key(|event| event.at);
        let joined = join_syncs(&syncs, &events, background);
        for (sync, stages) in syncs.iter().zip(&joined.stages) {
            prop_assert_eq!(times(stages).iter().sum::<u64>(), sync.end - sync.start);
        }
        let counts = joined.counts(0..syncs.len());
        prop_assert!(counts.shared_commits <= counts.commits && counts.shared_flushes <= counts.flushes);
    }
}
