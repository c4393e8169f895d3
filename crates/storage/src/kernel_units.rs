//! The units in which the kernel counts, as the C library knows them. `rustix::param` reads them from `/proc/self/auxv` before Linux 6.4, and
//! panics where `/proc` is not mounted.

/// Bytes of a page of memory.
pub fn page_size() -> usize {
    of_system(libc::_SC_PAGESIZE)
}

/// Ticks of the clock in a second, by which `/proc` counts CPU time.
pub fn clock_ticks_per_second() -> u64 {
    of_system(libc::_SC_CLK_TCK) as u64
}

fn of_system(name: libc::c_int) -> usize {
    // SAFETY: reads a constant of the system; no memory is passed.
    let value = unsafe { libc::sysconf(name) };
    usize::try_from(value).unwrap_or(1)
}
