//! From events to requests of file systems in user space, joined with those of a trial by the thread that sent them: they name no place.

use std::collections::BTreeMap;

use super::event::{Event, Kind, Transfer};
use super::syncs::{Owner, Span};
use super::traced_request::{Passage, TracedRequest, Way};

/// Bytes of the messages of linux/fuse.h that are no data: `fuse_in_header` with `fuse_write_in`, and `fuse_out_header`.
const WRITE_HEADER: u32 = 80;
const ANSWER_HEADER: u32 = 16;

/// A request that was sent and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FuseRequest {
    transfer: Transfer,
    /// Bytes of data.
    bytes: u64,
    sent: u64,
    answered: u64,
}

/// Those of a thread to a connection, in the order in which they were sent.
type OfThreads = BTreeMap<(u32, u32), Vec<FuseRequest>>;

/// What file systems in user space did.
#[derive(Debug, Default)]
pub(super) struct FuseActivity {
    of_threads: OfThreads,
    /// Requests that are no syncs.
    pub(super) requests: u64,
    pub(super) syncs: Vec<Span>,
}

/// Where a request of a trial was found, and in how many parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FuseParts {
    pub(super) passage: Passage,
    pub(super) parts: u32,
}

impl FuseActivity {
    /// As events in the order of time show it.
    pub(super) fn of(events: &[Event]) -> Self {
        let mut seen = Self::default();
        let mut open: BTreeMap<(u32, u64), (u64, Transfer, u32, u32)> = BTreeMap::new();
        for event in events {
            match event.kind {
                Kind::FuseSend {
                    connection,
                    number,
                    transfer,
                    message,
                    thread,
                } => {
                    let sent = (event.at, transfer, message, thread);
                    open.insert((connection, number), sent);
                }
                Kind::FuseEnd {
                    connection,
                    number,
                    message: answer,
                } => {
                    let Some((sent, transfer, message, thread)) =
                        open.remove(&(connection, number))
                    else {
                        seen.requests += 1;
                        continue;
                    };
                    let bytes = match transfer {
                        Transfer::Read => answer.saturating_sub(ANSWER_HEADER),
                        Transfer::Write => message.saturating_sub(WRITE_HEADER),
                        Transfer::Flush => {
                            seen.syncs.push(Span {
                                owner: Owner::Thread(thread),
                                end: event.at,
                                start: sent,
                            });
                            continue;
                        }
                        Transfer::Other => 0,
                    };
                    seen.requests += 1;
                    let own = seen.of_threads.entry((connection, thread)).or_default();
                    own.push(FuseRequest {
                        transfer,
                        bytes: u64::from(bytes),
                        sent,
                        answered: event.at,
                    });
                }
                Kind::Block { .. }
                | Kind::Began { .. }
                | Kind::Sync { .. }
                | Kind::SyncCall { .. }
                | Kind::Commit { .. }
                | Kind::Woken(_)
                | Kind::Runs(_) => {}
            }
        }
        for own in seen.of_threads.values_mut() {
            own.sort_unstable_by_key(|request| request.sent);
        }
        seen
    }

    /// The way of a request of a trial whose thread has one at a time; `None` where its bytes were not all found.
    pub(super) fn parts_of(&self, request: &TracedRequest) -> Option<FuseParts> {
        let Way::Fuse { connection, bytes } = request.way else {
            return None;
        };
        let own = self.of_threads.get(&(connection, request.thread))?;
        let transfer = match request.writes {
            true => Transfer::Write,
            false => Transfer::Read,
        };
        let first = own.partition_point(|one| one.sent < request.start);
        let within = own[first..]
            .iter()
            .take_while(|one| one.sent <= request.end)
            .filter(|one| one.transfer == transfer && one.answered <= request.end);
        let mut found: Option<FuseParts> = None;
        let mut sum = 0;
        for one in within {
            sum += one.bytes;
            // What is larger than a message is sent in parts, one after the other.
            let parts = found.get_or_insert(FuseParts {
                passage: Passage {
                    start: one.sent,
                    issue: one.sent,
                    complete: one.answered,
                },
                parts: 0,
            });
            parts.parts += 1;
            parts.passage.complete = parts.passage.complete.max(one.answered);
        }
        found.filter(|_| sum == u64::from(bytes))
    }
}
