//! Memory of buffers and histograms that outlives its trial, for the next one that needs the same.
//!
//! Many workers touch so much memory that the kernel takes longer to give it than a short trial takes. Buffers are kept if
//! they cannot be distinguished from fresh memory. A trial that writes fills them anew, and each request lies in one page, whichever
//! page that is. Larger requests get fresh memory in each trial: the number of physical pieces of a buffer is left to
//! chance, and a repetition has to draw it again.
//!
//! Buffers are given to the next trial only when every slot of its buffers is at home: a request that was lost may be in flight, and the
//! kernel may still write into its buffer.

use std::mem;
use std::sync::Arc;

use iolab_host::machine::huge_pages_in_force;
use iolab_storage::procfs;
use iolab_storage::procfs::page_size;
use iolab_workload::Result;
use iolab_workload::trial::{BufferInit, TrialSpec};

use crate::buffer::{self, Arena};
use crate::buffer::{ArenaPart, Registration};
use crate::placement;
use crate::worker::latency_log::SpareHistograms;
use crate::worker::{latency_log, outcome, request_log};

/// Memory below this is mapped anew by each trial, bytes: the kernel gives it within a few milliseconds.
const KEPT_MIN: u64 = 16 << 20;

/// The properties in which two trials have to agree to use the same memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    is_contiguous: bool,
    threads: u32,
    depth: u32,
}

impl Layout {
    /// `None` if a trial needs fresh memory.
    fn of(spec: &TrialSpec) -> Option<Self> {
        let is_filled = spec.buffer_init == BufferInit::Random;
        let lies_in_one_page = spec.largest_request() <= page_size() as u64;
        // Pages lie on the node of the thread which touches them first.
        let is_of_one_node = || !placement::has_several_nodes();
        (is_filled && lies_in_one_page && is_of_one_node()).then(|| Self {
            is_contiguous: buffer::is_contiguous(spec),
            threads: spec.threads,
            depth: spec.depth,
        })
    }

    /// As [`Self::of`] for each group of a trial; `None` if one needs fresh memory, or all together are quickly mapped.
    fn of_all(specs: &[&TrialSpec]) -> Option<Vec<Self>> {
        let bytes: u64 = specs.iter().map(|spec| buffer::bytes_of(spec)).sum();
        if bytes < KEPT_MIN {
            return None;
        }
        specs.iter().map(|spec| Self::of(spec)).collect()
    }
}

/// The memory of the buffers of one group: one arena of all its workers, or one of each.
#[derive(Debug)]
pub(crate) struct GroupMemory(Vec<Arc<Arena>>);

impl GroupMemory {
    fn new(spec: &TrialSpec) -> Result<Self> {
        let (arenas, workers) = buffer::division(spec);
        let arenas = (0..arenas).map(|_| Arena::new(spec, workers).map(Arc::new));
        arenas.collect::<Result<_>>().map(Self)
    }

    /// The place of a worker's buffers.
    fn of(&self, worker: u32, is_filled: bool, registration: &Registration) -> ArenaPart {
        let (arena, before) = match &self.0[..] {
            [all] => (all, worker),
            each => (&each[worker as usize], 0),
        };
        ArenaPart {
            arena: Arc::clone(arena),
            before,
            is_filled,
            registration: registration.clone(),
        }
    }

    /// Whether nothing refers to it any more: buffers that miss a slot keep their arena for good.
    fn is_free(&mut self) -> bool {
        self.0.iter_mut().all(|arena| Arc::get_mut(arena).is_some())
    }
}

/// The part of a trial's memory that one worker uses.
#[derive(Debug)]
pub(crate) struct WorkerMemory {
    pub(crate) buffers: ArenaPart,
    pub(crate) histograms: SpareHistograms,
}

/// The memory of all workers of a trial.
#[derive(Debug)]
pub(crate) struct TrialMemory {
    /// Layout that another trial needs in order to use the buffers again; `None` if no other trial may.
    layouts: Option<Vec<Layout>>,
    groups: Vec<GroupMemory>,
    /// Whether an earlier trial has filled the buffers.
    are_filled: bool,
    pub(crate) histograms: SpareHistograms,
    pub(crate) registration: Registration,
}

