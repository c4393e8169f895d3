//! The files that a worker issues its requests to: one, or several. Code that is generic over this is compiled for one file
//! as if there was no choice.

use std::fs::File;

use crate::request::Request;
use iolab_workload::trial::FileSlots;

/// Files that are open, and which of them holds an offset of the worker.
pub(crate) trait Opened: Send + Sync + 'static {
    /// Whether they are several.
    const SEVERAL: bool;

    /// All files, in the order of their numbers.
    fn files(&self) -> &[File];

    /// The number of the file that a request goes to, and the request with its offset in that file.
    fn resolve(&self, request: Request) -> (usize, Request);

    /// An offset of the trial in each file.
    fn offset_in_each(&self) -> Vec<u64>;
}

/// One file.
pub(crate) struct OneFile([File; 1]);

impl OneFile {
    pub(crate) fn new(file: File) -> Self {
        Self([file])
    }
}

impl Opened for OneFile {
    const SEVERAL: bool = false;

    #[inline(always)]
    fn files(&self) -> &[File] {
        &self.0
    }

    #[inline(always)]
    fn resolve(&self, request: Request) -> (usize, Request) {
        (0, request)
    }

    fn offset_in_each(&self) -> Vec<u64> {
        vec![0]
    }
}

/// Several files of one worker.
pub(crate) struct SeveralFiles {
    pub(crate) files: Vec<File>,
    pub(crate) slots: FileSlots,
}

impl Opened for SeveralFiles {
    const SEVERAL: bool = true;

    #[inline(always)]
    fn files(&self) -> &[File] {
        &self.files
    }

    #[inline(always)]
    fn resolve(&self, request: Request) -> (usize, Request) {
        let (number, offset) = self.slots.place(request.offset);
        (number, Request { offset, ..request })
    }

    fn offset_in_each(&self) -> Vec<u64> {
        let numbers = 0..self.files.len() as u64;
        numbers.map(|number| self.slots.first(number)).collect()
    }
}
