//! The iolab binary.
fn main() {}
