//! Definitions: what is read, what is written, what is refused. One program, so that it is linked once.

mod catalogue;
mod disksim;
