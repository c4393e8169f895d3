//! The link of a rank with a function of a test at its receiving end.

use std::time::Duration;

use crate::thread_network::ThreadLink;
use iolab_cluster::link::{Link, LostRank};

/// A link, and its way to receive messages: from a rank, within a time.
pub(crate) struct Tapped<F>(pub(crate) ThreadLink, pub(crate) F);

impl<F> Link for Tapped<F>
where
    F: FnMut(&mut ThreadLink, usize, Duration) -> Result<Vec<u8>, LostRank>,
{
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn now_ns(&self) -> i64 {
        self.0.now_ns()
    }

    fn send(&mut self, to: usize, message: &[u8], timeout: Duration) -> Result<(), LostRank> {
        self.0.send(to, message, timeout)
    }

    fn receive(&mut self, from: usize, timeout: Duration) -> Result<Vec<u8>, LostRank> {
        (self.1)(&mut self.0, from, timeout)
    }
}
