//! A trace that is read ahead on a thread of its own, so that the worker that replays it does not wait for its lines.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::Instant;

use iolab_engine::list::{Issue, ListedRequest, RequestList};
use iolab_workload::{Error, Result};

use crate::certificate::{Issued, Meter};
use crate::mapping::{Changed, Mapping};
use crate::trace::Trace;

/// Requests that are handed over at a time.
const PART: usize = 1024;
/// Parts that are read ahead.
const PARTS_AHEAD: usize = 64;

/// A request with its place in the trace.
#[derive(Debug, Clone, Copy)]
struct Planned {
    request: ListedRequest,
    /// Time at which the trace has it, ns since the start; earlier than the previous request's if the trace is out of order.
    due_ns: u64,
    depth: Option<u32>,
}

enum Message {
    Part(Vec<Planned>),
    End(Result<Changed>),
}

/// The list of a replay, with its certificate.
pub(crate) struct Ahead {
    from: Receiver<Message>,
    part: std::vec::IntoIter<Planned>,
    end: Option<Result<Changed>>,
    /// Requests that the worker has and has not issued, if there is a meter.
    handed: VecDeque<Planned>,
    meter: Option<Meter>,
    /// Whether time that the worker waits for lines passes for the trial.
    is_real: bool,
    /// Time that the worker waited for lines, and that no request has been charged with, ns.
    waited_ns: u64,
}

impl Ahead {
    /// Begins to read a trace, `speed` times as fast as it was.
    ///
    /// # Errors
    /// The trace cannot be read, or no thread can be started.
    pub(crate) fn new(
        trace: &Trace,
        mapping: Mapping,
        speed: f64,
        meter: Option<Meter>,
        is_real: bool,
    ) -> Result<Self> {
        let requests = trace.requests()?;
        let (to, from) = sync_channel(PARTS_AHEAD);
        thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || read(requests, mapping, speed, &to))
            .map_err(|error| Error::failed(format!("no thread to read the trace: {error}")))?;
        Ok(Self {
            from,
            part: Vec::new().into_iter(),
            end: None,
            handed: VecDeque::with_capacity(4),
            meter,
            is_real,
            waited_ns: 0,
        })
    }

    /// Whether no request is left.
    pub(crate) fn is_empty(&mut self) -> bool {
        while self.part.len() == 0 && self.end.is_none() {
            match self.message() {
                Message::Part(part) => self.part = part.into_iter(),
                Message::End(end) => self.end = Some(end),
            }
        }
        self.part.len() == 0
    }

    /// The changed requests, and the meter.
    ///
    /// # Errors
    /// The trace could not be read to its end.
    pub(crate) fn finish(self) -> Result<(Changed, Option<Meter>)> {
        let end = self
            .end
            .unwrap_or_else(|| Err(Error::failed("the trace was not replayed to its end")));
        Ok((end?, self.meter))
    }

    fn message(&mut self) -> Message {
        match self.from.try_recv() {
            Ok(message) => return message,
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return gone(),
        }
        let began = Instant::now();
        let message = self.from.recv().unwrap_or_else(|_| gone());
        if self.is_real {
            let waited = began.elapsed().as_nanos();
            self.waited_ns += u64::try_from(waited).unwrap_or(u64::MAX);
        }
        message
    }
}

fn gone() -> Message {
    Message::End(Err(Error::failed(
        "the thread that reads the trace ended early",
    )))
}

/// Reads, maps and hands over all requests.
fn read(
    mut requests: crate::trace::Requests,
    mut mapping: Mapping,
    speed: f64,
    to: &SyncSender<Message>,
) {
    let mut latest = 0;
    let mut part = Vec::with_capacity(PART);
    let end = loop {
        let access = match requests.next_request() {
            Ok(Some(access)) => access,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        let Some((offset, bytes)) = mapping.place(&access) else {
            continue;
        };
        let due_ns = (access.at_ns as f64 / speed) as u64;
        latest = latest.max(due_ns);
        part.push(Planned {
            request: ListedRequest {
                at_ns: latest,
                writes: access.writes,
                offset,
                bytes,
            },
            due_ns,
            depth: access.depth,
        });
        if part.len() == PART {
            let full = std::mem::replace(&mut part, Vec::with_capacity(PART));
            if to.send(Message::Part(full)).is_err() {
                // The trial was ended.
                return;
            }
        }
    };
    // Nobody waits for it after a trial that was ended.
    let _ = to.send(Message::Part(part));
    let _ = to.send(Message::End(end.map(|()| mapping.changed)));
}

impl RequestList for Ahead {
    fn next(&mut self) -> Option<ListedRequest> {
        if self.is_empty() {
            return None;
        }
        let planned = self.part.next()?;
        // Without a meter no request is noted as issued.
        if self.meter.is_some() {
            self.handed.push_back(planned);
        }
        Some(planned.request)
    }

    fn issued(&mut self, issue: Issue) {
        let Some(planned) = self.handed.pop_front() else {
            return;
        };
        let Some(meter) = &mut self.meter else {
            return;
        };
        // A worker that waits for lines frees no slots, and is late by itself.
        let waited = std::mem::take(&mut self.waited_ns);
        meter.note(Issued {
            due_ns: planned.due_ns,
            at_ns: issue.started_ns,
            queue_ns: issue.queue_ns.saturating_sub(waited),
            depth_asked: planned.depth,
            depth_done: issue.outstanding as u32,
        });
    }
}
