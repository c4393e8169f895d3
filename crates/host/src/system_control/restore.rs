//! Restoring the former values of kernel settings.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use iolab_workload::{Error, Result};

use super::journal::{self, During, Journal, JournalEntry};
use super::{JOURNAL, SYS, current, put};

/// Restores and names the settings that this process changed, where the thread that changed them cannot go on.
/// The journal stays as it is: the next run finds nothing to do.
///
/// # Errors
/// A setting cannot be restored within `limit`: the kernel may let a change of a queue wait for its requests.
pub fn restore_own(limit: Duration) -> Result<Vec<String>> {
    restore_held(Path::new(SYS), Path::new(JOURNAL), limit)
}

pub(super) fn restore_held(sys: &Path, journal: &Path, limit: Duration) -> Result<Vec<String>> {
    let (sys, journal) = (sys.to_owned(), journal.to_owned());
    let (done, is_done) = mpsc::channel();
    // The restoration may block for ever, for the same reason that this process is ending.
    let started = thread::Builder::new().spawn(move || {
        let restored = journal::held(&journal).and_then(|entries| put_back(&sys, &entries));
        let _ = done.send(restored);
    });
    let restored = started.ok().and_then(|_| is_done.recv_timeout(limit).ok());
    restored.unwrap_or_else(|| Err(not_restored("the kernel does not answer")))
}

/// Restores and names the settings in a journal.
pub(super) fn restore(sys: &Path, journal: &mut Journal) -> Result<Vec<String>> {
    let left = journal.left()?;
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let restored = put_back(sys, &left)?;
    journal.write(&[])?;
    Ok(restored)
}

/// Restores the values of files, and names the files that had another value. Values that others have changed
/// meanwhile stay, and files that are gone with their device are skipped.
pub(super) fn put_back(sys: &Path, entries: &[JournalEntry]) -> Result<Vec<String>> {
    let mut named = Vec::new();
    let mut failed = Vec::new();
    // The last change first; then files that the kernel resets along with another one.
    let (changed, reset): (Vec<&JournalEntry>, Vec<&JournalEntry>) = entries
        .iter()
        .partition(|entry| entry.during != During::Reset);
    for entry in changed.into_iter().rev().chain(reset) {
        let path = sys.join(&entry.path);
        let Some(now) = current(&path).filter(|now| *now != entry.before) else {
            continue;
        };
        let is_others = match &entry.during {
            // Settings of a scheduler that others have chosen are not iolab's to set.
            During::Reset => scheduler_of(entry, entries)
                .is_some_and(|own| current(&sys.join(&own.path)).as_ref() != Some(&own.before)),
            during => !during.explains(&now),
        };
        if is_others {
            continue;
        }
        match put(&path, &entry.before) {
            Ok(()) => named.push(format!(
                "{}: {} again, was {now}",
                path.display(),
                entry.before
            )),
            Err(error) => failed.push(error.message().to_owned()),
        }
    }
    match failed.is_empty() {
        true => Ok(named),
        false => Err(not_restored(&failed.join("; "))),
    }
}

fn not_restored(why: &str) -> Error {
    Error::failed(format!("settings of the kernel are not restored: {why}")).hint(format!(
        "the next run of iolab as root tries again; set them yourself, and remove {JOURNAL}, where that cannot help"
    ))
}

/// The scheduler entry whose change resets this entry.
fn scheduler_of<'a>(reset: &JournalEntry, entries: &'a [JournalEntry]) -> Option<&'a JournalEntry> {
    entries.iter().find(|entry| {
        let queue = entry.path.parent();
        let is_scheduler = entry.during != During::Reset && entry.path.ends_with("scheduler");
        is_scheduler && queue.is_some_and(|queue| reset.path.starts_with(queue))
    })
}