impl TrialMemory {
    /// The memory of one worker of a group.
    pub(crate) fn of(&self, group: usize, worker: u32) -> WorkerMemory {
        WorkerMemory {
            buffers: self.groups[group].of(worker, self.are_filled, &self.registration),
            histograms: self.histograms.clone(),
        }
    }
}

/// Memory that a trial leaves for the next one. Returned to the system on drop, or if the next trial needs other memory.
#[derive(Debug, Default)]
pub struct KeptMemory {
    /// The buffers of each group, with what a trial has to agree in to use them.
    buffers: Option<(Vec<Layout>, Vec<GroupMemory>)>,
    histograms: SpareHistograms,
    /// The system's setting for huge pages during the trial that left this memory, which decides the size of its pages.
    huge_pages: Option<String>,
}

impl KeptMemory {
    /// Memory for a trial with these groups: the kept memory if it fits. Otherwise the kept memory is given back and new
    /// memory is mapped. To be called before the page cache is prepared, from which it takes room.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): there is none, or a limit of the process leaves too little.
    pub(crate) fn claim(&mut self, specs: &[&TrialSpec]) -> Result<TrialMemory> {
        let workers = specs.iter().map(|spec| spec.threads).sum();
        let logs = |spec: &&TrialSpec| latency_log::bytes(spec) + request_log::bytes(spec);
        let logs = specs.iter().map(logs).sum();
        if procfs::check(workers, logs).is_err() {
            // Kept memory counts as used.
            *self = Self::default();
            procfs::check(workers, logs)?;
        }
        if !self.is_empty() && self.huge_pages != huge_pages_in_force() {
            *self = Self::default();
        }
        let Self {
            buffers,
            histograms,
            huge_pages: _,
        } = mem::take(self);
        histograms.truncate(
            specs
                .iter()
                .map(|spec| outcome::histogram_count(spec))
                .sum(),
        );
        let layouts = Layout::of_all(specs);
        let kept = buffers.filter(|(kept, _)| layouts.as_ref() == Some(kept));
        let are_filled = kept.is_some();
        let groups = match kept {
            Some((_, groups)) => groups,
            None => {
                let groups = specs.iter().map(|spec| GroupMemory::new(spec));
                let groups = groups.collect::<Result<_>>()?;
                // The threads and logs have to fit alongside the buffers.
                procfs::check(workers, logs)?;
                groups
            }
        };
        Ok(TrialMemory {
            layouts,
            groups,
            are_filled,
            histograms,
            registration: Registration::default(),
        })
    }

    /// Keeps the memory of a trial whose workers are done, as far as another one may use them.
    pub(crate) fn keep(&mut self, memory: TrialMemory) {
        let TrialMemory {
            layouts,
            mut groups,
            histograms,
            ..
        } = memory;
        let is_free = groups.iter_mut().all(GroupMemory::is_free);
        *self = Self {
            buffers: layouts.filter(|_| is_free).zip(Some(groups)),
            // On several nodes the memory of each worker lies on its own node.
            histograms: match histograms.bytes() >= KEPT_MIN && !placement::has_several_nodes() {
                true => histograms,
                false => SpareHistograms::default(),
            },
            huge_pages: None,
        };
        if !self.is_empty() {
            self.huge_pages = huge_pages_in_force();
        }
    }

    fn is_empty(&self) -> bool {
        self.buffers.is_none() && self.histograms.bytes() == 0
    }
}

#[cfg(test)]
mod tests {
    use iolab_workload::trial::BufferMemory;

    use super::*;
    use crate::buffer::Buffers;
    use needs::settings;

    fn spec(seed: u64) -> TrialSpec {
        let page = page_size();
        TrialSpec {
            seed,
            ..settings(&format!("bs={page} threads=64 depth=64"))
        }
    }

    fn buffers(spec: &TrialSpec, memory: &TrialMemory, worker: u32) -> Buffers {
        Buffers::in_arena(spec, worker, memory.of(0, worker).buffers).expect("memory")
    }

    /// Whether a second trial gets the memory of the first one.
    fn is_kept(first: &[&TrialSpec], second: &[&TrialSpec]) -> bool {
        let mut kept = KeptMemory::default();
        let memory = kept.claim(first).expect("memory");
        kept.keep(memory);
        let arenas = kept.buffers.iter().flat_map(|(_, groups)| groups);
        let arenas = arenas.flat_map(|group| &group.0).map(Arc::downgrade);
        let left: Vec<_> = arenas.collect();
        let _trial = kept.claim(second).expect("memory");
        !left.is_empty() && left.iter().all(|arena| arena.strong_count() > 0)
    }

