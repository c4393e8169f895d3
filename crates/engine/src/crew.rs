//! Threads that carry out the workers of one trial after the other, and what a thread keeps between two trials. Of a thousand threads with
//! a ring each, the kernel takes longer to make and to end them than a short trial takes.
//!
//! A trial has all threads of a crew or none of them: no thread that is parked runs beside one that measures. A parked thread waits on its
//! channel, and is not named as a worker: who watches threads that measure must not take it for one of them.

pub(crate) mod needs;

use std::ffi::{CStr, CString};
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use iolab_host::tracing::THREAD_NAMES;

use crate::backend::io_uring::SpareRing;

/// The name of a thread without work.
const PARKED: &CStr = c"parked";

/// What a thread keeps from one trial to the next one.
#[derive(Default)]
pub(crate) struct Kit {
    /// Whether the thread has its own descriptor table, CPUs and priorities already.
    pub(crate) is_settled: bool,
    /// Whether the thread holds descriptors of the process open that it does not use: it then ends with its trial.
    pub(crate) holds_others: bool,
    pub(crate) ring: SpareRing,
}

/// The work of one thread in one trial.
type Task<'env, T> = Box<dyn FnOnce(&mut Kit) -> T + Send + 'env>;

/// Threads, each of which gives a `T` at the end of its work.
#[derive(Debug)]
pub(crate) struct Crew<T: Send + 'static> {
    members: Vec<Member<T>>,
    /// Whether a thread panicked, or holds what it must not hold between trials.
    has_to_end: bool,
}

impl<T: Send + 'static> Default for Crew<T> {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            has_to_end: false,
        }
    }
}

#[derive(Debug)]
struct Member<T: Send + 'static> {
    /// `None` once the thread has to end.
    tasks: Option<Sender<Task<'static, T>>>,
    ends: Receiver<End<T>>,
    thread: Option<JoinHandle<()>>,
}

/// The end of one task.
#[derive(Debug)]
struct End<T> {
    /// `None` where it panicked.
    result: Option<T>,
    may_stay: bool,
}

impl<T: Send + 'static> Crew<T> {
    /// Calls `f`, which has threads start; they have all done their work when this returns.
    pub(crate) fn at_work<'env, R>(&mut self, f: impl FnOnce(&mut Shift<'_, 'env, T>) -> R) -> R {
        let mut shift = Shift {
            crew: self,
            started: 0,
            ended: 0,
            borrows: PhantomData,
        };
        f(&mut shift)
    }

    /// Whether it has no threads.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether it can carry out another trial.
    pub(crate) fn may_stay(&self) -> bool {
        !self.has_to_end
    }
}

impl<T: Send + 'static> Drop for Crew<T> {
    fn drop(&mut self) {
        // All of them at once, and not one after the other.
        for member in &mut self.members {
            member.tasks = None;
        }
        for member in &mut self.members {
            if let Some(thread) = member.thread.take() {
                // A panic of its work was reported where it was started.
                let _ = thread.join();
            }
        }
    }
}

/// A crew during one trial, whose work may borrow what lives as long as `'env`.
pub(crate) struct Shift<'a, 'env, T: Send + 'static> {
    crew: &'a mut Crew<T>,
    started: usize,
    /// How many of them, the first ones, are known to be at their end.
    ended: usize,
    /// Neither longer nor shorter.
    borrows: PhantomData<&'env mut &'env ()>,
}

impl<'env, T: Send + 'static> Shift<'_, 'env, T> {
    /// Has the next thread do this, which is started where the crew has none.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(
        &mut self,
        task: impl FnOnce(&mut Kit) -> T + Send + 'env,
    ) -> io::Result<()> {
        if self.started == self.crew.members.len() {
            self.crew.members.push(Member::start(self.started)?);
        }
        let task: Task<'env, T> = Box::new(task);
        // SAFETY: only the lifetime changes. A thread has carried its task out and dropped it when it reports its end, or when its
        // sender of reports is gone; `drop` of this waits for one of both for each task that was sent, before `at_work` returns or
        // unwinds. What lives as long as `'env`, a lifetime that `at_work` is given, is there until then.
        let task = unsafe { mem::transmute::<Task<'env, T>, Task<'static, T>>(task) };
        let member = &self.crew.members[self.started];
        let sent = member.tasks.as_ref().map(|tasks| tasks.send(task));
        match sent {
            Some(Ok(())) => {
                self.started += 1;
                Ok(())
            }
            Some(Err(_)) | None => Err(io::Error::other("it has ended")),
        }
    }

    /// How many threads have been given work.
    pub(crate) fn started(&self) -> usize {
        self.started
    }

    /// Waits until all are done; gives what each did in the order of their starts, `None` for one that panicked.
    pub(crate) fn join(&mut self) -> Vec<Option<T>> {
        let mut results = Vec::with_capacity(self.started);
        while self.ended < self.started {
            let end = self.crew.members[self.ended].ends.recv().ok();
            self.ended += 1;
            self.crew.has_to_end |= !end.as_ref().is_some_and(|end| end.may_stay);
            results.push(end.and_then(|end| end.result));
        }
        results
    }
}

