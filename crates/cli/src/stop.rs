//! Signals: the first asks for a clean end, and so does every later one.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use iolab_lab::{Error, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

/// A flag that SIGINT, SIGTERM and SIGHUP raise. A second signal finds it raised and changes
/// nothing: the trial in flight ends, the run file is closed, the scratch file removed.
///
/// SIGXFSZ is caught so that a write beyond the limit on file sizes fails with an error instead
/// of killing the process; SIGPIPE is ignored by the Rust runtime already.
///
/// # Errors
/// When the system refuses the handlers.
pub(crate) fn on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let unheeded = Arc::new(AtomicBool::new(false));
    for (signal, flag) in [
        (SIGINT, &stop),
        (SIGTERM, &stop),
        (SIGHUP, &stop),
        (SIGXFSZ, &unheeded),
    ] {
        flag::register(signal, Arc::clone(flag)).map_err(|error| {
            Error::failed(format!("cannot catch signal {signal}: {error}"))
                .hint("without it a scratch file could be left behind, so nothing is measured")
        })?;
    }
    Ok(stop)
}
