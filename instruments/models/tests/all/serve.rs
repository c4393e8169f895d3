//! Modelled disks as files: what they hold, how they answer, whether in time.

mod content;
mod playback;
mod tally;
