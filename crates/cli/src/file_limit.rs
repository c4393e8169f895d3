//! The limit on file sizes (`ulimit -f`), which every command outlives.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use iolab_workload::{Error, Result};
use signal_hook::consts::SIGXFSZ;
use signal_hook::flag;

/// Makes a write beyond the limit fail with an error instead of a signal, which would leave half of a file.
///
/// # Errors
///
/// The system refuses the handler.
pub(crate) fn outlive() -> Result<()> {
    let unused = Arc::new(AtomicBool::new(false));
    match flag::register(SIGXFSZ, unused) {
        Ok(_) => Ok(()),
        Err(error) => Err(
            Error::failed(format!("cannot catch signal {SIGXFSZ}: {error}"))
                .hint("iolab stops here, because half of a file could remain"),
        ),
    }
}