    #[test]
    fn only_equal_needs_reuse_unmeasured_memory() {
        if placement::has_several_nodes() {
            return needs::skip(needs::Need::OneNode, "there are several");
        }
        let with = |change: fn(&mut TrialSpec)| {
            let mut spec = spec(1);
            change(&mut spec);
            spec
        };
        let one = spec(1);
        let direct = with(|spec| spec.buffer_memory = BufferMemory::Contiguous);
        assert!(is_kept(&[&one], &[&spec(2)]));
        assert!(is_kept(&[&one, &direct], &[&spec(4), &direct]));
        assert!(!is_kept(&[&one, &direct], &[&direct, &spec(4)]));
        let halved = with(|spec| (spec.threads, spec.depth) = (32, 128));
        for other in [halved, with(|spec| spec.depth = 128), direct] {
            assert!(!is_kept(&[&one], &[&other]), "{other:?}");
        }
        let inits = BufferInit::NAMES.iter().filter(|name| **name != "random");
        let mut fresh: Vec<TrialSpec> = inits
            .map(|init| TrialSpec {
                buffer_init: init.parse().expect("a name of the list"),
                ..spec(1)
            })
            .collect();
        // Requests that may lie in several pieces, and a few buffers.
        fresh.push(with(|spec| spec.bs *= 2));
        fresh.push(with(|spec| spec.depth = 1));
        for fresh in &fresh {
            assert!(!is_kept(&[fresh], &[fresh]), "{fresh:?}");
            assert!(!is_kept(&[&one], &[fresh]), "{fresh:?}");
        }
    }

    #[test]
    fn another_huge_page_setting_needs_fresh_memory() {
        if placement::has_several_nodes() {
            return needs::skip(needs::Need::OneNode, "there are several");
        }
        let mut kept = KeptMemory::default();
        let first = kept.claim(&[&spec(1)]).expect("memory");
        kept.keep(first);
        assert_eq!(kept.huge_pages, huge_pages_in_force());
        kept.huge_pages = Some("another".to_owned());
        let arena = Arc::downgrade(&kept.buffers.as_ref().expect("kept").1[0].0[0]);
        let _second = kept.claim(&[&spec(1)]).expect("memory");
        assert_eq!(arena.strong_count(), 0);
    }

    #[test]
    fn each_writing_trial_refills_its_memory() {
        if placement::has_several_nodes() {
            return needs::skip(needs::Need::OneNode, "there are several");
        }
        let mut kept = KeptMemory::default();
        let first = kept.claim(&[&spec(1)]).expect("memory");
        buffers(&spec(1), &first, 5).home_mut()[7].bytes().fill(0);
        kept.keep(first);
        // A reading trial leaves the content as it is.
        let second = kept.claim(&[&spec(2)]).expect("memory");
        let mut left = buffers(&spec(2), &second, 5);
        assert!(left.home_mut()[7].bytes().iter().all(|byte| *byte == 0));
        assert!(left.home_mut()[8].bytes().iter().any(|byte| *byte != 0));
        drop(left);
        kept.keep(second);
        let writing = TrialSpec {
            read_percent: 50,
            ..spec(3)
        };
        let third = kept.claim(&[&writing]).expect("memory");
        let mut own = buffers(&writing, &third, 5);
        let mut fresh = Buffers::new(&writing, 5).expect("memory");
        for (own, fresh) in own.home_mut().iter_mut().zip(fresh.home_mut()) {
            assert_eq!(own.bytes(), fresh.bytes());
        }
    }

    #[test]
    fn memory_of_a_lost_request_is_not_reused() {
        if placement::has_several_nodes() {
            return needs::skip(needs::Need::OneNode, "there are several");
        }
        let mut kept = KeptMemory::default();
        let first = kept.claim(&[&spec(1)]).expect("memory");
        let mut own = buffers(&spec(1), &first, 63);
        let mut lost = own.take().expect("a slot");
        drop(own);
        kept.keep(first);
        assert!(kept.buffers.is_none());
        lost.bytes().fill(1);
    }
}
