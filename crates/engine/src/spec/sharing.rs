//! How the workers of a trial share what they read and write.

use std::fmt;
use std::str::FromStr;

use super::{Backend, Pattern, TrialSpec, named};
use crate::error::{Error, Result};
use crate::pattern::share;

/// Which bytes belong to which worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// One file, a contiguous share per worker; patterns that draw from the whole region do so.
    Shared,
    /// One file, blocks dealt out in turn.
    Interleaved,
    /// A file per worker; together they have the size of the region.
    Private,
}

/// Whose the open file descriptions are, with their position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Descriptors {
    /// Each worker opens the file for itself.
    Private,
    /// The file is opened once, and all workers use that.
    Shared,
}

named!(Layout, "layout", {
    "shared" => Layout::Shared, "interleaved" => Layout::Interleaved, "private" => Layout::Private,
});
named!(Descriptors, "descriptors", {
    "private" => Descriptors::Private, "shared" => Descriptors::Shared,
});

impl TrialSpec {
    /// Whether a trial starts on a file that was created for it: one that only writes, and was asked to.
    pub fn starts_fresh(&self) -> bool {
        self.fresh && !self.reads() && self.backend != Backend::Null
    }

    /// Whether descriptors and layout go together: a file per worker has a descriptor per worker.
    pub fn sharing_applies(&self) -> bool {
        self.layout != Layout::Private || self.descriptors != Descriptors::Shared
    }

    /// Bytes of the file that worker number `worker` has for itself.
    pub fn private_bytes(&self, worker: u32) -> u64 {
        share(self.region / self.bs, worker, self.threads).1 * self.bs
    }

    /// Checks how the workers share, as far as that can be without a target.
    pub(super) fn check_sharing(&self) -> Result<()> {
        let fail = |message: String, hint: &str| Err(Error::usage(message).hint(hint));
        if !self.sharing_applies() {
            return fail(
                "descriptors=shared with layout=private".to_owned(),
                "a file per thread has a descriptor per thread; set descriptors=private or another layout",
            );
        }
        if self.layout == Layout::Interleaved && self.pattern == Pattern::Strided {
            return fail(
                "layout interleaved with pattern strided".to_owned(),
                "both say what is left out after a block; set layout=shared, or pattern=seq",
            );
        }
        if self.layout == Layout::Private && self.offset > 0 {
            return fail(
                format!("offset {} with layout=private", self.offset),
                "files of their own begin at 0; leave the offset out",
            );
        }
        Ok(())
    }
}
