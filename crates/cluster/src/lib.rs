//! iolab-cluster: one run by several processes. So far: whether a launcher started several.

pub mod launch;
