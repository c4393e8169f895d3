//! System calls that fail, as on an older kernel or in a container with a filter, or that take longer.

#![allow(unsafe_code)] // filters are set by calls that no safe crate has

/// Most steps of a filter (`BPF_MAXINSNS`).
const STEPS_MAX: usize = 4096;

/// A step that skips `jt` steps if its condition is true, and `jf` if not.
fn jump(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        k,
        jt,
        jf,
    }
}

fn step(code: u32, k: u32) -> libc::sock_filter {
    jump(code, k, 0, 0)
}

/// Makes the kernel fail these system calls with `errno` in this thread, in threads that it starts, and in
/// programs they execute. It allocates, so between fork and exec it is only for programs with one thread.
///
/// # Errors
/// The kernel accepts no filter.
///
/// # Panics
/// More calls than one filter's jump can skip, 254.
pub fn refuse_system_calls(calls: &[libc::c_long], errno: i32) -> std::io::Result<()> {
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let fail = libc::SECCOMP_RET_ERRNO | errno.unsigned_abs();
    // The number of the system call is the first field.
    let mut steps = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for (place, call) in calls.iter().enumerate() {
        let to_fail = u8::try_from(calls.len() - place).expect("few system calls");
        steps.push(jump(equal, *call as u32, to_fail, 0));
    }
    steps.push(ALLOW);
    steps.push(step(libc::BPF_RET | libc::BPF_K, fail));
    install(&mut steps)
}

/// Makes every system call of this thread, of threads that it starts, and of programs they execute take longer.
/// The kernel divides some 4,000 times before each, about 20 us on x86-64.
///
/// # Errors
/// The kernel accepts no filter.
pub fn slow_system_calls() -> std::io::Result<()> {
    let divide = step(libc::BPF_ALU | libc::BPF_DIV | libc::BPF_K, 1);
    let mut steps = vec![step(libc::BPF_LD | libc::BPF_IMM, u32::MAX)];
    steps.resize(STEPS_MAX - 1, divide);
    steps.push(ALLOW);
    install(&mut steps)
}

const ALLOW: libc::sock_filter = libc::sock_filter {
    code: (libc::BPF_RET | libc::BPF_K) as u16,
    jt: 0,
    jf: 0,
    k: libc::SECCOMP_RET_ALLOW,
};

fn install(steps: &mut [libc::sock_filter]) -> std::io::Result<()> {
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    let result = |status: libc::c_int| match status {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    };
    // SAFETY: neither call keeps a pointer; the program is valid during the second.
    unsafe {
        result(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        result(libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        ))
    }
}
