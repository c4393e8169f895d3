//! The experiments that are compiled in.

/// Name and TOML text of every built-in experiment, in the order in which they are listed.
pub const BUILTIN: [(&str, &str); 12] = [
    (
        "read-size",
        include_str!("../../experiments/read-size.toml"),
    ),
    (
        "write-size",
        include_str!("../../experiments/write-size.toml"),
    ),
    (
        "read-stride",
        include_str!("../../experiments/read-stride.toml"),
    ),
    (
        "write-stride",
        include_str!("../../experiments/write-stride.toml"),
    ),
    (
        "read-random",
        include_str!("../../experiments/read-random.toml"),
    ),
    (
        "write-random",
        include_str!("../../experiments/write-random.toml"),
    ),
    (
        "load-latency",
        include_str!("../../experiments/load-latency.toml"),
    ),
    (
        "disk-grid",
        include_str!("../../experiments/disk-grid.toml"),
    ),
    (
        "why-serialised",
        include_str!("../../experiments/why-serialised.toml"),
    ),
    (
        "write-vs-read",
        include_str!("../../experiments/write-vs-read.toml"),
    ),
    (
        "buffer-size",
        include_str!("../../experiments/buffer-size.toml"),
    ),
    ("linkage", include_str!("../../experiments/linkage.toml")),
];
