//! One line of CSV per request, written by a thread of its own so that no answer waits for it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use iolab_diskmodel::{Ns, Request, ServedFrom};

/// One request. Real times, in ns since the start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedRequest {
    pub(crate) arrived: Ns,
    pub(crate) request: Request,
    pub(crate) due: Ns,
    pub(crate) done: Ns,
    pub(crate) served: ServedFrom,
}

/// The writer and the way to it.
#[derive(Debug)]
pub(crate) struct RequestLog {
    to: Sender<LoggedRequest>,
    writer: JoinHandle<io::Result<()>>,
}

impl RequestLog {
    /// Begins a new file.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let (to, entries) = channel();
        let writer = thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || write(file, &entries))?;
        Ok(Self { to, writer })
    }

    pub(crate) fn add(&self, entry: LoggedRequest) {
        // A failed writer reports its error at the end.
        let _ = self.to.send(entry);
    }

    /// Waits until all is written.
    pub(crate) fn end(self) -> io::Result<()> {
        drop(self.to);
        let written = self.writer.join();
        written.unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
    }
}

fn write(file: File, entries: &Receiver<LoggedRequest>) -> io::Result<()> {
    let mut to = BufWriter::new(file);
    writeln!(to, "arrival_ns,op,offset,bytes,due_ns,done_ns,served")?;
    for entry in entries {
        writeln!(
            to,
            "{},{},{},{},{},{},{}",
            entry.arrived,
            entry.request.op.name(),
            entry.request.offset,
            entry.request.len,
            entry.due,
            entry.done,
            entry.served.name(),
        )?;
    }
    to.flush()
}
