//! iolab-report.
