//! Modelled disks as files in real time, through FUSE, so that any tool can be graded on a disk whose truth is known.
//!
//! A request is computed in the model's virtual time when it arrives, and answered when the clock reaches the time of its
//! completion. [`Course`] is that computation, without a clock; a timer thread carries it out. [`Tally`] says how late
//! the answers were.

mod content;
mod course;
mod disk;
mod ledger;
mod place;
mod serving;
mod speed;
mod tally;
mod timer;

pub use content::{Content, PAGE};
pub use course::{Course, Due};
pub use place::Place;
pub use serving::{Options, Report, Serving, Wake};
pub use speed::Speed;
pub use tally::{OpTally, Punctuality, Tally};
