//! The observers of drives that this build has.

use iolab_runner::NewObserver;

/// Observers of drives around each trial.
pub(crate) const OBSERVERS: &[NewObserver] = &[
    #[cfg(feature = "device-log")]
    iolab_device_log::observer,
];
