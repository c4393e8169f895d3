//! How ranks get to know each other.

use iolab_cluster::link::Link;
use iolab_spec::{Error, Result};

use super::hosts;
use super::{ANSWER, Member, unreadable};

impl Member {
    /// Compares versions, of which `own` is this rank's, and finds out which hosts there are.
    pub(super) fn greet(&mut self, own: &str) -> Result<()> {
        let greeted = self.compare(own);
        // Every rank knows it then, and nothing was begun.
        self.ended = greeted.is_err();
        greeted
    }

    fn compare(&mut self, own: &str) -> Result<()> {
        let roots = self.team.broadcast(own.as_bytes(), ANSWER);
        let roots = roots.map_err(|lost| self.error(lost.into()))?;
        let same = match roots == own.as_bytes() {
            true => Ok(()),
            false => {
                let roots = String::from_utf8_lossy(&roots);
                let version = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
                Err(Error::usage(format!(
                    "this rank is iolab {}, and rank 0 is iolab {} or another build",
                    version(own),
                    version(&roots)
                ))
                .hint("start the same program on all hosts"))
            }
        };
        let rank = self.team.link().rank() as u64;
        let hosts = self
            .team
            .gather(hosts::of(rank, self.host.clone()), ANSWER)
            .map_err(|lost| self.error(lost.into()))?;
        let places = hosts.map(|hosts| {
            self.hosts = hosts::in_order(hosts);
            hosts::write_places(&self.hosts)
        });
        let places = self
            .team
            .broadcast(&places.unwrap_or_default(), ANSWER)
            .map_err(|lost| self.error(lost.into()))?;
        self.places = hosts::read_places(&places).ok_or_else(unreadable)?;
        self.speaks = hosts::speaks(&self.places, rank as usize);
        self.agree(ANSWER, same)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use iolab_cluster::in_process::threads;

    use iolab_observe::clock::Clock;

    use super::*;
    use crate::Ranks;

    #[test]
    fn a_rank_of_another_version_is_named_and_nothing_waits_for_it() {
        let clock = Clock::calibrate();
        let own = clock.clone();
        let links = threads(3, move || own.ns_between(0, own.now()) as i64);
        let began = std::time::Instant::now();
        let results = thread::scope(|scope| {
            let greet = |link: iolab_cluster::in_process::Thread| {
                let clock = clock.clone();
                scope.spawn(move || {
                    let version = if link.rank() == 2 {
                        "0.0.9 5"
                    } else {
                        "1.0.0 5"
                    };
                    let ranks = Ranks::new(Box::new(link), clock, |_| Default::default());
                    let greeted = ranks.0.borrow_mut().greet(version);
                    ranks.end().expect("nothing is left to be done");
                    assert!(!ranks.has_lost());
                    greeted
                })
            };
            let ranks: Vec<_> = links.into_iter().map(greet).collect();
            let results = ranks.into_iter().map(|rank| rank.join().expect("no panic"));
            results.collect::<Vec<Result<()>>>()
        });
        for result in results {
            let error = result.expect_err("another version");
            let message = error.message();
            assert!(message.starts_with("rank 2"), "{message}");
            assert!(
                message.contains("iolab 0.0.9, and rank 0 is iolab 1.0.0"),
                "{message}"
            );
        }
        // Else the root would have waited for an answer to its last order.
        assert!(began.elapsed() < ANSWER);
    }
}
