//! Fields of every JSON document and its rows.

/// Version of the schemas: it rises where a name vanishes or changes its meaning, not where one is added.
pub(crate) const SCHEMA: u32 = 1;
/// Description of the level columns of a row.
pub(crate) const LEVEL: &str = "level of a factor of the experiment, as it is written: `4KiB`";
/// Version of iolab.
pub(crate) const IOLAB_VERSION: &str = env!("CARGO_PKG_VERSION");
