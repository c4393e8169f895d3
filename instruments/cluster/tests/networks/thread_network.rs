//! A transport between threads of one process, in real time.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use iolab_cluster::link::{Link, LossReason, LostRank};

/// A message with its sending rank.
type Parcel = (usize, Vec<u8>);

/// One thread's end of the transport.
pub(crate) struct ThreadLink {
    rank: usize,
    inboxes: Arc<[Sender<Parcel>]>,
    inbox: Receiver<Parcel>,
    waiting: HashMap<usize, VecDeque<Vec<u8>>>,
    clock: Arc<dyn Fn() -> i64 + Send + Sync>,
}

/// Ends for `count` threads, which read the same clock, ns.
pub(crate) fn threads(
    count: usize,
    clock: impl Fn() -> i64 + Send + Sync + 'static,
) -> Vec<ThreadLink> {
    let (inboxes, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
    let inboxes: Arc<[_]> = inboxes.into();
    let clock: Arc<dyn Fn() -> i64 + Send + Sync> = Arc::new(clock);
    let place = |(rank, inbox)| ThreadLink {
        rank,
        inboxes: inboxes.clone(),
        inbox,
        waiting: HashMap::new(),
        clock: clock.clone(),
    };
    receivers.into_iter().enumerate().map(place).collect()
}

impl Link for ThreadLink {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.inboxes.len()
    }

    fn now_ns(&self) -> i64 {
        (self.clock)()
    }

    fn send(&mut self, to: usize, message: &[u8], _patience: Duration) -> Result<(), LostRank> {
        // The end of a thread is noticed by threads that wait for its answer.
        let _ = self.inboxes[to].send((self.rank, message.to_vec()));
        Ok(())
    }

    fn receive(&mut self, from: usize, timeout: Duration) -> Result<Vec<u8>, LostRank> {
        let until = Instant::now() + timeout;
        loop {
            let earlier = self.waiting.get_mut(&from);
            if let Some(message) = earlier.and_then(VecDeque::pop_front) {
                return Ok(message);
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok((sender, message)) = self.inbox.recv_timeout(left) else {
                return Err(LostRank {
                    rank: from,
                    why: LossReason::Silent(timeout),
                });
            };
            self.waiting.entry(sender).or_default().push_back(message);
        }
    }
}
