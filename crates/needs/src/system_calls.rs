//! A kernel that refuses system calls, as an older one does or a container's filter.

#![allow(unsafe_code)] // filters are set by calls that no safe crate has

/// Has the kernel fail these system calls with `errno` in this thread, in those that it starts, and in what they execute. It allocates,
/// so that between fork and exec it is for programs with one thread.
///
/// # Errors
/// When the kernel takes no filter.
///
/// # Panics
/// With more calls than one filter's jump reaches over, 254.
pub fn refuse_system_calls(calls: &[libc::c_long], errno: i32) -> std::io::Result<()> {
    let step = |code: u32, k: u32, jt, jf| libc::sock_filter {
        code: code as u16,
        k,
        jt,
        jf,
    };
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let fail = libc::SECCOMP_RET_ERRNO | errno.unsigned_abs();
    // The number of the system call is the first field.
    let mut steps = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for (place, call) in calls.iter().enumerate() {
        let to_fail = u8::try_from(calls.len() - place).expect("few system calls");
        steps.push(step(equal, *call as u32, to_fail, 0));
    }
    steps.push(step(
        libc::BPF_RET | libc::BPF_K,
        libc::SECCOMP_RET_ALLOW,
        0,
        0,
    ));
    steps.push(step(libc::BPF_RET | libc::BPF_K, fail, 0, 0));
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
