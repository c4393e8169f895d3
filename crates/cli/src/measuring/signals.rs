//! Signals: each requests a clean end. The first Ctrl-C lets the trial in flight finish.

use std::ffi::c_int;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::SIGINT;
use signal_hook::flag;
use signal_hook::low_level::pipe;

use iolab_command::output::note;
use iolab_command::signals::{catch_all, on_signals};
use iolab_runner::StopFlags;
use iolab_workload::{Error, Result};

/// Exit code after a signal, as README documents it.
const INTERRUPTED: c_int = 130;

/// Waits for one Ctrl-C, then for a second one.
fn follow_signals(
    flags: (Arc<AtomicBool>, Arc<AtomicBool>, Arc<AtomicBool>),
    mut ring: UnixStream,
) {
    let (after_trial, now, makes_trials) = flags;
    let mut rung = || ring.read_exact(&mut [0]).is_ok();
    if !rung() {
        return;
    }
    after_trial.store(true, Ordering::Relaxed);
    let text = match makes_trials.load(Ordering::Relaxed) {
        true => "note: ends after the trial in flight; press Ctrl-C again to end at once",
        false => "note: ends before the first trial",
    };
    // In a separate thread, so that a blocked terminal does not delay the second one.
    let _ = thread::Builder::new().spawn(move || note(text));
    if rung() {
        now.store(true, Ordering::Relaxed);
    }
}

/// Catches the signals of a measurement. In two steps, the first Ctrl-C ends it after the trial in flight, and anything else
/// at once; the second one, and every other signal of [`on_signals`], ends everything at once. Otherwise every signal does,
/// for runs by several processes: each gets its own signal, and one that finished its trial would wait for the others.
///
/// # Errors
/// The system refuses the handlers, or a thread.
pub(crate) fn catch(in_two_steps: bool) -> Result<StopFlags> {
    if !in_two_steps {
        let now = on_signals()?;
        return Ok(StopFlags {
            after_trial: Arc::clone(&now),
            now,
            ..StopFlags::default()
        });
    }
    let flags = StopFlags::default();
    let no_way = |error: io::Error| Error::failed(format!("cannot wait for Ctrl-C: {error}"));
    let (bell, ring) = UnixStream::pair().map_err(no_way)?;
    // Not `measuring`, which this thread would hold for ever.
    let own = (
        Arc::clone(&flags.after_trial),
        Arc::clone(&flags.now),
        Arc::clone(&flags.makes_trials),
    );
    let wait = move || follow_signals(own, ring);
    thread::Builder::new().spawn(wait).map_err(no_way)?;
    let is_over = &flags.measuring.is_over;
    catch_all(&|signal| {
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(is_over))?;
        match signal {
            SIGINT => pipe::register(signal, bell.try_clone()?),
            _ => {
                flag::register(signal, Arc::clone(&flags.after_trial))?;
                flag::register(signal, Arc::clone(&flags.now))
            }
        }
    })?;
    Ok(flags)
}