impl<T: Send + 'static> Drop for Shift<'_, '_, T> {
    fn drop(&mut self) {
        self.join();
    }
}

impl<T: Send + 'static> Member<T> {
    fn start(number: usize) -> io::Result<Self> {
        let name = format!("{THREAD_NAMES}{number}");
        let own = CString::new(name.as_str())?;
        let (tasks, received) = mpsc::channel();
        let (ended, ends) = mpsc::channel();
        let thread = thread::Builder::new().name(name);
        let thread = thread.spawn(move || serve(&own, &received, &ended))?;
        Ok(Self {
            tasks: Some(tasks),
            ends,
            thread: Some(thread),
        })
    }
}

/// Carries tasks out until there are no more.
fn serve<T>(name: &CStr, tasks: &Receiver<Task<'static, T>>, ended: &Sender<End<T>>) {
    let mut kit = Kit::default();
    let rename = |name| {
        // A thread with another name does the same.
        let _ = rustix::thread::set_name(name);
    };
    while let Ok(task) = tasks.recv() {
        rename(name);
        // What a panic leaves behind is not used again.
        let result = catch_unwind(AssertUnwindSafe(|| task(&mut kit))).ok();
        rename(PARKED);
        let may_stay = result.is_some() && !kit.holds_others;
        if ended.send(End { result, may_stay }).is_err() {
            break;
        }
    }
    // What the thread still holds may make it wait for storage as it ends: it counts among those of a trial then.
    rename(name);
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn thread_id() -> i32 {
        rustix::thread::gettid().as_raw_nonzero().get()
    }

    #[test]
    fn the_same_threads_do_the_work_of_one_trial_after_the_other() {
        let mut crew = Crew::default();
        let mut trial = |threads: usize| -> Vec<i32> {
            let done = AtomicUsize::new(0);
            let results = crew.at_work(|shift| {
                for _ in 0..threads {
                    let own = |_: &mut Kit| {
                        done.fetch_add(1, Ordering::Relaxed);
                        thread_id()
                    };
                    shift.start(own).expect("a thread");
                }
                shift.join()
            });
            assert_eq!(done.into_inner(), threads);
            results
                .into_iter()
                .map(|id| id.expect("no panic"))
                .collect()
        };
        let first = trial(3);
        assert_eq!(trial(3), first);
        let four = trial(4);
        assert_eq!(four[..3], first);
        assert!(!first.contains(&four[3]));
    }

    #[test]
    fn work_is_over_when_what_it_borrows_is_gone() {
        let mut crew = Crew::default();
        let (go, may_go) = mpsc::channel::<()>();
        let done = AtomicUsize::new(0);
        let (done_of_task, is_told) = (&done, Receiver::into_iter);
        crew.at_work(|shift| {
            let task = move |_: &mut Kit| {
                is_told(may_go).for_each(drop);
                thread::yield_now();
                done_of_task.fetch_add(1, Ordering::Relaxed);
            };
            shift.start(task).expect("a thread");
            // Not joined.
            drop(go);
        });
        assert_eq!(done.into_inner(), 1);
        assert!(crew.may_stay());
    }

    #[test]
    fn a_crew_of_which_one_panicked_or_holds_what_is_not_its_own_has_to_end() {
        let panics = |_: &mut Kit| resume_unwind(Box::new("a fault"));
        let mut crew = Crew::<()>::default();
        let results = crew.at_work(|shift| {
            shift.start(panics).expect("a thread");
            shift.start(|_| ()).expect("a thread");
            shift.join()
        });
        assert_eq!(results, [None, Some(())]);
        assert!(!crew.may_stay());
        let mut crew = Crew::<()>::default();
        crew.at_work(|shift| shift.start(|kit| kit.holds_others = true))
            .expect("a thread");
        assert!(!crew.may_stay());
    }

    #[test]
    fn a_parked_thread_does_not_have_the_name_of_a_worker() {
        let name = |id: i32| std::fs::read_to_string(format!("/proc/self/task/{id}/comm"));
        let mut crew = Crew::default();
        let at_work = |_: &mut Kit| (thread_id(), name(thread_id()));
        let results = crew.at_work(|shift| {
            shift.start(at_work).expect("a thread");
            shift.join()
        });
        let (id, working) = results.into_iter().flatten().next().expect("no panic");
        assert_eq!(working.expect("procfs"), format!("{THREAD_NAMES}0\n"));
        assert_eq!(name(id).expect("it is there"), "parked\n");
    }
}
