//! A bound on the length of requests, as host adapters and kernels have it.

use super::{Slab, earlier};
use crate::model::{Completion, Done, Model, Ns, Op, Request, ServedFrom};

/// A request of the host that is under way.
struct Parent {
    tag: u64,
    /// Pieces that have not completed.
    left: u64,
    finished: Ns,
    served: ServedFrom,
}

/// A bound on the length of the requests to a model.
pub struct Split {
    inner: Box<dyn Model>,
    bytes: u64,
    parents: Slab<Parent>,
    finished: Vec<Completion>,
    done: Done,
}

impl Split {
    /// Bounds each request to a model to `bytes` bytes.
    ///
    /// # Errors
    ///
    /// A bound of 0 bytes.
    pub fn new(bytes: u64, inner: Box<dyn Model>) -> Result<Self, String> {
        if bytes == 0 {
            return Err("requests cannot be split into pieces of 0 bytes".into());
        }
        Ok(Self {
            inner,
            bytes,
            parents: Slab::default(),
            finished: Vec::new(),
            done: Done::default(),
        })
    }
}

impl Model for Split {
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        if !request.fits(self.capacity()) {
            return self.done.add(tag, now, ServedFrom::Refused);
        }
        let piece = match request.op {
            Op::Read | Op::Write => self.bytes,
            Op::Flush | Op::Trim => u64::MAX,
        };
        let left = request.len.div_ceil(piece).max(1);
        let parent = self.parents.add(Parent {
            tag,
            left,
            finished: now,
            served: ServedFrom::Hit,
        });
        for n in 0..left {
            let begin = n * piece;
            let piece = Request {
                op: request.op,
                offset: request.offset + begin,
                len: piece.min(request.len - begin),
            };
            self.inner.submit(now, parent, &piece);
        }
    }

    fn next_event(&self) -> Option<Ns> {
        earlier(self.inner.next_event(), self.done.next())
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.inner.advance(until, &mut self.finished);
        for completion in self.finished.drain(..) {
            let Some(parent) = self.parents.get(completion.tag) else {
                continue;
            };
            parent.left -= 1;
            parent.finished = parent.finished.max(completion.finished);
            parent.served = parent.served.max(completion.served);
            if parent.left == 0
                && let Some(parent) = self.parents.take(completion.tag)
            {
                self.done.add(parent.tag, parent.finished, parent.served);
            }
        }
        self.done.take(until, out);
    }
}
