//! What is told of settings of the kernel that runs change.

use iolab_host::system_control::SystemControl;

use crate::output::note;

/// Restores what a killed run left changed, where this is root, and tells it. What cannot be restored is told, and stops nothing.
pub(crate) fn restore_leftovers() {
    match SystemControl::restore_leftovers() {
        Ok(restored) => tell_restored(&restored),
        Err(error) => note(format_args!("note: {error}")),
    }
}

/// Tells what was restored.
pub(crate) fn tell_restored(restored: &[String]) {
    for text in restored {
        note(format_args!(
            "note: restored after a run that was killed: {text}"
        ));
    }
}
