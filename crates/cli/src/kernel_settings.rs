//! Messages about settings of the kernel that runs change.

use iolab_host::system_control::SystemControl;

use iolab_command::output::note;

/// Restores settings that a killed run left changed, if this process is root, and reports them. Failures are reported, and
/// stop nothing.
pub(crate) fn restore_leftovers() {
    match SystemControl::restore_leftovers() {
        Ok(restored) => tell_restored(&restored),
        Err(error) => note(format_args!("note: {error}")),
    }
}

/// Reports restored settings.
pub(crate) fn tell_restored(restored: &[String]) {
    for text in restored {
        note(format_args!(
            "note: restored after a run that was killed: {text}"
        ));
    }
}
