//! Units of the kernel's counts, from the C library. `rustix::param` reads them from `/proc/self/auxv` before
//! Linux 6.4, and panics where `/proc` is not mounted.

/// Size of a memory page, bytes.
pub fn page_size() -> usize {
    of_system(libc::_SC_PAGESIZE)
}

/// Clock ticks per second, the unit of CPU time in `/proc`.
pub fn clock_ticks_per_second() -> u64 {
    of_system(libc::_SC_CLK_TCK) as u64
}

fn of_system(name: libc::c_int) -> usize {
    // SAFETY: reads a constant of the system; no memory is passed.
    let value = unsafe { libc::sysconf(name) };
    usize::try_from(value).unwrap_or(1)
}
