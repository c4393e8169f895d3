//! A child process: its arguments, its output in bounded memory, and its end.

use std::ffi::OsString;
use std::io::{ErrorKind, PipeReader, Read};
use std::path::PathBuf;
use std::thread;

use iolab_storage::Lent;
use iolab_workload::{Error, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

/// Arguments of a program, without its own name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arguments {
    given: Vec<OsString>,
    shown: Vec<OsString>,
    lent: Vec<Lent>,
}

impl Arguments {
    /// Arguments that name no file of a target.
    pub fn plain(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let given: Vec<OsString> = words.into_iter().map(Into::into).collect();
        Self {
            shown: given.clone(),
            given,
            lent: Vec::new(),
        }
    }

    /// Arguments that `of` makes from paths: from the lent ones for the program, and from readable ones for
    /// people.
    ///
    /// # Errors
    /// Errors of `of`.
    pub fn naming<E>(
        lent: Vec<Lent>,
        of: impl Fn(&[PathBuf]) -> std::result::Result<Vec<OsString>, E>,
    ) -> std::result::Result<Self, E> {
        let paths =
            |path: fn(&Lent) -> PathBuf| -> Vec<PathBuf> { lent.iter().map(path).collect() };
        Ok(Self {
            given: of(&paths(Lent::given))?,
            shown: of(&paths(Lent::shown))?,
            lent,
        })
    }

    /// Arguments that the program receives.
    pub(super) fn given(&self) -> &[OsString] {
        &self.given
    }

    /// Arguments for people to read.
    pub(super) fn shown(&self) -> &[OsString] {
        &self.shown
    }

    /// A text by the program, with readable paths put in.
    pub fn shown_in(&self, text: &str) -> String {
        let lent = self.lent.iter();
        lent.fold(text.to_owned(), |text, lent| lent.shown_in(&text))
    }
}

/// Part of a stream that is kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keep {
    /// The first bytes of the output, up to a limit.
    First(usize),
    /// The last bytes of the output.
    Last(usize),
}

/// One stream of a program.
pub(super) struct Stream {
    /// The pipe; `None` once the other side has closed it.
    pipe: Option<PipeReader>,
    keep: Keep,
    bytes: Vec<u8>,
}

impl Stream {
    /// A stream from a non-blocking pipe.
    pub(super) fn new(pipe: PipeReader, keep: Keep) -> Self {
        Self {
            pipe: Some(pipe),
            keep,
            bytes: Vec::new(),
        }
    }

    /// An empty stream.
    pub(super) fn closed() -> Self {
        Self {
            pipe: None,
            keep: Keep::Last(0),
            bytes: Vec::new(),
        }
    }

    /// The pipe, as long as it is open.
    pub(super) fn pipe(&self) -> Option<&PipeReader> {
        self.pipe.as_ref()
    }

    /// Takes the bytes that have arrived, without waiting. True if there were any. At most one buffer per call:
    /// endless output must not delay stopping the program.
    pub(super) fn take(&mut self) -> bool {
        let Some(pipe) = &mut self.pipe else {
            return false;
        };
        let mut buffer = [0; 1 << 16];
        match pipe.read(&mut buffer) {
            Ok(count) if count > 0 => {
                self.bytes.extend_from_slice(&buffer[..count]);
                if let Keep::Last(max) = self.keep {
                    let surplus = self.bytes.len().saturating_sub(max);
                    self.bytes.drain(..surplus);
                }
                return true;
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Ok(_) | Err(_) => self.pipe = None,
        }
        false
    }

    /// Whether everything still to come is kept too.
    pub(super) fn wants_more(&self) -> bool {
        matches!(self.keep, Keep::First(max) if self.bytes.len() <= max)
    }

    /// Whether more arrived than is kept.
    pub(super) fn is_full(&self) -> bool {
        matches!(self.keep, Keep::First(max) if self.bytes.len() > max)
    }

    /// All bytes kept.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// All bytes kept, as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}

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
