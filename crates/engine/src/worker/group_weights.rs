//! Groups that issue requests in the proportion of their weights: one that is ahead of its share waits for the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The groups of a trial that have a weight.
#[derive(Debug)]
pub(crate) struct Flow(Vec<Member>);

#[derive(Debug)]
struct Member {
    weight: u64,
    /// Requests that its workers have issued, or were given when they joined.
    issued: AtomicU64,
    /// Its workers that are under way.
    workers: AtomicU32,
}

impl Flow {
    /// Groups of these weights, each with the workers that start with the trial: the others wait for them from the first
    /// request on. Those of a group that starts later join when they do.
    pub(crate) fn new(groups: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let member = |(weight, workers): (u32, u32)| Member {
            weight: weight.into(),
            issued: AtomicU64::new(0),
            workers: AtomicU32::new(workers),
        };
        Self(groups.into_iter().map(member).collect())
    }

    /// Those whose workers are under way.
    fn present(&self) -> impl Iterator<Item = &Member> {
        let present = |member: &&Member| member.workers.load(Ordering::Relaxed) > 0;
        self.0.iter().filter(present)
    }

    /// Whether a member has no more than its share of all requests.
    fn allows(&self, member: usize) -> bool {
        let (mut weights, mut issued) = (0u128, 0u128);
        for other in self.present() {
            weights += u128::from(other.weight);
            issued += u128::from(other.issued.load(Ordering::Relaxed));
        }
        let own = &self.0[member];
        let done = u128::from(own.issued.load(Ordering::Relaxed));
        done * weights <= u128::from(own.weight) * issued
    }

    /// A worker begins. The first of a group that starts late begins with the share of the one that is behind, so that the
    /// others need not wait until it has caught up with them.
    fn join(&self, member: usize) {
        let own = &self.0[member];
        let least = self
            .present()
            .map(|other| other.issued.load(Ordering::Relaxed) / other.weight.max(1))
            .min();
        if own.workers.fetch_add(1, Ordering::Relaxed) == 0 {
            let share = least.unwrap_or(0) * own.weight;
            own.issued.fetch_max(share, Ordering::Relaxed);
        }
    }
}

/// What one worker has to do with it.
#[derive(Debug)]
pub(crate) struct FlowPart {
    flow: Arc<Flow>,
    member: usize,
    joined: bool,
    /// Whether its group counts on when it is over: all end with it, and none is let go before it is halted.
    stays: bool,
}

impl FlowPart {
    /// Of a worker of this member, which is `late` where it does not start with the trial. It `stays` where the trial ends
    /// with it.
    pub(crate) fn new(flow: Arc<Flow>, member: usize, late: bool, stays: bool) -> Self {
        Self {
            flow,
            member,
            joined: !late,
            stays,
        }
    }

    /// Whether its group may issue a request.
    pub(super) fn allows(&mut self) -> bool {
        if !self.joined {
            self.flow.join(self.member);
            self.joined = true;
        }
        self.flow.allows(self.member)
    }

    /// A request was issued.
    pub(super) fn issued(&self) {
        self.flow.0[self.member]
            .issued
            .fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for FlowPart {
    /// No group waits for one that is over.
    fn drop(&mut self) {
        if self.joined && !self.stays {
            self.flow.0[self.member]
                .workers
                .fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(weights: &[u32], late: bool) -> Vec<FlowPart> {
        let workers = u32::from(!late);
        let groups = weights.iter().map(|weight| (*weight, workers));
        let flow = Arc::new(Flow::new(groups));
        let members = 0..weights.len();
        members
            .map(|member| FlowPart::new(Arc::clone(&flow), member, late, false))
            .collect()
    }

    /// Has every part issue as often as it may, in turn.
    fn turns(parts: &mut [FlowPart], turns: usize) -> Vec<u64> {
        let mut counts = vec![0; parts.len()];
        for _ in 0..turns {
            for (part, count) in parts.iter_mut().zip(&mut counts) {
                if part.allows() {
                    part.issued();
                    *count += 1;
                }
            }
        }
        counts
    }

    #[test]
    fn groups_keep_the_proportion_of_their_weights() {
        let counts = turns(&mut parts(&[1, 8], false), 10_000);
        let ratio = counts[1] as f64 / counts[0] as f64;
        assert!((7.9..=8.1).contains(&ratio), "{counts:?}");
        let counts = turns(&mut parts(&[3, 2, 1], false), 10_000);
        let thirds = counts.iter().zip([3, 2, 1]).map(|(n, weight)| n / weight);
        let (least, most) = (thirds.clone().min(), thirds.max());
        assert!(
            most.zip(least)
                .is_some_and(|(most, least)| most - least <= 2),
            "{counts:?}"
        );
    }

    #[test]
    fn one_that_starts_with_the_trial_is_waited_for() {
        let mut both = parts(&[1, 1], false);
        // Its thread is not on a CPU yet.
        assert_eq!(turns(&mut both[..1], 100), [1]);
    }

    #[test]
    fn no_group_waits_for_one_that_is_over_or_has_not_begun() {
        let mut both = parts(&[1, 1], true);
        // The second has not begun.
        assert_eq!(turns(&mut both[..1], 100), [100]);
        // It begins where the first stands, and does not hold it up.
        let counts = turns(&mut both, 100);
        assert!(counts.iter().all(|count| *count >= 99), "{counts:?}");
        both.pop();
        assert_eq!(turns(&mut both, 100), [100]);
    }
}
