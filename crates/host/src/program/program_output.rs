//! Output of a program, taken from a pipe as it arrives, in bounded memory.

use std::io::{ErrorKind, PipeReader, Read};

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
