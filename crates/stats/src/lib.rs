//! iolab-stats.
