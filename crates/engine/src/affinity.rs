//! The CPUs that the calling thread may run on, as many as any kernel has: the C library's own set ends at 1024.

use std::io;

use iolab_workload::cpus::{CPU_MAX, Cpus};

/// A word of the kernel's masks.
type Word = libc::c_ulong;

/// CPUs as the kernel takes and gives them: CPU `n` is bit `n` of the words.
struct Mask([Word; (CPU_MAX as usize + 1) / Word::BITS as usize]);

impl Mask {
    const fn new() -> Self {
        Self([0; (CPU_MAX as usize + 1) / Word::BITS as usize])
    }

    fn bit(cpu: u32) -> (usize, Word) {
        ((cpu / Word::BITS) as usize, 1 << (cpu % Word::BITS))
    }

    /// The mask of these CPUs. A CPU above [`CPU_MAX`] is an error.
    fn of(cpus: &Cpus) -> io::Result<Self> {
        let mut mask = Self::new();
        for cpu in cpus.numbers() {
            let (word, bit) = Self::bit(*cpu);
            let word = mask.0.get_mut(word);
            *word.ok_or(io::ErrorKind::InvalidInput)? |= bit;
        }
        Ok(mask)
    }

    fn cpus(&self) -> Cpus {
        let is_set = |cpu: &u32| {
            let (word, bit) = Self::bit(*cpu);
            self.0[word] & bit != 0
        };
        Cpus::new((0..=CPU_MAX).filter(is_set))
    }
}

/// The CPUs that this thread may run on.
///
/// # Errors
/// The kernel's error.
pub(crate) fn allowed() -> io::Result<Cpus> {
    let mut mask = Mask::new();
    // SAFETY: the kernel writes at most as many bytes as the mask has; 0 is the calling thread.
    let status = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            0,
            size_of_val(&mask.0),
            mask.0.as_mut_ptr(),
        )
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(mask.cpus())
}

/// Restricts this thread to these CPUs.
///
/// # Errors
/// The kernel's error.
pub(crate) fn restrict(cpus: &Cpus) -> io::Result<()> {
    let mask = Mask::of(cpus)?;
    // SAFETY: the kernel reads as many bytes as the mask has, and changes nothing but the affinity of the calling thread.
    let status = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            0,
            size_of_val(&mask.0),
            mask.0.as_ptr(),
        )
    };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restricts_a_thread_to_a_cpu_and_back() {
        let all = allowed().expect("told");
        let last = Cpus::new(all.numbers().last().copied());
        let seen = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                restrict(&last).expect("allowed");
                let restricted = allowed().expect("told");
                restrict(&all).expect("allowed");
                (restricted, allowed().expect("told"))
            });
            thread.join().expect("no panic")
        });
        assert_eq!(seen, (last, all));
    }

    #[test]
    fn a_mask_has_more_than_1024_cpus() {
        let cpus: Cpus = "0,63-64,1023-1025,2047,8191".parse().expect("a list");
        assert_eq!(Mask::of(&cpus).expect("room").cpus(), cpus);
        assert!(Mask::of(&Cpus::new([CPU_MAX + 1])).is_err());
    }
}
