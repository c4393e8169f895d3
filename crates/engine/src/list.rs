//! Requests that come from outside, each with its own intended start, instead of from a pattern and a rate.
//!
//! A worker takes them one by one, so that a list needs no memory for all of them. A list that has to be waited for makes requests late:
//! its owner prepares them ahead, on another thread.

use std::cell::RefCell;
use std::rc::Rc;

use iolab_host::clock::Clock;

use crate::request::{Action, Request};
use crate::schedule::Starts;
use crate::worker::Requests;

/// A request of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedRequest {
    /// Intended start, ns since the start of the trial; not before the start of the request before it.
    pub at_ns: u64,
    /// Whether it writes.
    pub writes: bool,
    /// First byte.
    pub offset: u64,
    /// Bytes; at most the `bs` of the trial.
    pub bytes: u32,
}

/// How a request of a list was issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issue {
    /// Intended start, ns since the start of the trial.
    pub intended_ns: u64,
    /// Start, by the same clock.
    pub started_ns: u64,
    /// Part of the time between the two in which all slots were taken, ns.
    pub queue_ns: u64,
    /// Requests in flight with this one.
    pub outstanding: usize,
}

/// A list of requests.
pub trait RequestList: Send {
    /// The next request; `None` at the end, and from then on.
    fn next(&mut self) -> Option<ListedRequest>;

    /// Takes note of how the next request that has not been noted was issued, if they are issued by time.
    fn issued(&mut self, _issue: Issue) {}
}

/// A list as a worker goes through it.
pub(crate) struct Feed<'a> {
    list: &'a mut dyn RequestList,
    /// The request to issue now.
    current: Option<ListedRequest>,
    /// The request after it.
    ahead: Option<ListedRequest>,
}

impl<'a> Feed<'a> {
    /// The list, of which nothing has been issued.
    pub(crate) fn new(list: &'a mut dyn RequestList) -> Rc<RefCell<Self>> {
        let ahead = list.next();
        Rc::new(RefCell::new(Self {
            list,
            current: None,
            ahead,
        }))
    }

    fn advance(&mut self) {
        self.current = self.ahead;
        self.ahead = self.list.next();
    }
}

/// The intended starts of a list.
pub(crate) struct ListedStarts<'a> {
    feed: Rc<RefCell<Feed<'a>>>,
    clock: &'a Clock,
    next: u64,
    /// Whether all slots are taken.
    is_full: bool,
    /// Last time at which a slot became free after all were taken, ticks since the worker's own start.
    freed: u64,
}

impl<'a> ListedStarts<'a> {
    pub(crate) fn new(feed: &Rc<RefCell<Feed<'a>>>, clock: &'a Clock) -> Self {
        let mut own = Self {
            feed: Rc::clone(feed),
            clock,
            next: 0,
            is_full: false,
            freed: 0,
        };
        own.look_ahead();
        own
    }

    fn look_ahead(&mut self) {
        let ahead = self.feed.borrow().ahead;
        self.next = ahead.map_or(u64::MAX, |request| self.clock.ticks(request.at_ns));
    }
}

impl Starts for ListedStarts<'_> {
    const WAITS: bool = true;

    #[inline(always)]
    fn next(&self) -> u64 {
        self.next
    }

    fn advance(&mut self, now: u64, outstanding: usize) {
        let intended = self.next;
        let mut feed = self.feed.borrow_mut();
        feed.list.issued(Issue {
            intended_ns: self.clock.ns_between(0, intended),
            started_ns: self.clock.ns_between(0, now),
            queue_ns: self.clock.ns_between(intended, self.freed.min(now)),
            outstanding,
        });
        feed.advance();
        drop(feed);
        self.look_ahead();
    }

    /// The next one at least: later ones are not read yet.
    fn backlog(&self, at: u64) -> u64 {
        u64::from(self.next <= at)
    }

    fn has_slot(&mut self, now: u64) {
        if self.is_full {
            self.is_full = false;
            self.freed = now;
        }
    }

    fn lacks_slot(&mut self) {
        self.is_full = true;
    }
}

/// The requests of a list.
pub(crate) struct ListedRequests<'a>(pub(crate) Rc<RefCell<Feed<'a>>>);

impl Requests for ListedRequests<'_> {
    const VARIED: bool = true;

    fn next(&mut self) -> Request {
        let mut feed = self.0.borrow_mut();
        if feed.current.is_none() {
            // No intended start was taken before: each request follows as soon as another completes.
            feed.advance();
        }
        let request = feed.current.take();
        let request = request.expect("a list is not asked after its end");
        Request {
            action: match request.writes {
                true => Action::Write,
                false => Action::Read,
            },
            offset: request.offset,
            at: 0,
            len: request.bytes,
        }
    }

    fn are_spent(&self) -> bool {
        self.0.borrow().ahead.is_none()
    }
}
