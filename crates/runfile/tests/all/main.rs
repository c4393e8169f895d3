//! Run files from outside.

mod killed;
