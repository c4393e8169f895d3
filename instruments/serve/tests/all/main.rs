//! Modelled disks as files: what they hold, how they answer, whether in time. One program, so that it is linked once.

mod content;
mod playback;
mod tally;
