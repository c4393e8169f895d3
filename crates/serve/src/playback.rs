//! The answers of a model to requests in real time, as a pure function: every time is passed in.

use std::collections::{HashMap, VecDeque};

use iolab_diskmodel::{Completion, Model, Ns, Request, ServedFrom};

use crate::virtual_speed::Speed;

/// A request whose answer is due. Real times, in ns since the start.
#[derive(Debug)]
pub struct Due<T> {
    /// When it arrived.
    pub arrived: Ns,
    /// The request itself.
    pub request: Request,
    /// Time at which the answer is due: never before the model completes the request.
    pub due: Ns,
    /// How the model served it.
    pub served: ServedFrom,
    /// The reply.
    pub answer: T,
}

/// A model with the requests that it has.
pub struct Playback<T> {
    model: Box<dyn Model>,
    speed: Speed,
    /// Virtual time of the last call; the model takes no earlier one.
    reached: Ns,
    tag: u64,
    /// Requests that the model has: arrival time, request, and the answer that goes back.
    waiting: HashMap<u64, (Ns, Request, T)>,
    most: usize,
    finished: Vec<Completion>,
    due: VecDeque<Due<T>>,
}

impl<T> Playback<T> {
    /// A model without requests, at time 0.
    pub fn new(model: Box<dyn Model>, speed: Speed) -> Self {
        Self {
            model,
            speed,
            reached: 0,
            tag: 0,
            waiting: HashMap::new(),
            most: 0,
            finished: Vec::new(),
            due: VecDeque::new(),
        }
    }

    /// Gives the model a request that arrived at `now`. If the model's time is past that already, the request
    /// counts from the model's time.
    pub fn arrive(&mut self, now: Ns, request: Request, answer: T) {
        self.advance(now);
        self.tag += 1;
        self.waiting.insert(self.tag, (now, request, answer));
        self.most = self.most.max(self.waiting.len());
        self.model.submit(self.reached, self.tag, &request);
        // Effects that the model has at once need no wake-up.
        self.advance(now);
    }

    /// The next time at which [`Self::take`] has something to do; `None` while the model has no request.
    pub fn next(&self) -> Option<Ns> {
        let due = self.due.front().map(|due| due.due);
        due.or_else(|| Some(self.speed.to_real(self.model.next_event()?)))
    }

    /// Takes the first request whose answer is due at `now`.
    pub fn take(&mut self, now: Ns) -> Option<Due<T>> {
        self.advance(now);
        self.due.pop_front_if(|due| due.due <= now)
    }

    /// Most requests that the model had at a time.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Drops all requests.
    pub fn abandon(&mut self) {
        self.waiting.clear();
        self.due.clear();
    }

    fn advance(&mut self, now: Ns) {
        self.reached = self.reached.max(self.speed.to_virtual(now));
        self.model.advance(self.reached, &mut self.finished);
        for completion in self.finished.drain(..) {
            let Some((arrived, request, answer)) = self.waiting.remove(&completion.tag) else {
                continue;
            };
            self.due.push_back(Due {
                arrived,
                request,
                // An arrival is rounded down to virtual time.
                due: self.speed.to_real(completion.finished).max(arrived),
                served: completion.served,
                answer,
            });
        }
    }
}
