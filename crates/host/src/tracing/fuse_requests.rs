//! Requests of file systems in user space, built from events, and joined with a trial's requests by the thread
//! that sent them: they carry no place.

use std::collections::BTreeMap;

use super::event::{Event, TraceEventKind, Transfer};
use super::syncs::Span;
use super::traced_request::{Owner, Passage, TracedRequest, Way};

/// Header bytes in messages of linux/fuse.h: `fuse_in_header` with `fuse_write_in`, and `fuse_out_header`.
const WRITE_HEADER: u32 = 80;
const ANSWER_HEADER: u32 = 16;

/// A request to a file system in user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FuseRequest {
    transfer: Transfer,
    /// Bytes of data.
    bytes: u64,
    sent: u64,
    /// Stamp of the answer; `None` where it was not recorded.
    answered: Option<u64>,
}

/// Requests by connection and thread, in the order of sending.
type OfThreads = BTreeMap<(u32, u32), Vec<FuseRequest>>;

/// Activity of file systems in user space.
#[derive(Debug, Default)]
pub(super) struct FuseActivity {
    of_threads: OfThreads,
    /// Number of requests other than syncs.
    pub(super) requests: u64,
    pub(super) syncs: Vec<Span>,
}

/// Moments of a trial's request, and its number of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FuseParts {
    pub(super) passage: Passage,
    pub(super) parts: u32,
}

impl FuseActivity {
    /// Activity by events in time order.
    pub(super) fn of(events: &[Event]) -> Self {
        let mut seen = Self::default();
        // Place of each unanswered request: its thread, and its index there.
        let mut open: BTreeMap<(u32, u64), (u32, usize)> = BTreeMap::new();
        let mut syncing: BTreeMap<(u32, u64), (u32, u64)> = BTreeMap::new();
        for event in events {
            match event.kind {
                TraceEventKind::FuseSend {
                    connection,
                    number,
                    transfer: Transfer::Flush,
                    message: _,
                    thread,
                } => {
                    syncing.insert((connection, number), (thread, event.at));
                }
                TraceEventKind::FuseSend {
                    connection,
                    number,
                    transfer,
                    message,
                    thread,
                } => {
                    let own = seen.of_threads.entry((connection, thread)).or_default();
                    open.insert((connection, number), (thread, own.len()));
                    own.push(FuseRequest {
                        transfer,
                        bytes: message.saturating_sub(WRITE_HEADER).into(),
                        sent: event.at,
                        answered: None,
                    });
                }
                TraceEventKind::FuseEnd {
                    connection,
                    number,
                    message: answer,
                } => {
                    if let Some((thread, start)) = syncing.remove(&(connection, number)) {
                        seen.syncs.push(Span {
                            owner: Owner::Thread(thread),
                            end: event.at,
                            start,
                        });
                        continue;
                    }
                    seen.requests += 1;
                    let Some((thread, place)) = open.remove(&(connection, number)) else {
                        continue;
                    };
                    let own = seen.of_threads.entry((connection, thread)).or_default();
                    own[place].answered = Some(event.at);
                    if own[place].transfer == Transfer::Read {
                        own[place].bytes = answer.saturating_sub(ANSWER_HEADER).into();
                    }
                }
                TraceEventKind::Block { .. }
                | TraceEventKind::Began { .. }
                | TraceEventKind::FileServer { .. }
                | TraceEventKind::Moved { .. }
                | TraceEventKind::Sync { .. }
                | TraceEventKind::SyncCall { .. }
                | TraceEventKind::Commit { .. }
                | TraceEventKind::Woken(_)
                | TraceEventKind::Runs(_) => {}
            }
        }
        for own in seen.of_threads.values_mut() {
            own.retain(|request| matches!(request.transfer, Transfer::Read | Transfer::Write));
        }
        seen
    }

    /// Moments of each request; `None` where unknown. A thread sends messages in the order in which it issues
    /// requests: the kernel sends within the call, and blocks the thread while too many are in flight. So the
    /// messages of a thread belong to its requests in order, each request taking as many as have its bytes.
    pub(super) fn parts_of(&self, requests: &[TracedRequest]) -> Vec<Option<FuseParts>> {
        let mut found = vec![None; requests.len()];
        let mut of_threads: BTreeMap<(u32, u32), Vec<(u32, usize)>> = BTreeMap::new();
        for (number, request) in requests.iter().enumerate() {
            if let Way::Fuse {
                connection, order, ..
            } = request.way
            {
                let own = of_threads.entry((connection, request.thread)).or_default();
                own.push((order, number));
            }
        }
        for (thread, mut own) in of_threads {
            let Some(messages) = self.of_threads.get(&thread) else {
                continue;
            };
            own.sort_unstable();
            let own: Vec<usize> = own.into_iter().map(|(_, number)| number).collect();
            let mut first = 0;
            while first < own.len() {
                // Requests that overlap in time must account for all messages of that time.
                let mut end = requests[own[first]].end;
                let overlapping = own[first + 1..].iter().take_while(|number| {
                    let is_within = requests[**number].start < end;
                    end = end.max(requests[**number].end);
                    is_within
                });
                let run = &own[first..=first + overlapping.count()];
                let ends = run.iter().map(|number| requests[*number].end);
                let (from, to) = (requests[run[0]].start, ends.max().unwrap_or_default());
                let all = &messages[messages.partition_point(|message| message.sent < from)
                    ..messages.partition_point(|message| message.sent <= to)];
                for (number, parts) in run.iter().zip(in_order(run, requests, all)) {
                    found[*number] = parts;
                }
                first += run.len();
            }
        }
        found
    }
}

/// Assigns messages, in the order of sending, to a thread's requests, in the order of issue. Assigns none if a
/// message does not fit, is missing, or is left over.
fn in_order(
    run: &[usize],
    requests: &[TracedRequest],
    messages: &[FuseRequest],
) -> Vec<Option<FuseParts>> {
    let mut left = messages.iter();
    let found: Option<Vec<FuseParts>> = run
        .iter()
        .map(|number| own_parts(&requests[*number], &mut left))
        .collect();
    match (found, left.next()) {
        (Some(found), None) => found.into_iter().map(Some).collect(),
        (None, _) | (Some(_), Some(_)) => vec![None; run.len()],
    }
}

/// Takes the messages of a request from the remaining ones; `None` where they do not fit.
fn own_parts<'a>(
    request: &TracedRequest,
    left: &mut impl Iterator<Item = &'a FuseRequest>,
) -> Option<FuseParts> {
    let Way::Fuse { bytes, .. } = request.way else {
        return None;
    };
    let transfer = match request.writes {
        true => Transfer::Write,
        false => Transfer::Read,
    };
    let mut found: Option<FuseParts> = None;
    let mut sum = 0;
    while sum < u64::from(bytes) {
        let message = left.next()?;
        let answered = message.answered?;
        let is_within = message.sent >= request.start && answered <= request.end;
        if message.transfer != transfer || !is_within {
            return None;
        }
        sum += message.bytes;
        // A request larger than a message is sent in parts.
        let parts = found.get_or_insert(FuseParts {
            passage: Passage {
                start: message.sent,
                issue: message.sent,
                complete: answered,
            },
            parts: 0,
        });
        parts.parts += 1;
        parts.passage.complete = parts.passage.complete.max(answered);
    }
    found.filter(|_| sum == u64::from(bytes))
}
