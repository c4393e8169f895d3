//! Which trial may have the threads of another one.

use iolab_workload::cpus::Cpus;
use iolab_workload::trial::{TrialLimit, TrialSpec};

use super::Crew;
use crate::placement;
use crate::worker::WorkerOutcome;

/// Fewer threads are started anew by each trial: the kernel makes them within a few milliseconds, and on which CPUs they begin is left to chance,
/// which a repetition has to draw again.
const THREADS_MIN: u32 = 64;

/// What two trials have to have in common for the threads of one to be what the other would start.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Needs {
    /// Of each group, without what no thread and no ring depends on.
    groups: Vec<TrialSpec>,
    /// The CPUs of the process, which threads inherit.
    cpus: Cpus,
}

impl Needs {
    /// `None` where a trial starts its own.
    fn of(specs: &[&TrialSpec]) -> Option<Self> {
        let cpus = placement::allowed();
        let threads: u32 = specs.iter().map(|spec| spec.threads).sum();
        let more_than_cpus = threads as usize > cpus.numbers().len();
        (threads >= THREADS_MIN && more_than_cpus).then(|| Self {
            groups: specs.iter().map(|spec| common(spec)).collect(),
            cpus,
        })
    }
}

/// The settings of a trial, those with defaults in their place that decide only which requests there are, and how many.
fn common(spec: &TrialSpec) -> TrialSpec {
    let TrialSpec {
        pattern,
        offset,
        region,
        read_percent,
        ..
    } = TrialSpec::default();
    TrialSpec {
        pattern,
        offset,
        region,
        read_percent,
        limit: TrialLimit::default(),
        seed: 0,
        ..spec.clone()
    }
}

/// The threads of a trial.
#[derive(Debug)]
pub(crate) struct TrialCrew {
    /// `None` where they end with it.
    needs: Option<Needs>,
    pub(crate) threads: Crew<Option<WorkerOutcome>>,
}

impl TrialCrew {
    /// For a trial of these groups: the threads that are left, where it would start the same; else those that are left end.
    pub(crate) fn for_trial(specs: &[&TrialSpec], left: Option<Self>) -> Self {
        let needs = Needs::of(specs);
        let fits = |left: &Self| needs.is_some() && left.needs == needs;
        let left = left.filter(fits);
        left.unwrap_or_else(|| Self {
            needs,
            threads: Crew::default(),
        })
    }

    /// What another trial may have of it.
    pub(crate) fn left(self) -> Option<Self> {
        (self.needs.is_some() && self.threads.may_stay()).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use iolab_workload::cpus::Placement;
    use iolab_workload::trial::{Backend, Pattern};

    use super::*;

    /// Whether a second trial gets the threads of the first one.
    fn is_left(first: &TrialSpec, second: &TrialSpec) -> bool {
        let mut crew = TrialCrew::for_trial(&[first], None);
        let threads = &mut crew.threads;
        threads
            .at_work(|shift| shift.start(|_| None))
            .expect("a thread");
        let crew = TrialCrew::for_trial(&[second], crew.left());
        !crew.threads.is_empty()
    }

    #[test]
    fn a_trial_gets_threads_that_it_would_have_made_the_same() {
        let threads = THREADS_MIN + placement::allowed().numbers().len() as u32;
        let first = TrialSpec {
            threads,
            ..TrialSpec::default()
        };
        let alike = TrialSpec {
            seed: 7,
            pattern: Pattern::Rand,
            read_percent: 70,
            limit: TrialLimit {
                requests: Some(1),
                ..TrialLimit::default()
            },
            ..first.clone()
        };
        assert!(is_left(&first, &alike) && is_left(&alike, &first));
        let others = [
            TrialSpec {
                threads: threads + 1,
                ..first.clone()
            },
            TrialSpec {
                backend: Backend::Libaio,
                ..first.clone()
            },
            TrialSpec {
                placement: Placement::Spread,
                ..first.clone()
            },
            TrialSpec {
                nice: Some(1),
                ..first.clone()
            },
            TrialSpec {
                iopoll: true,
                ..first.clone()
            },
        ];
        for other in &others {
            assert!(!is_left(&first, other), "{other:?}");
            assert!(!is_left(other, &first), "{other:?}");
        }
        let few = TrialSpec {
            threads: 2,
            ..first
        };
        assert!(!is_left(&few, &few));
    }
}
