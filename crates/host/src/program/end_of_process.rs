//! A descriptor that shows the end of a child process: `pidfd_open(2)`, and before Linux 5.3 a pipe.

use std::thread;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use iolab_workload::{Error, Result};

/// A descriptor that becomes readable, or is hung up, once the child has ended. The end still has to be
/// collected.
///
/// # Errors
/// No room for a descriptor or a thread.
pub(super) fn end_of_process(child: Pid) -> Result<OwnedFd> {
    match pidfd_open(child, PidfdFlags::empty()) {
        Err(Errno::NOSYS) => end_by_thread(child),
        opened => opened.map_err(|errno| no_room(errno.into())),
    }
}

/// Reading end of a pipe whose other end a thread closes when the child has ended.
fn end_by_thread(child: Pid) -> Result<OwnedFd> {
    let (reader, writer) = std::io::pipe().map_err(no_room)?;
    let wait = move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        // An error means that the end was collected: the child has ended then, too.
        while matches!(waitid(WaitId::Pid(child), options), Err(Errno::INTR)) {}
        drop(writer);
    };
    thread::Builder::new()
        .name("end-of-program".to_owned())
        .spawn(wait)
        .map_err(no_room)?;
    Ok(reader.into())
}

fn no_room(error: std::io::Error) -> Error {
    Error::failed(format!("cannot wait for the end of a program: {error}")).hint(
        "there must be room for one more open file (ulimit -n), and before Linux 5.3 for one more thread (ulimit -u)",
    )
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    #[test]
    fn thread_and_pidfd_both_show_the_end() {
        for end_of in [end_of_process, end_by_thread] {
            let mut child = Command::new("cat")
                .stdin(Stdio::piped())
                .spawn()
                .expect("cat starts");
            let end = end_of(Pid::from_child(&child)).expect("it is watched");
            let shown = |limit: Option<&Timespec>| {
                let mut watched = [PollFd::new(&end, PollFlags::IN)];
                poll(&mut watched, limit).expect("poll")
            };
            assert_eq!(
                shown(Some(&Timespec::default())),
                0,
                "it waits for its input"
            );
            drop(child.stdin.take());
            assert_eq!(shown(None), 1);
            assert!(child.wait().expect("its end is still there").success());
        }
    }
}
