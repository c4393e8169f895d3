//! What a program writes, taken from a pipe as it comes, in bounded memory.

use std::io::{ErrorKind, PipeReader, Read};

/// What is kept of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keep {
    /// Its first bytes, up to a limit.
    First(usize),
    /// Its last bytes.
    Last(usize),
}

/// One stream of a program.
pub(super) struct Stream {
    /// `None` once the other side has closed it.
    pipe: Option<PipeReader>,
    keep: Keep,
    bytes: Vec<u8>,
}

impl Stream {
    /// Of a pipe that does not wait.
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

    /// Takes what has come, without waiting, and tells whether there was anything. One buffer a time: a program that
    /// writes without end must not keep us from seeing that it is to be stopped.
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

    /// Whether all that is still to come is to be kept too.
    pub(super) fn wants_more(&self) -> bool {
        matches!(self.keep, Keep::First(max) if self.bytes.len() <= max)
    }

    /// Whether more came than is kept of it.
    pub(super) fn is_full(&self) -> bool {
        matches!(self.keep, Keep::First(max) if self.bytes.len() > max)
    }

    /// All that is kept.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The same as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}
