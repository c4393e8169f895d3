//! Account of a process or thread: its I/O and its resource use.

use std::fs::File;
use std::os::unix::fs::FileExt;

use iolab_workload::counters::{ProcessIo, ResourceUse};

pub(super) fn read_process_io() -> Option<ProcessIo> {
    parse_process_io(&std::fs::read_to_string("/proc/self/io").ok()?)
}

/// I/O account of this thread alone: proc(5), `/proc/thread-self`.
pub(super) fn read_thread_io() -> Option<ProcessIo> {
    parse_process_io(&std::fs::read_to_string("/proc/thread-self/io").ok()?)
}

/// I/O account of another process, opened while it runs. After the end of the process only root may open it,
/// but any user can read an open one until the end is collected.
#[derive(Debug)]
pub(crate) struct OpenAccount(File);

impl OpenAccount {
    pub(crate) fn of(process: u32) -> Option<Self> {
        File::open(format!("/proc/{process}/io")).ok().map(Self)
    }

    /// I/O account of one thread of a process.
    pub(crate) fn of_task(process: u32, task: u32) -> Option<Self> {
        File::open(format!("/proc/{process}/task/{task}/io"))
            .ok()
            .map(Self)
    }

    /// The account, and the part of `write_bytes` that will never be written because the file was truncated or
    /// removed.
    pub(crate) fn read(&self) -> Option<(ProcessIo, u64)> {
        let mut text = [0; 512];
        let length = self.0.read_at(&mut text, 0).ok()?;
        account(std::str::from_utf8(text.get(..length)?).ok()?)
    }
}

/// I/O account of another process now.
pub(crate) fn account_of(process: u32) -> Option<(ProcessIo, u64)> {
    OpenAccount::of(process)?.read()
}

/// I/O accounts of all collected children of this process, their collected children included: the process's
/// account less its threads. No thread may have ended.
pub(crate) fn account_of_collected() -> Option<(ProcessIo, u64)> {
    let mut threads = (ProcessIo::default(), 0);
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        let text = std::fs::read_to_string(thread.ok()?.path().join("io")).ok()?;
        let (io, cancelled) = account(&text)?;
        threads = (threads.0.plus(io), threads.1 + cancelled);
    }
    let all = account(&std::fs::read_to_string("/proc/self/io").ok()?)?;
    Some((all.0.since(threads.0), all.1.saturating_sub(threads.1)))
}

/// Bytes counted as written that never will be, because a thread of this process released their file last.
pub(crate) fn cancelled_by_this_process() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let texts = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("io")).ok());
    texts.filter_map(|text| Some(account(&text)?.1)).sum()
}

fn account(text: &str) -> Option<(ProcessIo, u64)> {
    let cancelled = field(text, "cancelled_write_bytes").unwrap_or(0);
    Some((parse_process_io(text)?, cancelled))
}

/// Parses proc(5), `/proc/pid/io`.
fn parse_process_io(text: &str) -> Option<ProcessIo> {
    let field = |name: &str| field(text, name);
    Some(ProcessIo {
        rchar: field("rchar")?,
        wchar: field("wchar")?,
        syscr: field("syscr")?,
        syscw: field("syscw")?,
        read_bytes: field("read_bytes")?,
        write_bytes: field("write_bytes")?,
    })
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        line.strip_prefix(name)?
            .strip_prefix(':')?
            .trim()
            .parse()
            .ok()
    })
}

pub(super) fn read_usage() -> ResourceUse {
    usage_of(libc::RUSAGE_SELF)
}

/// Resource use of this thread alone.
pub(super) fn read_thread_usage() -> ResourceUse {
    usage_of(libc::RUSAGE_THREAD)
}

/// Time for which this thread waited for a CPU, ns.
pub(super) fn read_thread_run_delay_ns() -> Option<u64> {
    parse_run_delay_ns(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Time for which a thread waited for a CPU, ns: the second number of its `schedstat`
/// (Documentation/scheduler/sched-stats.rst of Linux). A kernel without such statistics prints only zeros. The
/// third number counts the runs, so it is not 0 for a thread that has run. The first number, its CPU time,
/// stays 0 until a new thread's first tick.
pub(crate) fn parse_run_delay_ns(text: &str) -> Option<u64> {
    let mut fields = text.split_whitespace().map(|field| field.parse().ok());
    let (_, waited, runs): (u64, u64, u64) = (fields.next()??, fields.next()??, fields.next()??);
    (runs > 0).then_some(waited)
}

fn usage_of(whose: libc::c_int) -> ResourceUse {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a writable rusage, and all-zero bytes are a valid one even if the call failed.
    let usage = unsafe {
        libc::getrusage(whose, usage.as_mut_ptr());
        usage.assume_init()
    };
    resource_use(&usage)
}

/// Resource use in iolab's terms.
pub(crate) fn resource_use(usage: &libc::rusage) -> ResourceUse {
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    ResourceUse {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_account_is_read_as_linux_prints_it() {
        let io = "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\nread_bytes: 4096\nwrite_bytes: 323932160\ncancelled_write_bytes: 0\n";
        let io = parse_process_io(io).expect("complete");
        assert_eq!(
            (io.rchar, io.read_bytes, io.write_bytes),
            (323_934_931, 4096, 323_932_160)
        );
        assert_eq!(parse_process_io("rchar: 1\n"), None);
    }

    #[test]
    fn the_second_number_of_schedstat_is_the_wait() {
        assert_eq!(parse_run_delay_ns("66319 1234 17\n"), Some(1234));
        assert_eq!(parse_run_delay_ns("66319 0 17\n"), Some(0));
        // A new thread that has not seen a tick.
        assert_eq!(parse_run_delay_ns("0 101812 1\n"), Some(101_812));
        // The last text is the output of a kernel without these statistics.
        for text in ["", "17", "17 x 3", "1 -1 1", "0 0 0\n"] {
            assert_eq!(parse_run_delay_ns(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            prop_assert_eq!(parse_process_io(&text), None);
        }
    }
}
